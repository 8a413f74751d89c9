"""Notes on the columns of a table: one line for each thing that was done."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from lgdgcn.data.columns import FEATURE_ROLES, Cells, ColumnSummary, CountedCells
from lgdgcn.data.encoding import EncodedColumn, Encoding
from lgdgcn.data.labels import SPLIT_NAMES
from lgdgcn.data.names import COMMA, as_number, is_number
from lgdgcn.errors import LGDNote

__all__ = ["listed", "tell_columns", "tell_new_values", "tell_points"]

NAMED = 5  # columns in one line
UNFIT = "cells that do not fit their column count as blank"

WHAT = {  # was done with columns of a role
    "category": "categories are one-hot encoded",
    "boolean": "true and false are taken as 1 and 0",
    "date": "dates are taken as days since 1970",
    "words": "words are counted in hashed columns",
    "text": "free text is kept as information, no feature (--features text:COLUMN makes it one)",
}


def tell_columns(path: Path, found: Sequence[ColumnSummary], encoding: Encoding) -> None:
    """Say what was done with columns that are not plain numbers, and with blanks."""
    encoded = {column.name: column for column in encoding.columns}

    def count(column: ColumnSummary) -> str:
        if column.role != "category":
            return f"{column.rows - column.blank} cells"
        own = encoded[column.name]
        more = ", the others grouped" if own.grouped else ""
        return f"{len(own.values)} value{'s' * (len(own.values) != 1)}{more}"

    def tell(
        what: str, some: Iterable[ColumnSummary], count: Callable[[ColumnSummary], str]
    ) -> None:
        if names := [(column.name, count(column)) for column in some]:
            _warn(path, f"{what}: {listed(names)}")

    tell(
        "columns of digits are codes and no numbers, since some begin with 0",
        (c for c in found if c.code),
        lambda c: f"such as {c.example[:30]!r}",
    )
    signed = (c for c in found if c.role == "number" and c.example and not is_number(c.example))
    tell("numbers are read as they are written", signed, lambda c: _read_as(c, encoded[c.name]))
    for role, what in WHAT.items():
        tell(what, (c for c in found if c.role == role), count)
    for name in (c.name for c in found if c.role == "category"):
        parts = {SPLIT_NAMES.get(value.strip().lower(), -1) for value in encoded[name].values}
        if {0, 2} <= parts <= {0, 1, 2}:  # training and test nodes, and nothing else but a third
            _warn(path, f"column {name[:40]!r} reads like a split; --split COLUMN makes it one")
    empty = (c for c in found if c.role == "ignore" and c.blank == c.rows)
    tell("columns without a value are not used", empty, lambda c: f"{c.blank} blanks")
    odd = (c for c in found if c.odd and c.role in FEATURE_ROLES)
    tell(UNFIT, odd, lambda c: _unfit(c.odd, c.role, c.odd_example))
    marked = (c for c in found if c.name in encoded and encoded[c.name].marked)
    tell(
        "blanks are filled (numbers: by the median) and marked by a feature of their own",
        marked,
        lambda c: f"{c.blank + c.odd} of {c.rows}",
    )


def tell_new_values(
    path: Path, encoding: Encoding, table: Mapping[str, Cells | CountedCells]
) -> None:
    """Say which cells of a graph to be predicted tell a model nothing."""
    unseen, odd, empty = [], [], []
    for column in encoding.columns:
        name, cells = column.name, table[column.name]
        if not isinstance(cells, (np.ndarray, CountedCells)):
            cells = CountedCells.of(cells)  # once for all questions
        if count := column.unseen(cells):
            unseen.append((name, f"{count} cells"))
        count, example = column.unfit(cells)
        if count:
            odd.append((name, _unfit(count, column.role, example)))
        if column.lacks_values(cells):
            empty.append(name)
    if unseen:
        _warn(path, f"values that training has not seen count as none: {listed(unseen)}")
    if odd:
        _warn(path, f"{UNFIT}: {listed(odd)}")
    if empty:
        _warn(path, f"columns that had values in training are all blank here: {listed(empty)}")


def tell_points(path: Path, found: Mapping[str, str]) -> None:
    """Say which columns have a decimal point where training had a comma, each with a cell."""
    if found:
        shown = [(name, _is_read(cell)) for name, cell in found.items()]
        _warn(path, f"decimals follow a point, not a comma as in training: {listed(shown)}")


def _unfit(count: int, role: str, example: str) -> str:
    return f"{count} no {role}, such as {example[:30]!r}"


def _read_as(column: ColumnSummary, encoded: EncodedColumn) -> str:
    has_comma = encoded.written == COMMA and COMMA in column.example  # not so: 1 234 €
    form = ", with a decimal comma" if has_comma else ""
    return _is_read(column.example, encoded.written) + form


def _is_read(cell: str, written: str = "") -> str:
    return f"{cell.strip()[:30]!r} is {as_number(cell, written) or 0:.12g}"


def _warn(path: Path, message: str) -> None:
    warnings.warn(f"{path}: {message}", LGDNote, stacklevel=6)


def listed(columns: Sequence[str] | Sequence[tuple[str, str]]) -> str:
    """Name the first few columns, each with what is to be said of it.

    Example:
        >>> listed([("age", "3 of 9"), ("size", "1 of 9")])
        "'age' (3 of 9), 'size' (1 of 9)"
    """
    shown = [repr(c[:40]) if isinstance(c, str) else f"{c[0][:40]!r} ({c[1]})" for c in columns]
    more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more
