"""Tables a user may bring: csv, tsv, parquet and npz files, read without running anything in them.

Readers stream, keep line numbers for messages, and raise nothing but ``InputError``.
"""

import csv
import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.errors import InputError

__all__ = [
    "SUFFIXES",
    "Table",
    "find_table",
    "is_number",
    "read_npz",
    "read_rows",
    "read_table",
    "where",
]

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".npz")
MAX_BYTES = 1 << 30  # of the arrays in an npz file, unpacked
LONGEST_LINE = 1 << 26  # characters; more is no table, and a compressed file could hide it

Matrix = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Table:
    """Named columns: some kept as text, the others one matrix of finite numbers."""

    path: Path
    text: dict[str, list[str]]
    numbers: Matrix  # [rows, columns that are not text]
    lines: list[int]

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        return where(self.path, self.lines[row])


def find_table(folder: Path, stem: str) -> Path | None:
    """The one file ``stem`` + suffix in a folder, or ``None``."""
    found = [folder / (stem + suffix) for suffix in SUFFIXES if (folder / (stem + suffix)).exists()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise InputError(f"{folder} has {names}; keep one of them")
    if found and not found[0].is_file():
        raise InputError(f"{found[0]} is not a file; put a table there")
    return found[0] if found else None


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a csv, tsv or parquet file with their line numbers.

    Comment lines (``#``) and blank lines are left out and cells are stripped. A tsv file may use
    runs of blanks instead of tabs. Of a parquet file the column names come first, as line 0.
    """
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    lines = _lines(path)
    delimiter = ","
    if ".tsv" in path.suffixes:
        head: list[str] = []
        for line in lines:
            head.append(line)
            if line.strip():
                break
        delimiter = "\t" if head and "\t" in head[-1].strip() else " "
        lines = chain(head, lines)
    if delimiter == " ":
        yield from ((i, line.split()) for i, line in enumerate(lines, 1) if line.strip())
        return
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        place = where(path, reader.line_num)
        raise InputError(f"{place}: not valid csv ({error}); check the quotes") from None


def read_table(path: Path, text_columns: Callable[[list[str]], set[str]]) -> Table:
    """Read a csv, tsv or parquet file whose first line names its columns.

    Args:
        path: The file.
        text_columns: Says which of the column names are text; all others must hold numbers.
    """
    rows = read_rows(path)
    line, names = next(rows, (1, []))
    if not names or (path.suffix != ".parquet" and all(map(is_number, names))):
        raise InputError(
            f"{where(path, line)}: no column names (found {', '.join(names[:3]) or 'nothing'}); "
            "the first line must name the columns, such as id, label, split"
        )
    chosen = _check_names(path, names, text_columns)
    text_at = [(names[i], i) for i in range(len(names)) if names[i] in chosen]
    number_at = [i for i in range(len(names)) if names[i] not in chosen]
    text: dict[str, list[str]] = {name: [] for name, _ in text_at}
    numbers: list[Matrix] = []
    lines: list[int] = []
    with np.errstate(over="ignore"):
        for line, cells in rows:
            if len(cells) != len(names):
                raise InputError(
                    f"{where(path, line)}: {len(cells)} cells but {len(names)} columns; "
                    "give each column a cell"
                )
            for name, i in text_at:
                text[name].append(cells[i])
            numbers.append(_row(path, line, names, cells, number_at))
            lines.append(line)
    matrix = np.stack(numbers) if numbers else np.zeros((0, len(number_at)), np.float32)
    return Table(path, text, matrix, lines)


def read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """All arrays of an npz file; one that holds Python objects is refused unread."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MAX_BYTES:
            raise InputError(f"{path}: {size} bytes unpacked, more than {MAX_BYTES}; not read")
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except InputError:
        raise
    except Exception as error:  # a damaged zip or array header raises almost anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{path} cannot be read ({reason}); save plain arrays with numpy.savez"
        ) from None


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file, comments blanked out so that line numbers stay right."""
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError(f"{where(path, number)}: too long; not a table")
                yield "\n" if "#" in line and line.lstrip()[0] == "#" else line
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is not UTF-8 text after line {number}; save it as UTF-8"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); check the file") from None


def _row(path: Path, line: int, names: list[str], cells: list[str], at: list[int]) -> Matrix:
    """The numbers of one row; a cell that is none is named with line and column."""
    try:
        row = np.array([float(cells[i]) for i in at], dtype=np.float32)
        if np.isfinite(row).all():
            return row
    except ValueError:
        pass
    i = next(i for i in at if not is_number(cells[i], finite=True))
    raise InputError(
        f"{where(path, line)}: column {names[i]!r} holds {cells[i][:50]!r}, not a finite number; "
        "features must be numeric"
    )


def is_number(cell: str, finite: bool = False) -> bool:
    """Whether a cell reads as a number (that float32 can hold)."""
    try:
        value = float(cell)
    except ValueError:
        return False
    return not finite or bool(np.isfinite(np.float32(value)))


def _check_names(
    path: Path, names: list[str], text_columns: Callable[[list[str]], set[str]]
) -> set[str]:
    if "" in names:
        place = names.index("") + 1
        raise InputError(
            f"{path}: column {place} has no name; name it, or save the table without its index"
        )
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"{path}: two columns are named {twice!r}; rename one")
    try:
        return text_columns(names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def where(path: Path, line: int) -> str:
    """A place in a file, for messages."""
    return f"{path} {'row' if path.suffix == '.parquet' else 'line'} {line}"


def _parquet_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            f"{path}: parquet files need pyarrow; pip install 'lgdgcn[parquet]', or save as csv"
        ) from None
    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield 0, list(file.schema_arrow.names)
            for batch in file.iter_batches(4096):
                columns = [map(_cell, column.to_pylist()) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, list(cells)
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read ({reason}); save it again as parquet") from None


def _cell(value: Any) -> str:
    """A parquet value as the text a csv file would hold: nothing for null, 3 for 3.0."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return str(value).strip()
