"""Ways to check a claim against the numbers of a table."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from lgdgcn.experiments.contrast import contrast, difference
from lgdgcn.experiments.exhibits import Entry, Table
from lgdgcn.experiments.finding import Check, Finding, Outcome, judge
from lgdgcn.experiments.results import Mean, Results
from lgdgcn.experiments.score import score, signed, spread

__all__ = ["beats", "finds_factors", "lead_shrinks", "reaches", "routes", "validated"]


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
    """A method is better than a rival, or than the strongest of several."""

    def check(table: Table, results: Results) -> list[Finding]:
        return [one(table, column, results) for column in columns or table.columns]

    def one(table: Table, column: str, results: Results) -> Finding:
        ours = _mean(table, group, label, column, results)
        others = [_mean(table, group, rival, column, results) for rival in rivals]
        known = [other for other in others if other]
        if ours is None or not known:
            return Finding(case.format(column), Outcome.MISSING, "")
        best = max(known, key=lambda other: other[1].mean)
        apart = difference(ours[1], best[1])
        text = f"{ours[0]} {ours[1].mean:.1f}, {best[0]} {best[1].mean:.1f}: {apart}"
        return Finding(case.format(column), judge(apart), text)

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


def lead_shrinks(group: str, label: str, rival: str, wide: str, narrow: str) -> Check:
    """The lead of a method over a rival is smaller in one column than in another."""

    def check(table: Table, results: Results) -> list[Finding]:
        case = f"{wide} to {narrow}"
        found = [
            _mean(table, group, row, column, results)
            for column in (wide, narrow)
            for row in (label, rival)
        ]
        means = [one[1] for one in found if one]
        if len(means) < 4:
            return [Finding(case, Outcome.MISSING, "")]
        leads = [difference(*means[:2]), difference(*means[2:])]
        shrinking = contrast(list(zip((1, -1, -1, 1), means, strict=True)))
        text = f"lead {leads[0]} at {wide}, {leads[1]} at {narrow}: smaller by {shrinking}"
        return [Finding(case, judge(shrinking), text)]

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
    """Edges go to the factor that made them at least twice as often as by chance."""

    def check(table: Table, results: Results) -> list[Finding]:
        found = []
        for column in table.columns:
            share = _factor_number(table, group, label, column, "edge_attribution", results)
            if share is None:
                found.append(Finding(case.format(column), Outcome.MISSING, ""))
                continue
            value, chance = share[0], 1 / share[1].cell.settings.factors
            outcome = Outcome.HOLDS if value > 2 * chance else Outcome.UNDECIDED
            outcome = Outcome.FAILS if value < 1.25 * chance else outcome
            text = f"{value:.1%} of the edges, {chance:.1%} by chance"
            found.append(Finding(case.format(column), outcome, text))
        return found

    return check


def _entries(table: Table, group: str, column: str) -> Iterator[tuple[str, Entry]]:
    if column in table.columns:
        place = table.columns.index(column)
        yield from ((row.label, row.entries[place]) for row in table.rows if row.group == group)


def _mean(
    table: Table, group: str, label: str, column: str, results: Results
) -> tuple[str, Mean] | None:
    found = validated(table, group, label, column, results)
    ours = score(found[1], results).ours if found else None
    return (found[0], ours) if found and ours else None


def _factor_number(
    table: Table, group: str, label: str, column: str, name: str, results: Results
) -> tuple[float, Entry] | None:
    found = validated(table, group, label, column, results)
    runs = results.runs(found[1].cell).values() if found else ()
    values = [run.factors[name] for run in runs if run.factors.get(name) is not None]
    return (fmean(values), found[1]) if found and values else None
