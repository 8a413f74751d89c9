"""What the cells of a table mean: ids and labels are text, features are numbers."""

import math
import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.errors import InputError, LGDWarning

__all__ = [
    "CODE",
    "COMMA",
    "DECIMAL_COMMA",
    "as_number",
    "is_code",
    "is_index",
    "is_missing",
    "is_number",
    "label_values",
    "number_form",
    "other_form",
    "warn_of_blanks",
]

NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
WRITTEN = re.compile(
    r"\s*(?P<sign>[+-])?[$€£¥]?\s?(?P<digits>[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?|[0-9]+(\.[0-9]+)?)"
    r"\s?[%$€£¥]?\s*"
)
COMMA_NUMBER = re.compile(  # the same where a comma stands before the decimals, a dot in thousands
    r"\s*(?P<sign>[+-])?[$€£¥]?\s?"
    r"(?P<whole>[1-9][0-9]{0,2}([. \u00a0\u202f][0-9]{3})+|[0-9]+)(,(?P<decimals>[0-9]+))?"
    r"\s?[%$€£¥]?\s*"
)
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]+,[0-9]+([eE][+-]?[0-9]+)?\s*")
CODE = re.compile(r"[0-9]{2,}")
COMMA = ","  # the form of numbers in which it stands before the decimals
COUNTED = re.compile(r"[0-9]+(\.0*)?|-1(\.0*)?")  # 3, 007, 3.0, and -1 for unlabelled


# What pandas calls an index where it has no name: as it writes one, in text and in parquet, and as
# it reads one without a name
INDEX = re.compile(r"\s*|__index_level_[0-9]+__|Unnamed: 0(\.[0-9]+)*")
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"}  # what programs write


def is_missing(cell: str) -> bool:
    """Whether a cell of a feature holds nothing, or a word for it.

    Example:
        >>> [is_missing(cell) for cell in (" ", "NaN", "n/a", "0", "unknown")]
        [True, True, True, False, False]
    """
    return cell.strip().lower() in MISSING


def is_index(name: str) -> bool:
    """Whether a column of this name holds the numbers of rows (or ids), rather than a value.

    Example:
        >>> [is_index(name) for name in ("", "Unnamed: 0", "Unnamed: 0.1", "unnamed")]
        [True, True, True, False]
    """
    return INDEX.fullmatch(name) is not None


def is_number(cell: str, finite: bool = False) -> bool:
    """Whether a cell is a number as programs write them (and one that float32 can hold).

    Example:
        >>> [is_number(cell) for cell in ("-0.5", "1e-05", ".5", "1_0", "inf", "٣")]
        [True, True, True, False, False, False]
    """
    if not NUMBER.fullmatch(cell):
        return False
    with np.errstate(over="ignore"):
        return not finite or bool(np.isfinite(np.float32(float(cell))))


def as_number(cell: str, form: str = "") -> float | None:
    """Read a cell as a finite number, also where people wrote it: with signs or thousands.

    Args:
        cell: The cell.
        form: What :func:`number_form` says of its column.

    Example:
        >>> [as_number(cell) for cell in ("-2.5", "$1,200.50", "15 %", "1,2", "3 km")]
        [-2.5, 1200.5, 15.0, None, None]
        >>> [as_number(cell, COMMA) for cell in ("4833,87 €", "1.234,5", "1.234", "1.5")]
        [4833.87, 1234.5, 1234.0, 1.5]
    """
    if form == COMMA and (written := COMMA_NUMBER.fullmatch(cell)):
        whole = re.sub("[^0-9]", "", written["whole"])
        cell = f"{written['sign'] or ''}{whole}.{written['decimals'] or 0}"
    if not is_number(cell):
        if not (written := WRITTEN.fullmatch(cell)):
            return None
        cell = (written["sign"] or "") + written["digits"].replace(",", "")
    return float(cell) if is_number(cell, finite=True) else None


def number_form(cells: Iterable[str]) -> str:
    """How the numbers of a column are written: :data:`COMMA` where decimals follow a comma.

    That is so where every cell can be read in this way, and one in no other: ``4833,87 €``. Where
    all commas have three digits behind them, as in ``1,234``, they divide thousands.

    Args:
        cells: The cells that are not blank.

    Example:
        >>> number_form(["1,234", "2,5"]), number_form(["1,234"]), number_form(["2,5", "1.5"])
        (',', '', '')
    """
    shown = False
    for cell in cells:
        if not COMMA_NUMBER.fullmatch(cell):
            return ""
        # 030 123 456 has neither: it may be anything
        shown = shown or (as_number(cell) is None and re.search("[,%$€£¥]", cell) is not None)
    return COMMA if shown else ""


