"""Sorted lists of the nearest points so far, one for each of sixteen queries.

A list is a row of values and one of numbers: sixteen places of which the last is below any value,
then the k nearest, then places up to a multiple of sixteen. Places not taken yet have an infinite
value and the number -1.
"""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.cpu_arrays import Array
from lgdgcn.kernels.numba_sixteen import LANES, at_most, count_bits, everywhere, insert, lowest_bit

__all__ = ["begin", "clear", "offer", "room", "write"]


@njit
def room(k: int) -> int:
    """Length of the rows."""
    return LANES + (k + LANES - 1) // LANES * LANES


@njit
def clear(values: Array, numbers: Array) -> None:
    """Empty all lists."""
    values[:] = np.inf
    values[:, LANES - 1] = -np.inf
    numbers[:] = -1


@njit(inline="always")
def begin(
    values: Array, numbers: Array, q: int, new: Any, some: int, new_values: Array, names: Array
) -> None:
    """Fill an empty list with some of sixteen points, each straight at its place.

    Args:
        values: `[16, room]`.
        numbers: `[16, room]`.
        q: Which list.
        new: The points' distances.
        some: Bits of the points that count.
        new_values: The same distances in memory.
        names: Numbers of the points, ascending.
    """
    left = some
    while left:
        p = lowest_bit(left)
        left &= left - 1
        value = everywhere(new_values[p])
        earlier = at_most(new, value) & ((1 << p) - 1) | ~at_most(value, new)
        at = LANES + count_bits(earlier & some)
        values[q, at], numbers[q, at] = new_values[p], names[p]


@njit(inline="always")
def offer(values: Array, numbers: Array, q: int, value: Any, number: Any) -> None:
    """Insert a point into a list; the last one drops out."""
    length = values.shape[1]
    for at in range((q + 1) * length - LANES, q * length, -LANES):
        insert(values, numbers, at, value, number)


@njit
def write(values: Array, numbers: Array, q: int, i: int, index: Array, distance: Array) -> None:
    """Copy the list of point i; the lowest numbers follow where infinite distances left it open."""
    k, known = index.shape[0], 0
    for at in range(k):
        index[at] = numbers[q, LANES + at]
        distance[at] = values[q, LANES + at]
        known += index[at] >= 0
    at, other = known, 0
    while at < k:
        if other != i and not (index[:known] == other).any():
            index[at] = other
            at += 1
        other += 1
