"""The figures of the paper, drawn from finished runs: curves, maps of units, correlations."""

import re
import textwrap
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lgdgcn.metrics.arrays import Array
from lgdgcn.metrics.correlation import block_correlation, channel_correlation
from lgdgcn.plots import COLORS, factor_color, save_figure, tsne_map
from lgdgcn.reproduce.exhibits import CurveFigure, Panel, PictureFigure, Series
from lgdgcn.reproduce.results import KeptUnits, Results
from lgdgcn.reproduce.statistics import score

__all__ = ["draw", "plot_curves", "plot_picture"]

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
# Curves
LINE_COLORS = [COLORS[index] for index in (0, 5, 2, 3, 1, 7)]  # neighbours in a legend far apart
LINE_MARKERS = "osD^vP"
FEW_LINES = 4  # up to so many, the legend says what a line is
CHANCE: dict[str, Any] = {"color": "0.45", "linestyle": ":", "linewidth": 1.5}
WIDE_RANGE = 20  # largest over smallest value from which ticks are at equal steps
MOST_LETTERS = 25  # of all tick labels that still fit side by side
LEAST_HEIGHT = 4.0  # points on the axis of scores: noise should not look like mountains
RANGE = re.compile(r"\b([\d.]+) to ([\d.]*\d)")
# Pictures
MOST_UNITS = 1600  # points of a map of units
MOST_NODES = 2000
POINT_MARKERS = "osD^vPX*"
HUES = (0, 1, 2, 3, 4, 5, 7, 6)  # of the palette: pale yellow last


