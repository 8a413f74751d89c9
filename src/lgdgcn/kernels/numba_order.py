"""An order of points in which near ones follow each other.

The points are cut in two again and again, across the coordinate that varies most, and there at
the longest stretch without a point.
"""

import numpy as np
from numba import njit

from lgdgcn.kernels.cpu_arrays import Array
from lgdgcn.kernels.numba_sixteen import LANES

__all__ = ["GROUP", "sort_points"]

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
