"""``lgdgcn bench``: how fast a training step is, beside what one would run instead."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lgdgcn.benchmark import run
from lgdgcn.benchmark.rows import ROWS
from lgdgcn.benchmark.run import machine_name, number
from lgdgcn.benchmark.workload import Workload
from lgdgcn.commands.console import out, print_table
from lgdgcn.data.catalogue import info
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.runtime import select_device
from lgdgcn.storage import check_target, make_folder, write_json

__all__ = ["bench", "check_options"]


def bench(
    *,
    device: str,
    size: str | None,
    layers: int | None,
    scaling: bool,
    as_json: bool,
    folder: Path | None,
) -> None:
    """Measure every row in one run; print tables or one JSON object.

    Without a size, Cora or a generated graph of its size.
    """
    if layers is not None and not 1 <= layers <= 64:
        raise InputError(f"--layers is {layers}; give 1 to 64")
    where = str(select_device(device))
    work = None if size is None else Workload("", size, layers, where)
    if folder is not None:
        make_folder(folder)
        for name in ("bench.json", "scaling.png"):
            check_target(folder / name)
    work = work or Workload("", _size_at_hand(), layers, where)  # after all that may be refused
    with _progress() as on_start:
        report = run.benchmark(work, on_start=on_start)
        if scaling:
            report["scaling"] = run.scaling(work.device, on_start=on_start)
    if folder is not None:
        write_json(folder / "bench.json", report)
        if scaling:
            from lgdgcn.benchmark.picture import plot_scaling

            plot_scaling(report["scaling"], machine_name(report["machine"]), folder / "scaling.png")
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _print(report)


def check_options(
    scale: bool,
    size: str | None,
    layers: int | None,
    scaling: bool,
    nodes: int | None,
    edges: int | None,
    graphs: Path | None,
) -> bool:
    """Whether large graphs are measured, which have options of their own."""
    if scale and (size is not None or layers is not None or scaling):
        raise InputError("--scale has sizes of its own; leave out --size, --layers and --scaling")
    if not scale and any(option is not None for option in (nodes, edges, graphs)):
        raise InputError("--nodes, --edges and --graphs are options of --scale; add it")
    return scale


def _size_at_hand() -> str:
    """Cora where it is here; else a generated graph of as many nodes, which is said."""
    cora = info("cora")
    if cora.where_found is not None:
        return cora.name
    warnings.warn(
        f"cora is not here, so a generated graph of {cora.nodes} nodes is measured: get it with "
        "lgdgcn data get cora",
        LGDWarning,
        stacklevel=3,
    )
    return str(cora.nodes)


def _print(report: dict[str, Any]) -> None:
    work = report["workload"]
    layers = f"{work['layers']} layer" + "s" * (work["layers"] > 1)
    title = f"{work['size']}, {layers}, {machine_name(report['machine'])}"
    header = ["row", "median ms", "min ms", "× fast", "peak MB", "of floor"]
    print_table(title, header, [[row["row"], *_cells(row)] for row in report["rows"]])
    for row in report["rows"]:
        out.print(f"{row['row']}: {ROWS[row['row']]}")
    for row in report["rows"]:
        if "left_out" in row:
            out.print(f"{row['row']} is left out: {row['left_out']}")
    machine, floor = report["machine"], report["floor"]
    rates = (
        f"copies {machine['copy_bytes_per_s'] / 1e9:.1f} GB/s, "
        f"multiplies {machine['matrix_flops_per_s'] / 1e9:,.0f} GFLOP/s"
    )
    print_table(
        f"Counted floor {floor['ms']:.3g} ms: this machine {rates}",
        ["part", "MB", "MFLOP", "ms", "bound"],
        [
            [part["name"], f"{part['bytes'] / 1e6:.2f}", f"{part['flops'] / 1e6:.1f}",
             f"{part['ms']:.3g}", part["bound"]]
            for part in floor["parts"]
        ],
    )  # fmt: skip
    if "scaling" in report:
        _print_scaling(report["scaling"])


def _print_scaling(series: list[dict[str, Any]]) -> None:
    sizes = [point["nodes"] for point in series[0]["points"]]
    print_table(
        "Step time in ms over the number of nodes, one layer, degree 4",
        ["row", *(f"{nodes:,}" for nodes in sizes), "exponent", "last two"],
        [
            [
                line["row"],
                *(number(point.get("median_ms")) for point in line["points"]),
                number(line["exponent"]),
                number(line["last_exponent"]),
            ]
            for line in series
        ],
    )
    for line in series:
        for point in line["points"]:
            if "left_out" in point:
                out.print(f"{line['row']} stops before {point['nodes']:,}: {point['left_out']}")
                break


def _cells(row: dict[str, Any]) -> list[str]:
    if "left_out" in row:
        return ["–"] * 5
    share = row["floor_share"]
    return [
        number(row["member_ms"]),
        number(row["min_ms"] / row["members"]),
        number(row["ratio"]),
        number(row["peak_bytes"] / 1e6),
        "–" if share is None else f"{100 * share:.2g} %",
    ]


@contextmanager
def _progress() -> Iterator[run.OnStart]:
    """Say on a terminal's standard error what is being measured."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda what: None
        return
    with console.status("starting") as status:
        yield lambda what: status.update(f"measuring {what}")
