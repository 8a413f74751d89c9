"""How the step time grows with the number of nodes at fixed degree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lgdgcn.benchmark.run import Measure, OnStart, in_fresh_process
from lgdgcn.benchmark.workload import Job

__all__ = ["ROWS", "SIZES", "exponent", "scaling"]

SIZES = (2_000, 6_000, 20_000, 60_000, 200_000)
ROWS = ("fast", "gcn-sparse", "dense")
PRETRAIN = 20  # steps, so that the units are those of a network in training
SECONDS = 10.0
LONGEST_STEP = 60.0  # seconds; a step that is expected to take longer is not measured


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float | None:
    """Slope of the least-squares line through log(time) against log(size).

    Example:
        >>> exponent([1, 10, 100], [3, 30, 300])
        1.0
    """
    if len(sizes) < 2:
        return None
    slope = np.polynomial.Polynomial.fit(np.log(sizes), np.log(times), 1).convert().coef[1]
    return round(float(slope), 6)


def scaling(
    device: str,
    sizes: Sequence[int] = SIZES,
    rows: Sequence[str] = ROWS,
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
    job = Job(row, str(nodes), 1, device, pretrain=PRETRAIN, seconds=SECONDS)
    return (measure or in_fresh_process)(job)
