"""The paper's tables: every row's model on every column's graph."""

from typing import Any

from lgdgcn.experiments.exhibits import Entry, Row, Table
from lgdgcn.experiments.paper import number, parts, read
from lgdgcn.experiments.plan import Plan

__all__ = ["table"]


def table(name: str, plan: Plan) -> Table:
    """Describe a table.

    Its file has lists of ``graphs``, ``groups`` (one such list, a split, a metric) and ``rows``
    (model, variant, settings); every group has all rows.
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
    paper = row.get("paper", {}).get(group["paper"], [""] * len(addresses))
    return tuple(
        Entry(
            plan.cell(
                address,
                row["model"],
                group["seeds"],
                preset=preset,
                variant=row.get("variant"),
                settings=row.get("settings"),
                split=group.get("split", "standard"),
            ),
            group["metric"],
            number(text),
            local=row.get("local", False),
        )
        for address, preset, text in zip(addresses, presets, paper, strict=True)
    )
