"""A table or figure of the paper as blocks of a report."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from lgdgcn.metrics.correlation import block_correlation
from lgdgcn.reproduce.configuration import configurations
from lgdgcn.reproduce.document import Block, Code, Folded, Grid, Heading, Image, Paragraph
from lgdgcn.reproduce.exhibits import Curves, Exhibit, Panel, Picture, Table
from lgdgcn.reproduce.factor_grids import factor_blocks
from lgdgcn.reproduce.figures import draw
from lgdgcn.reproduce.layer_units import layer_units
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.score import Score, score

__all__ = ["appendix", "exhibit_blocks", "name_of"]

CAPTIONS = {
    "units": "t-SNE maps of the units of the last layer; every point is one unit of a node in a "
    "sample of all nodes. One run each, the one that validates best.",
    "correlation": "Absolute correlation of all channels over the test nodes; lines part the "
    "factors. Below each: its mean between two channels of one factor and of two factors, and the "
    "ratio of the two. One run each, the one that validates best.",
    "embedding": "t-SNE maps of the nodes' units put together, of up to 2,000 nodes. One run each, "
    "the one that validates best.",
}


def name_of(exhibit: Exhibit) -> str:
    """What the exhibit is called in headings."""
    if isinstance(exhibit, Table):
        return f"{_link(exhibit)}: {exhibit.title}" if _is_the_papers(exhibit) else exhibit.title
    return f"Figure: {exhibit.title}"


def exhibit_blocks(exhibit: Exhibit, results: Results, figures: Path) -> list[Block]:
    """Show an exhibit; figures are drawn into the folder ``figures``."""
    blocks: list[Block] = [Heading(name_of(exhibit), exhibit.name, _link(exhibit))]
    if isinstance(exhibit, Table):
        blocks += [_grid(exhibit, group, results) for group in _groups(exhibit)]
        blocks += factor_blocks(exhibit, results)
    else:
        path = draw(exhibit, results, figures)
        blocks.append(Image(path, _caption(exhibit), _description(exhibit, results)))
    if isinstance(exhibit, Curves):
        numbers = tuple(_numbers(panel, results) for panel in exhibit.panels)
        return [*blocks, Folded("The numbers behind the curves", numbers)]
    return [*blocks, Paragraph(exhibit.note)] if exhibit.note else blocks


def appendix(exhibits: Sequence[Exhibit]) -> list[Block]:
    """The exact configuration behind every cell."""
    return [
        Folded(name_of(exhibit), (Code("\n\n".join(configurations(exhibit))),))
        for exhibit in exhibits
    ]


def _link(exhibit: Exhibit) -> str:
    if isinstance(exhibit, Table):
        number = exhibit.name.removeprefix("table")
        return f"Table {number}" if _is_the_papers(exhibit) else f"Ours: {number}"
    return f"Figure: {exhibit.name.removeprefix('fig-')}"


def _is_the_papers(table: Table) -> bool:
    return table.name.startswith("table")


def _groups(table: Table) -> list[str]:
    return [group for group, _ in groupby(row.group for row in table.rows)]


def _grid(table: Table, group: str, results: Results) -> Grid:
    rows = [row for row in table.rows if row.group == group]
    counts = {len(entry.cell.seeds) for row in rows for entry in row.entries}
    seeds = counts.pop() if len(counts) == 1 else None
    cells: tuple[tuple[str | Score, ...], ...] = tuple(
        (row.label, *(score(entry, results) for entry in row.entries)) for row in rows
    )
    return Grid(group, ("Method", *table.columns), cells, seeds, marks_best=True)


def _caption(exhibit: Curves | Picture) -> str:
    if isinstance(exhibit, Picture):
        return f"{exhibit.title}. {CAPTIONS[exhibit.kind]}"
    counts = {len(entry.cell.seeds) for entry in exhibit.entries()}
    seeds = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(max(counts, default=0))
    return f"{exhibit.title}. Lines are means over {seeds} seeds, bands ± one standard deviation."


def _description(exhibit: Curves | Picture, results: Results) -> str:
    """The figure in words, for those who do not see it."""
    if isinstance(exhibit, Curves):
        parts = [_extremes(panel, results) for panel in exhibit.panels]
    elif exhibit.kind == "correlation":
        parts = []
        for view in exhibit.views:
            arrays = results.units(view.cell)
            units = layer_units(arrays, view.layer)
            if arrays is not None and units is not None:
                ratio = block_correlation(units[arrays["test_mask"].astype(bool)]).ratio
                parts.append(f"{view.title}: ratio inside to between blocks {ratio:.2f}.")
    else:
        parts = ["; ".join(view.title for view in exhibit.views) + "."]
    return " ".join([f"{exhibit.title}.", *parts])


def _extremes(panel: Panel, results: Results) -> str:
    series = panel.series[0]
    scores = [score(entry, results).ours for entry in series.entries]
    points = [(ours.mean, value) for ours, value in zip(scores, series.values, strict=True) if ours]
    if not points:
        return f"{panel.title}: nothing measured."
    (high, best), (low, worst) = max(points), min(points)
    return f"{panel.title}: highest {high:.1f} at {best:g}, lowest {low:.1f} at {worst:g}."


def _numbers(panel: Panel, results: Results) -> Grid:
    values = sorted({value for one in panel.series for value in one.values})
    rows: list[tuple[str | Score, ...]] = []
    for series in panel.series:
        known = dict(zip(series.values, series.entries, strict=True))
        cells = (score(known[value], results) if value in known else "–" for value in values)
        rows.append((series.label, *cells))
    counts = {len(entry.cell.seeds) for one in panel.series for entry in one.entries}
    seeds = counts.pop() if len(counts) == 1 else None
    return Grid(panel.title, (panel.x_label, *(f"{v:g}" for v in values)), tuple(rows), seeds)
