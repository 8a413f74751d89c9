"""What the paper and we show, read from ``paper/*.toml``: tables, curves and pictures of cells.

Groups, rows, panels and views have an ``id`` in their file. Claims and tests name them by it, so
that a label can be worded anew without breaking anything.
"""

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from lgdgcn.errors import InputError
from lgdgcn.reproduce.cells import Cell, Plan

__all__ = [
    "NAMES",
    "CurveFigure",
    "Entry",
    "Exhibit",
    "Panel",
    "PictureFigure",
    "ResultRow",
    "ResultTable",
    "RowGroup",
    "Series",
    "View",
    "cells",
    "exhibits",
    "paper_number",
    "read_toml",
]

TABLES = ("table1", "table2", "table3", "table4", "ours")
PICTURES = ("fig-units", "fig-correlation", "fig-embedding")
CURVES = ("fig-lambda", "fig-k", "fig-factors", "fig-ours")
NAMES = (*TABLES, *PICTURES, *CURVES)

LabelledCells = Iterator[tuple[str, Cell]]
Described = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A number to show, shares in per cent: a metric of a cell beside the number in the paper."""

    cell: Cell
    metric: str  # a score, or a measure of disentanglement
    paper: tuple[float, float | None] | None = None  # mean and standard deviation
    local: bool = False  # score with the latent graphs off at test time


@dataclass(frozen=True)
class ResultRow:
    """A row of a table."""

    id: str
    label: str
    entries: tuple[Entry, ...]  # one per column
    method: str = ""  # rows of the same method are its variants


@dataclass(frozen=True)
class RowGroup:
    """Rows under one heading, such as those of one split or one metric."""

    id: str
    heading: str
    rows: tuple[ResultRow, ...]


@dataclass(frozen=True)
class ResultTable:
    """A table of the paper, or of ours."""

    name: str  # on the command line
    title: str
    columns: tuple[str, ...]
    groups: tuple[RowGroup, ...]
    note: str = ""

    def entries(self) -> Iterator[Entry]:
        """All numbers."""
        return (entry for group in self.groups for row in group.rows for entry in row.entries)

    def labelled_cells(self) -> LabelledCells:
        """Every cell with the row, column and group it belongs to."""
        for group in self.groups:
            for row in group.rows:
                for column, entry in zip(self.columns, row.entries, strict=True):
                    yield f"{row.label} / {column} / {group.heading}", entry.cell

    def rows(self, group: str) -> list[ResultRow]:
        """The rows of the group with this id; none if there is no such group."""
        return [row for one in self.groups if one.id == group for row in one.rows]


@dataclass(frozen=True)
class Series:
    """A line of a plot: numbers over the values of a setting, or over graphs."""

    label: str
    values: tuple[float, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    id: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    note: str = ""  # what the paper says about it
    y_limits: tuple[float, float] | None = None
    has_chance: bool = False  # whether one of as many as the value says is right by chance


@dataclass(frozen=True)
class CurveFigure:
    """A figure of scores against a setting, or against a number that graphs differ in."""

    name: str
    title: str
    panels: tuple[Panel, ...]

    def entries(self) -> Iterator[Entry]:
        """All numbers."""
        return (entry for panel in self.panels for one in panel.series for entry in one.entries)

    def labelled_cells(self) -> LabelledCells:
        """Every cell with the panel and the value of the setting it belongs to."""
        for panel in self.panels:
            models = {series.entries[0].cell for series in panel.series if series.entries}
            for series in panel.series:
                line = f" {series.label}," if len(models) > 1 else ""
                for value, entry in zip(series.values, series.entries, strict=True):
                    yield f"{panel.title},{line} {value:g}", entry.cell

    def panel(self, name: str) -> Panel:
        """The panel with this id."""
        return next(panel for panel in self.panels if panel.id == name)


@dataclass(frozen=True)
class View:
    """One picture of a trained model: the units of a layer (1 is the first, 0 the last)."""

    id: str
    title: str
    cell: Cell  # keeps units
    layer: int = 0


@dataclass(frozen=True)
class PictureFigure:
    """A figure of trained models side by side."""

    name: str
    title: str
    kind: Literal["units", "correlation", "embedding"]
    views: tuple[View, ...]
    note: str = ""

    def labelled_cells(self) -> LabelledCells:
        """Every cell with the view it belongs to."""
        return ((view.title, view.cell) for view in self.views)

    def view(self, name: str) -> View:
        """The view with this id."""
        return next(view for view in self.views if view.id == name)


Exhibit = ResultTable | CurveFigure | PictureFigure


def cells(exhibit: Exhibit) -> list[Cell]:
    """What has to be trained for an exhibit, in its order; the same cell may come twice."""
    return [cell for _, cell in exhibit.labelled_cells()]


def exhibits(names: Sequence[str], plan: Plan) -> list[Exhibit]:
    """Describe exhibits by name, each once and in the order of the paper; ``all`` is all of them.

    Raises:
        InputError: There is no exhibit of a name.
    """
    for name in names:
        if name not in (*NAMES, "all"):
            close = difflib.get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"no table or figure {name!r}; {hint}known: all, {', '.join(NAMES)}")
    return [_exhibit(name, plan) for name in NAMES if name in names or "all" in names]


def read_toml(name: str) -> Described:
    """Read a file of ``paper/``, e.g. ``"table2"``."""
    file = resources.files(__package__) / "paper" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def paper_number(text: str) -> tuple[float, float | None] | None:
    """Read a number as the paper prints it: mean and standard deviation, if there is one.

    Example:
        >>> paper_number("84.9 ± 0.4"), paper_number("83.7"), paper_number("")
        ((84.9, 0.4), (83.7, None), None)
    """
    if not text:
        return None
    mean, _, std = text.partition("±")
    return float(mean), float(std) if std else None


def _exhibit(name: str, plan: Plan) -> Exhibit:
    described = read_toml(name)
    title, note = described["title"], described.get("note", "")
    if name in TABLES:
        groups = tuple(_group(group, described, plan) for group in described["groups"])
        return ResultTable(name, title, tuple(described["columns"]), groups, note)
    if name in CURVES:
        lines = described.get("lines", {})
        panels = tuple(_panel(panel, lines, plan) for panel in _all(described, "panels"))
        return CurveFigure(name, title, panels)
    views = tuple(
        View(view["id"], view["title"], plan.cell(view), view.get("layer", 0))
        for view in _all(described, "views", keeps_units=True)
    )
    return PictureFigure(name, title, described["kind"], views, note)


def _all(described: Described, kind: str, **more: Any) -> list[Described]:
    """The rows, panels or views of a file, each completed by the table ``[every]``."""
    return [{**described.get("every", {}), **more, **one} for one in described[kind]]


def _group(group: Described, described: Described, plan: Plan) -> RowGroup:
    graphs = described["graphs"][group["graphs"]]
    rows = tuple(
        ResultRow(
            row["id"], row["label"], _entries(row, group, graphs, plan), row.get("method", "")
        )
        for row in _all(described, "rows")
        if group["id"] in row.get("groups", [group["id"]])
    )
    return RowGroup(group["id"], group["heading"], rows)


def _entries(row: Described, group: Described, graphs: Described, plan: Plan) -> tuple[Entry, ...]:
    """The entries of a row: every metric of the group on every graph."""
    names: list[str] = graphs["addresses"]
    presets: list[str] = graphs.get("presets", names)
    metrics = group["metrics"] if "metrics" in group else [group["metric"]]
    common = {
        **row,
        "seeds": group["seeds"],
        "split": group.get("split", "standard"),
        "times": row.get("times", {}).get(group["graphs"], {}),
    }
    columns = [
        (plan.cell({"preset": preset, **common, "graph": graph}), metric)
        for graph, preset in zip(names, presets, strict=True)
        for metric in metrics
    ]
    paper = row.get("paper", {}).get(group.get("paper"), [""] * len(columns))
    return tuple(
        Entry(cell, metric, paper_number(text), local=row.get("local", False))
        for (cell, metric), text in zip(columns, paper, strict=True)
    )


def _panel(panel: Described, lines: Described, plan: Plan) -> Panel:
    if "graphs" in panel:
        series = tuple(_over_graphs(panel, lines[name], plan) for name in panel["lines"])
    else:
        series = _over_setting(panel, plan)
    return Panel(
        panel["id"],
        panel["title"],
        panel["x_label"],
        panel["y_label"],
        series,
        panel.get("note", ""),
        tuple(panel["y_limits"]) if "y_limits" in panel else None,
        panel.get("chance", False),
    )


def _over_graphs(panel: Described, line: Described, plan: Plan) -> Series:
    """A model on several graphs, with its own preset on each."""
    own = line.get("settings_by_graph", [{}] * len(panel["graphs"]))
    entries = [
        Entry(
            plan.cell({"seeds": panel["seeds"], **line, "graph": graph, "settings": settings}),
            panel["metric"],
        )
        for graph, settings in zip(panel["graphs"], own, strict=True)
    ]
    return Series(line["label"], tuple(map(float, panel["values"])), tuple(entries))


def _over_setting(panel: Described, plan: Plan) -> tuple[Series, ...]:
    """A model on one graph with several values of a setting; a line for each metric."""
    values = panel["quick_values" if plan.quick else "values"]
    hidden = plan.cell(panel).settings.hidden_channels
    cells = []
    for value in values:
        settings = {**panel.get("settings", {}), panel["setting"]: value}
        if panel["setting"] == "factors":  # the width of a layer becomes a multiple of them
            settings["hidden_channels"] = max(1, round(hidden / value)) * value
        cells.append(plan.cell({**panel, "settings": settings}))
    return tuple(
        Series(label, tuple(map(float, values)), tuple(Entry(cell, metric) for cell in cells))
        for label, metric in panel["series"].items()
    )
