"""What the cells of a table mean: ids and labels are text, features are numbers."""

import math
import re
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.errors import InputError, LGDWarning

__all__ = ["as_number", "is_index", "is_missing", "is_number", "label_values", "warn_of_blanks"]

NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
WRITTEN = re.compile(
    r"\s*(?P<sign>[+-])?[$€£¥]?\s?(?P<digits>[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?|[0-9]+(\.[0-9]+)?)"
    r"\s?[%$€£¥]?\s*"
)
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


def as_number(cell: str) -> float | None:
    """Read a cell as a finite number, also where people wrote it: with signs or thousands.

    Example:
        >>> [as_number(cell) for cell in ("-2.5", "$1,200.50", "15 %", "1,2", "3 km")]
        [-2.5, 1200.5, 15.0, None, None]
    """
    if not is_number(cell):
        if not (written := WRITTEN.fullmatch(cell)):
            return None
        cell = (written["sign"] or "") + written["digits"].replace(",", "")
    return float(cell) if is_number(cell, finite=True) else None


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
