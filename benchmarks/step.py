"""How long a training step takes, beside what one would run instead, and beside a counted floor.

    python benchmarks/step.py --size cora --layers 4 --device cuda
    python benchmarks/step.py --size 50000 --growth --out bench/

Every row is measured in a process of its own; ``--row JSON`` measures one here, given as the
fields of :class:`rows.Work`. It needs torch and the numerical libraries only; docs/performance.md
says what is compared, and how each number is obtained.
"""

import lgdgcn  # isort: skip  # noqa: F401  # before torch: it says how threads wait

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from floor import count_ours, count_released, floor, machine, shape_of, wait
from graphs import clustered_graph
from measuring import FreshProcess, Memory, Row, answer, exponent, number, plot_growth, print_table
from rows import DATASETS, ROWS, Step, Work, members_of, training_step

from lgdgcn.data.catalogue import info
from lgdgcn.errors import InputError
from lgdgcn.runtime import keep_freed_memory, select_device, set_seed, set_threads
from lgdgcn.storage import check_target, make_folder, write_json

REFERENCE = "fast"  # the others are so many times slower

WARM_UP, FEWEST_BLOCKS = 3, 3  # calls before, blocks of calls at least
BLOCK_SECONDS = 0.05  # of calls queued on a GPU between two readings of the clock
LONGEST = 600.0  # seconds a measurement may take, set-up included

SIZES = (2_000, 6_000, 20_000, 60_000, 200_000)  # nodes, of growth
GROWTH_ROWS = ("fast", "gcn-sparse", "dense")
GROWTH = {"layers": 1, "pretrain": 20, "seconds": 10.0}  # the units of a network in training
LONGEST_STEP = 60.0  # seconds; a step that is expected to take longer is not measured


# One row, in a process of its own


def measure(**fields: Any) -> Row:
    """Measure the training step of one row, or the machine."""
    work = Work(**fields)
    device, ours = select_device(work.device), work.row.startswith("ours")
    set_threads()
    if work.row == "machine":
        data, shapes = work.graph(), {}
        for name, own in (("shape", False), ("shape_of_ours", True)):
            shapes[name] = shape_of(data, work.chosen(ours=own), ours=own)
        return {**shapes, "settings": work.chosen(ours=False).as_dict(), "machine": machine(device)}
    settings, members = work.chosen(ours=ours), members_of(work.row)
    set_seed(0)
    # a missing backend is an error here, not a reason to take another
    fast = "triton" if device.type == "cuda" else "numba"
    os.environ["LGDGCN_BACKEND"] = "torch" if work.row == "torch" else fast
    # a rehearsal on a small graph compiles or loads all that a step needs
    training_step(work.row, clustered_graph(200), settings, device)()
    data, memory = work.graph(), Memory(device)
    if work.row in ("torch", "fast", "ours") or members > 1:
        keep_freed_memory()  # as training does; the others run as a plain script would
    step = training_step(work.row, data, settings, device)
    timing = time_steps(step, device, work.seconds, work.pretrain)
    peak = memory.on_gpu if device.type == "cuda" else memory.peak - memory.before
    per_model = {"members": members, "member_ms": timing["median_ms"] / members}
    return {"row": work.row, **timing, **per_model, "peak_bytes": peak}


def time_steps(step: Step, device: torch.device, seconds: float, pretrain: int = 0) -> Row:
    """Time a step after warm-up: median and fastest ms per step, and how many were measured.

    The clock is read after every call on a CPU. A GPU is waited for only after a block of calls:
    a training loop does not wait either.

    Args:
        step: The work; called again and again.
        device: Where it runs.
        seconds: Time to spend on measured steps; up to three times as long where steps are slow.
        pretrain: Calls before the warm-up; they end early after ``2 * seconds``.
    """
    _call_repeatedly(step, device, pretrain, 2 * seconds)
    one = _call_repeatedly(step, device, WARM_UP, seconds / 4)
    block = max(1, round(BLOCK_SECONDS / one)) if device.type == "cuda" else 1
    times: list[float] = []
    steps, spent = 0, 0.0
    while spent < seconds or (len(times) < FEWEST_BLOCKS and spent < FEWEST_BLOCKS * seconds):
        elapsed, done = _timed(step, device, block)
        times.append(1e3 * elapsed / done)
        steps, spent = steps + done, spent + elapsed
    return {"median_ms": statistics.median(times), "min_ms": min(times), "steps": steps}


