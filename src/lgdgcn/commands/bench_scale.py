"""``lgdgcn bench --scale``: time and memory over the size of generated graphs."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lgdgcn.benchmark.run import exponent, number
from lgdgcn.commands.console import out, print_table, say_step, steps
from lgdgcn.commands.scale_worker import ROWS
from lgdgcn.data.packed import PackedGraph, is_packed
from lgdgcn.errors import InputError
from lgdgcn.runtime import select_device
from lgdgcn.storage import check_target, make_folder, write_json

__all__ = ["bench_scale", "growing_sizes"]

NODES, EDGES = 100_000, 1_000_000  # of the largest graph, where none is asked for
MOST_EDGES = 100_000_000
LEAST_NODES = 1_000
BATCH_SIZE = 8192

Row = dict[str, Any]


def bench_scale(
    *,
    nodes: int | None,
    edges: int | None,
    graphs: Path | None,
    device: str,
    as_json: bool,
    folder: Path | None,
) -> None:
    """Measure three sizes, each ten times the last; print a table or one JSON object."""
    sizes = growing_sizes(nodes, edges)
    where = str(select_device(device))
    if folder is not None:
        make_folder(folder)
        for name in ("scale.json", "scale.png"):
            check_target(folder / name)
    with _place(graphs) as place, steps() as progress:
        rows = list(_rows(sizes, place, where, progress))
    report = {"device": where, "batch_size": BATCH_SIZE, "rows": rows, "growth": _growth(rows)}
    if folder is not None:
        from lgdgcn.benchmark.growth import plot_growth

        write_json(folder / "scale.json", report)
        plot_growth(rows, folder / "scale.png")
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _print(report)


def growing_sizes(nodes: int | None, edges: int | None) -> list[tuple[int, int]]:
    """Nodes and edges of the graphs, the largest last.

    Args:
        nodes: Of the largest; a tenth of its edges by default.
        edges: Of the largest; ten times its nodes by default.

    Example:
        >>> growing_sizes(None, 10_000_000)
        [(10000, 100000), (100000, 1000000), (1000000, 10000000)]
    """
    if nodes is None:
        nodes = NODES if edges is None else edges // 10
    if edges is None:
        edges = 10 * nodes
    if not LEAST_NODES <= nodes <= edges <= MOST_EDGES:
        raise InputError(
            f"--nodes is {nodes} and --edges is {edges}; give {LEAST_NODES:,} nodes at least, no "
            f"more of them than edges, and {MOST_EDGES:,} edges at most"
        )
    sizes = [(nodes // ten, edges // ten) for ten in (100, 10, 1)]
    return [size for size in sizes if size[0] >= LEAST_NODES]


def _rows(
    sizes: list[tuple[int, int]],
    place: Path,
    device: str,
    progress: Callable[[str], None],
) -> Iterator[Row]:
    for nodes, edges in sizes:
        graph, model = place / f"{nodes}-{edges}.lgd", str(place / f"{nodes}-{edges}.model")
        size = {"nodes": nodes, "edges": edges}
        common = {"graph": str(graph), "model": model, "device": device}
        works: list[Row] = [
            {"row": "epoch", **common, "batch_size": BATCH_SIZE},
            {"row": "predict", **common},
            {"row": "full", "graph": str(graph), "device": device},
        ]
        if is_packed(graph):
            PackedGraph.open(graph)
        else:
            works.insert(0, {"row": "generate", "graph": str(graph), **size})
        processes = [OwnProcess() for _ in works]
        try:
            progress("importing libraries")
            for process in processes:
                process.wait()
            for work, process in zip(works, processes, strict=True):
                what = f"{work['row']}, {edges:,} edges"
                progress(what)
                start = time.monotonic()
                found = process.measure(work)
                say_step(f"{what}: {time.monotonic() - start:.1f} s")
                if "prepare_seconds" in found:
                    yield {"row": "prepare", **size, "seconds": found["prepare_seconds"]}
                yield {"row": work["row"], **size, **found}
                if "left_out" in found:
                    break
        finally:
            for process in processes:
                process.close()


class OwnProcess:
    """Measures one row in a process of its own, which begins to import its libraries at once.

    On a machine with a GPU that takes longer than most rows, so all rows of a size import at the
    same time and then wait for their turn.
    """

    def __init__(self) -> None:
        package = str(Path(__file__).parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lgdgcn.commands.scale_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def wait(self) -> None:
        """Wait until the libraries are imported."""
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def measure(self, work: Row) -> Row:
        """Do the work of a row; what goes wrong is a reason to leave it out."""
        said, errors = self._process.communicate(json.dumps(work))
        if self._process.returncode != 0:
            lines = errors.strip().splitlines()
            reason = f"signal {-self._process.returncode}, often a lack of memory"
            return {"left_out": lines[-1] if lines else reason}
        found: Row = json.loads(said.splitlines()[-1])
        return found

    def close(self) -> None:
        """End a process that is not needed."""
        self._process.kill()
        self._process.communicate()


def _growth(rows: list[Row]) -> list[Row]:
    """By which power of the edges each row's time and memory grow."""
    found = []
    for row in ROWS:
        points = [one for one in rows if one["row"] == row and "seconds" in one]
        edges = [one["edges"] for one in points]
        keys = {"seconds": "seconds", "anonymous": "anonymous_bytes", "resident": "peak_bytes"}
        slopes = {
            name: exponent(edges, [max(1e-9, one[key]) for one in points])
            for name, key in keys.items()
            if all(key in one for one in points)
        }
        if points:
            found.append({"row": row, **slopes})
    return found


