"""What a check of a claim finds, and the checks against the numbers of a table.

A check such as ``beats("standard", "lgdgcn", "gcn")`` has the parameters of a claim. It is called
with an exhibit and the results, and finds one :class:`Finding` per case: a graph, or a part of a
curve.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial, wraps
from statistics import fmean
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from lgdgcn.reproduce.exhibits import CurveFigure, Entry, PictureFigure, ResultTable
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.statistics import (
    Difference,
    Mean,
    compare,
    contrast,
    score,
    seed_scores,
    signed,
    with_deviation,
)

__all__ = [
    "Check",
    "Finding",
    "Outcome",
    "VariantScore",
    "attains",
    "beats",
    "best_variant",
    "combine",
    "finds_factors",
    "judge",
    "lead_shrinks",
    "makes_check",
    "outcome_of",
    "reaches",
    "routes",
    "together",
]


class Outcome(Enum):
    """Whether a claim holds."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    UNDECIDED = "undecided within noise"
    MISSING = "not measured"


@dataclass(frozen=True)
class Finding:
    """One case of a claim, and the numbers that decide it."""

    case: str
    outcome: Outcome = Outcome.MISSING
    evidence: str = ""


Check = Callable[[Any, Results], list[Finding]]  # of the exhibit that the claim is about
Parameters = ParamSpec("Parameters")
AnyExhibit = TypeVar("AnyExhibit", ResultTable, CurveFigure, PictureFigure)


