"""All rows of one workload, and the step time over the number of nodes, as JSON objects.

Every measurement has a fresh process.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.benchmark.floor import SharpShape, WorkloadShape, floor
from lgdgcn.benchmark.rows import REFERENCE_ROW, ROWS
from lgdgcn.benchmark.workload import Workload
from lgdgcn.errors import InputError

__all__ = [
    "SCALING_SIZES",
    "benchmark",
    "exponent",
    "in_fresh_process",
    "machine_name",
    "number",
    "scaling",
]

LONGEST = 600.0  # seconds a measurement may take, set-up included
SCALING_SIZES = (2_000, 6_000, 20_000, 60_000, 200_000)
SCALING_ROWS = ("fast", "gcn-sparse", "dense")
SCALING_PRETRAIN = 20  # steps, so that the units are those of a network in training
SCALING_SECONDS = 10.0
LONGEST_STEP = 60.0  # seconds; a step that is expected to take longer is not measured

Measure = Callable[[Workload], dict[str, Any]]
OnStart = Callable[[str], object]


def benchmark(
    work: Workload,
    rows: Sequence[str] = tuple(ROWS),
    *,
    on_start: OnStart = lambda what: None,
    measure: Measure | None = None,
) -> dict[str, Any]:
    """Measure a workload: the machine first, then every row.

    Args:
        work: The workload; its ``row`` is ignored.
        rows: Rows to measure.
        on_start: Told what is measured next.
        measure: Does one measurement; :func:`in_fresh_process` by default.

    Returns:
        ``machine``, ``workload``, ``floor``, ``sharp_floor`` and ``rows``. A row that could not be
        measured has ``left_out`` with the reason.

    Raises:
        InputError: The workload itself cannot be had, such as a data set that is not there.
    """
    measure = measure or in_fresh_process
    common = {key: value for key, value in work.as_dict().items() if key != "row"}
    on_start("machine")
    found = measure(Workload("machine", **common))
    if "machine" not in found:
        raise InputError(found["left_out"])
    machine = found["machine"]
    rates = machine["copy_bytes_per_s"], machine["matrix_flops_per_s"]
    limit = floor(WorkloadShape(**found["shape"]), *rates)
    sharp_limit = floor(SharpShape(**found["sharp_shape"]), *rates)
    results = []
    for row in rows:
        on_start(row)
        results.append({"row": row, **measure(Workload(row, **common))})
    _compare(results, limit["ms"], sharp_limit["ms"])
    workload = {"size": work.size, "device": work.device, **found["shape"]}
    return {
        "machine": machine,
        "workload": {**workload, "settings": found["settings"]},
        "floor": limit,
        "sharp_floor": sharp_limit,
        "rows": results,
    }


def _compare(results: list[dict[str, Any]], floor_ms: float, sharp_ms: float) -> None:
    """Add how many times slower than the reference row, and the share of the floor."""
    times = {result["row"]: result.get("member_ms") for result in results}
    reference = times.get(REFERENCE_ROW)
    for result in results:
        mine = times[result["row"]]
        result["ratio"] = mine / reference if mine and reference else None
        counted = not result["row"].startswith("g")  # the floors are those of LGD-GCN
        least = sharp_ms if result["row"].startswith("sharp") else floor_ms
        result["floor_share"] = least / mine if mine and counted else None


def in_fresh_process(work: Workload) -> dict[str, Any]:
    """Measure in another process; what goes wrong there is a reason to leave the row out."""
    package = str(Path(__file__).parents[2])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "lgdgcn.benchmark.worker", json.dumps(work.as_dict())]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired:
        return {"left_out": f"not done after {LONGEST:.0f} s"}
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        reason = f"signal {-done.returncode}, often a lack of memory"
        return {"left_out": lines[-1] if lines else reason}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float | None:
    """Slope of the least-squares line through log(time) against log(size).

    Example:
        >>> exponent([1, 10, 100], [3, 30, 300]), exponent([1, 10, 100], [3, 3, 3])
        (1.0, 0.0)
    """
    if len(sizes) < 2:
        return None
    slope, _ = np.polyfit(np.log(sizes), np.log(times), 1)
    return round(float(slope), 6) + 0.0  # never -0


def scaling(
    device: str,
    sizes: Sequence[int] = SCALING_SIZES,
    rows: Sequence[str] = SCALING_ROWS,
    *,
    on_start: OnStart = lambda what: None,
    measure: Measure | None = None,
) -> list[dict[str, Any]]:
    """Measure rows on generated graphs of degree 4, one layer, over the number of nodes.

    Args:
        device: ``cpu`` or ``cuda``.
        sizes: Numbers of nodes, ascending.
        rows: Rows to measure.
        on_start: Told what is measured next.
        measure: Does one measurement; in a fresh process by default.

    Returns:
        For every row its ``points``, the ``exponent`` over all measured ones and, as
        ``last_exponent``, over the last two. A point that was not measured has ``left_out``.
    """
    series = []
    for row in rows:
        points: list[dict[str, Any]] = []
        for nodes in sizes:
            on_start(f"{row}, {nodes:,} nodes")
            points.append({"nodes": nodes, **_point(row, nodes, device, points, measure)})
        done = [point for point in points if "median_ms" in point]
        x, y = [point["nodes"] for point in done], [point["median_ms"] for point in done]
        slopes = {"exponent": exponent(x, y), "last_exponent": exponent(x[-2:], y[-2:])}
        series.append({"row": row, **slopes, "points": points})
    return series


def _point(
    row: str, nodes: int, device: str, before: list[dict[str, Any]], measure: Measure | None
) -> dict[str, Any]:
    if before:
        last = before[-1]
        if "left_out" in last:
            return {"left_out": last["left_out"]}
        expected = last["median_ms"] / 1e3 * (nodes / last["nodes"]) ** 2  # at worst
        if expected > LONGEST_STEP:
            return {"left_out": f"a step might take {expected:.0f} s"}
    work = Workload(row, str(nodes), 1, device, pretrain=SCALING_PRETRAIN, seconds=SCALING_SECONDS)
    return (measure or in_fresh_process)(work)


def number(value: float | None) -> str:
    """Write a number with three digits, without an exponent; a dash for ``None``.

    Example:
        >>> number(0.12345), number(12345.6), number(None)
        ('0.123', '12,346', '–')
    """
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine_name(machine: dict[str, Any]) -> str:
    """The accelerator, or the processor and its threads."""
    return str(machine["gpu"] or f"{machine['threads']} threads of {machine['cpu']}")
