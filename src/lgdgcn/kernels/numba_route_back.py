"""Gradient of the routing loops for numba; blocks and numbering are those of the loops."""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.numba_lanes import fold, mul_add, spread, sum_channels
from lgdgcn.kernels.numba_route import BLOCK, Graph, Settings, block_end, iterate, room
from lgdgcn.kernels.numba_shapes import LANES, Shape, lanes_of, wide_of
from lgdgcn.kernels.numba_vectors import (
    fill,
    fill_channels,
    load,
    load_channels,
    load_edges,
    load_outside,
    store,
    store_outside,
)

__all__ = ["route_backward", "sum_by_source"]

Array = np.ndarray[Any, Any]


@njit
def _softmax_backward(weights: Array, slopes: Array, count: int, shape: Shape) -> None:
    """Turn gradients of the probabilities `[count, M']` into those of the scores."""
    for group in range((count * weights.shape[1] + LANES - 1) // max(LANES, weights.shape[1])):
        weight, slope = load_edges(weights, group, shape), load_edges(slopes, group, shape)
        mean = sum_channels(weight * slope, shape)
        store(slopes, group, weight * (slope - mean))


@njit(error_model="numpy")
def _reverse(
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
    slope: Array,
    back: Array,
    shape: Shape,
) -> None:
    """Walk the iterations backwards.

    On entry the last slots of slope `[T, room, M']` and back `[(T+1) * block, lanes]` hold the
    gradients of the last probabilities and of the result. On exit slope holds those of all scores
    and back those of the start and of the sums before they were normalised.
    """
    _, row_ptr, source = graph
    iterations, uniform_start, normalize_last = settings
    begin, count = row_ptr[first], row_ptr[last] - row_ptr[first]
    scale, zeros = fill_channels(sharp, shape), fill(packed.dtype.type(0), shape)
    for step in range(iterations - 1, -1, -1):
        final, fixed = step == iterations - 1, uniform_start and step == 0
        at, now, then = step * p.shape[1] - begin, step * BLOCK, (step + 1) * BLOCK
        for t in range(first, last):
            grad = load(back, then + t - first, shape)
            if normalize_last or not final:
                unit = load(c, then + t - first, shape)
                factor = spread(load_channels(inverse, now + t - first, shape), shape)
                along = spread(fold(grad * unit, shape), shape)
                grad = (grad - unit * along) * factor
                store(back, then + t - first, grad)
            for e in range(row_ptr[t], row_ptr[t + 1]):
                near = load(packed, offset + source[e], shape)
                score = fold(grad * near, shape)
                if final:
                    score = score + load_channels(slope, at + e, shape)
                store(slope, at + e, score * scale)
        if fixed:
            slope[step, :count] = packed.dtype.type(0)
        else:
            _softmax_backward(p[step], slope[step], count, shape)
        for t in range(first, last):
            grad = zeros
            for e in range(row_ptr[t], row_ptr[t + 1]):
                near = load(packed, offset + source[e], shape)
                grad = mul_add(spread(load_channels(slope, at + e, shape), shape), near, grad)
            store(back, now + t - first, grad)


@njit(nogil=True, cache=True, error_model="numpy")
def route_backward(
    start: int,
    stop: int,
    packed: Array,
    graph: Graph,
    order: Array,
    sharp: Array,
    settings: Settings,
    grad_units: Array,
    grad_chance: Array,
    own_grad: Array,
    edge_grad: Array,
    base: int,
    shape: Shape,
) -> None:
    """Recompute the iterations of each node, then walk them backwards.

    Fills `own_grad` `[R*N, lanes]` with each node's gradient through itself and `edge_grad`
    `[edges, lanes]`, which begins at edge `base`, with the gradient of each in-edge towards its
    source, for the nodes from start to stop. Empty `grad_units` or `grad_chance` are zero.
    """
    nodes, row_ptr, source = graph
    iterations = settings[0]
    width, wide, lanes = room(start, stop, nodes, row_ptr), wide_of(shape), lanes_of(shape)
    p = np.empty((iterations, width, wide), packed.dtype)
    slope = np.empty((iterations, width, wide), packed.dtype)
    c = np.empty(((iterations + 1) * BLOCK, lanes), packed.dtype)
    back = np.empty(((iterations + 1) * BLOCK, lanes), packed.dtype)
    inverse = np.empty((iterations * BLOCK, wide), packed.dtype)
    zeros, none = fill(packed.dtype.type(0), shape), fill_channels(packed.dtype.type(0), shape)
    v = start
    while v < stop:
        member = v // nodes
        offset, end, entry = member * nodes, block_end(v, stop, nodes), member * len(source)
        first, last, begin = v - offset, end - offset, row_ptr[v - offset]
        rest = graph, sharp[member], settings, p, c, inverse
        iterate(first, last, offset, packed, *rest, shape)
        for t in range(first, last):
            grad = load_outside(grad_units, offset + t, zeros, shape) if grad_units.size else zeros
            store(back, iterations * BLOCK + t - first, grad)
        at = (iterations - 1) * width - begin
        for e in range(begin, row_ptr[last]):
            score = none
            if grad_chance.size:
                score = load_outside(grad_chance, entry + order[e], none, shape)
            store(slope, at + e, score)
        _reverse(first, last, offset, packed, *rest, slope, back, shape)
        for t in range(first, last):
            grad = load(back, t - first, shape)
            for step in range(1, iterations + 1):
                grad = grad + load(back, step * BLOCK + t - first, shape)
            store(own_grad, v + t - first, grad)
            for e in range(row_ptr[t], row_ptr[t + 1]):
                grad = zeros
                for step in range(iterations):
                    at, now = step * width + e - begin, step * BLOCK + t - first
                    share = spread(load_channels(slope, at, shape), shape)
                    grad = mul_add(share, load(c, now, shape), grad)
                    share = spread(load_channels(p, at, shape), shape)
                    grad = mul_add(share, load(back, now + BLOCK, shape), grad)
                store(edge_grad, entry + e - base, grad)
        v = end


@njit(nogil=True, cache=True, error_model="numpy")
def sum_by_source(
    start: int,
    stop: int,
    outgoing: Graph,
    edge_grad: Array,
    base: int,
    done: int,
    own_grad: Array,
    through: Array,
    grad: Array,
    shape: Shape,
) -> None:
    """Add the gradients of out-edges for the nodes from start to stop, in order of the edges.

    `edge_grad` holds the edges from `base` on; sums that earlier calls began are in `through`.
    Sums of members whose nodes are all below `done` are complete and go to `grad` `[R, N, M, d]`.
    """
    nodes, out_ptr, out_entry = outgoing
    zeros = fill(edge_grad.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        entry, s = member * len(out_entry) - base, v - member * nodes
        e = out_ptr[s]
        while e < out_ptr[s + 1] and entry + out_entry[e] < 0:
            e += 1
        total = zeros if e == out_ptr[s] else load(through, v, shape)
        while e < out_ptr[s + 1] and entry + out_entry[e] < len(edge_grad):
            total = total + load(edge_grad, entry + out_entry[e], shape)
            e += 1
        if (member + 1) * nodes <= done:
            store_outside(grad, v, total + load(own_grad, v, shape), shape)
        else:
            store(through, v, total)
