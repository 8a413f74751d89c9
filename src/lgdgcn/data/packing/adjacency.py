"""From the table of edges to CSR: both directions of each edge, sorted, each once.

The engine sorts; what comes is merged here, batch by batch.
"""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from lgdgcn.data.edge_list import TYPE
from lgdgcn.data.edge_types import MOST_TYPES, types_of_cells
from lgdgcn.data.packed.pointers import RowPointers
from lgdgcn.data.packed.text import arrow
from lgdgcn.data.packed.writer import PackedWriter, index_type
from lgdgcn.data.packing.edges import EdgeFacts
from lgdgcn.data.packing.engine import Engine
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.progress import long_work

__all__ = ["write_adjacency"]

BATCH = 1 << 17  # edges
MOST_NODES = 2**31 - 2  # (N² · 2 fits int64)
MOST_CELLS = 10**6  # different cells of a column of types

Array = np.ndarray[Any, Any]


class _Listed(NamedTuple):
    """Edges as they are listed, sorted by ``key``: 2 (source · N + target), + 1 if turned round."""

    key: Array  # int64 [n]
    weight: Array | None  # float64 [n]
    types: Array | None  # uint8 [n, T]

    def part(self, which: Any) -> "_Listed":
        weight = None if self.weight is None else self.weight[which]
        return _Listed(self.key[which], weight, None if self.types is None else self.types[which])

    def followed_by(self, rows: "_Listed") -> "_Listed":
        """Both, one behind the other."""
        weight = types = None
        if self.weight is not None and rows.weight is not None:
            weight = np.concatenate([self.weight, rows.weight])
        if self.types is not None and rows.types is not None:
            types = np.concatenate([self.types, rows.types])
        return _Listed(np.concatenate([self.key, rows.key]), weight, types)

    def merged(self) -> "_Listed":
        """Every key once: weights are added up in their order, types united."""
        if not len(self.key):
            return self
        new = np.concatenate([[True], self.key[1:] != self.key[:-1]])
        start, weight, types = np.flatnonzero(new), self.weight, self.types
        if weight is not None:
            weight = np.bincount(new.cumsum() - 1, weight, len(start))
        if types is not None:
            types = np.maximum.reduceat(types, start, axis=0)
        return _Listed(self.key[start], weight, types)


def write_adjacency(engine: Engine, writer: PackedWriter, facts: EdgeFacts) -> dict[str, Any]:
    """Write the edges of the engine's table.

    Returns:
        What the manifest says of them, as plain values.
    """
    nodes = facts.nodes
    if nodes > MOST_NODES:
        raise InputError(f"the graph has {nodes:,} nodes; {MOST_NODES:,} can be packed")
    table, names = _type_table(engine) if facts.typed else (None, [])
    listed_once = False
    total = 2 * int(engine.one("SELECT count(*) FROM edges WHERE s <> t")[0])
    with ExitStack() as stack:
        pointers = RowPointers(stack.enter_context(writer.array("row_ptr", np.int64)))
        column = stack.enter_context(writer.array("column", index_type(nodes)))
        if facts.weighted:
            weight = stack.enter_context(writer.array("weight", np.float32))
        if table is not None:
            types = stack.enter_context(writer.array("edge_type", np.uint8, len(names)))
        advance = stack.enter_context(long_work("sorting and writing edges", "edges"))
        done = 0
        for listed, count in _pairs(engine, nodes, facts.weighted, table):
            pair, turned = listed.key >> 1, (listed.key & 1).astype(bool)
            first = np.concatenate([[True], pair[1:] != pair[:-1]])
            start = np.flatnonzero(first)
            listed_once = listed_once or bool(turned[start].any())
            source = pair[start] // nodes
            pointers.append(source)
            column.append(pair[start] - source * nodes)
            if listed.weight is not None:
                both = np.diff(np.append(start, len(pair)))  # directions it is listed in, 1 or 2
                weight.append(np.add.reduceat(listed.weight, start) / both)
            if listed.types is not None:
                types.append(np.maximum.reduceat(listed.types, start, axis=0))
            done += count
            advance(done, done / max(1, total))
        pointers.finish(nodes)
    return {"edges": pointers.edges, "listed_once": listed_once, "edge_type_names": names}


def _pairs(
    engine: Engine, nodes: int, weighted: bool, table: Array | None
) -> Iterator[tuple[_Listed, int]]:
    """Merged edges in batches that divide no pair, and how many rows each was made of."""
    extra = ", weight, position" * weighted + ", type" * (table is not None)
    sql = (
        f"SELECT (s * {nodes} + t) * 2 AS key{extra} FROM edges WHERE s <> t UNION ALL "
        f"SELECT (t * {nodes} + s) * 2 + 1{extra} FROM edges WHERE s <> t"
    )
    if table is not None:
        kept = "key" + ", weight, position" * weighted
        sql = f"SELECT {kept}, code FROM ({sql}) JOIN codes ON cell = type"
    sql = f"SELECT * FROM ({sql}) ORDER BY key{', position' * weighted}"
    wide = 1 if table is None else 1 + table.shape[1] // 8
    rest = None
    for batch in engine.batches(sql, max(1024, BATCH // wide)):
        rows = _listed(batch, weighted, table)
        merged = (rows if rest is None else rest.followed_by(rows)).merged()
        cut = int(np.searchsorted(merged.key >> 1, merged.key[-1] >> 1))
        rest = merged.part(slice(cut, None))  # more rows of the last pair may follow
        if cut:
            yield merged.part(slice(0, cut)), batch.num_rows
    if rest is not None:
        yield rest, 0


def _listed(batch: Any, weighted: bool, table: Array | None) -> _Listed:
    columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
    # weights are float32, as an array of the same edges would be
    weight = columns[1].astype(np.float32).astype(np.float64) if weighted else None
    return _Listed(columns[0], weight, None if table is None else table[columns[-1]])


def _type_table(engine: Engine) -> tuple[Array | None, list[str]]:
    """Types of each different cell, 0/1 ``[cells, T]``; makes the engine's table ``codes``."""
    too_many = int(engine.one("SELECT count(DISTINCT type) FROM edges")[0]) > MOST_CELLS
    cells = [] if too_many else [c for (c,) in engine.rows("SELECT DISTINCT type FROM edges")]
    found = None if too_many else types_of_cells(cells, np.arange(len(cells)))
    if found is None:
        message = f"edges: column {TYPE!r} is ignored: it has more than {MOST_TYPES:,} types"
        warnings.warn(message, LGDWarning, stacklevel=3)
        return None, []
    engine.run("CREATE OR REPLACE TABLE codes (cell VARCHAR, code BIGINT)")
    text = arrow().array(cells, arrow().large_string())
    engine.insert("codes", arrow().table({"cell": text, "code": np.arange(len(cells))}))
    return (found[0], found[1]) if found[1] else (None, [])