def _call_repeatedly(step: Step, device: torch.device, calls: int, seconds: float) -> float:
    """Call up to this often for about this long; returns the last call's time."""
    start, last = time.perf_counter(), 0.0
    for _ in range(calls):
        last, _ = _timed(step, device, 1)
        if time.perf_counter() - start > seconds:
            break
    return last


def _timed(step: Step, device: torch.device, block: int) -> tuple[float, int]:
    """Seconds of a block of calls, and the steps done in it."""
    start = time.perf_counter()
    done = sum(step() for _ in range(block))
    wait(device)
    return time.perf_counter() - start, done


# All rows


def measured(row: str, size: str, **fields: Any) -> Row:
    """Measure a row in a fresh process; what goes wrong there is a reason to leave it out."""
    print(f"measuring {row}, {size}", file=sys.stderr)
    return FreshProcess(__file__).measure(asdict(Work(row, size, **fields)), LONGEST)


def compared(size: str, layers: int | None, device: str, rows: Sequence[str] = tuple(ROWS)) -> Row:
    """Measure the machine, then every row: times beside ``fast``, and beside the floor."""
    found = measured("machine", size, layers=layers, device=device)
    if "left_out" in found:
        raise InputError(found["left_out"])
    rates = found["machine"]["copy_bytes_per_s"], found["machine"]["matrix_flops_per_s"]
    limit = floor(count_released(**found["shape"]), *rates)
    limit_of_ours = floor(count_ours(**found["shape_of_ours"]), *rates)
    results = [{"row": row, **measured(row, size, layers=layers, device=device)} for row in rows]
    times = {result["row"]: result.get("member_ms") for result in results}
    for result in results:
        row, mine = result["row"], times[result["row"]]
        reference, least = times.get(REFERENCE), limit_of_ours if row == "ours" else limit
        counted = mine and not row.startswith("g")  # the floors are those of LGD-GCN
        result["ratio"] = mine / reference if mine and reference else None
        result["floor_share"] = least["ms"] / mine if counted else None
    workload = {"size": size, "device": device, **found["shape"], "settings": found["settings"]}
    floors = {"floor": limit, "floor_of_ours": limit_of_ours}
    return {"machine": found["machine"], "workload": workload, **floors, "rows": results}


def growth(
    device: str, rows: Sequence[str] = GROWTH_ROWS, sizes: Sequence[int] = SIZES
) -> list[Row]:
    """Measure rows over the nodes of generated graphs, with the slopes of time over size.

    ``exponent`` is that of all sizes, ``last_exponent`` that of the last two. A size whose step
    might take too long by quadratic growth is left out, with those above it.
    """
    series = []
    for row in rows:
        points: list[Row] = []
        for nodes in sizes:
            last = points[-1] if points else {"nodes": nodes, "median_ms": 0.0}
            expected = last.get("median_ms", 0.0) / 1e3 * (nodes / last["nodes"]) ** 2  # at worst
            if "left_out" in last:
                point = {"left_out": last["left_out"]}
            elif expected > LONGEST_STEP:
                point = {"left_out": f"a step might take {expected:.0f} s"}
            else:
                point = measured(row, str(nodes), device=device, **GROWTH)
            points.append({"nodes": nodes, **point})
        done = [point for point in points if "median_ms" in point]
        x, y = [point["nodes"] for point in done], [point["median_ms"] for point in done]
        slopes = {"exponent": exponent(x, y), "last_exponent": exponent(x[-2:], y[-2:])}
        series.append({"row": row, **slopes, "points": points})
    return series


