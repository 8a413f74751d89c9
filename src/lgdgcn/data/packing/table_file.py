"""One file of a table as the engine reads it; what the engine does not read is read in Python."""

import re
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lgdgcn.data.delimited import Layout, layout
from lgdgcn.data.names import DECIMAL_COMMA
from lgdgcn.data.packed.text import arrow
from lgdgcn.data.packing.engine import Engine, literal
from lgdgcn.data.packing.files import Scan, scan
from lgdgcn.data.tables import read_rows
from lgdgcn.errors import LGDWarning
from lgdgcn.progress import long_work

__all__ = [
    "Rows",
    "TableFile",
    "append_rows",
    "decimal_point",
    "is_blank",
    "matches",
    "warn_of_padding",
]

SPACE = r"[\t-\r\x1c- \x{85}\p{Z}]"  # what Python calls white space
WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
BATCH = 1 << 15  # rows that Python hands to the engine at a time

Rows = Iterator[tuple[int, list[str]]]


def _silent(done: int, share: float | None) -> None:
    pass


@dataclass
class TableFile:
    """A csv, tsv or parquet file.

    Attributes:
        path: The file.
        delimiter: What divides its cells, if the user says so.
        known: The ids of the nodes, where the file is an edge list.
        head: Its first two rows.
        header: Whether the first of them names the columns.
    """

    path: Path
    delimiter: str = ""
    known: Container[str] | None = None

    def __post_init__(self) -> None:
        rows = read_rows(self.path, _silent, self.known, self.delimiter)
        self.head = list(islice(rows, 2))
        self.header = True
        self._types: dict[str, str] = {}  # of a parquet file
        self._written = Layout(",", False, 0)
        self._scan = Scan(False, False, 0)
        self._expected: int | None = None

    @property
    def names(self) -> list[str]:
        """The cells of the first row."""
        return self.head[0][1] if self.head else []

    def rows(self, advance: Callable[[int, float | None], None] = _silent) -> Rows:
        """Every row behind the header, read in Python, with its line."""
        rows = read_rows(self.path, advance, self.known, self.delimiter)
        return islice(rows, 1 if self.header else 0, None)

    def load(
        self, engine: Engine, into: str, expressions: Callable[["TableFile"], str | None]
    ) -> bool:
        """Let the engine read the file.

        Args:
            engine: The engine.
            into: A table.
            expressions: Gives the ``SELECT`` for this file, ``None`` if there can be none.

        Returns:
            Whether it did; otherwise the file has to be read in Python.
        """
        if not self._prepare(engine):
            return False
        select = expressions(self)
        if select is None:
            return False
        size = self.path.stat().st_size
        sql = f"INSERT INTO {into} {select}"
        return engine.load(sql, self._expected, f"reading {self.path.name}", size)

    def _prepare(self, engine: Engine) -> bool:
        """Find out whether the engine understands the file as Python does."""
        if re.search(r"[*?\[\]{}]", str(self.path)) or not self.head:
            return False  # the engine would look for several files
        if self.path.suffix == ".parquet":
            found = engine.rows(f"DESCRIBE SELECT * FROM {self.source}")
            self._types = {str(row[0]): str(row[1]) for row in found}
            return list(self._types) == self.names
        written = layout(self.path, self.known, self.delimiter)
        seen = scan(self.path)
        odd_row = any("\n" in cell or "\r" in cell for cell in self.names)
        if written is None or written.padded or written.delimiter == " " or odd_row:
            return False
        if seen.unusual or len(self.names) < 2:
            return False
        self._written, self._scan = written, seen
        if seen.quotes:  # a quote that is not closed would take rows away without a word
            self._expected = seen.lines - written.above - self.header
        return True

    @property
    def source(self) -> str:
        """The file in a ``FROM`` clause; a text file has columns ``c0``, ``c1``, …."""
        where = literal(str(self.path))
        if self.path.suffix == ".parquet":
            return f"read_parquet({where})"
        columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(self.names)))
        packed = {".gz": "gzip", ".zst": "zstd"}.get(self.path.suffix, "none")
        quote = "'\"'" if self._scan.quotes else "''"
        options = {
            "auto_detect": "false",
            "header": "false",
            "skip": str(self._written.above + self.header),
            "delim": literal(self._written.delimiter),
            "quote": quote,
            "escape": quote,
            "columns": f"{{{columns}}}",
            "compression": literal(packed),
            "parallel": "false" if self._scan.quotes else "true",
            "strict_mode": "true",
        }
        return f"read_csv({where}, {', '.join(f'{k}={v}' for k, v in options.items())})"

    def cell(self, column: int, as_text: bool = True) -> str | None:
        """The SQL of a cell as text, nothing for a blank.

        Args:
            column: Number of the column.
            as_text: Whether a fraction must read as Python writes it; else only its value counts.

        Returns:
            ``None`` if the engine writes such a value otherwise.
        """
        if self.path.suffix != ".parquet":
            return f"coalesce(c{column}, '')"
        name = self.names[column]
        quoted, kind = '"' + name.replace('"', '""') + '"', self._types[name]
        if kind == "BOOLEAN":
            quoted = f"CAST({quoted} AS INTEGER)"
        elif kind in ("FLOAT", "DOUBLE") and not as_text:
            quoted = f"CASE WHEN NOT isnan({quoted}) THEN {quoted} END"
        elif kind != "VARCHAR" and not WHOLE.fullmatch(kind):
            return None
        return f"coalesce(CAST({quoted} AS VARCHAR), '')"

    @property
    def has_decimal_commas(self) -> bool:
        """Whether 3,5 may be a number: cells are divided by semicolons."""
        if self.path.suffix == ".parquet":
            return False
        written = layout(self.path, self.known, self.delimiter)
        return written is not None and written.delimiter == ";"


