"""The picture of time and memory over the number of edges."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lgdgcn.plots import COLORS
from lgdgcn.storage import atomic_write

__all__ = ["plot_growth"]

PANELS = (("seconds", 1.0, "seconds"), ("anonymous_bytes", 1e9, "GB without mapped files"))


def plot_growth(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw seconds and memory over edges, one line per row, and write a PNG file.

    Args:
        rows: What ``lgdgcn bench --scale`` has measured.
        path: File to write.
    """
    figure = Figure(figsize=(8.4, 4.2), layout="constrained")
    for axes, (key, unit, title) in zip(figure.subplots(1, 2), PANELS, strict=True):
        _draw(axes, rows, key, unit)
        axes.set_ylabel(title)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=9, ncols=4, loc="outside lower center")
    atomic_write(path, lambda file: figure.savefig(file, format="png", dpi=200))


def _draw(axes: Axes, rows: list[dict[str, Any]], key: str, unit: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for number, name in enumerate(dict.fromkeys(row["row"] for row in rows)):
        points = [row for row in rows if row["row"] == name and row.get(key)]
        x = [point["edges"] for point in points]
        y = [point[key] / unit for point in points]
        axes.plot(x, y, color=COLORS[number], marker="osD^"[number % 4], label=name)
    axes.set_xlabel("edges")
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
