"""What the paper shows: tables, curves and pictures, each made of cells and the paper's numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lgdgcn.reproduce.cell import Cell

__all__ = [
    "Curves",
    "Entry",
    "Exhibit",
    "Facts",
    "Panel",
    "Picture",
    "Row",
    "Series",
    "Table",
    "View",
    "cells",
]


@dataclass(frozen=True)
class Entry:
    """A number to show: a cell, what is read off it, and what the paper says, in per cent."""

    cell: Cell
    metric: str  # a score, or a measure of disentanglement
    paper: tuple[float, float | None] | None = None  # mean and standard deviation
    local: bool = False  # with latent graphs off at test time


@dataclass(frozen=True)
class Row:
    """A row of a table; rows of one group stand together under its heading."""

    group: str
    label: str
    entries: tuple[Entry, ...]  # one per column


@dataclass(frozen=True)
class Table:
    """A table of the paper."""

    name: str  # as the command line calls it
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""

    def entries(self) -> Iterator[Entry]:
        """All numbers."""
        return (entry for row in self.rows for entry in row.entries)


@dataclass(frozen=True)
class Series:
    """A line of a plot: numbers over the values of a setting."""

    label: str
    values: tuple[float, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    note: str = ""  # what the paper says of it


@dataclass(frozen=True)
class Curves:
    """A figure of accuracy against a setting."""

    name: str
    title: str
    panels: tuple[Panel, ...]

    def entries(self) -> Iterator[Entry]:
        """All numbers."""
        return (entry for panel in self.panels for one in panel.series for entry in one.entries)


@dataclass(frozen=True)
class View:
    """One picture of a trained model: the units of a layer (1 is the first, 0 the last)."""

    title: str
    cell: Cell  # keeps units
    layer: int = 0


@dataclass(frozen=True)
class Picture:
    """A figure of trained models side by side."""

    name: str
    title: str
    kind: Literal["units", "correlation", "embedding"]
    views: tuple[View, ...]
    note: str = ""


Exhibit = Table | Curves | Picture


@dataclass(frozen=True)
class Facts:
    """A table of plain text, such as the statistics of the data."""

    title: str
    header: list[str]
    rows: list[list[str]]


def cells(exhibit: Exhibit) -> list[Cell]:
    """What has to be trained for an exhibit, in its order; the same cell may come twice."""
    if isinstance(exhibit, Picture):
        return [view.cell for view in exhibit.views]
    return [entry.cell for entry in exhibit.entries()]
