"""The tables of edges inside the engine: ids joined to the numbers of the nodes."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lgdgcn.data.edge_list import (
    TYPE,
    WEIGHT,
    end_columns,
    extra_columns_note,
    index_columns,
    is_header,
    refuse_doubtful_header,
    role_column,
    tell_weights,
    weight_of,
)
from lgdgcn.data.packing.engine import Engine, literal
from lgdgcn.data.packing.node_cells import NodeCells
from lgdgcn.data.packing.numbers import number
from lgdgcn.data.packing.table_file import Rows, TableFile, append_rows, is_blank, warn_of_padding
from lgdgcn.data.tables import comment_hint, decimal_point, where
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["EdgeFacts", "load_edges"]

SHOWN = 3  # ids in a message
BATCH = 1 << 16  # weights


@dataclass(frozen=True)
class EdgeFacts:
    """What is in the table ``edges(s, t, position, weight, type)``.

    Attributes:
        nodes: N.
        weighted: Whether edges have weights.
        typed: Whether edges have types.
    """

    nodes: int
    weighted: bool
    typed: bool


class _KnownIds(Mapping[str, int]):
    """The numbers of the nodes, asked one by one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getitem__(self, name: str) -> int:
        found = self._engine.one("SELECT n FROM ids WHERE id = ?", name)
        if found is None:
            raise KeyError(name)
        return int(found[0])

    def __iter__(self) -> Iterator[str]:
        for batch in self._engine.batches("SELECT id FROM ids", 1024):
            yield from batch.column(0).to_pylist()

    def __len__(self) -> int:
        return int(self._engine.one("SELECT count(*) FROM ids")[0])


@dataclass
class _EdgeFile:
    """A file of edges and where its columns are."""

    table: TableFile
    ends: tuple[int, int] = (0, 1)
    weight: int | None = None
    type: int | None = None

    @classmethod
    def open(cls, path: Path, delimiter: str, known: Mapping[str, int]) -> "_EdgeFile":
        table = TableFile(path, delimiter, known)
        head = [cells for _, cells in table.head]
        table.header = bool(head) and is_header(path, head, known)
        if not table.header:
            return cls(table)
        names = table.names
        weight, kind = role_column(path, names, WEIGHT, "weights"), (TYPE,)
        return cls(table, end_columns(path, names), weight, role_column(path, names, kind, "types"))

    @property
    def used(self) -> list[int]:
        return [i for i in (*self.ends, self.weight, self.type) if i is not None]

    @property
    def most(self) -> int:
        """How many columns it may have of which nothing is to be said."""
        return len(self.used) + index_columns(self.table.names if self.table.header else None)

    def tell_of_extra(self) -> None:
        known = self.weight is not None, self.type is not None
        names = self.table.names if self.table.header else None
        message = extra_columns_note(self.table.path, *known, names, self.ends)
        warnings.warn(message, LGDWarning, stacklevel=4)

    def cells(self, rows: Rows) -> Iterable[Sequence[str]]:
        """Source, target, weight and type of each row, checked as far as cells go."""
        extra, path, most = False, self.table.path, self.most
        for line, cells in rows:
            ends = [cells[i] for i in self.ends if i < len(cells)]
            if len(ends) < 2 or not all(name.strip() for name in ends):
                raise InputError(
                    f"{where(path, line)}: {len(cells)} cells ({', '.join(cells)[:50]!r}); "
                    f"an edge needs a source and a target{comment_hint(cells)}"
                )
            others = [i for i in (self.weight, self.type) if i is not None]
            extra = extra or len(cells) > most
            yield [*ends, *(cells[i] if i < len(cells) else "" for i in others)]
        if extra:
            self.tell_of_extra()


