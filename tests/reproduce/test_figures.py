"""Figures are complete, small, the same each time, and say what is missing."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from lgdgcn.metrics.correlation import block_correlation
from lgdgcn.reproduce import figures
from lgdgcn.reproduce.exhibits import CurveFigure, Entry, Panel, PictureFigure, Series, View
from lgdgcn.reproduce.figures import draw, plot_curves, plot_picture
from lgdgcn.reproduce.results import Results
from reproduce.made_up import cell, fill, units


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "cells")


@pytest.fixture
def plain_maps(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Take the first two coordinates for the map, and remember the points."""
    seen: list[np.ndarray] = []
    monkeypatch.setattr(
        figures, "tsne_map", lambda points, seed: seen.append(points) or points[:, :2]
    )
    return seen


def _curves(results: Results, missing: int | None = None) -> CurveFigure:
    values = (0.0, 0.01, 0.1, 1.0)
    entries = []
    for number, value in enumerate(values):
        one = cell(lambda_space=value)
        if number != missing:
            fill(results, one, {"accuracy": 80.0 + number}, std=0.5)
        entries.append(Entry(one, "accuracy"))
    series = Series("LGD-GCN", values, tuple(entries))
    panel = Panel(
        "space", "λ_space on Cora", "λ_space", "accuracy (%)", (series,), "good from 0.01 to 0.1"
    )
    return CurveFigure("fig-lambda", "Accuracy", (panel,))


def _view(
    results: Results, title: str, arrays: dict[str, np.ndarray] | None, **own: object
) -> View:
    one = cell(keeps_units=True, **own)
    if arrays is not None:
        results.keep_arrays(one, arrays)
    return View(title, title, one)


def test_a_curve_has_its_mean_band_and_range(results: Results) -> None:
    figure = Figure()
    plot_curves(figure, _curves(results, missing=1), results)
    (axes,) = figure.axes
    assert axes.lines[0].get_xydata() == pytest.approx(np.array([[0, 80], [2, 82], [3, 83]]))
    band = axes.collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == pytest.approx((79.5, 83.5))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "0.01", "0.1", "1"]
    shaded = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert (shaded.x0, shaded.x1) == pytest.approx((1, 2))
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "± one standard deviation" in words


def test_a_panel_over_graphs_has_a_line_per_model_and_one_of_chance(results: Results) -> None:
    values, shares = (4.0, 8.0), {"lgdgcn": 60.0, "disengcn": 30.0}
    series = []
    for model, share in shares.items():
        cells = [cell(f"lgd_syn_fac{value:g}", model) for value in values]
        for one in cells:
            fill(results, one, {"micro_f1": 90}, factors={"edge_attribution": share / 100})
        entries = tuple(Entry(one, "edge_attribution") for one in cells)
        series.append(Series(model, values, entries))
    panel = Panel("a", "Edges", "factors", "%", tuple(series), has_chance=True)
    figure = Figure()
    both = CurveFigure("fig-ours", "Edges", (panel,))
    plot_curves(figure, both, results)
    heights = [line.get_ydata() for line in figure.axes[0].lines]
    assert heights == [pytest.approx(pair) for pair in ((60, 60), (30, 30), (25, 12.5))]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words[:3] == ["lgdgcn", "disengcn", "chance"]
    labels = [label for label, _ in both.labelled_cells()]
    assert labels[::2] == ["Edges, lgdgcn, 4", "Edges, disengcn, 4"]


def test_a_panel_without_runs_says_so(results: Results) -> None:
    series = Series("LGD-GCN", (1.0,), (Entry(cell(), "accuracy"),))
    figure = Figure()
    plot_curves(figure, CurveFigure("fig-k", "k", (Panel("k", "k", "k", "%", (series,)),)), results)
    assert "no run has finished" in [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.usefixtures("plain_maps")
def test_the_same_results_give_the_same_small_files(results: Results, tmp_path: Path) -> None:
    views = (
        _view(results, "DisenGCN", units(900), model="disengcn"),
        _view(results, "LGD-GCN", None),
    )
    shown = [_curves(results), PictureFigure("fig-units", "Units", "units", views)]
    for figure in shown:
        first, again = (draw(figure, results, tmp_path / folder) for folder in ("a", "b"))
        for one, other in ((first, again), (first.with_suffix(".svg"), again.with_suffix(".svg"))):
            assert one.read_bytes() == other.read_bytes()
        svg = first.with_suffix(".svg").read_text(encoding="utf-8")
        assert len(svg) < 400_000
        assert not re.search(r"\b20\d\d-\d\d-\d\d", svg)


def test_units_are_coloured_by_factor(results: Results, plain_maps: list[np.ndarray]) -> None:
    views = (
        _view(results, "LGD-GCN", units(50, factors=3, channels=5)),
        _view(results, "b", None, k=9),
    )
    figure = Figure()
    plot_picture(figure, PictureFigure("fig-units", "Units", "units", views), results)
    assert plain_maps[0].shape == (150, 5)
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["factor 1", "factor 2", "factor 3"]
    assert "no units kept" in figure.axes[1].texts[0].get_text()


def test_nodes_without_a_class_are_left_out(results: Results, plain_maps: list[np.ndarray]) -> None:
    arrays = units(200, layers=2)
    view = _view(results, "LGD-GCN", arrays)
    figure = Figure()
    plot_picture(figure, PictureFigure("fig-embedding", "Nodes", "embedding", (view,)), results)
    labelled = arrays["y"] >= 0
    expected = arrays["units_2"][labelled].reshape(labelled.sum(), -1)  # 0 is the last layer
    np.testing.assert_allclose(plain_maps[0], expected)


def test_correlations_are_of_the_test_nodes(results: Results) -> None:
    arrays = units(300, layers=2)
    view = View("1", "LGD-GCN (1st layer)", _view(results, "", arrays).cell, layer=1)
    figure = Figure()
    plot_picture(
        figure, PictureFigure("fig-correlation", "Blocks", "correlation", (view,)), results
    )
    blocks = block_correlation(arrays["units_1"][arrays["test_mask"]])
    assert f"ratio {blocks.ratio:.2f}" in figure.axes[0].get_xlabel()
