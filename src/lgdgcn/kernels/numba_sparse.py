"""Loops for numba over compressed rows: products with dense columns, and sums."""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.numba_lanes import mul_add
from lgdgcn.kernels.numba_shapes import Shape, lanes_of
from lgdgcn.kernels.numba_vectors import fill, load, store

__all__ = ["multiply_rows", "sum_rows"]

Array = np.ndarray[Any, Any]


@njit(nogil=True, cache=True, error_model="numpy")
def multiply_rows(
    start: int,
    stop: int,
    row_ptr: Array,
    column: Array,
    value: Array,
    dense: Array,
    out: Array,
    shape: Shape,
) -> None:
    """Fill rows start to stop of out `[R * N, H]` with sparse `[N, F]` times dense `[R, F, H]`.

    Columns are taken as many at a time as `shape` has lanes, a divisor of H.
    """
    nodes, blocks = len(row_ptr) - 1, dense.shape[2] // lanes_of(shape)
    zeros = fill(dense.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        i, offset = v - member * nodes, member * dense.shape[1]
        for block in range(blocks):
            total = zeros
            for e in range(row_ptr[i], row_ptr[i + 1]):
                near = load(dense, (offset + column[e]) * blocks + block, shape)
                total = mul_add(fill(value[e], shape), near, total)
            store(out, v * blocks + block, total)


@njit(nogil=True, cache=True)
def sum_rows(start: int, stop: int, weight: Array, row_ptr: Array, out: Array) -> None:
    """Fill out `[n]` with the sums of the rows start to stop."""
    for i in range(start, stop):
        total = 0.0
        for e in range(row_ptr[i], row_ptr[i + 1]):
            total += weight[e]
        out[i] = total
