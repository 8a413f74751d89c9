"""Ways to check a claim against a curve or a picture."""

from lgdgcn.metrics.correlation import block_correlation
from lgdgcn.reproduce.contrast import Difference, contrast, difference
from lgdgcn.reproduce.exhibits import Curves, Picture
from lgdgcn.reproduce.finding import Check, Finding, Outcome, judge
from lgdgcn.reproduce.layer_units import layer_units
from lgdgcn.reproduce.results import Mean, Results
from lgdgcn.reproduce.score import score

__all__ = ["best_around", "more_in_blocks", "rises_then_falls", "stable_then_falls"]

STABLE = 1.0  # points between the best and the worst of what counts as the same
SAME_RATIO = 1.1  # ratios of single runs closer than this are not told apart

Points = list[tuple[float, Mean]]


def rises_then_falls(panel: str) -> Check:
    """The best value lies inside: above the first and above the last one."""

    def check(curves: Curves, results: Results) -> list[Finding]:
        points = _points(curves, panel, results)
        if len(points) < 3:
            return [Finding(panel, Outcome.MISSING, "")]
        best = max(points[1:-1], key=_mean_of)
        found = []
        for case, end in (("rises", points[0]), ("falls again", points[-1])):
            apart = difference(best[1], end[1])
            text = f"{_at(best)}, {_at(end)}: {apart}"
            found.append(Finding(case, judge(apart, picked=len(points) - 2), text))
        return found

    return check


def stable_then_falls(panel: str, limit: float) -> Check:
    """Up to a value nothing much changes; at the last value the score is lower than there."""

    def check(curves: Curves, results: Results) -> list[Finding]:
        points = _points(curves, panel, results)
        inside = [point for point in points if point[0] <= limit]
        if len(inside) < 2 or len(points) == len(inside):
            return [Finding(panel, Outcome.MISSING, "")]
        return [_stable(inside, limit), _falls(inside, points[-1], limit)]

    return check


def _stable(inside: Points, limit: float) -> Finding:
    best, worst = max(inside, key=_mean_of), min(inside, key=_mean_of)
    apart = difference(best[1], worst[1])
    outcome = Outcome.HOLDS if apart.value <= STABLE else Outcome.UNDECIDED
    if apart.value > STABLE and apart.is_sure(len(inside) * (len(inside) - 1) // 2):
        outcome = Outcome.FAILS
    return Finding(f"stable up to {limit:g}", outcome, f"{_at(best)}, {_at(worst)}: {apart}")


def _falls(inside: Points, last: tuple[float, Mean], limit: float) -> Finding:
    share = 1 / len(inside)
    before = contrast([(share, Difference.of(mean)) for _, mean in inside])
    apart = contrast([(1, before), (-1, Difference.of(last[1]))])
    text = f"{before.value:.1f} on average up to {limit:g}, {_at(last)}: {apart}"
    return Finding("falls beyond", judge(apart), text)


def best_around(panel: str, low: float, high: float) -> Check:
    """The best value lies in a range, and both ends are worse."""

    def check(curves: Curves, results: Results) -> list[Finding]:
        points = _points(curves, panel, results)
        inside = [point for point in points if low <= point[0] <= high]
        outside = [point for point in points if not low <= point[0] <= high]
        if not inside or len(outside) < 2:
            return [Finding(panel, Outcome.MISSING, "")]
        best, rival = max(inside, key=_mean_of), max(outside, key=_mean_of)
        against = difference(best[1], rival[1])
        ends = [difference(best[1], point[1]) for point in (outside[0], outside[-1])]
        outcome = Outcome.UNDECIDED
        if against.value < 0 and against.is_sure(len(outside)):
            outcome = Outcome.FAILS
        elif against.value > 0 and all(end.is_sure(len(inside)) for end in ends):
            outcome = Outcome.HOLDS
        text = f"{_at(best)}; elsewhere at most {_at(rival)}: {against}"
        return [Finding(f"{low:g} to {high:g}", outcome, text)]

    return check


def more_in_blocks(strong: str, weak: str) -> Check:
    """Channels of a factor go together more in one view than in another; one run each."""

    def check(picture: Picture, results: Results) -> list[Finding]:
        ratios = [_block_ratio(picture, title, results) for title in (strong, weak)]
        first, second = ratios
        if first is None or second is None:
            return [Finding(strong, Outcome.MISSING, "")]
        outcome = Outcome.HOLDS if first > second * SAME_RATIO else Outcome.UNDECIDED
        outcome = Outcome.FAILS if second > first * SAME_RATIO else outcome
        text = f"inside / between: {first:.2f}, {weak}: {second:.2f} (one run each)"
        return [Finding(strong, outcome, text)]

    return check


def _block_ratio(picture: Picture, title: str, results: Results) -> float | None:
    view = next((view for view in picture.views if view.title == title), None)
    arrays = results.units(view.cell) if view else None
    units = layer_units(arrays, view.layer) if view else None
    if arrays is None or units is None:
        return None
    return block_correlation(units[arrays["test_mask"].astype(bool)]).ratio


def _points(curves: Curves, panel: str, results: Results) -> Points:
    """The first curve of the panel whose title begins like this, by value."""
    series = [one.series[0] for one in curves.panels if one.title.startswith(panel)][:1]
    pairs = [pair for one in series for pair in zip(one.values, one.entries, strict=True)]
    scores = [(value, score(entry, results).ours) for value, entry in pairs]
    return sorted(((value, mean) for value, mean in scores if mean), key=lambda point: point[0])


def _mean_of(point: tuple[float, Mean]) -> float:
    return point[1].mean


def _at(point: tuple[float, Mean]) -> str:
    return f"{point[1].mean:.1f} at {point[0]:g}"
