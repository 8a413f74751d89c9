"""What is slow and not attacked is replaced: drawing."""

from pathlib import Path
from typing import Any

from lgdgcn import plots
from lgdgcn.reproduce import exhibits
from lgdgcn.reproduce.exhibits import Entry, ResultRow, ResultTable, RowGroup
from lgdgcn.search import winner
from lgdgcn.storage import atomic_write
from reproduce.tiny import cell

__all__ = ["install"]


def install() -> None:
    """Replace them in this process, for good."""
    plots.plot_units = _plot_units
    winner.draw = lambda study, folder: None
    exhibits.exhibits = _described


def _plot_units(units: Any, path: Path, title: str) -> None:
    atomic_write(path, f"a figure: {title}".encode())


def _described(names: Any, plan: Any) -> list[ResultTable]:
    entry = Entry(cell("gcn", epochs=5), "micro_f1", (50.0, 1.0))
    row = ResultRow("gcn", "GCN", (entry,))
    return [ResultTable("table1", "Small", ("A",), (RowGroup("all", "All", (row,)),))]
