"""Routing loops: all T iterations of eight nodes at a time, over their in-edges, and the gradient.

One iteration, for every edge e = (s, t) and factor m (`lgdgcn.kernels.route` has the definition):

    1. score[e, m] = <z[s, m], c[t, m]> / tau
    2. p[e] = softmax of score[e] over the factors
    3. sum[t, m] = z[t, m] + sum over the in-edges e of p[e, m] z[s, m]
    4. c[t, m] = sum[t, m] / |sum[t, m]|

Neighbours enter only by their fixed z, so a node can run all its iterations while its neighbours'
rows are still in the cache. Loops take blocks of eight nodes, because the softmax of many edges at
once is several times faster than of one; what a node computes does not depend on its block.

Nodes and edges of all members are numbered consecutively: node t of member r is r*N + t, and its
in-edges are r*E + row_ptr[t] and on. Vectors are packed rows `[d', M']` (see `vectors`).
"""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.cpu.threads import Array
from lgdgcn.kernels.cpu.units import normalize_safely, safe_square_range
from lgdgcn.kernels.cpu.vector_math import (
    all_between,
    exp,
    max_factor,
    mul_add,
    repeat_over_d,
    sqrt,
    sum_factors,
    sum_over_d,
)
from lgdgcn.kernels.cpu.vectors import (
    LANES,
    RowShape,
    broadcast,
    broadcast_factors,
    factors_of,
    fill_padding,
    lanes_of,
    load,
    load_edges,
    load_factors,
    load_unpacked,
    padded_factors_of,
    store,
    store_unpacked,
)

__all__ = ["pack_rows", "route_backward", "route_forward", "sum_by_source"]

Graph = tuple[int, Array, Array]  # N, row_ptr, source
Settings = tuple[int, bool, bool]  # iterations, uniform_start, normalize_last

_BLOCK = 8  # nodes whose rows and edges stay in the first level cache over all iterations


@njit(nogil=True, cache=True)
def pack_rows(start: int, stop: int, rows: Array, packed: Array, shape: RowShape) -> None:
    """Copy rows start to stop from `[M, d]` to the packed layout."""
    for v in range(start, stop):
        store(packed, v, load_unpacked(rows, v, load(packed, v, shape), shape))


