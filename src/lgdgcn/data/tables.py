"""Tables a user may bring: csv, tsv, parquet and npz files, read without running anything in them.

Readers stream, keep line numbers for messages, stop before the memory is full, and raise nothing
but ``InputError``.
"""

import os
import zipfile
from collections import Counter
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgdgcn.data.delimited import has_semicolons, read_delimited
from lgdgcn.data.names import CODE, DECIMAL_COMMA, is_missing, is_number, number_form
from lgdgcn.errors import InputError
from lgdgcn.progress import Advance, long_work
from lgdgcn.runtime import available_memory, gibibytes

__all__ = [
    "SUFFIXES",
    "TEXT_BYTES",
    "TEXT_SUFFIXES",
    "Room",
    "Table",
    "check_names",
    "comment_hint",
    "decimal_point",
    "find_table",
    "holds",
    "is_infinite",
    "number_columns",
    "read_npz",
    "read_rows",
    "read_table",
    "where",
]

TEXT_SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst")
SUFFIXES = (*TEXT_SUFFIXES, ".parquet", ".npz")
MAX_BYTES = 1 << 30  # of the arrays in an npz file, unpacked
TEXT_BYTES = 200  # of a cell kept as text, beside its characters: in lists and dictionaries

Matrix = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Table:
    """Named columns: some kept as text, the others one matrix of numbers."""

    path: Path
    names: list[str]
    text: dict[str, list[str]]
    numbers: Matrix  # [rows, columns that are not text], finite, NaN for blanks
    lines: list[int]

    @property
    def columns(self) -> dict[str, Any]:
        """All columns in their order: lists of text and arrays of numbers."""
        numbers = iter(self.numbers.T)
        return {
            name: self.text[name] if name in self.text else next(numbers) for name in self.names
        }

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        return where(self.path, self.lines[row])


def find_table(folder: Path, stem: str) -> Path | None:
    """The one file ``stem`` + suffix in a folder, or ``None``."""
    paths = [folder / (stem + suffix) for suffix in SUFFIXES]
    found = [path for path in paths if os.path.lexists(path)]  # also a link to nowhere
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise InputError(f"{folder} has {names}; keep one of them")
    if found and not found[0].is_file():
        raise InputError(f"{found[0]} is not a file; put a table there")
    return found[0] if found else None


class Room:
    """The memory that is left for a table: rows are counted before they fill it.

    A compressed file of a megabyte can hold a billion rows.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = self.left = available_memory()
        self.rows = 0

    def take(self, size: int) -> None:
        """Count one more row of so many bytes."""
        self.rows += 1
        self.left -= size
        if self.left < 0:
            raise InputError(
                f"{self.path} has more than {self.rows - 1:,} rows, and these would fill the "
                f"{gibibytes(self.size)} of memory that are free; use a smaller table"
            )


def read_rows(
    path: Path, advance: Advance, known: Container[str] | None = None, delimiter: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a csv, tsv or parquet file with their line numbers.

    Of a parquet file the column names come first, as line 0. The arguments are those of
    :func:`~lgdgcn.data.delimited.read_delimited`.
    """
    if path.suffix == ".parquet":
        return _parquet_rows(path, advance)
    return read_delimited(path, advance, known, delimiter)


def number_columns(path: Path) -> set[str]:
    """The columns that hold numbers by their type: of a parquet file, for text has no types."""
    if path.suffix != ".parquet":
        return set()
    next(_parquet_rows(path, lambda done, share: None))  # refuses what cannot be read
    from pyarrow import parquet, types

    tests = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    found = set()
    for field in parquet.read_schema(path):
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        found |= {field.name} if any(test(kind) for test in tests) else set()
    return found


def read_table(
    path: Path,
    text_columns: Callable[[list[str]], set[str]],
    delimiter: str = "",
    learning: bool = True,
) -> Table:
    """Read a csv, tsv or parquet file whose first line names its columns.

    Columns in which every cell is a number or blank become numbers, unless they are codes
    (:func:`~lgdgcn.data.names.is_code`). Only the end of the file tells which columns these are:
    where a cell is anything else, the file is read a second time.

    Args:
        path: The file.
        text_columns: Says which of the column names are text, whatever their cells are.
        delimiter: What divides the cells of a text file; by default the file tells. Between
            semicolons, 3,5 is a number.
        learning: Whether a column of other numbers, too, such as 1.234,5 or 3,5 €, stays as it is,
            since its form is found out later.
    """
    commas = path.suffix != ".parquet" and has_semicolons(path, delimiter)
    options = _TextOptions(delimiter, commas, learning)
    table, words = _read_table(path, text_columns, set(), options)
    if words:
        del table  # before the next one takes its room
        table, _ = _read_table(path, text_columns, words, options)
    return table


