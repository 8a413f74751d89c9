"""Nearest neighbours, list union and aggregation loops for numba."""

from typing import Any

import numpy as np
from numba import njit

__all__ = ["gather_rows", "nearest_jobs", "nearest_points", "pad", "unite_lists"]

Array = np.ndarray[Any, Any]

_TILE = 256  # points per distance buffer: tile and buffer stay in the first level cache
_GROUP = 64  # distances compared with the threshold at once
_QUERIES = 32  # queries that share one tile while it is in cache
_STRIDE = 4  # coordinates per pass; points are padded with zero coordinates to a multiple


# only multiply-add is fused: the order of the sum, and so d(i, j) = d(j, i), is kept
@njit(fastmath={"contract"})
def _distances(points: Array, q: int, start: int, out: Array) -> None:
    """Squared distances from point q to the tile of points that begins at start."""
    for p in range(_TILE):
        out[p] = points.dtype.type(0)
    for j in range(0, points.shape[0], _STRIDE):
        row0, row1 = points[j, start : start + _TILE], points[j + 1, start : start + _TILE]
        row2, row3 = points[j + 2, start : start + _TILE], points[j + 3, start : start + _TILE]
        q0, q1, q2, q3 = points[j, q], points[j + 1, q], points[j + 2, q], points[j + 3, q]
        for p in range(_TILE):
            a, b, c, d = q0 - row0[p], q1 - row1[p], q2 - row2[p], q3 - row3[p]
            out[p] = out[p] + a * a + b * b + c * c + d * d


@njit
def _insert(best: Array, place: Array, value: Any, p: int) -> None:
    """Put a point that beats the last one into the sorted list, after its equals."""
    at = best.shape[0] - 1
    while at > 0 and best[at - 1] > value:
        best[at], place[at] = best[at - 1], place[at - 1]
        at -= 1
    best[at], place[at] = value, p


@njit
def _scan(buffer: Array, start: int, best: Array, place: Array) -> None:
    """Offer a tile of distances to one query's list, in index order."""
    last = best.shape[0] - 1
    for group in range(0, _TILE, _GROUP):
        worst = best[last]
        hits = 0
        for p in range(_GROUP):
            hits += buffer[group + p] < worst
        if hits > 0:
            for p in range(group, group + _GROUP):
                if buffer[p] < best[last]:
                    _insert(best, place, buffer[p], start + p)


@njit
def _fill(best: Array, place: Array, q: int, size: int) -> None:
    """Complete a list that infinite distances left open, lowest indices first."""
    full = 0
    while full < best.shape[0] and place[full] >= 0:
        full += 1
    known, p = full, 0
    while full < best.shape[0] and p < size:
        listed = p == q
        for at in range(known):
            listed = listed or place[at] == p
        if not listed:
            place[full] = p
            full += 1
        p += 1


def nearest_jobs(sets: int, size: int) -> int:
    """Number of pieces the search over B sets of N points falls into."""
    return sets * -(-size // _QUERIES)


def pad(points: Array) -> Array:
    """Transpose points `[B, N, d]` to `[B, d, N]` and fill both up to whole strides and tiles."""
    sets, size, width = points.shape
    shape = sets, -(-max(width, 1) // _STRIDE) * _STRIDE, -(-size // _TILE) * _TILE
    padded = np.zeros(shape, points.dtype)
    padded[:, :width, :size] = points.transpose(0, 2, 1)
    padded[:, 0, size:] = np.inf
    return padded


@njit(nogil=True, cache=True)
def nearest_points(
    start: int, stop: int, points: Array, size: int, index: Array, distance: Array
) -> None:
    """Fill index and distance `[B, N, k]` for the jobs from start to stop of `nearest_jobs`.

    Points are as `pad` returns them: added points are infinitely far away.
    """
    groups = (size + _QUERIES - 1) // _QUERIES
    buffer = np.empty(_TILE, points.dtype)
    for job in range(start, stop):
        b, low = job // groups, job % groups * _QUERIES
        high = min(low + _QUERIES, size)
        index[b, low:high] = -1
        distance[b, low:high] = np.inf
        for tile in range(0, points.shape[2], _TILE):
            for q in range(low, high):
                _distances(points[b], q, tile, buffer)
                if tile <= q < tile + _TILE:
                    buffer[q - tile] = np.inf
                _scan(buffer, tile, distance[b, q], index[b, q])
        for q in range(low, high):
            _fill(distance[b, q], index[b, q], q, size)


@njit(cache=True)
def unite_lists(index: Array, keep: Array, row_ptr: Array, source: Array, mutual: Array) -> int:
    """Fill the union of lists `[B, N, k]` and their reverse; returns the number of entries.

    `keep` has no sets when every entry counts. `source` and `mutual` have room for `2 B N k`.
    """
    sets, size, k = index.shape
    n = sets * size
    mine = np.empty((n, k), np.int64)  # each list without dropped entries, sorted and unique
    length = np.zeros(n, np.int64)
    theirs_ptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        b, row = i // size, i % size
        for e in range(k):
            j = b * size + index[b, row, e]
            if j == i or (keep.shape[0] > 0 and not keep[b, row, e]):
                continue
            at = length[i]
            while at > 0 and mine[i, at - 1] > j:
                at -= 1
            if at > 0 and mine[i, at - 1] == j:
                continue
            for move in range(length[i], at, -1):
                mine[i, move] = mine[i, move - 1]
            mine[i, at] = j
            length[i] += 1
            theirs_ptr[j + 1] += 1
    for i in range(n):
        theirs_ptr[i + 1] += theirs_ptr[i]
    theirs = np.empty(theirs_ptr[n], np.int64)  # who lists each node, ascending
    cursor = theirs_ptr[:n].copy()
    for i in range(n):
        for e in range(length[i]):
            j = mine[i, e]
            theirs[cursor[j]] = i
            cursor[j] += 1
    total = 0
    for i in range(n):
        row_ptr[i] = total
        e, r = 0, theirs_ptr[i]
        while e < length[i] or r < theirs_ptr[i + 1]:
            own = mine[i, e] if e < length[i] else n
            other = theirs[r] if r < theirs_ptr[i + 1] else n
            source[total] = min(own, other)
            mutual[total] = own == other
            e += own <= other
            r += other <= own
            total += 1
    row_ptr[n] = total
    return total


@njit(nogil=True, cache=True, fastmath={"contract"})
def gather_rows(
    start: int,
    stop: int,
    x: Array,
    row_ptr: Array,
    source: Array,
    weight: Array,
    left: Array,
    right: Array,
    out: Array,
) -> None:
    """Fill rows start to stop of out `[n, d]` with L (A + I) R x."""
    size = x.shape[1]
    total = np.empty(size, x.dtype)
    for i in range(start, stop):
        for j in range(size):
            total[j] = right[i] * x[i, j]
        for e in range(row_ptr[i], row_ptr[i + 1]):
            s = source[e]
            scale = weight[e] * right[s]
            for j in range(size):
                total[j] += scale * x[s, j]
        for j in range(size):
            out[i, j] = left[i] * total[j]