def draw(exhibit: CurveFigure | PictureFigure, results: Results, folder: Path) -> Path:
    """Draw a figure and write ``folder/NAME.png`` and ``folder/NAME.svg``.

    The same results give the same files: maps have fixed seeds, files no dates. Missing runs leave
    a gap, missing units an empty panel that says so.

    Returns:
        The PNG file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure = Figure(layout="constrained", facecolor="white")  # no pyplot: no backend is chosen
        if isinstance(exhibit, CurveFigure):
            plot_curves(figure, exhibit, results)
        else:
            plot_picture(figure, exhibit, results)
        return save_figure(figure, folder / exhibit.name)


def plot_curves(figure: Figure, curves: CurveFigure, results: Results) -> None:
    """Draw every panel, two abreast, with one legend: means and bands of one standard deviation.

    A range such as "0.1 to 1" in a panel's note, where the paper finds results good, is shaded.
    """
    columns = min(2, len(curves.panels))
    rows = -(-len(curves.panels) // columns)
    figure.set_size_inches(4.4 * columns + (columns == 1), 3.3 * rows + 0.7)
    labels = list(dict.fromkeys(one.label for panel in curves.panels for one in panel.series))
    styles = {label: _line_style(number, label) for number, label in enumerate(labels)}
    notes = [textwrap.wrap(panel.note, 58) for panel in curves.panels]
    for index, panel in enumerate(curves.panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        _plot_panel(axes, panel, styles, results)
        first = index - index % columns
        longest = max(len(note) for note in notes[first : first + columns])  # of the panels abreast
        axes.set_title(_math(panel.title), fontsize=10.5, loc="left", pad=8 + 11 * longest)
        axes.annotate(_math("\n".join(notes[index])), (0, 1), (0, 5), xycoords="axes fraction",
                      textcoords="offset points", fontsize=8.5, color="0.35")  # fmt: skip
    handles: list[Line2D | Patch] = [*styles.values()] if len(styles) > 1 else []
    if any(panel.has_chance for panel in curves.panels):
        handles.append(Line2D([], [], **CHANCE, label="chance"))
    if len(styles) <= FEW_LINES:
        handles.append(Line2D([], [], color="0.3", label="mean over seeds"))
    handles.append(Patch(color="0.3", alpha=0.2, linewidth=0, label="± one standard deviation"))
    if any(RANGE.search(panel.note) for panel in curves.panels):
        handles.append(Patch(color="#F0E442", alpha=0.35, linewidth=0, label="the paper's range"))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=min(columns + 1 + (len(handles) > 6), len(handles)),
    )


def _plot_panel(axes: Axes, panel: Panel, styles: dict[str, Line2D], results: Results) -> None:
    values = sorted({value for one in panel.series for value in one.values})
    positive = [value for value in values if value > 0]
    equal_steps = len(positive) > 1 and positive[-1] / positive[0] > WIDE_RANGE
    x = [float(number) for number in range(len(values))] if equal_steps else values
    x_of = dict(zip(values, x, strict=True))
    drawn = [_plot_series(axes, one, styles[one.label], x_of, results) for one in panel.series]
    if not any(drawn):
        axes.text(
            0.5, 0.5, "no run has finished", ha="center", color="0.4", transform=axes.transAxes
        )
    if panel.has_chance:
        axes.plot(x, [100 / value for value in values], **CHANCE)
    shaded = RANGE.search(panel.note)
    if shaded:
        low, high = (float(np.interp(float(end), values, x)) for end in shaded.groups())
        axes.axvspan(low, high, color="#F0E442", alpha=0.25, linewidth=0, zorder=0)
    ticks = [f"{value:g}" for value in values]
    axes.set_xticks(x, ticks, rotation=45 if len("".join(ticks)) > MOST_LETTERS else 0)
    axes.set_xlabel(_math(panel.x_label) + (" (equal steps)" if equal_steps else ""))
    axes.set_ylabel(_math(textwrap.fill(panel.y_label, 36)))
    low, high = axes.get_ylim()
    slack = max(0.0, LEAST_HEIGHT - (high - low)) / 2
    axes.set_ylim(panel.y_limits or (low - slack, high + slack))
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)


def _plot_series(
    axes: Axes, series: Series, style: Line2D, x_of: dict[float, float], results: Results
) -> bool:
    """Draw the points that are measured; whether there are any."""
    scores = [score(entry, results).ours for entry in series.entries]
    pairs = zip(series.values, scores, strict=True)
    found = sorted((x_of[value], ours.mean, ours.std) for value, ours in pairs if ours)
    x, mean, std = np.array(found).reshape(-1, 3).T
    color = style.get_color()
    axes.fill_between(x, mean - std, mean + std, color=color, alpha=0.18, linewidth=0)
    axes.plot(x, mean, color=color, marker=style.get_marker(), markersize=5, linewidth=1.8,
              zorder=style.get_zorder())  # fmt: skip
    return bool(found)


def _line_style(number: int, label: str) -> Line2D:
    color, marker = (kinds[number % len(kinds)] for kinds in (LINE_COLORS, LINE_MARKERS))
    return Line2D([], [], color=color, marker=marker, markersize=5, linewidth=1.8, label=label,
                  zorder=3 - number / 100)  # the first is drawn above the others  # fmt: skip


def _math(text: str) -> str:
    """Write λ_space as the paper does."""
    return re.sub(r"λ_([a-z]+)", r"$\\lambda_{\\mathrm{\1}}$", text)


def plot_picture(figure: Figure, picture: PictureFigure, results: Results) -> None:
    """Draw every view; one whose units are missing is an empty panel that says so."""
    count = len(picture.views)
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    side = 3.4 if columns > 2 else 3.8
    is_map = picture.kind != "correlation"
    width, below = (0.0, 0.3) if is_map else (0.6, 0.4)  # room for the colour bar, the numbers
    figure.set_size_inches(
        side * columns + width, (side + 0.25 + below * (not is_map)) * rows + below * is_map
    )
    panels = [figure.add_subplot(rows, columns, index + 1) for index in range(count)]
    groups, image = 0, None
    for axes, view in zip(panels, picture.views, strict=True):
        _frame(axes, view.title)
        kept = results.units(view.cell, view.layer)
        if kept is None:
            text = "no units kept:\nthe run has not finished\nor has diverged"
            axes.text(
                0.5, 0.5, text, ha="center", va="center", color="0.4", transform=axes.transAxes
            )
        elif is_map:
            points, group = _units(kept) if picture.kind == "units" else _nodes(kept)
            _scatter(axes, tsne_map(points.astype(np.float64), seed=0), group)
            groups = max(groups, int(group.max(initial=-1)) + 1)
        else:
            image = _heat_map(axes, kept.on_test_nodes)
    if groups:
        name = "factor" if picture.kind == "units" else "class"
        handles = [_point_style(number, f"{name} {number + 1}") for number in range(groups)]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8),
                      handletextpad=0.1, columnspacing=1.2)  # fmt: skip
    if image is not None:
        bar = figure.colorbar(image, ax=panels, shrink=0.7, aspect=25, pad=0.015)
        bar.set_label("|correlation|")
        bar.outline.set_visible(False)


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, parse_math=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.set_box_aspect(1)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("0.8")


def _units(kept: KeptUnits) -> tuple[Array, Array]:
    """The units of some nodes, one point per factor, and their factors."""
    nodes, factors, channels = kept.units.shape
    chosen = _sample(np.arange(nodes), max(2, MOST_UNITS // factors))
    return kept.units[chosen].reshape(-1, channels), np.tile(np.arange(factors), len(chosen))


def _nodes(kept: KeptUnits) -> tuple[Array, Array]:
    """The concatenated units of the labelled nodes, and their classes."""
    chosen = _sample(np.flatnonzero(kept.y >= 0), MOST_NODES)
    return kept.units[chosen].reshape(len(chosen), -1), kept.y[chosen].astype(np.int64)


def _sample(indices: Array, most: int) -> Array:
    return np.sort(np.random.default_rng(0).permutation(indices)[:most])


def _scatter(axes: Axes, points: Array, group: Array) -> None:
    """Draw the points in random order, so that no group hides the others."""
    for some in np.array_split(np.random.default_rng(1).permutation(len(points)), 8):
        for number in np.unique(group[some]):
            mine = some[group[some] == number]
            style = _point_style(int(number), "")
            axes.scatter(points[mine, 0], points[mine, 1], s=9, color=style.get_color(),
                         marker=str(style.get_marker()), linewidths=0, alpha=0.8,
                         rasterized=True)  # fmt: skip


def _point_style(number: int, label: str) -> Line2D:
    turn, index = divmod(number, len(HUES))
    color = factor_color(turn * len(HUES) + HUES[index])
    return Line2D([], [], linestyle="", color=color, marker=POINT_MARKERS[index], label=label)


def _heat_map(axes: Axes, units: Array) -> AxesImage:
    """The correlation of all channels, and below it how block-wise it is."""
    nodes, factors, channels = units.shape
    values = channel_correlation(units.reshape(nodes, -1).astype(np.float64))
    image = axes.imshow(values, vmin=0, vmax=1, cmap="magma_r", interpolation="nearest")
    for m in range(1, factors):
        axes.axhline(m * channels - 0.5, color="#0072B2", linewidth=1)
        axes.axvline(m * channels - 0.5, color="#0072B2", linewidth=1)
    middle = np.arange(factors) * channels + (channels - 1) / 2
    numbers = [str(m + 1) for m in range(factors)]
    axes.set_xticks(middle, numbers)
    axes.set_yticks(middle, numbers)
    blocks = block_correlation(units)
    axes.set_xlabel(
        f"inside {blocks.inside:.2f}, between {blocks.between:.2f}\nratio {blocks.ratio:.2f}"
    )
    return image
