"""Pictures of trained models side by side: maps of units and of nodes, correlations."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from lgdgcn.analysis.plots import factor_color, tsne_map
from lgdgcn.metrics.correlation import block_correlation, channel_correlation
from lgdgcn.reproduce.exhibits import Picture, View
from lgdgcn.reproduce.layer_units import layer_units
from lgdgcn.reproduce.results import Results

__all__ = ["plot_picture"]

MOST_UNITS = 1600  # points of a map of units
MOST_NODES = 2000
MARKERS = "osD^vPX*"
HUES = (0, 1, 2, 3, 4, 5, 7, 6)  # of the palette: pale yellow last

Array = npt.NDArray[Any]


def plot_picture(figure: Figure, picture: Picture, results: Results) -> None:
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
    panels = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
    if picture.kind == "correlation":
        _correlations(figure, panels, picture, results)
    else:
        _maps(figure, panels, picture, results)


def _maps(figure: Figure, panels: list[Axes], picture: Picture, results: Results) -> None:
    """t-SNE maps; one legend for all of them."""
    most = 0
    for axes, view in zip(panels, picture.views, strict=True):
        _frame(axes, view)
        arrays = results.units(view.cell)
        units = layer_units(arrays, view.layer)
        if arrays is None or units is None:
            _say_missing(axes)
            continue
        points, group = _units(units) if picture.kind == "units" else _nodes(units, arrays["y"])
        _scatter(axes, tsne_map(points.astype(np.float64), seed=0), group)
        most = max(most, int(group.max(initial=-1)) + 1)
    name = "factor" if picture.kind == "units" else "class"
    handles = [_point(number, f"{name} {number + 1}") for number in range(most)]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8),
                      handletextpad=0.1, columnspacing=1.2)  # fmt: skip


def _units(units: Array) -> tuple[Array, Array]:
    """The units of some nodes, one point per factor, and their factors."""
    nodes, factors, channels = units.shape
    chosen = _sample(np.arange(nodes), max(2, MOST_UNITS // factors))
    return units[chosen].reshape(-1, channels), np.tile(np.arange(factors), len(chosen))


def _nodes(units: Array, y: Array) -> tuple[Array, Array]:
    """The units of the labelled nodes put together, and their classes."""
    chosen = _sample(np.flatnonzero(y >= 0), MOST_NODES)
    return units[chosen].reshape(len(chosen), -1), y[chosen].astype(np.int64)


def _sample(places: Array, most: int) -> Array:
    return np.sort(np.random.default_rng(0).permutation(places)[:most])


def _scatter(axes: Axes, points: Array, group: Array) -> None:
    """Draw the points in random order, so that no group hides the others."""
    rounds = np.array_split(np.random.default_rng(1).permutation(len(points)), 8)
    for some in rounds:
        for number in np.unique(group[some]):
            mine = some[group[some] == number]
            style = _point(int(number), "")
            axes.scatter(points[mine, 0], points[mine, 1], s=9, color=style.get_color(),
                         marker=str(style.get_marker()), linewidths=0, alpha=0.8,
                         rasterized=True)  # fmt: skip


def _point(number: int, label: str) -> Line2D:
    turn, place = divmod(number, len(HUES))
    color = factor_color(turn * len(HUES) + HUES[place])
    return Line2D([], [], linestyle="", color=color, marker=MARKERS[place], label=label)


def _correlations(figure: Figure, panels: list[Axes], picture: Picture, results: Results) -> None:
    """Heat maps on the test nodes, with one colour bar and each pattern's strength as a number."""
    image = None
    for axes, view in zip(panels, picture.views, strict=True):
        _frame(axes, view)
        arrays = results.units(view.cell)
        units = layer_units(arrays, view.layer)
        if arrays is None or units is None:
            _say_missing(axes)
            continue
        image = _heat_map(axes, units[arrays["test_mask"].astype(bool)])
    if image is not None:
        bar = figure.colorbar(image, ax=panels, shrink=0.7, aspect=25, pad=0.015)
        bar.set_label("|correlation|")
        bar.outline.set_visible(False)


def _heat_map(axes: Axes, units: Array) -> AxesImage:
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


def _frame(axes: Axes, view: View) -> None:
    axes.set_title(view.title, parse_math=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.tick_params(length=0)
    axes.set_box_aspect(1)
    _color_spines(axes.spines.values())


def _color_spines(spines: Iterable[Any]) -> None:
    for spine in spines:
        spine.set_visible(True)
        spine.set_color("0.8")


def _say_missing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no units kept:\nthe run has not finished\nor has diverged", ha="center",
              va="center", color="0.4", transform=axes.transAxes)  # fmt: skip