def makes_check(
    find: Callable[Concatenate[AnyExhibit, Results, Parameters], Iterator[Finding]],
) -> Callable[Parameters, Check]:
    """Turn a function of exhibit, results and parameters into one that makes checks."""

    @wraps(find)
    def make(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Check:
        return lambda exhibit, results: list(find(exhibit, results, *args, **kwargs))

    return make


def together(*checks: Check) -> Check:
    """All cases of several checks."""
    return lambda exhibit, results: [case for check in checks for case in check(exhibit, results)]


def judge(apart: Difference, picked: int = 1, rivals: int = 1) -> Outcome:
    """Decide whether a difference is positive.

    Picking the best of several by the scores that are tested favours one side by chance; that side
    has to pass a stricter test.

    Args:
        apart: Ours minus another.
        picked: Ours is the best of so many.
        rivals: The other is the best of so many.
    """
    holds = apart.value > 0
    if not apart.is_significant(picked if holds else rivals):
        return Outcome.UNDECIDED
    return Outcome.HOLDS if holds else Outcome.FAILS


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """A claim holds if all its cases do, and in part if no more of them fail than hold."""
    known = [outcome for outcome in outcomes if outcome is not Outcome.MISSING]
    holding, failing = known.count(Outcome.HOLDS), known.count(Outcome.FAILS)
    if not known:
        return Outcome.MISSING
    if holding == len(known):
        return Outcome.HOLDS
    if failing > holding:
        return Outcome.FAILS
    return Outcome.PARTLY if holding else Outcome.UNDECIDED


def outcome_of(*, holds: bool, fails: bool) -> Outcome:
    """Decide by two thresholds; between them nothing is decided."""
    return Outcome.HOLDS if holds else Outcome.FAILS if fails else Outcome.UNDECIDED


class VariantScore(NamedTuple):
    """The row that stands for a method in a column, and its mean on the test nodes."""

    label: str
    entry: Entry
    mean: Mean

    def __str__(self) -> str:
        return f"{self.label} {self.mean.mean:.1f}"


def best_variant(
    table: ResultTable, results: Results, group: str, column: str, method: str
) -> VariantScore | None:
    """The row of a method in a column; of several variants the best on validation, never on test.

    Args:
        table: Where to look.
        results: Finished runs.
        group: Id of the group of rows.
        column: Heading of the column.
        method: Id of the row, or the method that several rows share.

    Returns:
        ``None`` if the table has no such row or column, or no run of it is finished.
    """
    found = []
    for row in table.rows(group):
        if method in (row.id, row.method) and column in table.columns:
            entry = row.entries[table.columns.index(column)]
            validation, test = (score(entry, results, split).ours for split in ("val", "test"))
            if validation and test:
                found.append((validation.mean, VariantScore(row.label, entry, test)))
    return max(found, key=lambda one: one[0])[1] if found else None


@makes_check
def beats(
    table: ResultTable,
    results: Results,
    group: str,
    method: str,
    *rivals: str,
    columns: Sequence[str] = (),
    case: str = "{}",
    allowed: float = 0.0,
) -> Iterator[Finding]:
    """A method is better than a rival, or than the best of several on the test nodes.

    With ``allowed`` it is enough to lie no more than so many points below.
    """
    for column in columns or table.columns:
        row = partial(best_variant, table, results, group, column)
        ours, others = row(method), [other for other in map(row, rivals) if other]
        if ours and others:
            best = max(others, key=lambda other: other.mean.mean)
            apart = compare(ours.entry, best.entry, results)
            lead = replace(apart, value=apart.value + allowed)
            outcome = judge(lead, rivals=len(others))
            text = f"{ours}, {best}: {apart}" + (f", −{allowed:g} allowed" if allowed else "")
            yield Finding(case.format(column), outcome, text)
        else:
            yield Finding(case.format(column))


@makes_check
def reaches(
    table: ResultTable, results: Results, group: str, method: str, case: str = "{}"
) -> Iterator[Finding]:
    """A method comes up to the number in the paper."""
    for column in table.columns:
        ours = best_variant(table, results, group, column, method)
        if ours and ours.entry.paper:
            apart = ours.mean.mean - ours.entry.paper[0]
            differs = bool(score(ours.entry, results).differs)
            text = f"{ours.label} {with_deviation(ours.mean.mean, ours.mean.std)}, "
            text += f"paper {with_deviation(*ours.entry.paper)}: {signed(apart)}"
            yield Finding(case.format(column), outcome_of(holds=apart >= 0, fails=differs), text)
        else:
            yield Finding(case.format(column))


@makes_check
def attains(
    table: ResultTable,
    results: Results,
    group: str,
    method: str,
    column: str,
    goal: float,
    case: str,
) -> Iterator[Finding]:
    """A number of a method is above a goal that we have set ourselves, in per cent."""
    ours = best_variant(table, results, group, column, method)
    if ours:
        apart = replace(Difference.of(ours.mean), value=ours.mean.mean - goal)
        number = with_deviation(ours.mean.mean, ours.mean.std)
        text = f"{ours.label} {number}, to reach {goal:g}: {apart}"
        yield Finding(case, judge(apart), text)
    else:
        yield Finding(case)


@makes_check
def lead_shrinks(
    table: ResultTable,
    results: Results,
    group: str,
    method: str,
    rival: str,
    wide: str,
    narrow: str,
) -> Iterator[Finding]:
    """The lead of a method over a rival is smaller in the column ``narrow`` than in ``wide``."""
    leads = []
    for column in (wide, narrow):
        ours, other = (best_variant(table, results, group, column, one) for one in (method, rival))
        leads += [compare(ours.entry, other.entry, results)] if ours and other else []
    if len(leads) == 2:
        shrinking = contrast([(1, leads[0]), (-1, leads[1])])
        text = f"lead {leads[0]} at {wide}, {leads[1]} at {narrow}: smaller by {shrinking}"
        yield Finding(f"{wide} to {narrow}", judge(shrinking), text)
    else:
        yield Finding(f"{wide} to {narrow}")


@makes_check
def routes(table: ResultTable, results: Results, group: str, method: str) -> Iterator[Finding]:
    """Edges are given to factors: the entropy of the routing is clearly below its maximum."""
    for column in table.columns:
        ours = best_variant(table, results, group, column, method)
        entropy = _factor_measure(ours, "routing_entropy", results)
        if entropy is None:
            yield Finding(column)
        else:
            outcome = outcome_of(holds=entropy < 0.9, fails=entropy > 0.99)
            yield Finding(column, outcome, f"entropy {entropy:.4f} of its maximum")


@makes_check
def finds_factors(
    table: ResultTable, results: Results, group: str, method: str, case: str = "{}"
) -> Iterator[Finding]:
    """Edges go to the factor that made them more than twice as often as without any routing.

    The columns of the table are true numbers of factors F. With all edges in one channel, about
    1 / F of them are right; at most M of the F factors have one of the M channels.
    """
    for column in table.columns:
        ours = best_variant(table, results, group, column, method)
        share = _factor_measure(ours, "edge_attribution", results)
        if ours is None or share is None:
            yield Finding(case.format(column))
            continue
        channels, factors = ours.entry.cell.settings.num_factors, int(column)
        idle = 1 / factors
        text = f"{share:.1%} of the edges, {idle:.1%} with all of them in one channel"
        if factors > channels:
            text += f", at most about {channels / factors:.1%} with {channels} channels"
        outcome = outcome_of(holds=share > 2 * idle, fails=share < 1.25 * idle)
        yield Finding(case.format(column), outcome, text)


def _factor_measure(ours: VariantScore | None, name: str, results: Results) -> float | None:
    values = seed_scores(replace(ours.entry, metric=name), results).values() if ours else ()
    return fmean(values) if values else None
