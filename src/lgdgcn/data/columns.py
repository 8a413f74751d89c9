"""What a column of a nodes table is: a number, a category, a date, free text, or nothing of use.

A column's *role* is written down by the user (``graph.toml``, ``--label`` and so on) or else
guessed here from its cells.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from heapq import nsmallest
from typing import Any

import numpy as np

from lgdgcn.data.names import COMMA, as_number, is_code, is_missing, is_number, number_form

__all__ = [
    "FEATURE_ROLES",
    "ROLES",
    "Cells",
    "ColumnSummary",
    "CountedCells",
    "date_format",
    "kept_values",
    "numbers_of",
    "parser",
    "summary",
    "written_form",
]

FEATURE_ROLES = ("number", "boolean", "category", "date", "words")
ROLES = ("id", "label", "split", *FEATURE_ROLES, "text", "ignore")

Cells = Sequence[str] | np.ndarray[Any, Any]  # text, or numbers with NaN for blanks

HEAD = 20  # cells that show whether a column may hold dates
FEW_VALUES = 20  # so many different values are a category, however rare they are
MOST_VALUES = 50  # that have columns of their own; the others share one
LONGEST_VALUE = 100  # characters; what is longer is free text
ENOUGH_NUMBERS = 0.9  # of the cells that are not blank: the others are slips of the pen
BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1", "1.0"), 1.0),
    **dict.fromkeys(("false", "f", "no", "n", "0", "0.0"), 0.0),
}
DATE_FORMATS = ("iso", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class ColumnSummary:
    """What is known of a column.

    Attributes:
        name: Its name.
        role: One of :data:`ROLES`.
        rows: How many cells it has.
        blank: How many of them are empty or say so, as NA does.
        odd: How many are something else than the role asks for, and count as blank.
        example: A cell that is neither; in a column of numbers, one with signs or separators, with
            a decimal comma if there is one.
        odd_example: An odd cell.
        code: Whether its digits are no number, since some begin with 0.
    """

    name: str
    role: str
    rows: int
    blank: int
    odd: int = 0
    example: str = ""
    odd_example: str = ""
    code: bool = False


@dataclass(frozen=True)
class CountedCells:
    """The cells of a column of text, each different one once: there may be more than fit in memory.

    Attributes:
        values: Cells that are not blank with how often each is there, the first one first; may be
            gone through several times.
        head: The first :data:`HEAD` cells that are not blank.
        rows: How many cells there are, blanks included.
    """

    values: Iterable[tuple[str, int]]
    head: Sequence[str]
    rows: int

    @classmethod
    def of(cls, cells: Sequence[str]) -> "CountedCells":
        """Count the cells of a column."""
        known = [cell for cell in cells if not is_missing(cell)]
        return cls(Counter(known).items(), known[:HEAD], len(cells))

    @property
    def texts(self) -> Iterator[str]:
        """Every different cell that is not blank, once."""
        return (cell for cell, _ in self.values)

    @cached_property
    def known(self) -> int:
        """How many cells are not blank."""
        return sum(count for _, count in self.values)


def summary(name: str, cells: Cells | CountedCells, role: str | None = None) -> ColumnSummary:
    """Look at the cells of a column, whose role is guessed where it is not given.

    Example:
        >>> summary("age", ["31", "", "unknown", "47", "25"])
        ColumnSummary(name='age', role='number', rows=5, blank=1, odd=1, example='31', \
odd_example='unknown', code=False)
    """
    if isinstance(cells, np.ndarray):
        there = ~np.isnan(cells)
        example = f"{cells[there.argmax()]:g}" if there.any() else ""
        blank = len(cells) - int(there.sum())
        role = role or ("number" if there.any() else "ignore")
        return ColumnSummary(name, role, len(cells), blank, 0, example)
    counted = cells if isinstance(cells, CountedCells) else CountedCells.of(cells)
    code = role is None and is_code(counted.texts)
    role = role or _guessed(counted)
    written = written_form(role, counted)
    parse = parser(role, written)
    odd, example, odd_example, telling = 0, "", "", 0
    for cell, count in counted.values:
        fits = parse is None or parse(cell) is not None
        odd += 0 if fits else count
        tells = 0 if is_number(cell) else 1 + (written == COMMA and COMMA in cell)
        if fits and (not example or (role == "number" and tells > telling)):
            example, telling = cell, tells
        odd_example = odd_example or ("" if fits else cell)
    blank = counted.rows - counted.known
    return ColumnSummary(name, role, counted.rows, blank, odd, example, odd_example, code)


def _guessed(cells: CountedCells) -> str:
    """The role of a column."""
    known = cells.known
    if not known:
        return "ignore"
    others = other_values = values = words = longest = 0
    for cell, count in cells.values:
        if as_number(cell) is None:
            others += count
            other_values += 1
        values += 1
        words += count * len(cell.split())
        longest = max(longest, len(cell))
    numbers = 0 if is_code(cells.texts) else 1 - others / known
    if (
        number_form(cells.texts)
        or numbers >= ENOUGH_NUMBERS
        or (numbers >= 0.5 and other_values <= 3)
    ):
        return "number"
    if all(cell.strip().lower() in BOOLEANS for cell, _ in cells.values):
        return "boolean"
    if date_format(cells):
        return "date"
    mostly_distinct = values > known / 2
    if longest > LONGEST_VALUE or (mostly_distinct and words / known >= 3):
        return "text"
    own = set(kept_values(cells))
    kept = sum(count for cell, count in cells.values if cell in own)
    # a column of names, in which hardly any value comes again, says nothing of other nodes
    return "category" if kept >= known / 10 else "text"


def kept_values(cells: CountedCells) -> list[str]:
    """The values of a category that get a column each: all if they are few, else the frequent."""
    if sum(1 for _ in cells.values) <= FEW_VALUES:
        return sorted(cell for cell, _ in cells.values)
    frequent = ((-count, cell) for cell, count in cells.values if count > 1)
    return [cell for _, cell in nsmallest(MOST_VALUES, frequent)]


def parser(role: str, written: str = "") -> Callable[[str], float | None] | None:
    """The function that reads a cell as a number; it gives ``None`` for what it cannot read.

    Args:
        role: A role; those that are no numbers have no such function.
        written: The format of dates, or the form of numbers.
    """
    if role == "number":
        return partial(as_number, form=written)
    if role == "boolean":
        return lambda cell: BOOLEANS.get(cell.strip().lower())
    return partial(_days, written=written) if role == "date" else None


def written_form(role: str, cells: CountedCells) -> str:
    """How the cells of a column are written: the format of dates, the form of numbers."""
    if role == "date":
        return date_format(cells) or "iso"
    return number_form(cells.texts) if role == "number" else ""


def numbers_of(cells: Cells, role: str, written: str = "") -> np.ndarray[Any, Any]:
    """A column as float64 numbers ``[N]``; NaN where a cell is blank or cannot be read."""
    if isinstance(cells, np.ndarray):
        return cells.astype(np.float64)
    parse = parser(role, written)
    assert parse is not None
    found = (None if is_missing(cell) else parse(cell) for cell in cells)
    return np.array([np.nan if value is None else value for value in found], dtype=np.float64)


def date_format(cells: CountedCells) -> str:
    """The first way of writing dates in which (nearly) all cells are written; empty if none is.

    Example:
        >>> date_format(CountedCells.of(["1/2/2020", "13/2/2020"]))
        '%d/%m/%Y'
    """
    for written in DATE_FORMATS:
        some = cells.head
        if sum(_days(cell, written) is not None for cell in some) < len(some) / 2:
            continue
        dates = sum(count for cell, count in cells.values if _days(cell, written) is not None)
        if dates and dates >= ENOUGH_NUMBERS * cells.known:
            return written
    return ""


def _days(cell: str, written: str) -> float | None:
    """Days since 1970, with the time of day as a fraction, in UTC where a zone is named."""
    cell = cell.strip()
    if not re.match(r"\d", cell):
        return None
    try:
        if written == "iso":
            moment = datetime.fromisoformat(cell)
        else:
            day, _, time = cell.partition(" ")
            moment = datetime.strptime(day, written)
            if time:
                moment = datetime.combine(
                    moment, datetime.fromisoformat(f"1970-01-01 {time}").time()
                )
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return (moment - EPOCH).total_seconds() / 86400
