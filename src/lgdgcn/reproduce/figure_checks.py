"""Checks of a claim against a curve (by the id of its panel) or a picture (by those of its views).

Of a panel with several series the first one is looked at.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lgdgcn.metrics.correlation import block_correlation
from lgdgcn.reproduce.checks import Finding, judge, makes_check, outcome_of
from lgdgcn.reproduce.exhibits import CurveFigure, Panel, PictureFigure
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.statistics import Difference, Mean, contrast, difference, score

__all__ = ["best_around", "more_in_blocks", "rises_then_falls", "stable_then_falls"]

STABLE = 1.0  # points between the best and the worst of what counts as the same
SAME_RATIO = 1.1  # ratios of single runs closer than this are not distinguished


class CurvePoint(NamedTuple):
    """A measured point of a curve."""

    value: float  # of the setting
    score: Mean

    def __str__(self) -> str:
        return f"{self.score.mean:.1f} at {self.value:g}"


def _height(point: CurvePoint) -> float:
    return point.score.mean


def _points(panel: Panel, results: Results) -> list[CurvePoint]:
    pairs = zip(panel.series[0].values, panel.series[0].entries, strict=True)
    scores = [(value, score(entry, results).ours) for value, entry in pairs]
    return [CurvePoint(value, mean) for value, mean in scores if mean]


@makes_check
def rises_then_falls(curves: CurveFigure, results: Results, panel: str) -> Iterator[Finding]:
    """The best value lies inside: above the first and above the last one."""
    points = _points(curves.panel(panel), results)
    if len(points) < 3:
        yield Finding(curves.panel(panel).title)
        return
    best = max(points[1:-1], key=_height)
    for case, end in (("rises", points[0]), ("falls again", points[-1])):
        apart = difference(best.score, end.score)
        outcome = judge(apart, picked=len(points) - 2)
        yield Finding(case, outcome, f"{best}, {end}: {apart}")


@makes_check
def stable_then_falls(
    curves: CurveFigure, results: Results, panel: str, limit: float
) -> Iterator[Finding]:
    """Up to a value the score hardly changes; at the last value it is lower than there."""
    points = _points(curves.panel(panel), results)
    inside = [point for point in points if point.value <= limit]
    if len(inside) < 2 or len(points) == len(inside):
        yield Finding(curves.panel(panel).title)
        return
    best, worst = max(inside, key=_height), min(inside, key=_height)
    apart = difference(best.score, worst.score)
    pairs = len(inside) * (len(inside) - 1) // 2
    stable = outcome_of(holds=apart.value <= STABLE, fails=apart.is_significant(pairs))
    yield Finding(f"stable up to {limit:g}", stable, f"{best}, {worst}: {apart}")
    before = contrast([(1 / len(inside), Difference.of(point.score)) for point in inside])
    fall = contrast([(1, before), (-1, Difference.of(points[-1].score))])
    text = f"{before.value:.1f} on average up to {limit:g}, {points[-1]}: {fall}"
    yield Finding("falls beyond", judge(fall), text)


@makes_check
def best_around(
    curves: CurveFigure, results: Results, panel: str, low: float, high: float
) -> Iterator[Finding]:
    """The best value lies in a range, and both ends are worse."""
    points = _points(curves.panel(panel), results)
    inside = [point for point in points if low <= point.value <= high]
    outside = [point for point in points if not low <= point.value <= high]
    if not inside or len(outside) < 2:
        yield Finding(curves.panel(panel).title)
        return
    best, rival = max(inside, key=_height), max(outside, key=_height)
    apart = difference(best.score, rival.score)
    ends = [difference(best.score, point.score) for point in (outside[0], outside[-1])]
    outcome = outcome_of(
        holds=apart.value > 0 and all(end.is_significant(len(inside)) for end in ends),
        fails=apart.value < 0 and apart.is_significant(len(outside)),
    )
    text = f"{best}; elsewhere at most {rival}: {apart}"
    yield Finding(f"{low:g} to {high:g}", outcome, text)


@makes_check
def more_in_blocks(
    picture: PictureFigure, results: Results, strong: str, weak: str
) -> Iterator[Finding]:
    """Channels of a factor correlate more in one view than in another; one run each."""
    views = [picture.view(name) for name in (strong, weak)]
    kept = [results.units(view.cell, view.layer) for view in views]
    ratios = [block_correlation(one.on_test_nodes).ratio for one in kept if one is not None]
    if len(ratios) < 2:
        yield Finding(views[0].title)
        return
    first, second = ratios
    outcome = outcome_of(holds=first > second * SAME_RATIO, fails=second > first * SAME_RATIO)
    text = f"inside / between: {first:.2f}, {views[1].title}: {second:.2f} (one run each)"
    yield Finding(views[0].title, outcome, text)