def load_edges(
    engine: Engine, files: Sequence[Path], nodes: NodeCells | None, delimiter: str
) -> EdgeFacts:
    """Read all files of edges; where there is no table of nodes, the edges name them.

    Makes the tables ``edges`` and, without a table of nodes, ``ids``.

    Raises:
        InputError: An edge names a node that is not there, or has no weight.
    """
    if nodes is not None:
        own = nodes.of("id")
        name = nodes.column(own[0]) if own else "CAST(rowid AS VARCHAR)"
        engine.run(f"CREATE OR REPLACE VIEW ids AS SELECT {name} AS id, rowid AS n FROM nodes")
    known: Mapping[str, int] = {} if nodes is None else _KnownIds(engine)
    tables = [_EdgeFile.open(path, delimiter, known) for path in files]
    weighted, typed = _agreed(tables)
    texts = ["s", "t", *["w"] * weighted, *["k"] * typed]
    engine.run(f"CREATE OR REPLACE TABLE raw ({', '.join(f'{c} VARCHAR' for c in texts)})")
    columns = "s BIGINT, t BIGINT, position BIGINT, weight DOUBLE, type VARCHAR"
    columns += ", source VARCHAR, target VARCHAR, written VARCHAR"  # what could not be understood
    engine.run(f"CREATE OR REPLACE TABLE edges ({columns})")
    # the order of rows decides which node is the first, and in which order weights are added
    in_order = nodes is None or weighted
    for file in tables:
        _load(engine, file, in_order)
    if nodes is None:
        _number_nodes(engine, files[0])
    # the order of rows is that of the table `raw`
    engine.run(f"INSERT INTO edges {_joined('raw', texts, 'r.rowid')}", "joining the ids of edges")
    engine.run("DROP TABLE raw")
    total = int(engine.one("SELECT count(*) FROM ids")[0])
    if nodes is not None:
        _find_padded(engine, files, nodes.path)
    if weighted:
        commas = any(file.table.has_decimal_commas for file in tables)
        _check_weights(engine, files[0], commas)
    numbers = _KnownIds(engine)
    for file in tables:
        if file.table.header and file.table.path.suffix != ".parquet":
            refuse_doubtful_header(
                file.table.path, file.table.head[0], numbers, nodes is None, _edge_test(engine)
            )
    return EdgeFacts(total, weighted, typed)


def _agreed(tables: Sequence[_EdgeFile]) -> tuple[bool, bool]:
    """Whether there are weights and types, which all files must have or none."""
    found = {(f.weight is not None, f.type is not None) for f in tables if f.table.head}
    if len(found) > 1:
        paths = f"{tables[0].table.path} and {tables[-1].table.path}"
        raise InputError(f"{paths}: only one has a column weight or type; give it to both")
    return found.pop() if found else (False, False)


def _load(engine: Engine, file: _EdgeFile, in_order: bool) -> None:
    def cells(table: TableFile) -> list[str] | None:
        made = [table.cell(i) for i in file.used]
        return None if None in made else [cell for cell in made if cell]

    def as_text(table: TableFile) -> str | None:
        made = cells(table)
        return f"SELECT {', '.join(made)} FROM {table.source}" if made else None

    def as_numbers(table: TableFile) -> str | None:
        made, names = cells(table), ["s", "t", *["k"] * (file.type is not None)]
        if not made:
            return None
        listed = ", ".join(f"{cell} AS {n}" for cell, n in zip(made, names, strict=True))
        return _joined(f"(SELECT {listed} FROM {table.source})", names, "0")

    into, select = ("raw", as_text) if in_order else ("edges", as_numbers)
    if not file.table.load(engine, into, select):
        append_rows(engine, "raw", file.table, file.cells)
    elif len(file.table.names) > file.most and len(file.table.head) > file.table.header:
        file.tell_of_extra()


def _joined(table: str, texts: Sequence[str], position: str) -> str:
    """The SQL that gives ids their numbers; what has none is kept as text."""
    weight = number("r.w") if "w" in texts else "NULL"
    return (
        f"SELECT a.n, b.n, {position}, {weight}, {'r.k' if 'k' in texts else 'NULL'}, "
        "CASE WHEN a.n IS NULL THEN r.s END, CASE WHEN b.n IS NULL THEN r.t END, "
        f"{'r.w' if 'w' in texts else 'NULL'} "
        f"FROM {table} r LEFT JOIN ids a ON a.id = r.s LEFT JOIN ids b ON b.id = r.t"
    )


def _number_nodes(engine: Engine, path: Path) -> None:
    """Number the nodes in the order in which edges name them."""
    _refuse_blank(engine, path, "raw", "s", "t")
    engine.run(
        "CREATE OR REPLACE TABLE ids AS SELECT id, row_number() OVER (ORDER BY first) - 1 AS n "
        "FROM (SELECT id, min(place) AS first FROM (SELECT s AS id, 2 * rowid AS place FROM raw "
        "UNION ALL SELECT t, 2 * rowid + 1 FROM raw) GROUP BY id) ORDER BY n",
        "numbering nodes",
    )
    warn_of_padding(engine, "ids", "id", f"{path}: nodes")