class _TextOptions(NamedTuple):
    delimiter: str
    decimal_commas: bool
    learning: bool


def _read_table(
    path: Path,
    text_columns: Callable[[list[str]], set[str]],
    known_words: set[str],
    options: _TextOptions,
) -> tuple[Table, set[str]]:
    """The table, and which columns should have been text; where there are any it is empty."""
    with long_work(f"reading {path.name}", "rows") as advance, np.errstate(over="ignore"):
        rows = read_rows(path, advance, delimiter=options.delimiter)
        line, names = next(rows, (1, []))
        if not names or (path.suffix != ".parquet" and all(map(is_number, names))):
            found = ", ".join(names[:3])[:50] or "nothing"
            raise InputError(
                f"{where(path, line)}: no column names (found {found}); "
                "the first line must name the columns, such as id, label, split"
            )
        given = check_names(path, names, text_columns)
        chosen = given | known_words
        text_at = [(names[i], i) for i in range(len(names)) if names[i] in chosen]
        number_at = [i for i in range(len(names)) if names[i] not in chosen]
        text: dict[str, list[str]] = {name: [] for name, _ in text_at}
        numbers = bytearray()
        lines: list[int] = []
        words: set[str] = set()
        infinite: dict[str, str] = {}  # by column, what to say of it
        lengths = dict.fromkeys(number_at, 0)  # of the cells of columns that may be codes
        zeros: set[int] = set()  # columns in which a cell begins with 0
        room = Room(path)
        fixed = 40 + TEXT_BYTES * len(text_at) + 16 * len(number_at)  # float32, copied 4 times
        for line, cells in rows:
            if len(cells) != len(names):
                raise InputError(
                    f"{where(path, line)}: {len(cells)} cells but {len(names)} columns; "
                    f"give each column a cell{comment_hint(cells)}"
                )
            room.take(fixed + sum(len(cells[i]) for _, i in text_at))
            for name, i in text_at:
                text[name].append(cells[i])
            for i in number_at if options.decimal_commas else ():
                cells[i] = decimal_point(cells[i])
            for i in [*lengths]:
                if CODE.fullmatch(cells[i]) and lengths[i] in (0, len(cells[i])):
                    lengths[i] = len(cells[i])
                    zeros |= {i} if cells[i][0] == "0" else set()
                elif not is_missing(cells[i]):
                    del lengths[i]
            row, odd = _row([cells[i] for i in number_at])
            numbers += row.tobytes()
            for i in [number_at[j] for j in odd]:
                if is_infinite(cells[i]):
                    place = where(path, line)
                    infinite.setdefault(names[i], f"{place}: {holds(names[i], cells[i])}")
                else:
                    words.add(names[i])
            if odd:  # what is text is not looked at again: the numbers of this reading are not used
                number_at = [i for i in number_at if names[i] not in words]
            lines.append(line)
    words |= {names[i] for i in zeros & lengths.keys()}
    for column, complaint in infinite.items():
        if column not in words:
            raise InputError(complaint)
    if words:
        return Table(path, [], {}, np.zeros((0, 0), np.float32), []), words
    for name in text.keys() - given if options.decimal_commas else ():
        known = (cell for cell in text[name] if not is_missing(cell))
        if not (options.learning and number_form(known)):
            text[name] = [decimal_point(cell) for cell in text[name]]
    matrix = np.frombuffer(numbers, np.float32).reshape(len(lines), len(number_at))
    return Table(path, names, text, matrix, lines), words


def decimal_point(cell: str) -> str:
    """Write 3,5 as 3.5, as it is meant between semicolons."""
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell


def read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """All arrays of an npz file; one that holds Python objects is refused unread."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_count(path, len(members))
        size = sum(member.file_size for member in members)
        if size > MAX_BYTES:
            raise InputError(f"{path}: {size} bytes unpacked, more than {MAX_BYTES}; not read")
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        for key, array in arrays.items():
            if array.size and not array.itemsize:  # a billion of these take no byte in the file
                raise InputError(
                    f"{path}: {key} has {array.size:,} entries of type {array.dtype}, which hold "
                    "nothing; save them as numbers or text"
                )
        return arrays
    except InputError:
        raise
    except Exception as error:  # a damaged zip or array header raises almost anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"{path} cannot be read ({reason}); save plain arrays with numpy.savez"
        ) from None


def _check_count(path: Path, found: int) -> None:
    """Refuse a zip directory in which a damaged length hides entries.

    The end record says how many there are, which ``zipfile`` does not look at. It is near the end
    of the file, before a comment of up to 65,535 bytes.
    """
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 22 - 65535))
        tail = file.read()
    start = tail.rfind(b"PK\5\6") + 10
    expected = int.from_bytes(tail[start : start + 2], "little")
    if found != expected and expected != 0xFFFF:  # which means that another record says it
        raise InputError(
            f"{path} is damaged: {found} of {expected} arrays are listed; save it again with "
            "numpy.savez"
        )


def _row(cells: list[str]) -> tuple[Matrix, list[int]]:
    """The numbers of a row, NaN for blanks; and which cells are neither blank nor finite."""
    try:
        row = np.array([float(cell) for cell in cells], dtype=np.float32)
        written = "".join(cells)  # float() also reads 1_0 and other digits
        if np.isfinite(row).all() and written.isascii() and "_" not in written:
            return row, []
    except ValueError:
        pass
    row, odd = np.full(len(cells), np.nan, dtype=np.float32), []
    for i, cell in enumerate(cells):
        if is_number(cell, finite=True):
            row[i] = float(cell)
        elif not is_missing(cell):
            odd.append(i)
    return row, odd


def is_infinite(cell: str) -> bool:
    """Whether a cell is a number that float32 does not hold, or a word for infinity."""
    return is_number(cell) or cell.strip().lower().lstrip("+-") in ("inf", "infinity")


def holds(name: str, cell: str) -> str:
    """What to say of a cell that is no finite number."""
    return (
        f"column {name[:50]!r} holds {cell[:50]!r}, not a finite number; "
        "correct it or leave the cell empty"
    )


def check_names(
    path: Path, names: list[str], text_columns: Callable[[list[str]], set[str]]
) -> set[str]:
    """See that every column has a name of its own; returns which of them are text."""
    if "" in names[1:]:  # a first column without a name is an index
        column = names.index("", 1) + 1
        raise InputError(
            f"{path}: column {column} has no name; name it, or save the table without its index"
        )
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{path}: two columns are named {twice[:50]!r}; rename one")
    try:
        return text_columns(names)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def where(path: Path, line: int) -> str:
    """A place in a file, for messages."""
    return f"{path} {'row' if path.suffix == '.parquet' else 'line'} {line}"


def comment_hint(cells: list[str]) -> str:
    """What to say besides of a row that does not fit because it was meant as a comment."""
    return " (comments go above the first row)" if cells[0].lstrip().startswith("#") else ""


def _parquet_rows(path: Path, advance: Advance) -> Iterator[tuple[int, list[str]]]:
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
            for field in file.schema_arrow:
                if pyarrow.types.is_nested(field.type) or "binary" in str(field.type):
                    raise InputError(
                        f"{path}: column {field.name[:50]!r} has type {str(field.type)[:50]}; "
                        "save it as text or numbers, one value in a cell"
                    )
            yield 0, list(file.schema_arrow.names)
            for batch in file.iter_batches(4096):
                columns = [map(_cell, column.to_pylist()) for column in batch.columns]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, list(cells)
                advance(number, number / max(1, file.metadata.num_rows))
            if number != file.metadata.num_rows:  # a damaged column that ends early ends them all
                raise InputError(
                    f"{path} is damaged: {number} of {file.metadata.num_rows} rows can be read; "
                    "save it again as parquet"
                )
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} cannot be read ({reason}); save it again as parquet") from None


def _cell(value: Any) -> str:
    """A parquet value as the text a csv file would hold: nothing for null, 3 for 3.0."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    return str(value)