def show(report: Row) -> None:
    """Print the tables."""
    work, where, limit = report["workload"], report["machine"], report["floor"]
    name = where["gpu"] or f"{where['threads']} threads of {where['cpu']}"
    lines = []
    for row in report["rows"]:
        if "left_out" in row:
            lines.append([row["row"], *"–––––"])
            continue
        share = row["floor_share"]
        cells = [row["member_ms"], row["min_ms"] / row["members"], row["ratio"]]
        cells = [number(cell) for cell in (*cells, row["peak_bytes"] / 1e6)]
        lines.append([row["row"], *cells, "–" if share is None else f"{100 * share:.2g} %"])
    header = ["row", "median ms", "min ms", "× fast", "peak MB", "of floor"]
    print_table(f"{work['size']}, layers: {work['layers']}, {name}", header, lines)
    print(*(f"{row['row']}: {ROWS[row['row']]}" for row in report["rows"]), sep="\n")
    for row in report["rows"]:
        if "left_out" in row:
            print(f"{row['row']} is left out: {row['left_out']}")
    rates = (
        f"copies {where['copy_bytes_per_s'] / 1e9:.1f} GB/s, "
        f"multiplies {where['matrix_flops_per_s'] / 1e9:,.0f} GFLOP/s"
    )
    parts = [[part["name"], f"{part['bytes'] / 1e6:.2f}", f"{part['flops'] / 1e6:.1f}",
              f"{part['ms']:.3g}", part["bound"]] for part in limit["parts"]]  # fmt: skip
    title = f"Counted floor {limit['ms']:.3g} ms: this machine {rates}"
    print_table(title, ["part", "MB", "MFLOP", "ms", "bound"], parts)
    if "growth" in report:
        show_growth(report["growth"])


def show_growth(series: list[Row]) -> None:
    """Print step time over the number of nodes."""
    header = ["row", *(f"{point['nodes']:,}" for point in series[0]["points"])]
    lines = []
    for line in series:
        cells = [point.get("median_ms") for point in line["points"]]
        cells += [line["exponent"], line["last_exponent"]]
        lines.append([line["row"], *(number(cell) for cell in cells)])
    title = "Step time in ms over the number of nodes, one layer, degree 4"
    print_table(title, [*header, "exponent", "last two"], lines)
    for line in series:
        stop = next((point for point in line["points"] if "left_out" in point), None)
        if stop:
            print(f"{line['row']} stops before {stop['nodes']:,}: {stop['left_out']}")


def main() -> None:
    """Measure one row, or all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cora = info("cora")
    at_hand = "cora" if cora.where_found else str(cora.nodes)
    parser.add_argument("--size", default=at_hand, help=f"{', '.join(DATASETS)}, or a number of "
                        "nodes to generate (default: cora if it is here)")  # fmt: skip
    parser.add_argument("--layers", type=int, help="default: the preset's, 1 if generated")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--growth", action="store_true", help="also 2,000 to 200,000 nodes")
    parser.add_argument("--out", type=Path, help="folder for step.json and growth.png")
    parser.add_argument("--row", help="measure one row, given as JSON, in this process")
    given = parser.parse_args()
    if given.row:
        answer(measure, given.row)
        return
    if given.size not in DATASETS and not (given.size.isdecimal() and int(given.size) >= 20):
        parser.error(f"--size is {given.size!r}; give a data set or a number of nodes from 20 up")
    if given.out:
        make_folder(given.out)
        check_target(given.out / "step.json")
    device = str(select_device(given.device))
    report = compared(given.size, given.layers, device)
    if given.growth:
        report["growth"] = growth(device)
    show(report)
    if given.out:
        write_json(given.out / "step.json", report)
    if given.out and given.growth:
        lines = {}
        for line in report["growth"]:
            done = [point for point in line["points"] if "median_ms" in point]
            if done:
                x, y = [one["nodes"] for one in done], [one["median_ms"] for one in done]
                lines[f"{ROWS[line['row']]}: N^{number(line['exponent'])}"] = x, y
        plot_growth(lines, "nodes", "training step in ms", given.out / "growth.png")


if __name__ == "__main__":
    main()
