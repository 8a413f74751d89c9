"""The paper's figures: drawn from finished runs, written as PNG and SVG."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from lgdgcn.analysis.plots import save_figure
from lgdgcn.reproduce.curve_figure import plot_curves
from lgdgcn.reproduce.exhibits import Curves, Picture
from lgdgcn.reproduce.picture_figure import plot_picture
from lgdgcn.reproduce.results import Results

__all__ = ["draw"]

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters everywhere
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "axes.edgecolor": "0.35",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "0.25",
    "ytick.color": "0.25",
    "legend.fontsize": 9.5,
    "legend.frameon": False,
}


def draw(exhibit: Curves | Picture, results: Results, folder: Path) -> Path:
    """Draw a figure and write ``folder/NAME.png`` and ``folder/NAME.svg``.

    The same results give the same files: maps have fixed seeds, files no dates. Runs or units that
    are missing leave a gap, or a panel that says so.

    Returns:
        The PNG file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure = Figure(layout="constrained", facecolor="white")  # no pyplot: no backend is chosen
        if isinstance(exhibit, Curves):
            plot_curves(figure, exhibit, results)
        else:
            plot_picture(figure, exhibit, results)
        return save_figure(figure, folder / exhibit.name)
