"""The headline measures of disentanglement behind a table's cells."""

from dataclasses import replace
from itertools import groupby
from statistics import fmean

from lgdgcn.metrics.catalogue import HEADLINE, MEASURES
from lgdgcn.reproduce.document import Block, Folded, Grid
from lgdgcn.reproduce.exhibits import Entry, Row, Table
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.score import seed_scores

__all__ = ["factor_blocks"]

SUMMARY = "How well the channels are told apart (see docs/metrics.md), means over the seeds"


def factor_blocks(table: Table, results: Results) -> list[Block]:
    """One grid for every group of rows that has trainings of its own; nothing without any number.

    A table whose columns are such measures shows them itself. Runs of an earlier version may lack
    some of the measures; their rows are then left out.
    """
    if any(entry.metric in MEASURES for entry in table.entries()):
        return []
    grids: list[Grid] = []
    shown: set[str] = set()
    for group, members in groupby(table.rows, key=lambda row: row.group):
        own = [row for row in members if _keys(row) - shown]
        rows = [line for row in own for line in _lines(row, results)]
        shown |= {key for row in own for key in _keys(row)}
        if rows:
            grids.append(Grid(group, ("Method and measure", *table.columns), tuple(rows)))
    return [Folded(SUMMARY, tuple(grids))] if grids else []


def _keys(row: Row) -> set[str]:
    return {entry.cell.key for entry in row.entries}


def _lines(row: Row, results: Results) -> list[tuple[str, ...]]:
    """The measures of a row of the table that some cell of it has."""
    lines = []
    for name in HEADLINE:
        values = [_mean(entry, name, results) for entry in row.entries]
        if any(value is not None for value in values):
            cells = ("–" if value is None else f"{value:.3f}" for value in values)
            lines.append((f"{row.label}: {MEASURES[name].title}", *cells))
    return lines


def _mean(entry: Entry, name: str, results: Results) -> float | None:
    values = seed_scores(replace(entry, metric=name), results).values()
    return fmean(values) if values else None
