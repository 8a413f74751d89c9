"""Plots of a score against a setting: mean lines with bands of one standard deviation."""

import re
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lgdgcn.analysis.plots import COLORS
from lgdgcn.reproduce.exhibits import Curves, Panel, Series
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.score import score

__all__ = ["plot_curves"]

ORDER = (0, 5, 2, 3, 1, 7)  # of COLORS: neighbours in a legend far apart
MARKERS = "osD^vP"
WIDE_RANGE = 20  # largest over smallest value from which values stand at equal steps
MOST_LETTERS = 25  # of all ticks that still stand side by side
LEAST_HEIGHT = 4.0  # points on the axis of scores
RANGE = re.compile(r"\b([\d.]+) to ([\d.]*\d)")


def plot_curves(figure: Figure, curves: Curves, results: Results) -> None:
    """Draw every panel, two abreast, with one legend.

    A range such as "0.1 to 1" in a panel's note, where the paper finds results good, is shaded.
    """
    columns = min(2, len(curves.panels))
    rows = -(-len(curves.panels) // columns)
    figure.set_size_inches(4.4 * columns + (columns == 1), 3.3 * rows + 0.7)
    labels = list(dict.fromkeys(one.label for panel in curves.panels for one in panel.series))
    for place, panel in enumerate(curves.panels):
        axes = figure.add_subplot(rows, columns, place + 1)
        _panel(axes, panel, labels, results)
        first = place - place % columns
        beside = [_note(one) for one in curves.panels[first : first + columns]]
        _heading(axes, panel, max(len(lines) for lines in beside))
    handles: list[Line2D | Patch] = []
    if len(labels) > 1:
        handles = [_line(number, label) for number, label in enumerate(labels)]
    handles += [
        Line2D([], [], color="0.3", label="mean over seeds"),
        Patch(color="0.3", alpha=0.2, linewidth=0, label="± one standard deviation"),
    ]
    if any(RANGE.search(panel.note) for panel in curves.panels):
        handles.append(Patch(color="#F0E442", alpha=0.35, linewidth=0, label="the paper's range"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(columns + 1, len(handles)))


def _line(number: int, label: str) -> Line2D:
    color, marker = COLORS[ORDER[number % len(ORDER)]], MARKERS[number % len(MARKERS)]
    return Line2D([], [], color=color, marker=marker, markersize=5, linewidth=1.8, label=label)


def _panel(axes: Axes, panel: Panel, labels: Sequence[str], results: Results) -> None:
    values = sorted({value for one in panel.series for value in one.values})
    equal_steps = _is_wide(values)
    places = [float(number) for number in range(len(values))] if equal_steps else values
    place_of = dict(zip(values, places, strict=True))
    drawn = [_curve(axes, one, labels.index(one.label), place_of, results) for one in panel.series]
    if not any(drawn):
        axes.text(
            0.5, 0.5, "no run has finished", ha="center", color="0.4", transform=axes.transAxes
        )
    shaded = RANGE.search(panel.note)
    if shaded:
        low, high = (_between(float(end), values, places) for end in shaded.groups())
        axes.axvspan(low, high, color="#F0E442", alpha=0.25, linewidth=0, zorder=0)
    ticks = [f"{value:g}" for value in values]
    axes.set_xticks(places, ticks, rotation=45 if len("".join(ticks)) > MOST_LETTERS else 0)
    axes.set_xlabel(_math(panel.x_label) + (" (equal steps)" if equal_steps else ""))
    axes.set_ylabel(_math(textwrap.fill(panel.y_label, 36)))
    low, high = axes.get_ylim()
    slack = max(0.0, LEAST_HEIGHT - (high - low)) / 2  # noise should not look like mountains
    axes.set_ylim(low - slack, high + slack)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


def _note(panel: Panel) -> list[str]:
    return textwrap.wrap(panel.note, 58)


def _heading(axes: Axes, panel: Panel, lines: int) -> None:
    """Write the title and the note, with room for the longest note of the row."""
    axes.set_title(_math(panel.title), fontsize=10.5, loc="left", pad=8 + 11 * lines)
    axes.annotate(_math("\n".join(_note(panel))), (0, 1), (0, 5), xycoords="axes fraction",
                  textcoords="offset points", fontsize=8.5, color="0.35")  # fmt: skip


def _math(text: str) -> str:
    """Write λ_space as the paper does."""
    return re.sub(r"λ_([a-z]+)", r"$\\lambda_{\\mathrm{\1}}$", text)


def _curve(
    axes: Axes, series: Series, number: int, place_of: dict[float, float], results: Results
) -> bool:
    """Draw the points that are there; whether there are any."""
    places = [place_of[value] for value in series.values]
    pairs = sorted(zip(places, series.entries, strict=True), key=lambda pair: pair[0])
    points = [(place, score(entry, results)) for place, entry in pairs]
    found = [(place, point.ours) for place, point in points if point.ours]
    style = _line(number, series.label)
    x = [place for place, _ in found]
    low = [ours.mean - ours.std for _, ours in found]
    high = [ours.mean + ours.std for _, ours in found]
    axes.fill_between(x, low, high, color=style.get_color(), alpha=0.18, linewidth=0)
    axes.plot(x, [ours.mean for _, ours in found], color=style.get_color(),
              marker=style.get_marker(), markersize=5, linewidth=1.8)  # fmt: skip
    return bool(found)


def _is_wide(values: Sequence[float]) -> bool:
    """Whether values over several decades would crowd together on a plain axis."""
    positive = [value for value in values if value > 0]
    return len(positive) > 1 and positive[-1] / positive[0] > WIDE_RANGE


def _between(value: float, values: Sequence[float], places: Sequence[float]) -> float:
    """Where a value stands among ticks that need not be at scale."""
    return float(np.interp(value, values, places))
