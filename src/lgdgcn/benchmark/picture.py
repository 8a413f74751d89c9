"""The picture of step time over size."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lgdgcn.benchmark.rows import ROWS
from lgdgcn.plots import COLORS
from lgdgcn.storage import atomic_write

__all__ = ["plot_scaling"]

MARKERS = "osD^v"


def plot_scaling(series: list[dict[str, Any]], machine: str, path: Path) -> None:
    """Draw step time over the number of nodes, one line per row, and write a PNG file.

    Args:
        series: What :func:`lgdgcn.benchmark.run.scaling` returned.
        machine: What it was measured on.
        path: File to write.
    """
    figure = Figure(figsize=(7.2, 5.2), layout="constrained")
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for number, line in enumerate(series):
        points = [point for point in line["points"] if "median_ms" in point]
        if points:
            _draw(axes, line, points, COLORS[(0, 1, 5, 2, 3)[number % 5]], MARKERS[number % 5])
    sizes = sorted({point["nodes"] for line in series for point in line["points"]})
    axes.set_xticks(sizes, [f"{size // 1000}k" if size >= 1000 else str(size) for size in sizes])
    axes.xaxis.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(_milliseconds))
    axes.set_xlabel("nodes (average degree 4)")
    axes.set_ylabel("training step")
    axes.set_title(f"One training step, one layer, {machine}", fontsize=11, parse_math=False)
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside lower center")
    atomic_write(path, lambda file: figure.savefig(file, format="png", dpi=200))


def _draw(
    axes: Axes, line: dict[str, Any], points: list[dict[str, Any]], color: str, marker: str
) -> None:
    label = ROWS.get(line["row"], line["row"])
    if line["exponent"] is not None:
        label += f": $N^{{{line['exponent']:.2f}}}$"
    x = [point["nodes"] for point in points]
    axes.plot(x, [point["median_ms"] for point in points], color=color, marker=marker,
              markersize=6, linewidth=1.8, label=label)  # fmt: skip


def _milliseconds(value: float, position: int) -> str:
    return f"{value / 1e3:g} s" if value >= 1e3 else f"{value:g} ms"