@njit(error_model="numpy")
def _block_end(v: int, stop: int, nodes: int) -> int:
    """End of the block that begins at node v; it lies within one member."""
    return min(v + _BLOCK, stop, (v // nodes + 1) * nodes)


@njit(error_model="numpy")
def _most_edges(start: int, stop: int, nodes: int, row_ptr: Array) -> int:
    """Edges of the largest block, rounded up to whole vectors."""
    most, v = 0, start
    while v < stop:
        end, offset = _block_end(v, stop, nodes), v // nodes * nodes
        most = max(most, row_ptr[end - offset] - row_ptr[v - offset])
        v = end
    return (most + LANES - 1) // LANES * LANES


# forward


@njit(nogil=True, cache=True, error_model="numpy")
def route_forward(
    start: int,
    stop: int,
    packed: Array,
    graph: Graph,
    order: Array,
    inverse_temperature: Array,
    settings: Settings,
    units: Array,
    probability: Array,
    shape: RowShape,
) -> None:
    """Fill units `[R, N, M, d]` and probability `[R, E, M]` for the nodes from start to stop."""
    nodes, row_ptr, source = graph
    # buffers for one block, used again for all blocks of this range
    most = _most_edges(start, stop, nodes, row_ptr)
    p = np.empty((1, most, padded_factors_of(shape)), packed.dtype)  # of the last iteration
    c = np.empty((2 * _BLOCK, lanes_of(shape)), packed.dtype)  # before and after an iteration
    inverse = np.empty((_BLOCK, padded_factors_of(shape)), packed.dtype)  # 1 / |sum|
    v = start
    while v < stop:
        # a block: nodes v to end of all members, first to last within their member
        member = v // nodes
        offset, end = member * nodes, _block_end(v, stop, nodes)
        first, last = v - offset, end - offset
        rest = graph, inverse_temperature[member], settings, p, c, inverse, shape
        _iterate(first, last, offset, packed, *rest)
        # the halves of c take turns: after an even number of iterations the first has the result
        result = settings[0] % 2 * _BLOCK
        for t in range(first, last):
            store_unpacked(units, offset + t, load(c, result + t - first, shape), shape)
        # p is in order of the targets; the caller wants the order of edge_index
        begin = row_ptr[first]
        for e in range(begin, row_ptr[last]):
            weight = load_factors(p, e - begin, shape)
            store_unpacked(probability, member * len(source) + order[e], weight, shape)
        v = end


@njit(error_model="numpy")
def _iterate(
    first: int,
    last: int,
    offset: int,
    packed: Array,
    graph: Graph,
    inverse_temperature: Any,
    settings: Settings,
    p: Array,
    c: Array,
    inverse: Array,
    shape: RowShape,
) -> None:
    """Run all iterations of the nodes first to last of the member whose nodes begin at offset.

    The three buffers have slots that the iterations use in turn. Forward gives them one or two,
    which are overwritten; backward one for every iteration, so that it finds all of them filled.

    Args:
        first: First node of the block, within its member.
        last: Node after the last one.
        offset: Number of the member's node 0.
        packed: `[R*N, lanes]` the vectors z.
        graph: N, row_ptr and source.
        inverse_temperature: 1 / tau of the member.
        settings: iterations, uniform_start, normalize_last.
        p: `[slots, edges, M']` receives the probabilities.
        c: `[slots * block, lanes]` receives the start z, then the result of every iteration.
        inverse: `[slots * block, M']` receives what normalised each result.
        shape: M and d.
    """
    _, row_ptr, source = graph
    iterations, uniform_start, normalize_last = settings
    begin, count = row_ptr[first], row_ptr[last] - row_ptr[first]  # edges of the block
    one, even = packed.dtype.type(1), packed.dtype.type(1 / factors_of(shape))
    scale, ones = broadcast_factors(inverse_temperature, shape), broadcast_factors(one, shape)
    low, high = safe_square_range(packed)
    for t in range(first, last):
        store(c, t - first, load(packed, offset + t, shape))  # c = z
    for step in range(iterations):
        # rows of this iteration's slots; adding t, or e, gives a node's, or an edge's, row
        slot, inverse_at = step % len(p), step * _BLOCK % len(inverse) - first
        now, then = step * _BLOCK % len(c) - first, (step + 1) * _BLOCK % len(c) - first
        at = slot * p.shape[1] - begin
        if uniform_start and step == 0:
            p[slot, :count] = even
        else:
            # 1. scores of all edges of the block, [count, M']
            for t in range(first, last):
                unit = load(c, now + t, shape)  # [d', M'], in registers over all in-edges
                for e in range(row_ptr[t], row_ptr[t + 1]):
                    neighbour = load(packed, offset + source[e], shape)
                    store(p, at + e, sum_over_d(unit * neighbour, shape) * scale)
            # 2. in place, several edges per vector
            _softmax(p[slot], count, shape)
        for t in range(first, last):
            # 3. the sum stays in registers over all in-edges
            total = load(packed, offset + t, shape)
            for e in range(row_ptr[t], row_ptr[t + 1]):
                neighbour = load(packed, offset + source[e], shape)
                weight = repeat_over_d(load_factors(p, at + e, shape), shape)
                total = mul_add(weight, neighbour, total)
            # 4. padded factors get length 1, so that nothing divides by zero
            if step < iterations - 1 or normalize_last:
                square = fill_padding(sum_over_d(total * total, shape), one, shape)  # [M']
                if all_between(square, low, high):  # squares have neither over- nor underflown
                    inverse_length = ones / sqrt(square)
                    store(inverse, inverse_at + t, inverse_length)
                    store(c, then + t, total * repeat_over_d(inverse_length, shape))
                else:  # zero, very short or very long vectors, or NaN: one number at a time
                    store(c, then + t, total)
                    normalize_safely(c[then + t], inverse[inverse_at + t])
            else:
                store(c, then + t, total)


@njit
def _softmax(scores: Array, count: int, shape: RowShape) -> None:
    """Turn the scores `[count, M']` of edges into probabilities."""
    low = -scores.dtype.type(np.inf)  # for padded factors: probability 0
    # M' numbers of an edge are neighbouring lanes; with M' = 4 a vector has four edges. The last
    # vector may reach beyond the last edge, into rows of the buffer that nobody reads.
    for group in range((count * scores.shape[1] + LANES - 1) // max(LANES, scores.shape[1])):
        score = fill_padding(load_edges(scores, group, shape), low, shape)
        weight = exp(score - max_factor(score, shape))  # at most 1
        store(scores, group, weight / sum_factors(weight, shape))


# backward


@njit(nogil=True, cache=True, error_model="numpy")
def route_backward(
    start: int,
    stop: int,
    packed: Array,
    graph: Graph,
    order: Array,
    inverse_temperature: Array,
    settings: Settings,
    grad_units: Array,
    grad_probability: Array,
    own_grad: Array,
    edge_grad: Array,
    base: int,
    shape: RowShape,
) -> None:
    """Recompute the iterations of each node, then walk them backwards.

    Fills `own_grad` `[R*N, lanes]` with each node's gradient through itself and `edge_grad`
    `[edges, lanes]`, which begins at edge `base`, with the gradient of each in-edge towards its
    source, for the nodes from start to stop. Empty `grad_units` or `grad_probability` are zero.
    """
    nodes, row_ptr, source = graph
    iterations = settings[0]
    # buffers for one block, with a slot for every iteration; c and c_grad also for the start
    wide, lanes = padded_factors_of(shape), lanes_of(shape)
    most = _most_edges(start, stop, nodes, row_ptr)
    p = np.empty((iterations, most, wide), packed.dtype)
    score_grad = np.empty((iterations, most, wide), packed.dtype)
    c = np.empty(((iterations + 1) * _BLOCK, lanes), packed.dtype)
    c_grad = np.empty(((iterations + 1) * _BLOCK, lanes), packed.dtype)
    inverse = np.empty((iterations * _BLOCK, wide), packed.dtype)
    zeros = broadcast(packed.dtype.type(0), shape)
    no_scores = broadcast_factors(packed.dtype.type(0), shape)
    v = start
    while v < stop:
        member = v // nodes
        offset, end, entry = member * nodes, _block_end(v, stop, nodes), member * len(source)
        first, last, begin = v - offset, end - offset, row_ptr[v - offset]
        rest = graph, inverse_temperature[member], settings, p, c, inverse
        # forward again, because no iteration was stored
        _iterate(first, last, offset, packed, *rest, shape)
        # gradients of the two results go to the slots of the last iteration
        for t in range(first, last):
            grad = zeros
            if grad_units.size:
                grad = load_unpacked(grad_units, offset + t, zeros, shape)
            store(c_grad, iterations * _BLOCK + t - first, grad)
        at = (iterations - 1) * most - begin
        for e in range(begin, row_ptr[last]):
            score = no_scores
            if grad_probability.size:
                score = load_unpacked(grad_probability, entry + order[e], no_scores, shape)
            store(score_grad, at + e, score)
        _iterate_backwards(first, last, offset, packed, *rest, score_grad, c_grad, shape)
        for t in range(first, last):
            # z[t] is the start and a term of every sum
            grad = load(c_grad, t - first, shape)
            for step in range(1, iterations + 1):
                grad = grad + load(c_grad, step * _BLOCK + t - first, shape)
            store(own_grad, v + t - first, grad)
            # z[s] is in every score, <z[s], c[t]> / tau, and in every sum, p z[s]
            for e in range(row_ptr[t], row_ptr[t + 1]):
                grad = zeros
                for step in range(iterations):
                    at, now = step * most + e - begin, step * _BLOCK + t - first
                    share = repeat_over_d(load_factors(score_grad, at, shape), shape)
                    grad = mul_add(share, load(c, now, shape), grad)
                    share = repeat_over_d(load_factors(p, at, shape), shape)
                    grad = mul_add(share, load(c_grad, now + _BLOCK, shape), grad)
                store(edge_grad, entry + e - base, grad)
        v = end


@njit(error_model="numpy")
def _iterate_backwards(
    first: int,
    last: int,
    offset: int,
    packed: Array,
    graph: Graph,
    inverse_temperature: Any,
    settings: Settings,
    p: Array,
    c: Array,
    inverse: Array,
    score_grad: Array,
    c_grad: Array,
    shape: RowShape,
) -> None:
    """Walk the iterations of a block backwards; arguments are those of `_iterate` and two more.

    On entry the last slots of score_grad `[T, edges, M']` and c_grad `[(T+1) * block, lanes]` hold
    the gradients of the last probabilities and of the result. On exit score_grad holds those of all
    inner products <z[s], c[t]> and c_grad those of the start and of the sums before normalisation.
    """
    _, row_ptr, source = graph
    iterations, uniform_start, normalize_last = settings
    begin, count = row_ptr[first], row_ptr[last] - row_ptr[first]
    scale = broadcast_factors(inverse_temperature, shape)
    zeros = broadcast(packed.dtype.type(0), shape)
    for step in range(iterations - 1, -1, -1):
        final, fixed = step == iterations - 1, uniform_start and step == 0
        # rows of edge e, and of c before and after this iteration
        at, now, then = step * p.shape[1] - begin, step * _BLOCK, (step + 1) * _BLOCK
        for t in range(first, last):
            # 4. c = sum / |sum|: the gradient of the sum is (g - c <g, c>) / |sum|
            grad = load(c_grad, then + t - first, shape)
            if normalize_last or not final:
                unit = load(c, then + t - first, shape)
                inverse_length = load_factors(inverse, now + t - first, shape)
                along = repeat_over_d(sum_over_d(grad * unit, shape), shape)
                grad = (grad - unit * along) * repeat_over_d(inverse_length, shape)
                store(c_grad, then + t - first, grad)
            # 3. sum = z[t] + sum of p z[s]: the gradient of p[e, m] is <g[m], z[s, m]>
            for e in range(row_ptr[t], row_ptr[t + 1]):
                neighbour = load(packed, offset + source[e], shape)
                score = sum_over_d(grad * neighbour, shape)
                if final:  # the last p is a result itself
                    score = score + load_factors(score_grad, at + e, shape)
                store(score_grad, at + e, score * scale)
        # 2. softmax and 1 / tau, in place; a uniform p does not depend on any score
        if fixed:
            score_grad[step, :count] = packed.dtype.type(0)
        else:
            _softmax_backward(p[step], score_grad[step], count, shape)
        # 1. score = <z[s], c[t]> / tau: what reaches the c of the iteration before
        for t in range(first, last):
            grad = zeros
            for e in range(row_ptr[t], row_ptr[t + 1]):
                neighbour = load(packed, offset + source[e], shape)
                share = repeat_over_d(load_factors(score_grad, at + e, shape), shape)
                grad = mul_add(share, neighbour, grad)
            store(c_grad, now + t - first, grad)


@njit
def _softmax_backward(weights: Array, grads: Array, count: int, shape: RowShape) -> None:
    """Turn gradients g of the probabilities p `[count, M']` into p (g - <p, g>), of the scores."""
    for group in range((count * weights.shape[1] + LANES - 1) // max(LANES, weights.shape[1])):
        weight, grad = load_edges(weights, group, shape), load_edges(grads, group, shape)
        mean = sum_factors(weight * grad, shape)
        store(grads, group, weight * (grad - mean))


@njit(nogil=True, cache=True, error_model="numpy")
def sum_by_source(
    start: int,
    stop: int,
    outgoing: Graph,
    edge_grad: Array,
    base: int,
    done: int,
    own_grad: Array,
    partial: Array,
    grad: Array,
    shape: RowShape,
) -> None:
    """Add the gradients of out-edges for the nodes from start to stop, in order of the edges.

    Each node reads the edges it needs, instead of every edge adding to its source: no two threads
    write the same number, and the order of the sum is always the same.

    `edge_grad` holds the edges from `base` on; sums that earlier calls began are in `partial`.
    Sums of members whose nodes are all below `done` are complete and go to `grad` `[R, N, M, d]`.
    """
    nodes, out_ptr, out_entry = outgoing
    zeros = broadcast(edge_grad.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        entry, s = member * len(out_entry) - base, v - member * nodes
        # skip the edges that earlier calls have added
        e = out_ptr[s]
        while e < out_ptr[s + 1] and entry + out_entry[e] < 0:
            e += 1
        total = zeros if e == out_ptr[s] else load(partial, v, shape)
        while e < out_ptr[s + 1] and entry + out_entry[e] < len(edge_grad):
            total = total + load(edge_grad, entry + out_entry[e], shape)
            e += 1
        # complete once all targets of the member are done
        if (member + 1) * nodes <= done:
            store_unpacked(grad, v, total + load(own_grad, v, shape), shape)
        else:
            store(partial, v, total)
