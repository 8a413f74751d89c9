"""What the cells of a table mean: ids and labels are text, features are numbers."""

import math
import re
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from lgdgcn.errors import InputError, LGDWarning

__all__ = ["is_missing", "is_number", "label_values", "warn_of_blanks"]

NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
COUNTED = re.compile(r"[0-9]+(\.0*)?|-1(\.0*)?")  # 3, 007, 3.0, and -1 for unlabelled


MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?"}  # what programs write


def is_missing(cell: str) -> bool:
    """Whether a cell of a feature holds nothing, or a word for it.

    Example:
        >>> [is_missing(cell) for cell in (" ", "NaN", "n/a", "0", "unknown")]
        [True, True, True, False, False]
    """
    return cell.strip().lower() in MISSING


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


def label_values(path: Path, column: str, cells: list[str]) -> Any:
    """The labels of a column: integers if all are plain digits, else the text as it is written.

    An empty cell is unlabelled. In a column of numbers so is ``nan`` and, where all others are
    written with digits only (or as ``3.0``), ``-1``. Labels with a fraction, such as 0.37, are
    measurements rather than classes and are refused.

    Returns:
        An int64 array with -1 for unlabelled, or a list of text with ``""`` for unlabelled.
    """
    names = {cell for cell in cells if cell.strip()}
    numbers = {name for name in names if is_number(name)}
    unlabelled: set[str] = set()
    if numbers and all(name.strip().lower() == "nan" for name in names - numbers):
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
    warn_of_blanks(path, f"labels of column {column[:50]!r}", names)
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
