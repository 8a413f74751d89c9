"""Rows of csv and tsv files, every cell as it was written.

Cells come back character for character. Only layout is left out:

* a byte order mark, and blank lines;
* comments: lines that begin with ``#`` above the first row. Below it nothing is a comment, so that
  hashtags can be ids;
* blanks around cells, if the first row has such blanks (``id, label``); never inside quotes.

Cells of a csv file are divided by commas; by semicolons if its first row has these and no comma,
as offices write it where the comma divides a number; and if it has neither, by tabs or else by
bars, which programs put into files of this name, too.
"""

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Container, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.progress import Advance

__all__ = ["Layout", "has_semicolons", "layout", "read_delimited", "unpacked"]

LONGEST_LINE = 1 << 26  # characters; more is no table, and a compressed file could hide it
BLANKS = " \t"
LAYOUT = BLANKS + "\r\n"
QUOTED = re.compile(r'"(?:[^"]|"")*"')


def read_delimited(
    path: Path, advance: Advance, known: Container[str] | None = None, delimiter: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a csv or tsv file, with the number of the line on which each ends.

    A tsv file whose first row has no tab may use runs of blanks instead.

    Args:
        path: The file, or the same compressed (``.gz``, ``.zst``).
        advance: Called now and then with how many lines and which share of the file have been read.
        known: For an edge list, which may have no header, the ids of the nodes: a first line that
            begins with one of them is a row, even if it begins with ``#``.
        delimiter: What divides the cells; by default the file tells.
    """
    lines = _Lines(path, advance, delimiter)
    texts = iter(lines)
    first = _first_row(lines, texts, known)
    if first is None:
        return
    lines.row = [first]
    columns = blank = 0
    for number, cells in _rows(lines, chain([first], texts), first, known or ()):
        columns = columns or len(cells)
        if cells and blank and columns == 1:
            raise InputError(
                f"{path} line {blank}: a blank line in a table of one column; "
                'write "" for an empty cell, or remove the line'
            )
        blank = 0 if cells else number
        if cells:
            yield number, cells


def has_semicolons(path: Path, delimiter: str = "") -> bool:
    """Whether the cells of a text file are divided by semicolons."""
    lines = _Lines(path, lambda done, share: None, delimiter)
    first = _first_row(lines, iter(lines), None)
    return first is not None and _delimiter(lines, first) == ";"


class Layout(NamedTuple):
    """How the rows of a text file are written.

    Attributes:
        delimiter: What divides cells; a blank stands for any run of blanks.
        padded: Whether blanks around cells are no part of them.
        above: How many lines there are above the first row.
    """

    delimiter: str
    padded: bool
    above: int


def layout(path: Path, known: Container[str] | None = None, delimiter: str = "") -> Layout | None:
    """How a text file is written, judged by its first row; ``None`` if it has none.

    The arguments are those of :func:`read_delimited`.
    """
    lines = _Lines(path, lambda done, share: None, delimiter)
    texts = iter(lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever reads the rows is warned
        first = _first_row(lines, texts, known)
    if first is None:
        return None
    above, divider = lines.number - 1, _delimiter(lines, first)
    if divider == " ":
        return Layout(divider, False, above)
    try:
        padded = _see_padding(chain([first], texts), divider, known or ())[1]
    except csv.Error as error:
        raise _not_csv(path, lines.number, error) from None
    return Layout(divider, padded, above)


def unpacked(path: Path, file: Any) -> Any:
    """The bytes of a file, which may be compressed (``.gz``, ``.zst``)."""
    if path.suffix == ".gz":
        return gzip.GzipFile(fileobj=file)
    if path.suffix != ".zst":
        return file
    try:
        import pyarrow
    except ImportError:
        raise InputError(f"{path}: .zst files need pyarrow; pip install 'lgdgcn[scale]'") from None
    return pyarrow.CompressedInputStream(file, "zstd")


def _rows(
    lines: "_Lines", texts: Iterator[str], first: str, known: Container[str]
) -> Iterator[tuple[int, list[str]]]:
    """The cells of every row, none of a blank line."""
    path, skipped = lines.path, lines.number - 1
    delimiter = _delimiter(lines, first)
    if delimiter == " ":
        for text in texts:
            yield lines.number, _split_at_blanks(path, lines.number, text)
        return
    try:
        texts, padded = _see_padding(texts, delimiter, known)
        reader = csv.reader(texts, delimiter=delimiter, strict=True, skipinitialspace=padded)
        for cells in reader:
            if len(cells) == 1 and not lines.text.strip(LAYOUT):
                cells = []  # only blanks, not even quotes
            elif padded:
                quoted = QUOTED.findall("".join(lines.row))  # a cell may have several lines
                cells = [_unpadded(cell, quoted) for cell in cells]
            lines.row.clear()
            yield skipped + reader.line_num, cells
    except csv.Error as error:
        raise _not_csv(path, lines.number, error) from None


class _Lines:
    """The lines of a text file one by one.

    Attributes:
        delimiter: What divides cells, if this is known.
        number: How many there were.
        text: The last one.
        row: Those since the last row ended, which its reader clears.
    """

    def __init__(self, path: Path, advance: Advance, delimiter: str) -> None:
        self.path, self.advance, self.delimiter = path, advance, delimiter
        self.number = 0
        self.text = ""
        self.row: list[str] = []

    def __iter__(self) -> Iterator[str]:
        path = self.path
        try:
            with open(path, "rb") as file:
                size = max(1, path.stat().st_size)
                # with newline="" line ends inside quotes stay what they are
                text = io.TextIOWrapper(unpacked(path, file), encoding="utf-8", newline="")
                while line := text.readline(LONGEST_LINE):
                    self.number += 1
                    if self.number == 1:  # "utf-8-sig" would also take half a mark for nothing
                        line = line.removeprefix("\ufeff")
                    self.text = line
                    self.row.append(line)
                    if len(line) == LONGEST_LINE:
                        raise InputError(f"{path} line {self.number}: too long; not a table")
                    if self.number % 4096 == 0:
                        self.advance(self.number, file.tell() / size)
                    yield line
        except UnicodeDecodeError as error:
            raise _not_utf8(path, self.number, error) from None
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path} cannot be read ({error}); check the file") from None


def _first_row(lines: _Lines, texts: Iterator[str], known: Container[str] | None) -> str | None:
    """The first line that is neither blank nor a comment."""
    doubtful: list[str] = []
    for text in texts:
        if not text.strip(LAYOUT):
            continue
        if text.lstrip(BLANKS)[0] != "#":
            _warn_of_comments(lines, doubtful, text)
            return text
        if known is not None:
            if _first_cell(text, _delimiter(lines, text)) in known:
                return text
            doubtful.append(text)
    if doubtful:
        _warn_of_comments(lines, doubtful, doubtful[-1])
    return None


def _warn_of_comments(lines: _Lines, comments: list[str], first: str) -> None:
    """Say that a line was left out which looks like an edge: ``#a,#b``, not ``# a note``."""
    delimiter = _delimiter(lines, first)
    cells = first.strip().count(delimiter)
    for text in comments:
        if re.match(r"[ \t]*#[^\s#]", text) and cells and text.strip().count(delimiter) == cells:
            message = (
                f"{lines.path}: {text.strip()[:50]!r} above the first row is taken as a comment"
            )
            advice = "if it is an edge, write the line source,target above it"
            warnings.warn(f"{message}; {advice}", LGDWarning, stacklevel=4)
            return


def _delimiter(lines: _Lines, first: str) -> str:
    if lines.delimiter:
        return lines.delimiter
    if ".tsv" in lines.path.suffixes:
        return "\t" if "\t" in first.strip() else " "
    outside = re.sub(r'"(?:[^"]|"")*("|$)', '"', first)  # quotes may end in a later line
    # a row with none of them is one cell, which is no edge, and hardly ever a table of nodes
    return next((mark for mark in ",;\t|" if mark in outside.strip(LAYOUT)), ",")


def _first_cell(text: str, delimiter: str) -> str:
    text = text.rstrip("\r\n")
    return (re.split("[ \t]", text) if delimiter == " " else text.split(delimiter))[0]


def _see_padding(
    texts: Iterator[str], delimiter: str, known: Container[str]
) -> tuple[Iterator[str], bool]:
    """Look at the first row, which may have several lines; returns all lines again."""
    row: list[str] = []

    def seen() -> Iterator[str]:
        for text in texts:
            row.append(text)
            yield text

    next(csv.reader(seen(), delimiter=delimiter, skipinitialspace=True), None)  # finds its end
    return chain(row, texts), _is_padded("".join(row), delimiter, known)


def _is_padded(first: str, delimiter: str, known: Container[str]) -> bool:
    """Whether there are blanks around the cells of the first row that are no part of them."""
    divider = re.escape(delimiter)  # a quote within a cell is a letter like others
    quoted = re.compile(rf'(^|{divider})([ \t]*)"(?:[^"]|"")*"')
    cells = quoted.sub(r"\1\2", first.rstrip("\r\n")).split(delimiter)
    if all(cell in known for cell in cells[:2]):
        return False
    return any(cell != cell.strip(BLANKS) for cell in cells)


def _unpadded(cell: str, quoted: list[str]) -> str:
    """A cell without the blanks around it; the reader has left out spaces before it.

    Args:
        cell: The cell.
        quoted: All that is in quotes in its row, which keeps its blanks.
    """
    escaped = cell.replace('"', '""')
    if cell != cell.strip(BLANKS) and f'"{escaped}"' not in quoted:
        return cell.strip(BLANKS)
    return cell


def _split_at_blanks(path: Path, number: int, text: str) -> list[str]:
    text = text.strip(LAYOUT)
    if '"' not in text:
        return re.split(r"[ \t]+", text) if text else []
    try:
        return next(csv.reader([text], delimiter=" ", strict=True, skipinitialspace=True))
    except csv.Error as error:
        raise _not_csv(path, number, error) from None


def _not_csv(path: Path, number: int, error: csv.Error) -> InputError:
    return InputError(f"{path} line {number}: not valid csv ({error}); check the quotes")


def _not_utf8(path: Path, lines: int, error: UnicodeDecodeError) -> InputError:
    """What to say of a file in another encoding.

    Args:
        path: The file.
        lines: How many whole lines come before the bytes that were decoded.
        error: Has these bytes, and where the wrong ones begin.
    """
    with open(path, "rb") as file:
        start = unpacked(path, file).read(2)
    if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        what = "is not UTF-8 but UTF-16 text, as Excel's 'Unicode text' is"
    else:
        line = lines + len(error.object[: error.start + 1].splitlines())
        what = f"is not UTF-8 text in line {line}; it may be Windows-1252, as Excel's 'CSV' is"
    return InputError(f"{path} {what}; save it as 'CSV UTF-8'")
