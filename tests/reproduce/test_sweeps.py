"""The figures build, and vary what they say."""

import pytest

from lgdgcn.reproduce.plan import FULL, QUICK
from lgdgcn.reproduce.sweeps import curves, picture


@pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize("name", ["fig-lambda", "fig-k", "fig-factors"])
def test_curves_build(name, plan):
    one = curves(name, plan)
    for panel in one.panels:
        for series in panel.series:
            assert len(series.values) == len(series.entries) >= 4
            assert list(series.values) == sorted(set(series.values))
            assert len({entry.cell.key for entry in series.entries}) == len(series.entries)
            assert all(len(e.cell.seeds) == plan.seeds["sweep"] for e in series.entries)
            own = {entry.cell.architecture for entry in series.entries}
            assert len(own) == (len(series.entries) if name == "fig-factors" else 1)


def test_the_ranges_are_the_papers():
    space, _, diversity, _ = curves("fig-lambda", FULL).panels
    assert [space.series[0].values[end] for end in (0, -1)] == [0, 5]
    assert [diversity.series[0].values[end] for end in (0, -1)] == [0, 0.5]
    settings = [entry.cell.settings for entry in space.series[0].entries]
    assert [own.lambda_space for own in settings] == list(space.series[0].values)
    assert not any(own.diversity for own in settings)
    assert all(entry.cell.settings.diversity for entry in diversity.series[0].entries)
    for panel in curves("fig-k", FULL).panels:
        assert [entry.cell.settings.k for entry in panel.series[0].entries] == [*range(1, 13)]


def test_layers_are_as_wide_as_the_factors_allow():
    micro, macro = curves("fig-factors", FULL).panels[0].series
    settings = [entry.cell.settings for entry in micro.entries]
    assert [own.factors for own in settings] == [2, 4, 6, 8, 10, 12, 14, 16]
    width = next(own.hidden_channels for own in settings if own.factors == 8)
    for own in settings:
        assert abs(own.hidden_channels - width) <= own.factors
    assert [entry.cell for entry in micro.entries] == [entry.cell for entry in macro.entries]


@pytest.mark.parametrize(("name", "views"), [("units", 3), ("correlation", 4), ("embedding", 4)])
def test_pictures_build(name, views):
    one = picture(f"fig-{name}", QUICK)
    assert one.kind == name
    assert len(one.views) == views
    assert all(view.cell.keeps_units for view in one.views)


def test_the_correlation_is_of_one_and_two_layers():
    views = picture("fig-correlation", FULL).views
    assert [(v.cell.model, v.layer, v.cell.settings.num_layers) for v in views] == [
        ("disengcn", 1, 1),
        ("lgdgcn", 1, 2),
        ("lgdgcn", 2, 2),
        ("lgdgcn", 2, 2),
    ]
    assert [view.cell.settings.latent_graph for view in views[1:]] == [True, True, False]
    assert views[1].cell == views[2].cell
