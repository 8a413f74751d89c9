"""Points in blocks of sixteen near ones, with the boxes that hold them.

The points are cut in two again and again, across the coordinate that varies most, and there at
the longest stretch without a point.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lgdgcn.kernels.cpu.threads import Array, in_parallel, to_numpy
from lgdgcn.kernels.cpu.vectors import LANES

__all__ = ["Blocks", "arrange"]

GROUP = LANES * LANES

_SAMPLE = 128  # points that choose the coordinate
_BUCKETS = 32  # resolution at which empty stretches of it are seen
_NARROWEST = 1e-30  # range that can be divided into so many
_SMALLEST = 8  # a side of a cut has at least one of so many points
_DEEPEST = 512  # more cuts than ever lie within each other


@njit
def _widest(points: Array, order: Array, sums: Array) -> int:
    """Coordinate with the largest variance in a sample of the points."""
    first, count = points[order[0]], 0
    sums[:] = 0
    for at in range(0, len(order), max(1, len(order) // _SAMPLE)):
        row = points[order[at]]
        for j in range(points.shape[1]):
            offset = row[j] - first[j]
            sums[0, j] += offset
            sums[1, j] += offset * offset
        count += 1
    best, most = 0, -1.0
    for j in range(points.shape[1]):
        spread = sums[1, j] - sums[0, j] * sums[0, j] / count
        if spread > most:
            best, most = j, spread
    return best


@njit
def _below_gap(column: Array, counts: Array, ends: Array) -> int:
    """Number of values below the longest stretch without one, with enough on either side."""
    size = len(column)
    lowest, highest = column[0], column[0]
    for value in column:
        lowest, highest = min(lowest, value), max(highest, value)
    if not _NARROWEST < highest - lowest < np.inf:
        return size // 2
    scale = _BUCKETS / (highest - lowest)
    counts[:], ends[0], ends[1] = 0, np.inf, -np.inf
    for value in column:
        place = (value - lowest) * scale
        bucket = min(int(place), _BUCKETS - 1) if place >= 0 else 0  # where NaN goes, too
        counts[bucket] += 1
        ends[0, bucket] = min(ends[0, bucket], value)
        ends[1, bucket] = max(ends[1, bucket], value)
    below, longest, passed, last = size // 2, 0.0, 0, lowest
    for bucket in range(_BUCKETS):
        if counts[bucket] > 0:
            enough = size // _SMALLEST <= passed <= size - size // _SMALLEST
            if enough and ends[0, bucket] - last > longest:
                below, longest = passed, ends[0, bucket] - last
            passed += int(counts[bucket])
            last = ends[1, bucket]
    return below


@njit
def _part(keys: Array, cut: int) -> None:
    """Move the `cut` lowest of different keys to the front."""
    low, high = 0, len(keys)
    while high - low > 1:
        quarter = (high - low) // 4
        a, b, c = keys[low + quarter], keys[low + 2 * quarter], keys[low + 3 * quarter]
        middle = max(min(a, b), min(max(a, b), c))
        at = low + quarter * (1 if middle == a else 2 if middle == b else 3)
        keys[at], keys[high - 1] = keys[high - 1], middle
        border = low
        for i in range(low, high - 1):  # no branch depends on a key
            key = keys[i]
            keys[i], keys[border] = keys[border], key
            border += key < middle
        keys[high - 1], keys[border] = keys[border], middle
        if border == cut:
            return
        if border < cut:
            low = border + 1
        else:
            high = border


@njit
def sort_points(points: Array, order: Array) -> None:
    """Permute the numbers of points `[N, d]` so that every sixteen in a row are near each other.

    Cuts of many points fall between groups, all others between blocks.
    """
    size, width = points.shape
    column, keys = np.empty(size, np.float32), np.empty(size, np.int64)
    bits = column.view(np.int32)
    sums = np.empty((2, width), points.dtype)
    counts, ends = np.empty(_BUCKETS, np.int64), np.empty((2, _BUCKETS), np.float32)
    waiting = np.empty((_DEEPEST, 2), np.int64)
    waiting[0, 0], waiting[0, 1], count = 0, size, 1
    while count > 0:
        count -= 1
        low, high = waiting[count, 0], waiting[count, 1]
        if high - low <= LANES:
            continue
        j = _widest(points, order[low:high], sums)
        for i in range(low, high):
            column[i] = points[order[i], j]
        unit = GROUP if high - low > 4 * GROUP else LANES
        cut = (_below_gap(column[low:high], counts, ends) + unit // 2) // unit * unit
        cut = min(max(cut, unit), (high - low - 1) // unit * unit)
        for i in range(low, high):  # the number behind the value: no two keys are equal
            value = np.int64(bits[i])
            keys[i] = (value ^ (value >> 63 & 0x7FFFFFFF)) << 32 | order[i]
        _part(keys[low:high], cut)
        for i in range(low, high):
            order[i] = keys[i] & 0xFFFFFFFF
        waiting[count, 0], waiting[count, 1] = low, low + cut
        waiting[count + 1, 0], waiting[count + 1, 1] = low + cut, high
        count += 2


class Blocks(NamedTuple):
    """B sets of points: sixteen points are a block, sixteen blocks a group, sixteen groups a band.

    Sets are filled up to whole groups with points infinitely far away. Boxes of no point have
    their low corner at infinity and the high one at minus infinity.

    Attributes:
        order: `[B, groups, 16, 16]` number of each point in its set, ascending in every block.
        points: `[B, groups, 16, d, 16]`.
        low: `[B, groups, d, 16]` low corners of the boxes of a group's blocks.
        high: `[B, groups, d, 16]` high corners.
        first: `[B, groups, 16]` lowest number in every block.
        group_low: `[B, bands, d, 16]` low corners of the boxes of a band's groups.
        group_high: `[B, bands, d, 16]` high corners.
        group_first: `[B, groups]` lowest number in every group.
    """

    order: Array
    points: Array
    low: Array
    high: Array
    first: Array
    group_low: Array
    group_high: Array
    group_first: Array


def arrange(z: Tensor) -> Blocks:
    """Put sets of points `[B, N, d]` into blocks."""
    sets, size, width = z.shape
    groups = -(-size // GROUP)
    bands = -(-groups // LANES)

    # torch aligns to cache lines
    def empty(*shape: int, dtype: torch.dtype = z.dtype) -> Array:
        return to_numpy(torch.empty(sets, *shape, dtype=dtype))

    def full(value: float, *shape: int) -> Array:
        return to_numpy(torch.full((sets, *shape), value, dtype=z.dtype))

    blocks = Blocks(
        order=empty(groups, LANES, LANES, dtype=torch.int32),
        points=empty(groups, LANES, width, LANES),
        low=full(math.inf, groups, width, LANES),
        high=full(-math.inf, groups, width, LANES),
        first=empty(groups, LANES, dtype=torch.int32),
        group_low=full(math.inf, bands, width, LANES),
        group_high=full(-math.inf, bands, width, LANES),
        group_first=empty(groups, dtype=torch.int32),
    )
    in_parallel(_arrange_sets, range(sets + 1), to_numpy(z), *blocks)
    return blocks


@njit
def _sort(numbers: Array) -> None:
    """Sort the few numbers of a block."""
    for stop in range(1, len(numbers)):
        number, at = numbers[stop], stop
        while at > 0 and numbers[at - 1] > number:
            numbers[at] = numbers[at - 1]
            at -= 1
        numbers[at] = number


@njit
def _fill_block(
    z: Array, numbers: Array, points: Array, low: Array, high: Array, place: int
) -> None:
    """Copy points `[16, d]` as `[d, 16]` and widen the box at a place of `[d, 16]` to hold them."""
    for p in range(LANES):
        if numbers[p] < len(z):
            row = z[numbers[p]]
            for j in range(len(row)):
                points[j, p] = row[j]
                if row[j] < low[j, place]:  # never a NaN, which is nobody's neighbour
                    low[j, place] = row[j]
                if row[j] > high[j, place]:
                    high[j, place] = row[j]
        else:
            for j in range(len(points)):
                points[j, p] = np.inf


@njit(nogil=True, cache=True)
def _arrange_sets(
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
    """Fill sets start to stop of all that `Blocks` has; boxes come empty."""
    for b in range(start, stop):
        numbers = order[b].reshape(-1)
        for i in range(len(numbers)):
            numbers[i] = i
        sort_points(z[b], numbers[: z.shape[1]])
        for g in range(low.shape[1]):
            group_first[b, g] = len(numbers)
            for c in range(LANES):
                _sort(order[b, g, c])
                first[b, g, c] = order[b, g, c, 0]
                group_first[b, g] = min(group_first[b, g], first[b, g, c])
                _fill_block(z[b], order[b, g, c], points[b, g, c], low[b, g], high[b, g], c)
            band, place = g // LANES, g % LANES
            for j in range(low.shape[2]):
                for c in range(LANES):
                    group_low[b, band, j, place] = min(
                        group_low[b, band, j, place], low[b, g, j, c]
                    )
                    group_high[b, band, j, place] = max(
                        group_high[b, band, j, place], high[b, g, j, c]
                    )
