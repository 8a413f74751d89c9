"""The paper's tables: every row's model on every column's graph."""

from typing import Any

from lgdgcn.reproduce.exhibits import Entry, Row, Table
from lgdgcn.reproduce.paper import number, parts, read
from lgdgcn.reproduce.plan import Plan

__all__ = ["table"]


def table(name: str, plan: Plan) -> Table:
    """Describe a table.

    Its file has lists of ``graphs``, ``groups`` (one such list, a split, a metric or several) and
    ``rows`` (model, variant, settings, and ``times``: what is multiplied on which graphs); every
    group has all rows, with a column for each metric on each graph.
    """
    described = read(name)
    graphs = described["graphs"]
    rows = tuple(
        Row(group["heading"], row["label"], _entries(row, group, graphs[group["graphs"]], plan))
        for group in described["groups"]
        for row in parts(described, "rows")
    )
    columns = tuple(described["columns"])
    return Table(name, described["title"], columns, rows, described.get("note", ""))


def _entries(
    row: dict[str, Any], group: dict[str, Any], graphs: dict[str, list[str]], plan: Plan
) -> tuple[Entry, ...]:
    addresses = graphs["addresses"]
    presets = graphs.get("presets", addresses)
    cells = [
        plan.cell(
            address,
            row["model"],
            group["seeds"],
            preset=row.get("preset", preset),
            variant=row.get("variant"),
            settings=row.get("settings"),
            times=row.get("times", {}).get(group["graphs"]),
            split=group.get("split", "standard"),
        )
        for address, preset in zip(addresses, presets, strict=True)
    ]
    columns = [(cell, metric) for cell in cells for metric in _metrics(group)]
    paper = row.get("paper", {}).get(group.get("paper"), [""] * len(columns))
    return tuple(
        Entry(cell, metric, number(text), local=row.get("local", False))
        for (cell, metric), text in zip(columns, paper, strict=True)
    )


def _metrics(group: dict[str, Any]) -> list[str]:
    return group["metrics"] if "metrics" in group else [group["metric"]]
