"""Routing loops for numba: all iterations of a few nodes at a time, over their in-edges.

Nodes of all members are numbered through: node t of member r is r*N + t, and its in-edges are
r*E + row_ptr[t] and on. Loops run over blocks of nodes, because the softmax of many edges at once
is several times faster than of one; what a node computes does not depend on its block.
"""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.numba_lanes import (
    between,
    exp,
    fold,
    mul_add,
    root,
    spread,
    sum_channels,
    top_channel,
)
from lgdgcn.kernels.numba_shapes import LANES, Shape, channels_of, lanes_of, wide_of
from lgdgcn.kernels.numba_units import safe_squares, scaled_first
from lgdgcn.kernels.numba_vectors import (
    fill_channels,
    load,
    load_channels,
    load_edges,
    load_outside,
    pad_with,
    store,
    store_outside,
)

__all__ = [
    "BLOCK",
    "Graph",
    "Settings",
    "block_end",
    "iterate",
    "pack_rows",
    "room",
    "route_forward",
]

Array = np.ndarray[Any, Any]
Graph = tuple[int, Array, Array]  # N, row_ptr, source
Settings = tuple[int, bool, bool]  # iterations, uniform_start, normalize_last

BLOCK = 8  # nodes whose rows and edges stay in the first level cache over all iterations


@njit(nogil=True, cache=True)
def pack_rows(start: int, stop: int, rows: Array, packed: Array, shape: Shape) -> None:
    """Copy rows start to stop from `[M, d]` to the packed layout."""
    for v in range(start, stop):
        store(packed, v, load_outside(rows, v, load(packed, v, shape), shape))


@njit(error_model="numpy")
def block_end(v: int, stop: int, nodes: int) -> int:
    """End of the block that begins at node v; it lies within one member."""
    return min(v + BLOCK, stop, (v // nodes + 1) * nodes)


@njit(error_model="numpy")
def room(start: int, stop: int, nodes: int, row_ptr: Array) -> int:
    """Edges of the largest block, filled up to whole vectors."""
    most, v = 0, start
    while v < stop:
        end, offset = block_end(v, stop, nodes), v // nodes * nodes
        most = max(most, row_ptr[end - offset] - row_ptr[v - offset])
        v = end
    return (most + LANES - 1) // LANES * LANES


@njit
def _softmax(scores: Array, count: int, shape: Shape) -> None:
    """Turn the scores `[count, M']` of edges into probabilities."""
    low = -scores.dtype.type(np.inf)
    for group in range((count * scores.shape[1] + LANES - 1) // max(LANES, scores.shape[1])):
        score = pad_with(load_edges(scores, group, shape), low, shape)
        weight = exp(score - top_channel(score, shape))
        store(scores, group, weight / sum_channels(weight, shape))


@njit(error_model="numpy")
def iterate(
    first: int,
    last: int,
    offset: int,
    packed: Array,
    graph: Graph,
    sharp: Any,
    settings: Settings,
    p: Array,
    c: Array,
    inverse: Array,
    shape: Shape,
) -> None:
    """Run all iterations of the nodes first to last of the member whose nodes begin at offset.

    Fills c `[slots * block, lanes]` with the start and every result, inverse `[slots * block, M']`
    with what normalised it and p `[slots, room, M']` with the probabilities; fewer slots than
    iterations hold the last ones.
    """
    _, row_ptr, source = graph
    iterations, uniform_start, normalize_last = settings
    begin, count = row_ptr[first], row_ptr[last] - row_ptr[first]
    one, even = packed.dtype.type(1), packed.dtype.type(1 / channels_of(shape))
    scale, ones = fill_channels(sharp, shape), fill_channels(one, shape)
    low, high = safe_squares(packed)
    for t in range(first, last):
        store(c, t - first, load(packed, offset + t, shape))
    for step in range(iterations):
        slot, place = step % len(p), step * BLOCK % len(inverse) - first
        now, then = step * BLOCK % len(c) - first, (step + 1) * BLOCK % len(c) - first
        at = slot * p.shape[1] - begin
        if uniform_start and step == 0:
            p[slot, :count] = even
        else:
            for t in range(first, last):
                unit = load(c, now + t, shape)
                for e in range(row_ptr[t], row_ptr[t + 1]):
                    near = load(packed, offset + source[e], shape)
                    store(p, at + e, fold(unit * near, shape) * scale)
            _softmax(p[slot], count, shape)
        for t in range(first, last):
            total = load(packed, offset + t, shape)
            for e in range(row_ptr[t], row_ptr[t + 1]):
                near = load(packed, offset + source[e], shape)
                total = mul_add(spread(load_channels(p, at + e, shape), shape), near, total)
            if step < iterations - 1 or normalize_last:
                square = pad_with(fold(total * total, shape), one, shape)
                if between(square, low, high):
                    factor = ones / root(square)
                    store(inverse, place + t, factor)
                    store(c, then + t, total * spread(factor, shape))
                else:
                    store(c, then + t, total)
                    scaled_first(c[then + t], inverse[place + t])
            else:
                store(c, then + t, total)


@njit(nogil=True, cache=True, error_model="numpy")
def route_forward(
    start: int,
    stop: int,
    packed: Array,
    graph: Graph,
    order: Array,
    sharp: Array,
    settings: Settings,
    units: Array,
    chance: Array,
    shape: Shape,
) -> None:
    """Fill units `[R, N, M, d]` and chance `[R, E, M]` for the nodes from start to stop."""
    nodes, row_ptr, source = graph
    p = np.empty((1, room(start, stop, nodes, row_ptr), wide_of(shape)), packed.dtype)
    c = np.empty((2 * BLOCK, lanes_of(shape)), packed.dtype)
    inverse = np.empty((BLOCK, wide_of(shape)), packed.dtype)
    v = start
    while v < stop:
        member = v // nodes
        offset, end = member * nodes, block_end(v, stop, nodes)
        first, last = v - offset, end - offset
        rest = graph, sharp[member], settings, p, c, inverse, shape
        iterate(first, last, offset, packed, *rest)
        result = settings[0] % 2 * BLOCK
        for t in range(first, last):
            store_outside(units, offset + t, load(c, result + t - first, shape), shape)
        begin = row_ptr[first]
        for e in range(begin, row_ptr[last]):
            weight = load_channels(p, e - begin, shape)
            store_outside(chance, member * len(source) + order[e], weight, shape)
        v = end
