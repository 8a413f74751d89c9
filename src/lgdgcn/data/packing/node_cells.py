"""The table of nodes inside the engine: every cell as text, column by column."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.data.columns import HEAD, CountedCells
from lgdgcn.data.encoding import Encoding
from lgdgcn.data.names import COMMA, DECIMAL_COMMA, NUMBER, is_missing, is_number, number_form
from lgdgcn.data.node_table import known_roles
from lgdgcn.data.packing.engine import Engine
from lgdgcn.data.packing.table_file import (
    Rows,
    TableFile,
    append_rows,
    decimal_point,
    is_blank,
    matches,
)
from lgdgcn.data.tables import check_names, comment_hint, number_columns, where
from lgdgcn.errors import InputError

__all__ = ["NodeCells", "load_nodes"]

TABLE = "nodes"
BATCH = 1 << 15  # rows


@dataclass(frozen=True)
class NodeCells:
    """The table of nodes, and which roles its columns are known to have.

    Attributes:
        engine: Where it is.
        names: Its columns, ``c0``, ``c1``, … in the engine.
        roles: The roles that are known from their names.
        as_text: Columns that are text, whatever their cells are.
        starts: The first row of each file.
        rows: N.
    """

    engine: Engine
    names: list[str]
    roles: Mapping[str, str]
    as_text: set[str]
    starts: Sequence[tuple[str, int]]
    rows: int

    @property
    def path(self) -> Path:
        """The (first) file, for messages."""
        return Path(self.starts[0][0])

    def of(self, role: str) -> list[str]:
        """The columns of a known role."""
        return [name for name, its_role in self.roles.items() if its_role == role]

    def column(self, name: str) -> str:
        """The name of a column in the engine."""
        return f"c{self.names.index(name)}"

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        path, start = [one for one in self.starts if one[1] <= row][-1]
        return f"{path} row {row - start + 1}"

    def different(self, name: str) -> list[tuple[str, int, int]]:
        """The different cells of a column, the first row of each and how often it is there."""
        cell = self.column(name)
        found = self.engine.rows(
            f"SELECT {cell}, min(rowid) AS first, count(*) FROM {TABLE} GROUP BY {cell} "
            "ORDER BY first"
        )
        return [(str(text), int(row), int(count)) for text, row, count in found]

    def batches(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, int, list[Any]]]:
        """The cells of some columns batch by batch: first row, count of rows, Arrow arrays."""
        cells = ", ".join(["rowid", *map(self.column, names), "1"])
        for start, columns in self.in_order(f"SELECT {cells} FROM {TABLE}", rows):
            yield start, len(columns[-1]), columns[:-1]

    def in_order(self, sql: str, rows: int) -> Iterator[tuple[int, list[Any]]]:
        """The answer to a question for ``rowid`` and other columns, which are given with the row.

        The engine keeps the order of rows; this relies on it, and so looks.
        """
        start = 0
        for batch in self.engine.batches(sql, rows):
            row = batch.column(0).to_numpy()
            if not np.array_equal(row, np.arange(start, start + len(row))):
                raise RuntimeError(f"rows came out of order after {start}")
            yield start, batch.columns[1:]
            start += len(row)

    def counted(self, name: str) -> CountedCells:
        """How often each cell of a column is there; the counting stays in the engine."""
        cell, counts = self.column(name), f"counts_{self.column(name)}"
        self.engine.run(
            f"CREATE OR REPLACE TABLE {counts} AS SELECT {cell} AS cell, count(*) AS n, "
            f"min(rowid) AS first FROM {TABLE} GROUP BY {cell}"
        )
        values = _Values(self.engine, f"SELECT cell, n FROM {counts} ORDER BY first")
        known = (
            text
            for _, _, (cells,) in self.batches([name], 1024)
            for text in cells.to_pylist()
            if not is_missing(text)
        )
        return CountedCells(values, list(islice(known, HEAD)), self.rows)


class _Values:
    """The cells that are not blank, with their counts; can be gone through again and again."""

    def __init__(self, engine: Engine, sql: str) -> None:
        self.engine, self.sql = engine, sql

    def __iter__(self) -> Iterator[tuple[str, int]]:
        for batch in self.engine.batches(self.sql, BATCH):
            cells, counts = (column.to_pylist() for column in batch.columns)
            for cell, count in zip(cells, counts, strict=True):
                if not is_missing(cell):
                    yield cell, count


def load_nodes(
    engine: Engine,
    files: Sequence[Path],
    given: Mapping[str, str],
    encoding: Encoding | None,
    delimiter: str,
    done: Sequence[tuple[str, int]] | None,
) -> NodeCells:
    """Read the table of nodes into the engine.

    Args:
        engine: The engine.
        files: Its files, all with the same columns.
        given: Roles of columns that the user names.
        encoding: How a trained model's graph was encoded.
        delimiter: What divides cells, if the user says so.
        done: The first row of each file, where they have been read before.
    """
    tables = [TableFile(path, delimiter) for path in files]
    roles: dict[str, str] = {}
    if encoding is not None:
        encoding = encoding.with_points(_number_columns(files, encoding))

    def text_columns(names: list[str]) -> set[str]:
        known, text = known_roles(names, given, encoding)
        roles.update(known)
        return text

    names, first = tables[0].names, tables[0]
    if not names or (first.path.suffix != ".parquet" and all(map(is_number, names))):
        line, found = (first.head[0][0] if names else 1), ", ".join(names[:3])[:50] or "nothing"
        raise InputError(
            f"{where(first.path, line)}: no column names (found {found}); "
            "the first line must name the columns, such as id, label, split"
        )
    text = check_names(first.path, names, text_columns)
    for table in tables:
        if table.names != names:
            raise InputError(
                f"{table.path} has other columns than {first.path}; give both the same"
            )
    starts = list(done or ())
    if done is None:
        columns = ", ".join(f"c{i} VARCHAR" for i in range(len(names)))
        engine.run(f"CREATE OR REPLACE TABLE {TABLE} ({columns})")
        for table in tables:
            starts.append((str(table.path), _count(engine)))
            _load(engine, table, text)
    cells = NodeCells(engine, names, roles, text, starts, _count(engine))
    if done is None:
        _write_points(cells, tables, learning=encoding is None)
    if not cells.rows:
        raise InputError(
            f"{first.path} has no nodes, only the names of columns; add a line for each"
        )
    return cells


def _number_columns(files: Sequence[Path], encoding: Encoding) -> set[str]:
    """The columns that are numbers by their type, in all files."""
    found = [number_columns(path) for path in files]
    everywhere = set.intersection(*found)
    for column in encoding.columns:
        if column.written == COMMA and column.name in set.union(*found) - everywhere:
            raise InputError(
                f"{files[0].parent}: column {column.name[:50]!r} holds numbers in one file and "
                "text in another; save it alike in all"
            )
    return everywhere


def _count(engine: Engine) -> int:
    return int(engine.one(f"SELECT count(*) FROM {TABLE}")[0])


def _write_points(cells: NodeCells, tables: Sequence[TableFile], learning: bool) -> None:
    """Write 3,5 as 3.5 where semicolons divide cells.

    A column that has other numbers, too, such as 1.234,5 or 3,5 €, stays as it is while its form
    is to be learnt.
    """
    ends = [*(start for _, start in cells.starts[1:]), cells.rows]
    parts = zip(tables, cells.starts, ends, strict=True)
    rows = [
        f"rowid >= {start} AND rowid < {end}"
        for table, (_, start), end in parts
        if table.has_decimal_commas
    ]
    if not rows:
        return
    for name in cells.names:
        if name not in cells.as_text and not (learning and _has_own_form(cells, name)):
            cell = cells.column(name)
            sql = f"UPDATE {TABLE} SET {cell} = {decimal_point(cell)}"
            cells.engine.run(f"{sql} WHERE contains({cell}, ',') AND ({' OR '.join(rows)})")


def _has_own_form(cells: NodeCells, name: str) -> bool:
    """Whether a column has numbers that are no plain decimals, and all are in one form."""
    cell = cells.column(name)
    plain = f"{matches(cell, NUMBER)} OR {matches(cell, DECIMAL_COMMA)} OR {is_blank(cell)}"
    if cells.engine.one(f"SELECT 1 FROM {TABLE} WHERE NOT ({plain}) LIMIT 1") is None:
        return False
    counted = cells.counted(name)
    others = (not (is_number(text) or DECIMAL_COMMA.fullmatch(text)) for text in counted.texts)
    return any(others) and bool(number_form(counted.texts))


def _load(engine: Engine, table: TableFile, text: set[str]) -> None:
    def select(table: TableFile) -> str | None:
        cells = [table.cell(i, name in text) for i, name in enumerate(table.names)]
        if None in cells:
            return None
        return f"SELECT {', '.join(cell for cell in cells if cell)} FROM {table.source}"

    def checked(rows: Rows) -> Iterable[Sequence[str]]:
        for line, cells in rows:
            if len(cells) != len(table.names):
                raise InputError(
                    f"{where(table.path, line)}: {len(cells)} cells but {len(table.names)} "
                    f"columns; give each column a cell{comment_hint(cells)}"
                )
            yield cells

    if not table.load(engine, TABLE, select):
        append_rows(engine, TABLE, table, checked)
