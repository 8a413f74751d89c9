"""The report: the paper's numbers, ours, and which claims hold."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from lgdgcn import __version__
from lgdgcn.metrics.catalogue import HEADLINE, MEASURES
from lgdgcn.metrics.correlation import block_correlation
from lgdgcn.reproduce.blocks import (
    Block,
    Code,
    Folded,
    Grid,
    Heading,
    Image,
    Paragraph,
    Verdicts,
    to_html,
    to_markdown,
)
from lgdgcn.reproduce.cells import Cell, settings_line, train_command
from lgdgcn.reproduce.checks import best_variant
from lgdgcn.reproduce.claims import check_claims, summary
from lgdgcn.reproduce.exhibits import (
    CurveFigure,
    Entry,
    Exhibit,
    Panel,
    PictureFigure,
    ResultRow,
    ResultTable,
    cells,
)
from lgdgcn.reproduce.figures import draw
from lgdgcn.reproduce.graphs import DataTable
from lgdgcn.reproduce.results import Results, Run
from lgdgcn.reproduce.statistics import Score, score, seed_scores
from lgdgcn.storage import write_text

__all__ = ["configurations", "factor_measures", "headline_grid", "write_report"]


def write_report(
    folder: Path,
    exhibits: Sequence[Exhibit],
    data: Sequence[DataTable],
    results: Results,
    *,
    quick: bool,
) -> None:
    """Write ``report.md``, ``report.html`` and the figures of what has been trained so far.

    Args:
        folder: Where to; figures go to ``figures`` inside it.
        exhibits: What to show, in this order.
        data: Statistics of the data.
        results: Finished runs; what is missing is shown as such.
        quick: Whether this is a quick run, not to be quoted.
    """
    blocks = list(_blocks(folder, exhibits, data, results, quick=quick))
    title = _texts()["title"] + (" (quick run)" if quick else "")
    done = _effort(exhibits, results)
    subtitle = f"Every table and figure of the paper with lgdgcn {__version__}: {done}."
    write_text(folder / "report.md", to_markdown(title, [Paragraph(subtitle), *blocks], folder))
    write_text(folder / "report.html", to_html(title, subtitle, blocks))


@cache
def _texts() -> dict[str, Any]:
    file = resources.files(__package__) / "templates" / "texts.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _blocks(
    folder: Path,
    exhibits: Sequence[Exhibit],
    data: Sequence[DataTable],
    results: Results,
    *,
    quick: bool,
) -> Iterator[Block]:
    """Everything below the title, in order."""
    texts = _texts()
    if quick:
        yield Paragraph(texts["quick"])
    in_short = headline_grid(exhibits, results)
    if in_short:
        yield Heading("In short", "in-short")
        yield in_short
        yield Paragraph(texts["how_to_read"])
    if verdicts := check_claims(exhibits, results):
        titles = {exhibit.name: _title(exhibit) for exhibit in exhibits}
        yield Heading("What holds and what does not", "reading")
        yield Paragraph(f"{summary(verdicts)} {texts['claims']}")
        for name, some in groupby(verdicts, key=lambda verdict: verdict.claim.exhibit):
            yield Verdicts(titles[name], tuple(some))
    yield Heading("Protocol", "protocol")
    yield Paragraph(texts["protocol"])
    if not in_short:
        yield Paragraph(texts["how_to_read"])
    for exhibit in exhibits:
        yield from _exhibit_blocks(exhibit, results, folder / "figures")
    if data:
        yield Heading("The data", "data")
        yield from (Grid(table.title, table.header, table.rows) for table in data)
    yield Heading("Exact configuration behind each cell", "configuration")
    yield Paragraph(texts["configuration"])
    for exhibit in exhibits:
        yield Folded(_title(exhibit), [Code("\n\n".join(configurations(exhibit)))])


def _effort(exhibits: Sequence[Exhibit], results: Results) -> str:
    """What all trainings together took."""
    runs: dict[tuple[str, int], Run] = {}
    wanted = set()
    for cell in (cell for exhibit in exhibits for cell in cells(exhibit)):
        wanted |= {(cell.key, seed) for seed in cell.seeds}
        runs |= {(cell.key, run.seed): run for run in results.finished(cell)}
    hours = sum(run.seconds for run in runs.values()) / 3600
    diverged = sum(bool(run.diverged) for run in runs.values())
    took = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} minutes"
    text = f"{len(runs):,} of {len(wanted):,} trainings, {took} of training"
    return text + (f"; {diverged} diverged" if diverged else "")


def headline_grid(exhibits: Sequence[Exhibit], results: Results) -> Grid | None:
    """LGD-GCN beside the paper, our own variant, DisenGCN and the best of the others."""
    rows: list[Sequence[str | Score]] = []
    groups = {"table2": ("standard", "{}"), "table3": ("micro-published", "Synthetic, {} factors")}
    for exhibit in exhibits:
        if isinstance(exhibit, ResultTable) and exhibit.name in groups:
            group, label = groups[exhibit.name]
            for column in exhibit.columns:
                row = _headline_row(exhibit, group, column, results)
                rows += [[label.format(column), *row]] if row else []
    header = ("Graph", "LGD-GCN", "Variant", "Ours", "DisenGCN", "Best other", "Which")
    caption = "Test accuracy, or Micro-F1 on the published synthetic graphs (%)"
    return Grid(caption, header, rows) if rows else None


def _headline_row(
    table: ResultTable, group: str, column: str, results: Results
) -> list[str | Score]:
    """Of LGD-GCN the variant that validates best; of the others the best on test, which is fair."""
    methods = ("lgdgcn", "ours", "disengcn")
    found = [best_variant(table, results, group, column, method) for method in methods]
    theirs, ours, disengcn = (score(one.entry, results) if one else "–" for one in found)
    if found[0] is None:
        return []
    index, others = table.columns.index(column), []
    for row in table.rows(group):
        other = score(row.entries[index], results)
        if other.ours and not {row.id, row.method} & {*methods}:
            others.append((other.ours.mean, other, row.label))
    best = max(others, key=lambda one: one[0])[1:] if others else ("–", "–")
    return [theirs, found[0].entry.cell.settings.variant, ours, disengcn, *best]


def _title(exhibit: Exhibit) -> str:
    """What the exhibit is called in headings."""
    if not isinstance(exhibit, ResultTable):
        return f"Figure: {exhibit.title}"
    is_papers = exhibit.name.startswith("table")
    return f"{_link(exhibit)}: {exhibit.title}" if is_papers else exhibit.title


def _link(exhibit: Exhibit) -> str:
    """What the exhibit is called in the list of contents: ``Table 1``, ``Figure: k``."""
    kind, _, name = exhibit.name.partition("-")
    if kind == "fig":
        return f"Figure: {name}"
    number = exhibit.name.removeprefix("table")
    return f"Table {number}" if number != exhibit.name else f"Ours: {number}"


def _exhibit_blocks(exhibit: Exhibit, results: Results, figures: Path) -> Iterator[Block]:
    """Show an exhibit; figures are drawn into the folder ``figures``."""
    yield Heading(_title(exhibit), exhibit.name, _link(exhibit))
    if isinstance(exhibit, ResultTable):
        for group in exhibit.groups:
            rows: list[Sequence[str | Score]] = [
                [row.label, *(score(entry, results) for entry in row.entries)] for row in group.rows
            ]
            seeds = _common_seeds([entry for row in group.rows for entry in row.entries])
            header = ("Method", *exhibit.columns)
            yield Grid(group.heading, header, rows, seeds, marks_best=True)
        if grids := factor_measures(exhibit, results):
            yield Folded(_texts()["factors"], grids)
    else:
        path = draw(exhibit, results, figures)
        yield Image(path, _caption(exhibit), _description(exhibit, results))
    if isinstance(exhibit, CurveFigure):
        numbers = [_panel_numbers(panel, results) for panel in exhibit.panels]
        yield Folded("The numbers behind the curves", numbers)
    elif exhibit.note:
        yield Paragraph(exhibit.note)


def _common_seeds(entries: Sequence[Entry]) -> int | None:
    counts = {len(entry.cell.seeds) for entry in entries}
    return counts.pop() if len(counts) == 1 else None


def factor_measures(table: ResultTable, results: Results) -> list[Grid]:
    """The headline measures of disentanglement, for every group that has trainings of its own.

    A table whose columns are such measures shows them itself. Runs of an earlier version may lack
    a measure; a row in which no cell has it is left out.
    """
    if any(entry.metric in MEASURES for entry in table.entries()):
        return []
    grids: list[Grid] = []
    shown: set[str] = set()
    for group in table.groups:
        own = [row for row in group.rows if any(one.cell.key not in shown for one in row.entries)]
        shown |= {entry.cell.key for row in own for entry in row.entries}
        if rows := [line for row in own for line in _measure_rows(row, results)]:
            grids.append(Grid(group.heading, ("Method and measure", *table.columns), rows))
    return grids


def _measure_rows(row: ResultRow, results: Results) -> Iterator[list[str]]:
    for name in HEADLINE:
        found = [seed_scores(replace(one, metric=name), results).values() for one in row.entries]
        if any(found):
            means = (f"{fmean(values):.3f}" if values else "–" for values in found)
            yield [f"{row.label}: {MEASURES[name].title}", *means]


def _caption(exhibit: CurveFigure | PictureFigure) -> str:
    if isinstance(exhibit, PictureFigure):
        return f"{exhibit.title}. {_texts()['pictures'][exhibit.kind]}"
    counts = {len(entry.cell.seeds) for entry in exhibit.entries()}
    seeds = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(max(counts, default=0))
    return f"{exhibit.title}. Lines are means over {seeds} seeds, bands ± one standard deviation."


def _description(exhibit: CurveFigure | PictureFigure, results: Results) -> str:
    """The figure in words, for those who do not see it."""
    parts = [f"{exhibit.title}."]
    if isinstance(exhibit, CurveFigure):
        parts += [_extremes(panel, results) for panel in exhibit.panels]
    elif exhibit.kind == "correlation":
        for view in exhibit.views:
            kept = results.units(view.cell, view.layer)
            if kept is not None:
                ratio = block_correlation(kept.on_test_nodes).ratio
                parts.append(f"{view.title}: ratio inside to between blocks {ratio:.2f}.")
    else:
        parts.append("; ".join(view.title for view in exhibit.views) + ".")
    return " ".join(parts)


def _extremes(panel: Panel, results: Results) -> str:
    series = panel.series[0]
    scores = [score(entry, results).ours for entry in series.entries]
    points = [(ours.mean, value) for ours, value in zip(scores, series.values, strict=True) if ours]
    if not points:
        return f"{panel.title}: nothing measured."
    (high, best), (low, worst) = max(points), min(points)
    return f"{panel.title}: highest {high:.1f} at {best:g}, lowest {low:.1f} at {worst:g}."


def _panel_numbers(panel: Panel, results: Results) -> Grid:
    values = sorted({value for one in panel.series for value in one.values})
    rows: list[Sequence[str | Score]] = []
    for series in panel.series:
        known = dict(zip(series.values, series.entries, strict=True))
        scores = (score(known[value], results) if value in known else "–" for value in values)
        rows.append((series.label, *scores))
    seeds = _common_seeds([entry for one in panel.series for entry in one.entries])
    return Grid(panel.title, (panel.x_label, *(f"{v:g}" for v in values)), rows, seeds)


def configurations(exhibit: Exhibit) -> list[str]:
    """Describe every cell of an exhibit once, in four lines, with every number it stands for."""
    labels: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    known_cells: dict[tuple[str, tuple[int, ...]], Cell] = {}
    for label, cell in exhibit.labelled_cells():
        known = labels.setdefault((cell.key, cell.seeds), [])
        known_cells[cell.key, cell.seeds] = cell
        if label not in known:
            known.append(label)
    return [
        f"# {'; '.join(labels[key])}\n"
        f"# cell {cell.key}: {cell.model} on {cell.graph}, {cell.split} split, "
        f"seeds {_listed(cell.seeds)}\n"
        f"{settings_line(cell.settings) or '# all settings at their defaults'}\n"
        f"{train_command(cell)}"
        for key, cell in known_cells.items()
    ]


def _listed(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
