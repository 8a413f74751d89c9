"""Points in blocks of sixteen near ones, with the bounding boxes that the search prunes by.

The points are cut in two again and again, like a k-d tree: across the coordinate that varies most,
at the widest gap between its values. Cuts fall between blocks, so in the final order every sixteen
consecutive points are a block of near ones.

    block   16 points     a vector compares one coordinate of all its points at once
    group   16 blocks     a vector compares one point with the boxes of all its blocks
    band    16 groups     a vector compares one box with the boxes of all its groups
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lgdgcn.kernels.cpu.threads import Array, in_parallel, to_numpy
from lgdgcn.kernels.cpu.vectors import LANES

__all__ = ["PointBlocks", "build_blocks"]

_GROUP = LANES * LANES  # points of a group
_SAMPLE = 128  # points that choose the coordinate
_BUCKETS = 32  # of a histogram, in which gaps are seen
_NARROWEST = 1e-30  # range that can be divided into so many
_SMALLEST = 8  # each side of a cut has at least an eighth of the points
_DEEPEST = 512  # more cuts than ever wait at once


class PointBlocks(NamedTuple):
    """B sets of points in blocks, groups and bands.

    Sets are filled up to whole groups with points infinitely far away. A box without points has its
    low corner at infinity and its high corner at minus infinity, so it is infinitely far, too.

    Attributes:
        order: `[B, groups, 16, 16]` index of each point in its set, ascending in every block.
        points: `[B, groups, 16, d, 16]` coordinates, with the points of a block last.
        low: `[B, groups, d, 16]` low corners of the boxes of a group's blocks.
        high: `[B, groups, d, 16]` high corners.
        first: `[B, groups, 16]` lowest index in every block.
        group_low: `[B, bands, d, 16]` low corners of the boxes of a band's groups.
        group_high: `[B, bands, d, 16]` high corners.
        group_first: `[B, groups]` lowest index in every group.
    """

    order: Array
    points: Array
    low: Array
    high: Array
    first: Array
    group_low: Array
    group_high: Array
    group_first: Array


def build_blocks(z: Tensor) -> PointBlocks:
    """Put sets of points `[B, N, d]` into blocks."""
    sets, size, width = z.shape
    groups = -(-size // _GROUP)
    bands = -(-groups // LANES)

    # torch aligns to cache lines
    def empty(*shape: int, dtype: torch.dtype = z.dtype) -> Array:
        return to_numpy(torch.empty(sets, *shape, dtype=dtype))

    def full(value: float, *shape: int) -> Array:
        return to_numpy(torch.full((sets, *shape), value, dtype=z.dtype))

    blocks = PointBlocks(
        order=empty(groups, LANES, LANES, dtype=torch.int32),
        points=empty(groups, LANES, width, LANES),
        low=full(math.inf, groups, width, LANES),
        high=full(-math.inf, groups, width, LANES),
        first=empty(groups, LANES, dtype=torch.int32),
        group_low=full(math.inf, bands, width, LANES),
        group_high=full(-math.inf, bands, width, LANES),
        group_first=empty(groups, dtype=torch.int32),
    )
    in_parallel(_build_sets, range(sets + 1), to_numpy(z), *blocks)
    return blocks


@njit(nogil=True, cache=True)
def _build_sets(
    start: int,
    stop: int,
    z: Array,
    order: Array,
    points: Array,
    low: Array,
    high: Array,
    first: Array,
    group_low: Array,
    group_high: Array,
    group_first: Array,
) -> None:
    """Fill sets start to stop of all that `PointBlocks` has; boxes come empty."""
    for b in range(start, stop):
        # indices from N on are the points that fill up the last group
        indices = order[b].reshape(-1)
        for i in range(len(indices)):
            indices[i] = i
        _order_points(z[b], indices[: z.shape[1]])
        for g in range(low.shape[1]):
            group_first[b, g] = len(indices)
            for c in range(LANES):
                # ascending, so that of equally distant points the lower index is met first
                _sort(order[b, g, c])
                first[b, g, c] = order[b, g, c, 0]
                group_first[b, g] = min(group_first[b, g], first[b, g, c])
                _fill_block(z[b], order[b, g, c], points[b, g, c], low[b, g], high[b, g], c)
            # the box of the group holds the boxes of its blocks
            band, lane = g // LANES, g % LANES
            for j in range(low.shape[2]):
                for c in range(LANES):
                    group_low[b, band, j, lane] = min(group_low[b, band, j, lane], low[b, g, j, c])
                    group_high[b, band, j, lane] = max(
                        group_high[b, band, j, lane], high[b, g, j, c]
                    )


@njit
def _sort(indices: Array) -> None:
    """Sort the sixteen indices of a block by insertion."""
    for stop in range(1, len(indices)):
        index, at = indices[stop], stop
        while at > 0 and indices[at - 1] > index:
            indices[at] = indices[at - 1]
            at -= 1
        indices[at] = index


@njit
def _fill_block(
    z: Array, indices: Array, points: Array, low: Array, high: Array, lane: int
) -> None:
    """Copy the points of a block to `[d, 16]` and widen its box, one lane of `[d, 16]`."""
    for p in range(LANES):
        if indices[p] < len(z):
            row = z[indices[p]]
            for j in range(len(row)):
                points[j, p] = row[j]
                if row[j] < low[j, lane]:  # false for NaN: such a point is nobody's neighbour
                    low[j, lane] = row[j]
                if row[j] > high[j, lane]:
                    high[j, lane] = row[j]
        else:
            for j in range(len(points)):
                points[j, p] = np.inf


# the order of the points


@njit
def _order_points(points: Array, order: Array) -> None:
    """Permute the indices of points `[N, d]` so that every sixteen in a row are near each other."""
    size, width = points.shape
    column, keys = np.empty(size, np.float32), np.empty(size, np.int64)
    bits = column.view(np.int32)
    sums = np.empty((2, width), points.dtype)
    counts, ends = np.empty(_BUCKETS, np.int64), np.empty((2, _BUCKETS), np.float32)
    stack = np.empty((_DEEPEST, 2), np.int64)  # a stack of ranges that are still to be cut
    stack[0, 0], stack[0, 1], count = 0, size, 1
    while count > 0:
        count -= 1
        low, high = stack[count, 0], stack[count, 1]
        if high - low <= LANES:
            continue
        # values of the widest coordinate, as float32: they only guide the order
        j = _widest_coordinate(points, order[low:high], sums)
        for i in range(low, high):
            column[i] = points[order[i], j]
        # cut at the gap, rounded to whole groups while there are many points, then to whole blocks
        unit = _GROUP if high - low > 4 * _GROUP else LANES
        cut = (_count_below_gap(column[low:high], counts, ends) + unit // 2) // unit * unit
        cut = min(max(cut, unit), (high - low - 1) // unit * unit)
        # sort by (value, index) as one integer, so that no two keys are equal: flipping the lower
        # bits of negative floats makes their bits sort like their values
        for i in range(low, high):
            value = np.int64(bits[i])
            keys[i] = (value ^ (value >> 63 & 0x7FFFFFFF)) << 32 | order[i]
        _partition(keys[low:high], cut)
        for i in range(low, high):
            order[i] = keys[i] & 0xFFFFFFFF
        stack[count, 0], stack[count, 1] = low, low + cut
        stack[count + 1, 0], stack[count + 1, 1] = low + cut, high
        count += 2


@njit
def _widest_coordinate(points: Array, order: Array, sums: Array) -> int:
    """Coordinate with the largest variance in a sample of the points."""
    first, count = points[order[0]], 0
    sums[:] = 0  # of offsets from the first point, and of their squares
    for at in range(0, len(order), max(1, len(order) // _SAMPLE)):
        row = points[order[at]]
        for j in range(points.shape[1]):
            offset = row[j] - first[j]
            sums[0, j] += offset
            sums[1, j] += offset * offset
        count += 1
    best, most = 0, -1.0
    for j in range(points.shape[1]):
        variance = sums[1, j] - sums[0, j] * sums[0, j] / count
        if variance > most:
            best, most = j, variance
    return best


@njit
def _count_below_gap(column: Array, counts: Array, ends: Array) -> int:
    """Number of values below the widest gap between them, with enough values on either side."""
    size = len(column)
    lowest, highest = column[0], column[0]
    for value in column:
        lowest, highest = min(lowest, value), max(highest, value)
    if not _NARROWEST < highest - lowest < np.inf:
        return size // 2
    # a histogram: how many values, and the lowest and highest of them, in every bucket
    scale = _BUCKETS / (highest - lowest)
    counts[:], ends[0], ends[1] = 0, np.inf, -np.inf
    for value in column:
        position = (value - lowest) * scale
        bucket = min(int(position), _BUCKETS - 1) if position >= 0 else 0  # 0 for NaN, too
        counts[bucket] += 1
        ends[0, bucket] = min(ends[0, bucket], value)
        ends[1, bucket] = max(ends[1, bucket], value)
    # gaps lie between the highest value of a bucket and the lowest of the next one in use
    below, widest, passed, last = size // 2, 0.0, 0, lowest
    for bucket in range(_BUCKETS):
        if counts[bucket] > 0:
            enough = size // _SMALLEST <= passed <= size - size // _SMALLEST
            if enough and ends[0, bucket] - last > widest:
                below, widest = passed, ends[0, bucket] - last
            passed += int(counts[bucket])
            last = ends[1, bucket]
    return below


@njit
def _partition(keys: Array, cut: int) -> None:
    """Move the `cut` lowest of different keys to the front (quickselect, median of three)."""
    low, high = 0, len(keys)
    while high - low > 1:
        quarter = (high - low) // 4
        a, b, c = keys[low + quarter], keys[low + 2 * quarter], keys[low + 3 * quarter]
        pivot = max(min(a, b), min(max(a, b), c))
        at = low + quarter * (1 if pivot == a else 2 if pivot == b else 3)
        keys[at], keys[high - 1] = keys[high - 1], pivot
        border = low
        for i in range(low, high - 1):  # no branch depends on a key
            key = keys[i]
            keys[i], keys[border] = keys[border], key
            border += key < pivot
        keys[high - 1], keys[border] = keys[border], pivot
        if border == cut:
            return
        if border < cut:
            low = border + 1
        else:
            high = border
