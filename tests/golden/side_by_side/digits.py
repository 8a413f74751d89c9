"""In which digit two numbers part."""

from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["first_other_digit", "ordinal", "widest_gap"]

Array = np.ndarray[Any, Any]


def first_other_digit(old: float, new: float, scale: float | None = None) -> int | None:
    """The significant digit from which on two numbers differ; None if they do not.

    Args:
        old: A number.
        new: Another one.
        scale: What the digits are counted from: the larger of both by default.

    Example:
        >>> first_other_digit(0.12345, 0.12349), first_other_digit(2.0, 2.0)
        (5, None)
        >>> first_other_digit(1.0, 0.9999), first_other_digit(1.0, -1.0)
        (5, 1)
        >>> first_other_digit(0.0001, 0.0002, scale=10.0)
        6
    """
    if old == new or (old != old and new != new):
        return None
    a, b = _exact(old), _exact(new)
    if not (a.is_finite() and b.is_finite()):
        return 1
    largest = max(abs(a), abs(b)) if scale is None else _exact(scale)
    return max(1, largest.adjusted() - (a - b).adjusted() + 1)


def widest_gap(old: Array, new: Array) -> tuple[int, int] | None:
    """How many numbers of two arrays differ, and the digit where the most different ones part.

    Digits are counted from the largest number of both arrays: one that is nearly 0 may differ in
    all of its digits and mean nothing. Of numbers that are missing in one array only, it is 1.
    """
    old, new = old.astype(np.float64), new.astype(np.float64)
    differs = ~((old == new) | (np.isnan(old) & np.isnan(new)))
    if not differs.any():
        return None
    a, b = old[differs], new[differs]
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.all():
        return int(differs.sum()), 1
    most = np.abs(a - b).argmax()
    scale = float(max(np.nanmax(np.abs(old)), np.nanmax(np.abs(new))))
    digit = first_other_digit(float(a[most]), float(b[most]), scale)
    return int(differs.sum()), digit or 1


def ordinal(digit: int) -> str:
    """The number of a digit in words.

    Example:
        >>> ordinal(1), ordinal(22), ordinal(13), ordinal(5)
        ('1st', '22nd', '13th', '5th')
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(digit % 10, "th")
    return f"{digit}{'th' if digit % 100 in (11, 12, 13) else ending}"


def _exact(number: float) -> Decimal:
    return Decimal(repr(float(number)))
