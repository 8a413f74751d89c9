"""Routing loops for numba: all iterations of a few nodes at a time, over their in-edges.

Nodes of all members are numbered through: node t of member r is r*N + t, and its in-edges are
r*E + row_ptr[t] and on. Loops run over blocks of nodes, because the softmax of many edges at once
is several times faster than of one; what a node computes does not depend on its block.
"""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.cpu.threads import Array
from lgdgcn.kernels.cpu.units import safe_squares, scaled_first
from lgdgcn.kernels.cpu.vector_math import (
    between,
    exp,
    fold,
    mul_add,
    root,
    spread,
    sum_channels,
    top_channel,
)
from lgdgcn.kernels.cpu.vectors import (
    LANES,
    Shape,
    channels_of,
    fill,
    fill_channels,
    lanes_of,
    load,
    load_channels,
    load_edges,
    load_outside,
    pad_with,
    store,
    store_outside,
    wide_of,
)

__all__ = ["pack_rows", "route_backward", "route_forward", "sum_by_source"]

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