def decimal_point(cell: str) -> str:
    """The SQL of a cell in which 3,5 is written 3.5."""
    number = matches(cell, DECIMAL_COMMA)
    return f"CASE WHEN {number} THEN replace({cell}, ',', '.') ELSE {cell} END"


def matches(cell: str, pattern: re.Pattern[str]) -> str:
    """The SQL that says whether a pattern fits a whole cell."""
    return f"regexp_full_match({cell}, {literal(pattern.pattern.replace(chr(92) + 's', SPACE))})"


def append_rows(
    engine: Engine, into: str, file: TableFile, cells: Callable[[Rows], Iterable[Sequence[Any]]]
) -> None:
    """Append rows that are read in Python.

    Args:
        engine: The engine.
        into: A table of text.
        file: The file.
        cells: Makes rows of the table of those of the file.
    """
    with long_work(f"reading {file.path.name}", "rows") as advance:
        rows = iter(cells(file.rows(advance)))
        while batch := list(islice(rows, BATCH)):
            columns = [
                arrow().array(column, arrow().string()) for column in zip(*batch, strict=True)
            ]
            names = [f"c{i}" for i in range(len(columns))]
            engine.insert(into, arrow().table(columns, names))


def is_blank(cell: str) -> str:
    """The SQL that finds cells of nothing but white space."""
    return f"regexp_full_match({cell}, {literal(SPACE + '*')})"


def warn_of_padding(engine: Engine, table: str, cell: str, what: str) -> None:
    """Say so where names differ only in blanks around them: they stay different."""
    bare = f"regexp_replace(a.{cell}, {literal(f'^{SPACE}+|{SPACE}+$')}, '', 'g')"
    found = engine.one(
        f"SELECT a.{cell}, b.{cell} FROM {table} a JOIN {table} b ON b.{cell} = {bare} "
        f"WHERE a.{cell} <> {bare} ORDER BY a.rowid LIMIT 1"
    )
    if found:
        pair = f"{found[1][:50]!r} and {found[0][:50]!r}"
        warnings.warn(f"{what} {pair} differ only in blanks; they stay two", LGDWarning, 3)
