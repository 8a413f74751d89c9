"""List union and aggregation loops for numba."""

import numpy as np
from numba import njit

from lgdgcn.kernels.cpu_arrays import Array
from lgdgcn.kernels.numba_lanes import mul_add
from lgdgcn.kernels.numba_sixteen import LANES, everywhere, lanes
from lgdgcn.kernels.numba_vectors import store

__all__ = ["gather_rows", "unite_lists"]


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
    if size % LANES == 0:
        pieces = size // LANES
        for i in range(start, stop):
            for piece in range(pieces):
                total = everywhere(right[i]) * lanes(x, i * pieces + piece)
                for e in range(row_ptr[i], row_ptr[i + 1]):
                    s = source[e]
                    scale = everywhere(weight[e] * right[s])
                    total = mul_add(scale, lanes(x, s * pieces + piece), total)
                store(out, i * pieces + piece, everywhere(left[i]) * total)
        return
    sums = np.empty(size, x.dtype)
    for i in range(start, stop):
        for j in range(size):
            sums[j] = right[i] * x[i, j]
        for e in range(row_ptr[i], row_ptr[i + 1]):
            s = source[e]
            scale = weight[e] * right[s]
            for j in range(size):
                sums[j] += scale * x[s, j]
        for j in range(size):
            out[i, j] = left[i] * sums[j]