def _print(report: Row) -> None:
    header = ["row", "nodes", "edges", "seconds", "resident MB", "without files MB"]
    lines = []
    for row in report["rows"]:
        memory = [row.get("peak_bytes"), row.get("anonymous_bytes")]
        cells = [number(row.get("seconds"))] + [
            number(None if size is None else size / 1e6) for size in memory
        ]
        lines.append([row["row"], f"{row['nodes']:,}", f"{row['edges']:,}", *cells])
    print_table(f"Growth of generated graphs, {report['device']}", header, lines)
    for name, about in ROWS.items():
        if any(row["row"] == name for row in report["rows"]):
            out.print(f"{name}: {about}", soft_wrap=True)
    for one in report["growth"]:
        if one["seconds"] is not None:
            rest = f", its memory without files with edges^{one.get('anonymous', 0):.2f}"
            grows = f"time of {one['row']} grows with edges^{one['seconds']:.2f}"
            out.print(grows + rest * ("anonymous" in one), soft_wrap=True)
    for line in _throughput(report["rows"]):
        out.print(line, soft_wrap=True)
    for row in report["rows"]:
        if "left_out" in row:
            out.print(f"{row['row']} of {row['edges']:,} edges is left out: {row['left_out']}")


def _throughput(rows: list[Row]) -> Iterator[str]:
    """For every size, how many nodes a second batches have beside all nodes at once."""
    full = {
        row["edges"]: row["seconds"] for row in rows if row["row"] == "full" if "seconds" in row
    }
    for row in rows:
        if row["row"] != "epoch" or "seconds" not in row:
            continue
        text = f"batches of {row['edges']:,} edges: {row['nodes'] / row['seconds']:,.0f} nodes/s"
        if row["edges"] in full:
            share = full[row["edges"]] / row["seconds"]
            text += f", {share:.0%} of the full batch's"
        text += f"; {row['waiting_share']:.0%} of the steps' time was spent waiting for a batch"
        if "device_bytes" in row:
            text += f"; {row['device_bytes'] / 1e9:.1f} GB of the GPU's memory"
        yield text


@contextmanager
def _place(graphs: Path | None) -> Iterator[Path]:
    """The folder that graphs are written to; one that nobody named is removed."""
    if graphs is not None:
        yield make_folder(graphs)
        return
    with tempfile.TemporaryDirectory(prefix="lgdgcn-scale-") as place:
        yield Path(place)
