"""Inner products along edges for numba, and their gradient, one node after the other.

Nodes of all members are numbered through: node v of member r is r*N + v. Rows of q are read as
many numbers at a time as `shape` has lanes, a divisor of their length.
"""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.numba_lanes import fold, mul_add
from lgdgcn.kernels.numba_shapes import Shape, lanes_of
from lgdgcn.kernels.numba_vectors import fill, load, store

__all__ = ["gather_gradients", "inner_products"]

Array = np.ndarray[Any, Any]


@njit(nogil=True, cache=True, error_model="numpy")
def inner_products(
    start: int,
    stop: int,
    q: Array,
    row_ptr: Array,
    source: Array,
    order: Array,
    out: Array,
    shape: Shape,
) -> None:
    """Fill out `[R, E]` for the in-edges of the nodes from start to stop."""
    nodes, blocks = len(row_ptr) - 1, q.shape[2] // lanes_of(shape)
    for v in range(start, stop):
        member = v // nodes
        t, offset, first_edge = v - member * nodes, member * nodes, member * len(source)
        own = load(q, v * blocks, shape)
        for e in range(row_ptr[t], row_ptr[t + 1]):
            near = (offset + source[e]) * blocks
            total = own * load(q, near, shape)
            for block in range(1, blocks):
                piece = load(q, v * blocks + block, shape)
                total = mul_add(piece, load(q, near + block, shape), total)
            store(out, first_edge + order[e], fold(total, shape))


@njit(nogil=True, cache=True, error_model="numpy")
def gather_gradients(
    start: int,
    stop: int,
    q: Array,
    row_ptr: Array,
    other: Array,
    edge: Array,
    grad_out: Array,
    grad: Array,
    shape: Shape,
) -> None:
    """Fill grad `[R, N, D]` of the nodes from start to stop from all edges at each of them."""
    nodes, blocks = len(row_ptr) - 1, q.shape[2] // lanes_of(shape)
    zeros = fill(q.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        t, offset = v - member * nodes, member * nodes
        for block in range(blocks):
            total = zeros
            for i in range(row_ptr[t], row_ptr[t + 1]):
                near = load(q, (offset + other[i]) * blocks + block, shape)
                share = grad_out[member, edge[i]]
                total = mul_add(fill(share, shape), near, total)
            store(grad, v * blocks + block, total)
