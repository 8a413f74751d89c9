"""How the numbers were made, in words, and the few that matter most."""

from collections.abc import Sequence

from lgdgcn.reproduce.document import Grid
from lgdgcn.reproduce.exhibits import Exhibit, Table, cells
from lgdgcn.reproduce.results import Results, Run
from lgdgcn.reproduce.score import Score, score
from lgdgcn.reproduce.table_checks import validated

__all__ = ["HOW_TO_READ", "PROTOCOL", "QUICK", "effort", "headline"]

PROTOCOL = (
    "Citation graphs have the standard split (20 labelled nodes per class, 500 for validation, "
    "1,000 for testing) or random splits of the same sizes, another for every seed; synthetic "
    "graphs are split 60 / 20 / 20. Settings come from the presets shipped with the package; each "
    "says how it was found. They were chosen on the standard split, whose training and validation "
    "nodes can be test nodes of a random split (as in the paper); apart from that no test label "
    "has a part in choosing a setting, an epoch or a run. In a full run each training has at most "
    "1,000 epochs (600 on synthetic graphs) and stops after 100 without a better validation score "
    "(accuracy, or Micro-F1); the epoch with the best one is tested. Every number is the mean ± "
    "the sample standard deviation over all seeds, lucky or not; seeds that diverged are left out "
    "of the mean, and the cell says how many. On synthetic graphs each node has exactly m labels, "
    "so the m highest-scoring ones are taken (headline): it needs no threshold, and the paper "
    "does not say what it did; F1 of all labels above a probability of 0.5 stands beside it. On "
    "the standard split all methods of a column share their test nodes: with 1,000 of them the "
    "level of the whole column is known to about ± 1.1 points (one standard error at 85 % "
    "accuracy), however many seeds there are."
)
QUICK = (
    "This is a quick run: two seeds or so, short trainings and few values per curve. It shows that "
    "everything works and roughly where things lie. Its numbers are too low and too noisy to quote."
)
HOW_TO_READ = (
    "Cells show our mean ± standard deviation, the paper's in brackets, and the difference in "
    "points. A filled arrow (▲ ▼) marks a difference of more than two standard errors of both "
    "numbers (the paper has ten runs; where it prints no deviation, ours stands for it), a hollow "
    "one (△ ▽) less than that. The best mean of a column is bold. Where seeds are missing or "
    "diverged, the cell says so."
)

NOT_OTHERS = ("LGD-GCN", "Sharp LGD-GCN", "DisenGCN")


def effort(exhibits: Sequence[Exhibit], results: Results) -> str:
    """What all trainings together took."""
    runs: dict[tuple[str, int], Run] = {}
    wanted = set()
    for cell in (cell for exhibit in exhibits for cell in cells(exhibit)):
        known = results.runs(cell)
        wanted |= {(cell.key, seed) for seed in cell.seeds}
        runs |= {(cell.key, seed): known[seed] for seed in cell.seeds if seed in known}
    hours = sum(run.seconds for run in runs.values()) / 3600
    diverged = sum(bool(run.diverged) for run in runs.values())
    took = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"
    text = f"{len(runs):,} of {len(wanted):,} trainings, {took} of training"
    return text + (f"; {diverged} diverged" if diverged else "")


def headline(exhibits: Sequence[Exhibit], results: Results) -> Grid | None:
    """LGD-GCN beside the paper, our sharp variant, DisenGCN and the best of the others."""
    tables = {one.name: one for one in exhibits if isinstance(one, Table)}
    rows: list[tuple[str | Score, ...]] = []
    for name, group, what in (
        ("table2", "Standard split", "{}"),
        ("table3", "Micro-F1, published graphs", "Synthetic, {} factors"),
    ):
        table = tables.get(name)
        for column in table.columns if table else ():
            row = _headline_row(table, group, column, results) if table else None
            if row:
                rows.append((what.format(column), *row))
    header = ("Graph", "LGD-GCN", "Variant", "Sharp (ours)", "DisenGCN", "Best other", "Which")
    caption = "Test accuracy, or Micro-F1 on the published synthetic graphs (%)"
    return Grid(caption, header, tuple(rows)) if rows else None


def _headline_row(
    table: Table, group: str, column: str, results: Results
) -> tuple[str | Score, ...] | None:
    """Of LGD-GCN the variant that validates best; of the others the best on test, which is fair."""
    ours = validated(table, group, "LGD-GCN", column, results)
    if ours is None:
        return None
    sharp = validated(table, group, "Sharp LGD-GCN", column, results)
    disengcn = validated(table, group, "DisenGCN", column, results)
    place = table.columns.index(column)
    others = [
        (row.label, score(row.entries[place], results))
        for row in table.rows
        if row.group == group and not row.label.startswith(NOT_OTHERS)
    ]
    known = [(other.ours.mean, label, other) for label, other in others if other.ours]
    best = max(known, key=lambda one: one[0], default=None)
    return (
        score(ours[1], results),
        ours[1].cell.settings.variant,
        score(sharp[1], results) if sharp else "–",
        score(disengcn[1], results) if disengcn else "–",
        best[2] if best else "–",
        best[1] if best else "–",
    )
