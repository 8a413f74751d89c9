"""Exact nearest neighbours on the CPU: blocks of points that cannot hold one are never looked at.

The search handles one block of sixteen queries at a time (`nearest_blocks` says what blocks, groups
and bands are) and keeps, for every query, a sorted list of the k nearest points so far:

    1. Start the lists with the other points of the block itself.
    2. Compute the distance from the block's box to every group's box. Visit the own group first,
       then the groups whose boxes overlap, then the rest, as long as they are near enough.
    3. In a group, find the blocks whose box is nearer than the k-th point of some query.
    4. In a block, compute the distances of two queries at a time to all sixteen points, and insert
       the points that are nearer than the query's k-th.

The first steps find near points, so the k-th distance soon is small and most boxes are skipped.
Distances and box distances are sums of the same operations in the same order. Each operation is
monotone, rounded too, so the distance to a box never exceeds that to a point in it: pruning needs
no margin, and the result is exact to the bit. Of equally distant points the lower index comes
first; a box at exactly the k-th distance is therefore skipped only if its lowest index is too high.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lgdgcn.kernels.cpu.nearest_blocks import build_blocks
from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel
from lgdgcn.kernels.cpu.vector_math import (
    broadcast16,
    count_bits,
    insert_sorted,
    less_equal,
    load16,
    lowest_bit,
    maximum,
    mul_add,
)
from lgdgcn.kernels.cpu.vectors import LANES, store

__all__ = ["nearest"]

_GRAIN = 8  # blocks of queries that are worth a range of their own
_FEW_QUERIES = 8  # up to so many queries are compared with boxes one by one


def nearest(z: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.nearest`."""
    sets, size, width = z.shape
    points = z.detach() if width > 0 else z.new_zeros(sets, size, 1)
    index = torch.empty(sets, size, k, dtype=torch.int64)
    distance = points.new_empty(index.shape)
    cuts = even_cuts(sets * -(-size // LANES), _GRAIN)
    in_parallel(_search, cuts, *build_blocks(points), index.numpy(), distance.numpy())
    return index, distance


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
    """Search for the points of blocks start to stop; see `PointBlocks` for the arrays."""
    size, k = index.shape[1:]
    groups, bands, width = order.shape[1], group_low.shape[1], points.shape[3]
    blocks = (size + LANES - 1) // LANES  # of one set
    # number the blocks, groups and bands of all sets consecutively
    order, first = order.reshape(-1, LANES), first.reshape(-1)
    points = points.reshape(-1, width, LANES)
    low, high = low.reshape(-1, width, LANES), high.reshape(-1, width, LANES)
    group_low = group_low.reshape(-1, width, LANES)
    group_high = group_high.reshape(-1, width, LANES)
    real = points.dtype
    finite = broadcast16(np.finfo(real).max)
    # sorted lists of the sixteen queries, and a copy of the k-th entry of each
    length, last = _list_length(k), LANES + k - 1
    values, indices = np.empty((LANES, length), real), np.empty((LANES, length), np.int32)
    kth, kth_index = np.empty(LANES, real), np.empty(LANES, np.int32)
    gaps, candidates = np.empty(bands * LANES, real), np.empty(groups, np.int64)
    found = np.empty((2, LANES), real)  # distances of two queries to sixteen points
    # a job is one block of queries: block `own` of set b
    for job in range(start, stop):
        b, own = job // blocks, job % blocks
        own_group, own_block = own // LANES, b * groups * LANES + own
        # 1. the points of the own block, each query without itself
        _clear_lists(values, indices)
        kth[:], kth_index[:] = -np.inf, -1  # queries that do not exist want nothing
        for q in range(min(LANES, size - own * LANES)):
            to_block, _ = _distances(points, own_block, q, q, own_block)
            store(found, 0, to_block)
            others = less_equal(to_block, finite) & ~(1 << q)
            _start_list(values, indices, q, to_block, others, found[0], order[own_block])
            kth[q], kth_index[q] = values[q, last], indices[q, last]
        # no query of the block needs a point farther than this
        limit, limit_index = _largest(kth), _largest(kth_index)
        # 2. from the box of the own block to the boxes of all groups, sixteen at once
        for band in range(bands):
            box = b * groups + own_group
            to_groups = _gaps(low, high, box, own % LANES, group_low, group_high, b * bands + band)
            store(gaps, band, to_groups)
        for at in range(_candidate_groups(gaps, own_group, limit, candidates)):
            g = candidates[at]
            # the limit has shrunk since the candidates were chosen
            if gaps[g] > limit or (gaps[g] == limit and group_first[b, g] > limit_index):
                continue
            group, band = b * groups + g, b * bands + g // LANES
            to_queries = _gaps(group_low, group_high, band, g % LANES, points, points, own_block)
            queries = less_equal(to_queries, load16(kth, 0))
            if not queries:
                continue
            # 3. bits of the blocks to visit; the own block is done
            near = _candidate_blocks(queries, limit, kth, points, own_block, low, high, group)
            if g == own_group:
                near &= ~(1 << own % LANES)
            while near:
                c = lowest_bit(near)
                near &= near - 1
                block = group * LANES + c
                # bits of the queries for which this block may hold a neighbour
                to_queries = _gaps(low, high, group, c, points, points, own_block)
                queries = less_equal(to_queries, load16(kth, 0))
                # a box at exactly the k-th distance matters only for lower indices
                ties = less_equal(load16(kth, 0), to_queries) & queries
                while ties:
                    q = lowest_bit(ties)
                    ties &= ties - 1
                    if first[block] > kth_index[q]:
                        queries &= ~(1 << q)
                # 4. two queries q and r at a time, which share the loads of the points
                while queries:
                    q = lowest_bit(queries)
                    queries &= queries - 1
                    r = lowest_bit(queries) if queries else q
                    queries &= queries - 1
                    to_block = _distances(points, own_block, q, r, block)
                    store(found, 0, to_block[0])
                    store(found, 1, to_block[1])
                    # insert what is nearer than the k-th, first for q, then for r
                    for turn in range(1 + (q != r)):
                        value, number = kth[q], kth_index[q]
                        hits = less_equal(load16(found, turn), broadcast16(value))
                        while hits:
                            p = lowest_bit(hits)
                            hits &= hits - 1
                            new, i = found[turn, p], order[block, p]
                            if new < value or (new == value and i < number):
                                _insert_point(values, indices, q, new, i)
                                value, number = values[q, last], indices[q, last]
                        kth[q], kth_index[q] = value, number
                        q = r
            limit, limit_index = _largest(kth), _largest(kth_index)
        # results go to the caller's order of the points
        for q in range(min(LANES, size - own * LANES)):
            i = order[own_block, q]
            _write_list(values, indices, q, i, index[b, i], distance[b, i])


# distances to points and boxes


@njit(inline="always")
def _distances(points: Array, block: int, q: int, r: int, other: int) -> Any:
    """Squared distances from two points of a block to the sixteen of another."""
    first = second = broadcast16(points.dtype.type(0))
    for j in range(points.shape[1]):
        row = load16(points, other * points.shape[1] + j)
        step = broadcast16(points[block, j, q]) - row
        first = mul_add(step, step, first)
        step = broadcast16(points[block, j, r]) - row
        second = mul_add(step, step, second)
    return first, second


@njit(inline="always")
def _gaps(
    low: Array, high: Array, one: int, lane: int, lows: Array, highs: Array, many: int
) -> Any:
    """Squared distances from one box to sixteen; a point is a box with equal corners."""
    zero = broadcast16(low.dtype.type(0))
    total = zero
    for j in range(low.shape[1]):
        above = load16(lows, many * low.shape[1] + j) - broadcast16(high[one, j, lane])
        below = broadcast16(low[one, j, lane]) - load16(highs, many * low.shape[1] + j)
        step = maximum(below, maximum(above, zero))  # 0 where the boxes overlap
        total = mul_add(step, step, total)
    return total


# what to visit


@njit
def _candidate_groups(gaps: Array, own: int, limit: Any, candidates: Array) -> int:
    """Groups that may hold a neighbour: the own one, those that overlap, then all others."""
    candidates[0], count = own, 1
    for g in range(len(candidates)):
        if gaps[g] == 0 and g != own:
            candidates[count] = g
            count += 1
    for g in range(len(candidates)):
        if 0 < gaps[g] <= limit:
            candidates[count] = g
            count += 1
    return count


@njit(inline="always")
def _candidate_blocks(
    queries: int,
    limit: Any,
    kth: Array,
    points: Array,
    block: int,
    low: Array,
    high: Array,
    group: int,
) -> Any:
    """Bits of the blocks of a group that may hold a neighbour of some queries of a block."""
    if count_bits(queries) > _FEW_QUERIES:  # the box of all queries, with the largest limit
        to_blocks = _gaps(low, high, block // LANES, block % LANES, low, high, group)
        near = less_equal(to_blocks, broadcast16(limit))
    else:  # each query by itself, with its own limit
        near = 0
        while queries:
            q = lowest_bit(queries)
            queries &= queries - 1
            to_blocks = _gaps(points, points, block, q, low, high, group)
            near |= less_equal(to_blocks, broadcast16(kth[q]))
    return near


@njit
def _largest(values: Array) -> Any:
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    return largest


# Sorted lists of the nearest points so far, one for each of sixteen queries. A list is a row of
# values and one of indices: first sixteen entries of which the last is below any value (what comes
# before a list when a pair is inserted), then the k nearest, then entries up to a multiple of
# sixteen. Entries that are not taken yet have an infinite value and the index -1.


@njit
def _list_length(k: int) -> int:
    """Length of the rows."""
    return LANES + (k + LANES - 1) // LANES * LANES


@njit
def _clear_lists(values: Array, indices: Array) -> None:
    values[:] = np.inf
    values[:, LANES - 1] = -np.inf
    indices[:] = -1


@njit(inline="always")
def _start_list(
    values: Array, indices: Array, q: int, new: Any, some: int, new_values: Array, names: Array
) -> None:
    """Fill an empty list with some of sixteen points, each at once at its final position.

    Args:
        values: `[16, length]`.
        indices: `[16, length]`.
        q: Which list.
        new: The points' distances.
        some: Bits of the points that count.
        new_values: The same distances in memory.
        names: Indices of the points, ascending.
    """
    left = some
    while left:
        p = lowest_bit(left)
        left &= left - 1
        value = broadcast16(new_values[p])
        # points that are nearer, or as near with a lower index
        earlier = less_equal(new, value) & ((1 << p) - 1) | ~less_equal(value, new)
        at = LANES + count_bits(earlier & some)
        values[q, at], indices[q, at] = new_values[p], names[p]


@njit(inline="always")
def _insert_point(values: Array, indices: Array, q: int, value: Any, index: Any) -> None:
    """Insert a point into a list; the last one drops out."""
    length = values.shape[1]
    for at in range((q + 1) * length - LANES, q * length, -LANES):  # from the end, by sixteen
        insert_sorted(values, indices, at, value, index)


@njit
def _write_list(
    values: Array, indices: Array, q: int, i: int, index: Array, distance: Array
) -> None:
    """Copy the list of point i; the lowest indices fill what infinite distances left open."""
    k, known = index.shape[0], 0
    for at in range(k):
        index[at] = indices[q, LANES + at]
        distance[at] = values[q, LANES + at]
        known += index[at] >= 0
    at, other = known, 0
    while at < k:
        if other != i and not (index[:known] == other).any():
            index[at] = other
            at += 1
        other += 1