def _refuse_blank(engine: Engine, path: Path, table: str, first: str, second: str) -> None:
    blank = engine.one(
        f"SELECT count(*) FROM {table} WHERE {is_blank(first)} OR {is_blank(second)}"
    )[0]
    if blank:
        raise InputError(f"{path}: {blank:,} edges lack a source or a target; give both")


def _find_padded(engine: Engine, files: Sequence[Path], nodes: Path) -> None:
    """Find nodes whose names have blanks around them in the edges only; refuse unknown ones."""
    unknown = "source IS NOT NULL OR target IS NOT NULL"
    count = int(engine.one(f"SELECT count(*) FROM edges WHERE {unknown}")[0])
    if not count:
        return
    _refuse_blank(engine, files[0], "edges", "source", "target")
    engine.run(
        "CREATE OR REPLACE TEMP TABLE found AS SELECT name, n FROM (SELECT source AS name FROM "
        "edges WHERE source IS NOT NULL UNION SELECT target FROM edges WHERE target IS NOT NULL) "
        f"LEFT JOIN ids ON id = trim(name, {literal(' ' + chr(9))})"
    )
    missing = int(engine.one("SELECT count(*) FROM found WHERE n IS NULL")[0])
    if missing:
        some = engine.rows(f"SELECT name FROM found WHERE n IS NULL ORDER BY name LIMIT {SHOWN}")
        lost = engine.one(
            "SELECT count(*) FROM edges WHERE source IN (SELECT name FROM found WHERE n IS NULL) "
            "OR target IN (SELECT name FROM found WHERE n IS NULL)"
        )[0]
        names = ", ".join(repr(name[:50]) for (name,) in some)
        raise InputError(
            f"{files[0]}{' and others' * (len(files) > 1)}: {lost:,} edges name {missing:,} nodes "
            f"that are not in {nodes.name} ({names}{', …' * (missing > SHOWN)}); add them to "
            f"{nodes.name} or remove the edges"
        )
    for end, name in (("s", "source"), ("t", "target")):
        engine.run(f"UPDATE edges SET {end} = found.n FROM found WHERE {name} = found.name")


def _check_weights(engine: Engine, path: Path, commas: bool) -> None:
    """Look at weights that the engine does not take for numbers above 0 as Python does.

    Edges without a weight get one, and edges of weight 0 are removed.

    Args:
        engine: The engine.
        path: The (first) file, for messages.
        commas: Whether 3,5 is a number.
    """
    doubtful = "weight IS NULL OR NOT CAST(weight AS FLOAT) > 0"
    blank = zeros = 0
    sql = f"SELECT written, count(*) FROM edges WHERE {doubtful} GROUP BY written ORDER BY 2 DESC"
    for cell, count in islice(engine.rows(sql), 10**6):
        value = decimal_point(cell) if commas else cell
        weight = weight_of(value)
        if weight is None:
            raise InputError(
                f"{path}: weight is {cell[:50]!r} in {count:,} rows; give a finite number above "
                "0, or name the column otherwise"
            )
        blank += count if math.isnan(weight) else 0
        zeros += count if weight == 0 else 0
        if not math.isnan(weight):
            engine.run(f"UPDATE edges SET weight = {weight!r} WHERE written = {literal(cell)}")
    batches = engine.batches("SELECT CAST(weight AS FLOAT) FROM edges WHERE weight <> 0", BATCH)
    others = (weight for batch in batches for weight in batch.column(0).to_pylist())
    given = int(engine.one("SELECT count(*) FROM edges WHERE weight <> 0")[0])
    mean = tell_weights(path, blank, given, others, zeros)
    engine.run("DELETE FROM edges WHERE weight = 0")
    engine.run(f"UPDATE edges SET weight = {mean!r} WHERE weight IS NULL")


def _edge_test(engine: Engine) -> Any:
    def has_edge(pair: list[int]) -> bool:
        sql = "SELECT 1 FROM edges WHERE s = ? AND t = ? LIMIT 1"
        return engine.one(sql, *pair) is not None

    return has_edge