def other_form(cells: Iterable[str]) -> tuple[str, bool]:
    """What speaks against a decimal comma in a column, where other tables write one.

    Nothing does where a cell can be read in no other way, or no number has a point.

    Args:
        cells: The cells that are not blank.

    Returns:
        A cell that would be another number without it, and whether one such as ``2.5`` shows that
        decimals follow a point. Otherwise ``1.234`` may be either.

    Example:
        >>> other_form(["1.234", "2.5"]), other_form(["1.234"]), other_form(["1.234", "0,5"])
        (('1.234', True), ('1.234', False), ('', False))
    """
    found, shown = "", False
    for cell in cells:
        plain, comma = as_number(cell), as_number(cell, COMMA)
        if plain is None and comma is not None:
            return "", False
        shown = shown or (plain is not None and "." in cell and not COMMA_NUMBER.fullmatch(cell))
        if plain != comma and "." not in found:
            found = cell if "." in cell else found or cell
    return (found, shown) if shown or "." in found else ("", False)


def is_code(cells: Iterable[str]) -> bool:
    """Whether a column holds codes rather than numbers: digits, equally many, a 0 in front.

    Args:
        cells: The cells that are not blank.

    Example:
        >>> is_code(["00037", "80331"]), is_code(["0", "1"]), is_code(["2001", "2002"])
        (True, False, False)
    """
    length, zero = 0, False
    for cell in cells:
        if not CODE.fullmatch(cell) or len(cell) != (length or len(cell)):
            return False
        length, zero = len(cell), zero or cell[0] == "0"
    return zero


def label_values(
    path: Path, column: str, cells: list[str], counts: Mapping[str, int] | None = None
) -> Any:
    """The labels of a column: integers if all are plain digits, else the text as it is written.

    An empty cell is unlabelled. In a column of numbers so is a word for nothing, such as ``nan``
    or ``NA``, and, where all others are written with digits only (or as ``3.0``), ``-1``; among
    names such a word is a class, and a warning says so. Labels with a fraction, such as 0.37, are
    measurements rather than classes and are refused.

    Args:
        path: The file, for messages.
        column: Its name.
        cells: The cells, or each different one once.
        counts: How often each is there, in the second case.

    Returns:
        An int64 array with -1 for unlabelled, or a list of text with ``""`` for unlabelled.
    """
    names = {cell for cell in cells if cell.strip()}
    numbers = {name for name in names if is_number(name)}
    unlabelled: set[str] = set()
    if numbers and all(map(is_missing, names - numbers)):
        finite = [name for name in numbers if math.isfinite(float(name))]  # not so: 400 digits
        real = sorted(name for name in finite if not float(name).is_integer())
        if real:
            raise InputError(
                f"{path}: column {column[:50]!r} is real-valued ({real[0][:50]!r}); "
                "labels must be classes: put the numbers into groups, or write names such as v0.5"
            )
        unlabelled = names - numbers
        if all(map(COUNTED.fullmatch, numbers)):
            unlabelled |= {name for name in numbers if float(name) == -1}
    names -= unlabelled
    if nothing := sorted(filter(is_missing, names)):
        count = cells.count(nothing[0]) if counts is None else counts[nothing[0]]
        message = (
            f"{path}: {nothing[0]!r} in column {column[:50]!r} ({count} cells) "
            "is taken as a class; leave cells empty where there is no label"
        )
        warnings.warn(message, LGDWarning, stacklevel=3)
    warn_of_blanks(path, f"labels of column {column[:50]!r}", sorted(names))
    if all(re.fullmatch(r"0|[1-9][0-9]{0,17}", name) for name in names):  # 10^18 - 1 fits int64
        return np.array([int(cell) if cell in names else -1 for cell in cells], dtype=np.int64)
    return [cell if cell in names else "" for cell in cells]


def warn_of_blanks(path: Path, what: str, names: Collection[str]) -> None:
    """Say so where names differ only in blanks around them: they stay different."""
    for name in names:
        if name != name.strip() and name.strip() in names:
            pair = f"{name.strip()[:50]!r} and {name[:50]!r}"
            message = f"{path}: {what} {pair} differ only in blanks; they stay two"
            warnings.warn(message, LGDWarning, stacklevel=3)
            return
