"""Exact nearest neighbours: blocks of points that cannot hold one are never looked at."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lgdgcn.kernels.cpu.nearest_blocks import arrange
from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel
from lgdgcn.kernels.cpu.vector_math import (
    at_most,
    count_bits,
    everywhere,
    insert,
    lanes,
    larger,
    lowest_bit,
    mul_add,
)
from lgdgcn.kernels.cpu.vectors import LANES, store

__all__ = ["nearest"]


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


_GRAIN = 8  # blocks of queries that are worth a range of their own
_FEW = 8  # queries that are looked at one by one


def nearest(z: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.nearest`."""
    sets, size, width = z.shape
    points = z.detach() if width > 0 else z.new_zeros(sets, size, 1)
    index = torch.empty(sets, size, k, dtype=torch.int64)
    distance = points.new_empty(index.shape)
    jobs = even_cuts(sets * -(-size // LANES), _GRAIN)
    in_parallel(_search, jobs, *arrange(points), index.numpy(), distance.numpy())
    return index, distance


# Distances and gaps are sums of the same operations in the same order. Each is monotone, rounded
# too, so a gap never exceeds the distance of two points in the boxes: pruning needs no margin.


@njit(inline="always")
def _distances(points: Array, block: int, q: int, r: int, other: int) -> Any:
    """Squared distances from two points of a block to the sixteen of another."""
    first = second = everywhere(points.dtype.type(0))
    for j in range(points.shape[1]):
        row = lanes(points, other * points.shape[1] + j)
        step = everywhere(points[block, j, q]) - row
        first = mul_add(step, step, first)
        step = everywhere(points[block, j, r]) - row
        second = mul_add(step, step, second)
    return first, second


@njit(inline="always")
def _gaps(
    low: Array, high: Array, one: int, lane: int, lows: Array, highs: Array, many: int
) -> Any:
    """Squared distances from one box to sixteen; a point is a box, too."""
    zero = everywhere(low.dtype.type(0))
    total = zero
    for j in range(low.shape[1]):
        above = lanes(lows, many * low.shape[1] + j) - everywhere(high[one, j, lane])
        below = everywhere(low[one, j, lane]) - lanes(highs, many * low.shape[1] + j)
        step = larger(below, larger(above, zero))
        total = mul_add(step, step, total)
    return total


@njit(inline="always")
def _near_blocks(
    queries: int,
    limit: Any,
    worst: Array,
    points: Array,
    block: int,
    low: Array,
    high: Array,
    group: int,
) -> Any:
    """Blocks of a group that may hold a neighbour of some queries of a block."""
    if count_bits(queries) > _FEW:
        to_blocks = _gaps(low, high, block // LANES, block % LANES, low, high, group)
        near = at_most(to_blocks, everywhere(limit))
    else:
        near = 0
        while queries:
            q = lowest_bit(queries)
            queries &= queries - 1
            to_blocks = _gaps(points, points, block, q, low, high, group)
            near |= at_most(to_blocks, everywhere(worst[q]))
    return near


@njit
def _sequence(gaps: Array, mine: int, limit: Any, sequence: Array) -> int:
    """Groups that may hold a neighbour: the own one, those that overlap, then all others."""
    sequence[0], count = mine, 1
    for g in range(len(sequence)):
        if gaps[g] == 0 and g != mine:
            sequence[count] = g
            count += 1
    for g in range(len(sequence)):
        if 0 < gaps[g] <= limit:
            sequence[count] = g
            count += 1
    return count


@njit
def _largest(values: Array) -> Any:
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    return largest


@njit(nogil=True, cache=True)
def _search(
    start: int,
    stop: int,
    order: Array,
    points: Array,
    low: Array,
    high: Array,
    first: Array,
    group_low: Array,
    group_high: Array,
    group_first: Array,
    index: Array,
    distance: Array,
) -> None:
    """Search for the points of blocks start to stop; see `Blocks` for the arrays."""
    size, k = index.shape[1:]
    groups, bands, width = order.shape[1], group_low.shape[1], points.shape[3]
    blocks = (size + LANES - 1) // LANES
    order, first = order.reshape(-1, LANES), first.reshape(-1)
    points = points.reshape(-1, width, LANES)
    low, high = low.reshape(-1, width, LANES), high.reshape(-1, width, LANES)
    group_low = group_low.reshape(-1, width, LANES)
    group_high = group_high.reshape(-1, width, LANES)
    real = points.dtype
    finite = everywhere(np.finfo(real).max)
    values, numbers = np.empty((LANES, room(k)), real), np.empty((LANES, room(k)), np.int32)
    last = LANES + k - 1
    worst, worst_number = np.empty(LANES, real), np.empty(LANES, np.int32)  # end of every list
    gaps, sequence = np.empty(bands * LANES, real), np.empty(groups, np.int64)
    found = np.empty((2, LANES), real)
    for job in range(start, stop):
        b, own = job // blocks, job % blocks
        mine, own_block = own // LANES, b * groups * LANES + own
        clear(values, numbers)
        worst[:], worst_number[:] = -np.inf, -1
        for q in range(min(LANES, size - own * LANES)):
            to_block, _ = _distances(points, own_block, q, q, own_block)
            store(found, 0, to_block)
            others = at_most(to_block, finite) & ~(1 << q)
            begin(values, numbers, q, to_block, others, found[0], order[own_block])
            worst[q], worst_number[q] = values[q, last], numbers[q, last]
        limit, latest = _largest(worst), _largest(worst_number)
        for band in range(bands):
            box = b * groups + mine
            to_groups = _gaps(low, high, box, own % LANES, group_low, group_high, b * bands + band)
            store(gaps, band, to_groups)
        for at in range(_sequence(gaps, mine, limit, sequence)):
            g = sequence[at]
            if gaps[g] > limit or (gaps[g] == limit and group_first[b, g] > latest):
                continue
            group, band = b * groups + g, b * bands + g // LANES
            to_queries = _gaps(group_low, group_high, band, g % LANES, points, points, own_block)
            queries = at_most(to_queries, lanes(worst, 0))
            if not queries:
                continue
            near = _near_blocks(queries, limit, worst, points, own_block, low, high, group)
            if g == mine:
                near &= ~(1 << own % LANES)
            while near:
                c = lowest_bit(near)
                near &= near - 1
                block = group * LANES + c
                to_queries = _gaps(low, high, group, c, points, points, own_block)
                queries = at_most(to_queries, lanes(worst, 0))
                ties = at_most(lanes(worst, 0), to_queries) & queries
                while ties:
                    q = lowest_bit(ties)
                    ties &= ties - 1
                    if first[block] > worst_number[q]:
                        queries &= ~(1 << q)
                while queries:
                    q = lowest_bit(queries)
                    queries &= queries - 1
                    r = lowest_bit(queries) if queries else q
                    queries &= queries - 1
                    to_block = _distances(points, own_block, q, r, block)
                    store(found, 0, to_block[0])
                    store(found, 1, to_block[1])
                    for turn in range(1 + (q != r)):
                        value, number = worst[q], worst_number[q]
                        hits = at_most(lanes(found, turn), everywhere(value))
                        while hits:
                            p = lowest_bit(hits)
                            hits &= hits - 1
                            new, i = found[turn, p], order[block, p]
                            if new < value or (new == value and i < number):
                                offer(values, numbers, q, new, i)
                                value, number = values[q, last], numbers[q, last]
                        worst[q], worst_number[q] = value, number
                        q = r
            limit, latest = _largest(worst), _largest(worst_number)
        for q in range(min(LANES, size - own * LANES)):
            i = order[own_block, q]
            write(values, numbers, q, i, index[b, i], distance[b, i])
