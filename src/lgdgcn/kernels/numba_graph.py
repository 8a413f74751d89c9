"""Aggregation along compressed rows."""

import numpy as np
from numba import njit

from lgdgcn.kernels.cpu_arrays import Array
from lgdgcn.kernels.numba_lanes import mul_add
from lgdgcn.kernels.numba_sixteen import LANES, everywhere, lanes
from lgdgcn.kernels.numba_vectors import store

__all__ = ["gather_rows"]


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
