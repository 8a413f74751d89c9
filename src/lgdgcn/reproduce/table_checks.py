"""Ways to check a claim against the numbers of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from lgdgcn.reproduce.contrast import Difference, compare, contrast
from lgdgcn.reproduce.exhibits import Entry, Table
from lgdgcn.reproduce.finding import Check, Finding, Outcome, judge
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.score import score, seed_scores, signed, spread

__all__ = ["attains", "beats", "finds_factors", "lead_shrinks", "reaches", "routes", "validated"]


def validated(
    table: Table, group: str, label: str, column: str, results: Results
) -> tuple[str, Entry] | None:
    """The row of a method in a column; of its variants the best on validation, never on test.

    Args:
        table: Where to look.
        group: Heading of the rows.
        label: The row's label, or how it goes on before ``" ("`` and a variant's name.
        column: The column's label.
        results: Finished runs.
    """
    found = []
    for row_label, entry in _entries(table, group, column):
        if row_label == label or row_label.startswith(f"{label} ("):
            mean = score(entry, results, "val").ours
            if mean is not None:
                found.append((mean.mean, row_label, entry))
    best = max(found, key=lambda one: one[0], default=None)
    return (best[1], best[2]) if best else None


def beats(
    group: str, label: str, *rivals: str, columns: Sequence[str] = (), case: str = "{}"
) -> Check:
    """A method is better than a rival, or than the best of several on the test nodes."""

    def check(table: Table, results: Results) -> list[Finding]:
        return [one(table, column, results) for column in columns or table.columns]

    def one(table: Table, column: str, results: Results) -> Finding:
        ours = _measured(table, group, label, column, results)
        others = [_measured(table, group, rival, column, results) for rival in rivals]
        known = [other for other in others if other]
        best = max(known, key=lambda other: other.mean, default=None)
        apart = compare(ours.entry, best.entry, results) if ours and best else None
        if ours is None or best is None or apart is None:
            return Finding(case.format(column), Outcome.MISSING, "")
        text = f"{ours.label} {ours.mean:.1f}, {best.label} {best.mean:.1f}: {apart}"
        return Finding(case.format(column), judge(apart, rivals=len(known)), text)

    return check


def reaches(group: str, label: str, case: str = "{}") -> Check:
    """A method comes up to the paper's own number."""

    def check(table: Table, results: Results) -> list[Finding]:
        return [one(table, column, results) for column in table.columns]

    def one(table: Table, column: str, results: Results) -> Finding:
        found = validated(table, group, label, column, results)
        ours = score(found[1], results) if found else None
        if found is None or ours is None or ours.ours is None or ours.paper is None:
            return Finding(case.format(column), Outcome.MISSING, "")
        apart = ours.ours.mean - ours.paper[0]
        outcome = Outcome.HOLDS if apart >= 0 else Outcome.UNDECIDED
        if apart < 0 and ours.differs:
            outcome = Outcome.FAILS
        text = f"{found[0]} {spread(ours.ours.mean, ours.ours.std)}, "
        text += f"paper {spread(*ours.paper)}: {signed(apart)}"
        return Finding(case.format(column), outcome, text)

    return check


def attains(group: str, label: str, column: str, goal: float, case: str) -> Check:
    """A method's number is above one that we have set ourselves, in per cent."""

    def check(table: Table, results: Results) -> list[Finding]:
        found = validated(table, group, label, column, results)
        ours = score(found[1], results).ours if found else None
        if ours is None:
            return [Finding(case, Outcome.MISSING, "")]
        apart = replace(Difference.of(ours), value=ours.mean - goal)
        text = f"{label} {spread(ours.mean, ours.std)}, to reach {goal:g}: {apart}"
        return [Finding(case, judge(apart), text)]

    return check


def lead_shrinks(group: str, label: str, rival: str, wide: str, narrow: str) -> Check:
    """The lead of a method over a rival is smaller in one column than in another."""

    def check(table: Table, results: Results) -> list[Finding]:
        case = f"{wide} to {narrow}"
        first, last = (lead(table, column, results) for column in (wide, narrow))
        if first is None or last is None:
            return [Finding(case, Outcome.MISSING, "")]
        shrinking = contrast([(1, first), (-1, last)])
        text = f"lead {first} at {wide}, {last} at {narrow}: smaller by {shrinking}"
        return [Finding(case, judge(shrinking), text)]

    def lead(table: Table, column: str, results: Results) -> Difference | None:
        ours = _measured(table, group, label, column, results)
        other = _measured(table, group, rival, column, results)
        return compare(ours.entry, other.entry, results) if ours and other else None

    return check


def routes(group: str, label: str) -> Check:
    """Edges are given to factors: the entropy of the routing is clearly below its maximum."""

    def check(table: Table, results: Results) -> list[Finding]:
        found = []
        for column in table.columns:
            entropy = _factor_number(table, group, label, column, "routing_entropy", results)
            if entropy is None:
                found.append(Finding(column, Outcome.MISSING, ""))
                continue
            value = entropy[0]
            outcome = Outcome.HOLDS if value < 0.9 else Outcome.UNDECIDED
            outcome = Outcome.FAILS if value > 0.99 else outcome
            found.append(Finding(column, outcome, f"entropy {value:.4f} of its maximum"))
        return found

    return check


def finds_factors(group: str, label: str, case: str = "{}") -> Check:
    """Edges go to the factor that made them more than twice as often as without any routing.

    The table's columns are true numbers of factors F. With all edges in one channel, about 1 / F
    of them are right; at most M of the F factors have one of the M channels.
    """

    def check(table: Table, results: Results) -> list[Finding]:
        found = []
        for column in table.columns:
            share = _factor_number(table, group, label, column, "edge_attribution", results)
            if share is None:
                found.append(Finding(case.format(column), Outcome.MISSING, ""))
                continue
            value, channels, factors = share[0], share[1].cell.settings.factors, int(column)
            idle = 1 / factors
            outcome = Outcome.HOLDS if value > 2 * idle else Outcome.UNDECIDED
            outcome = Outcome.FAILS if value < 1.25 * idle else outcome
            text = f"{value:.1%} of the edges, {idle:.1%} with all of them in one channel"
            if factors > channels:
                most = channels / factors
                text += f", at most about {most:.1%} with {channels} channels"
            found.append(Finding(case.format(column), outcome, text))
        return found

    return check


def _entries(table: Table, group: str, column: str) -> Iterator[tuple[str, Entry]]:
    if column in table.columns:
        place = table.columns.index(column)
        yield from ((row.label, row.entries[place]) for row in table.rows if row.group == group)


class _Measured(NamedTuple):
    label: str
    entry: Entry
    mean: float


def _measured(
    table: Table, group: str, label: str, column: str, results: Results
) -> _Measured | None:
    found = validated(table, group, label, column, results)
    ours = score(found[1], results).ours if found else None
    return _Measured(*found, ours.mean) if found and ours else None


def _factor_number(
    table: Table, group: str, label: str, column: str, name: str, results: Results
) -> tuple[float, Entry] | None:
    found = validated(table, group, label, column, results)
    values = seed_scores(replace(found[1], metric=name), results).values() if found else []
    return (fmean(values), found[1]) if found and values else None
