# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# mypy: disable-error-code="assignment"
# ruff: noqa: RUF005 (the compiler knows no other way to make a tuple longer)
"""Routing kernels, forward and backward, each for nodes with few and with many in-edges.

One iteration, for every edge e = (s, t) and factor m (`lgdgcn.kernels.route` has the definition):

    1. p[e] = softmax over the factors of <z[s, m], c[t, m]> / tau
    2. sum[t, m] = z[t, m] + sum over the in-edges e of p[e, m] z[s, m]
    3. c[t, m] = sum[t, m] / |sum[t, m]|

Neighbours enter only by their fixed z, so a program runs all T iterations of its nodes without
waiting for others. `held_*` take G nodes with at most K in-edges, or, when SPREAD, one node with at
most K*G: the neighbours' vectors are read once and held in registers over all iterations.
`streamed_*` take one node with any number of in-edges and read K*G of them at a time, in every
iteration. Programs along the second axis of the grid are members.

Arguments are z `[R, N, M, D]`, tau `[R]`, the plan of `route` (table, source, order, slot, begin,
count), the results, and the constants:

    T                         iterations
    UNIFORM, NORMALIZE        uniform_start, normalize_last
    M, D, MP, DP              factors and coordinates, and both padded to powers of two
    K, G, SPREAD              the tile, see `route_tile`
"""

import triton
import triton.language as tl

from lgdgcn.kernels.gpu.route_tile import (
    coordinates,
    inner_product,
    inverse_length,
    load_edge_values,
    load_vectors,
    node_row,
    node_rows,
    probabilities,
    softmax_backward,
    sum_edges,
)

__all__ = ["held_backward", "held_forward", "streamed_backward", "streamed_forward"]

_LOG2E = tl.constexpr(1.4426950408889634)  # turns exp into exp2, which the GPU has
_NOT_SPECIALIZED = ["begin", "count", "num_nodes", "num_edges"]  # one version for all graphs


# few in-edges: held in registers


@triton.jit(do_not_specialize=_NOT_SPECIALIZED)
def held_forward(
    z, tau, table, source, order, units, probability, begin, count, num_nodes, num_edges,
    T: tl.constexpr, UNIFORM: tl.constexpr, NORMALIZE: tl.constexpr,
    M: tl.constexpr, D: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr,
    K: tl.constexpr, G: tl.constexpr, SPREAD: tl.constexpr,
):  # fmt: skip
    """Write units `[N, M, D]` and probability `[E, M]` of some nodes of one member."""
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units += member * num_nodes * (M * D)
    probability += member * num_edges * M
    inverse_temperature = _LOG2E / tl.load(tau + member)  # the softmax is to the base 2

    # own vectors [1, G, MP, DP] and those of the neighbours [K, G, MP, DP]
    offset, valid = coordinates(M, D, MP, DP)
    node, exists, writes, entry, end = node_rows(table, begin, count, num_nodes, K, G, SPREAD)
    in_row = entry < end
    own = load_vectors(z, node, offset, exists & valid, M * D, G, MP, DP)
    sender = tl.load(source + entry, in_row, 0)
    neighbour = load_vectors(z, sender, offset, in_row & valid, M * D, G, MP, DP)

    # the first iteration: c = z, or equal probabilities (steps 1 and 2)
    if UNIFORM:
        p = tl.full((K, G, MP, 1), 1.0 / M, tl.float32)
    else:
        p = probabilities(neighbour, own * inverse_temperature, M, MP)
    c = own + sum_edges(p * neighbour, SPREAD)  # [1, G, MP, DP], not normalised yet
    # the others: step 3 is one more factor in the scores
    for _ in range(1, T):
        p = probabilities(neighbour, c * (inverse_length(c) * inverse_temperature), M, MP)
        c = own + sum_edges(p * neighbour, SPREAD)
    if NORMALIZE:
        c *= inverse_length(c)

    # results: one row per node, one row per edge
    at = node.to(tl.int64) * (M * D) + offset
    tl.store(units + at, tl.reshape(c, (G, MP * DP)), writes & valid)
    # entries are in order of their targets, probability in order of edge_index
    m = tl.arange(0, MP)[None, :]
    at = tl.load(order + entry, in_row, 0).to(tl.int64) * M + m
    tl.store(probability + at, tl.reshape(p, (K * G, MP)), in_row & (m < M))


@triton.jit(do_not_specialize=_NOT_SPECIALIZED)
def held_backward(
    z, tau, table, source, order, slot, units_grad, probability_grad, node_grad, edge_grad,
    begin, count, num_nodes, num_edges,
    HAS_PROBABILITY_GRAD: tl.constexpr,
    T: tl.constexpr, UNIFORM: tl.constexpr, NORMALIZE: tl.constexpr,
    M: tl.constexpr, D: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr,
    K: tl.constexpr, G: tl.constexpr, SPREAD: tl.constexpr,
):  # fmt: skip
    """Run the iterations again, then walk them backwards.

    Writes node_grad `[N, M, D]`, each node's gradient through itself, and at the slot of each
    in-edge in edge_grad `[E, M, D]` the gradient towards its source. Slots are in order of the
    sources, so that `sum_rows` reads each source's edges in one piece.
    """
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units_grad += member * num_nodes * (M * D)
    node_grad += member * num_nodes * (M * D)
    probability_grad += member * num_edges * M
    edge_grad += member * num_edges * (M * D)
    inverse_temperature = 1.0 / tl.load(tau + member)

    # the same vectors as forward
    offset, valid = coordinates(M, D, MP, DP)
    node, exists, writes, entry, end = node_rows(table, begin, count, num_nodes, K, G, SPREAD)
    in_row = entry < end
    own = load_vectors(z, node, offset, exists & valid, M * D, G, MP, DP)
    sender = tl.load(source + entry, in_row, 0)
    neighbour = load_vectors(z, sender, offset, in_row & valid, M * D, G, MP, DP)

    # forward again: keep c before and after every iteration, and what normalised it. T is a
    # constant, so these loops are unrolled and the tuples are registers. p is cheap to recompute.
    cs = (own,)
    inverse_lengths = ()
    for step in tl.static_range(T):
        if UNIFORM and step == 0:
            c = own + sum_edges(neighbour, SPREAD) * (1.0 / M)
        else:
            p = probabilities(neighbour, cs[step] * (inverse_temperature * _LOG2E), M, MP)
            c = own + sum_edges(p * neighbour, SPREAD)
        scale = inverse_length(c)
        inverse_lengths = inverse_lengths + (scale,)
        cs = cs + (c * scale,)

    # backward: grad is the gradient of c after, then of the sum of, then of c before a step
    grad = load_vectors(units_grad, node, offset, exists & valid, M * D, G, MP, DP)
    own_total = tl.zeros_like(own)  # towards z[t]
    edge_total = tl.zeros_like(neighbour)  # towards z[s], edge by edge
    for step in tl.static_range(T - 1, -1, -1):
        # 3. c = sum / |sum|: the gradient of the sum is (g - c <g, c>) / |sum|
        if step < T - 1 or NORMALIZE:
            c = cs[step + 1]
            grad = (grad - c * inner_product(grad, c)) * inverse_lengths[step]
        # 2. sum = z[t] + sum of p z[s]
        own_total += grad
        if UNIFORM and step == 0:
            edge_total += grad * (1.0 / M)
        else:
            p = probabilities(neighbour, cs[step] * (inverse_temperature * _LOG2E), M, MP)
            p_grad = inner_product(neighbour, grad)  # [K, G, MP, 1]
            if HAS_PROBABILITY_GRAD and step == T - 1:  # the last p is a result itself
                p_grad += load_edge_values(probability_grad, order, entry, in_row, M, K, G, MP)
            # 1. p = softmax(<z[s], c[t]> / tau): on to z[s], and to c before this iteration
            score_grad = softmax_backward(p, p_grad) * inverse_temperature
            edge_total += p * grad + score_grad * cs[step]
            grad = sum_edges(score_grad * neighbour, SPREAD)
    if not UNIFORM:  # the first scores were made with c = z[t]
        own_total += grad

    at = node.to(tl.int64) * (M * D) + offset
    tl.store(node_grad + at, tl.reshape(own_total, (G, MP * DP)), writes & valid)
    at = tl.load(slot + entry, in_row, 0).to(tl.int64) * (M * D) + offset
    tl.store(edge_grad + at, tl.reshape(edge_total, (K * G, MP * DP)), in_row & valid)


# many in-edges: read in pieces


@triton.jit
def _load_piece(
    z, source, start, end, offset, valid,
    W: tl.constexpr, K: tl.constexpr, G: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr,
):  # fmt: skip
    """Entries from start on, which of them are before the end, and their vectors."""
    entry = start + tl.arange(0, K * G)[:, None]
    in_row = entry < end
    sender = tl.load(source + entry, in_row, 0)
    return entry, in_row, load_vectors(z, sender, offset, in_row & valid, W, G, MP, DP)


@triton.jit(do_not_specialize=_NOT_SPECIALIZED)
def streamed_forward(
    z, tau, table, source, order, units, probability, begin, count, num_nodes, num_edges,
    T: tl.constexpr, UNIFORM: tl.constexpr, NORMALIZE: tl.constexpr,
    M: tl.constexpr, D: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr,
    K: tl.constexpr, G: tl.constexpr, SPREAD: tl.constexpr,
):  # fmt: skip
    """Write units `[N, M, D]` and probability `[E, M]` of one node of one member."""
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units += member * num_nodes * (M * D)
    probability += member * num_edges * M
    inverse_temperature = _LOG2E / tl.load(tau + member)
    offset, valid = coordinates(M, D, MP, DP)
    m = tl.arange(0, MP)[None, :]
    node, first, end = node_row(table, begin, num_nodes)
    group = tl.arange(0, G)[:, None]
    own = load_vectors(z, node + group * 0, offset, valid, M * D, G, MP, DP)  # in every group
    c = own
    for step in range(T):
        total = tl.zeros_like(own)  # every group sums its own share of the edges
        for start in range(first, end, K * G):
            entry, in_row, neighbour = _load_piece(
                z, source, start, end, offset, valid, M * D, K, G, MP, DP
            )
            # 1. and 2. for this piece; edges beyond the end have neighbour = 0 and add nothing
            p = probabilities(neighbour, c * inverse_temperature, M, MP)
            if UNIFORM:
                p = tl.where(step == 0, 1.0 / M, p)
            total += tl.sum(p * neighbour, 0, keep_dims=True)
            if step == T - 1:
                at = tl.load(order + entry, in_row, 0).to(tl.int64) * M + m
                tl.store(probability + at, tl.reshape(p, (K * G, MP)), in_row & (m < M))
        c = own + sum_edges(total, SPREAD)  # the sum of all groups, in every group
        # 3. step is no constant here, so the last one is distinguished when running
        if NORMALIZE:
            c *= inverse_length(c)
        else:
            c *= tl.where(step == T - 1, 1.0, inverse_length(c))
    # all groups have the same result; the first one writes it
    at = (node + group * 0).to(tl.int64) * (M * D) + offset
    tl.store(units + at, tl.reshape(c, (G, MP * DP)), valid & (group == 0))


@triton.jit(do_not_specialize=_NOT_SPECIALIZED)
def streamed_backward(
    z, tau, table, source, order, slot, units_grad, probability_grad, node_grad, edge_grad,
    begin, count, num_nodes, num_edges,
    HAS_PROBABILITY_GRAD: tl.constexpr,
    T: tl.constexpr, UNIFORM: tl.constexpr, NORMALIZE: tl.constexpr,
    M: tl.constexpr, D: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr,
    K: tl.constexpr, G: tl.constexpr, SPREAD: tl.constexpr,
):  # fmt: skip
    """Run the iterations again, walk them backwards, then give every in-edge its share.

    Writes what `held_backward` writes. Each walk computes the probabilities again, which is cheaper
    than to write and read a gradient per edge and iteration.
    """
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units_grad += member * num_nodes * (M * D)
    node_grad += member * num_nodes * (M * D)
    probability_grad += member * num_edges * M
    edge_grad += member * num_edges * (M * D)
    inverse_temperature = 1.0 / tl.load(tau + member)
    offset, valid = coordinates(M, D, MP, DP)
    node, first, end = node_row(table, begin, num_nodes)
    group = tl.arange(0, G)[:, None]
    own = load_vectors(z, node + group * 0, offset, valid, M * D, G, MP, DP)

    # first walk, forward: c before and after every iteration
    cs = (own,)
    inverse_lengths = ()
    for step in tl.static_range(T):
        total = tl.zeros_like(own)
        for start in range(first, end, K * G):
            entry, in_row, neighbour = _load_piece(
                z, source, start, end, offset, valid, M * D, K, G, MP, DP
            )
            if UNIFORM and step == 0:
                sent = neighbour * (1.0 / M)
            else:
                scaled = cs[step] * (inverse_temperature * _LOG2E)
                sent = neighbour * probabilities(neighbour, scaled, M, MP)
            total += tl.sum(sent, 0, keep_dims=True)
        c = own + sum_edges(total, SPREAD)
        scale = inverse_length(c)
        inverse_lengths = inverse_lengths + (scale,)
        cs = cs + (c * scale,)

    # second walk, backward: the gradient of every sum, steps 3, 2 and 1 as in `held_backward`
    grad = load_vectors(units_grad, node + group * 0, offset, valid, M * D, G, MP, DP)
    own_total = tl.zeros_like(own)
    grads = ()  # of the last iteration first
    for step in tl.static_range(T - 1, -1, -1):
        if step < T - 1 or NORMALIZE:
            c = cs[step + 1]
            grad = (grad - c * inner_product(grad, c)) * inverse_lengths[step]
        grads = grads + (grad,)
        own_total += grad
        if not (UNIFORM and step == 0):
            total = tl.zeros_like(own)
            for start in range(first, end, K * G):
                entry, in_row, neighbour = _load_piece(
                    z, source, start, end, offset, valid, M * D, K, G, MP, DP
                )
                p = probabilities(neighbour, cs[step] * (inverse_temperature * _LOG2E), M, MP)
                p_grad = inner_product(neighbour, grad)
                if HAS_PROBABILITY_GRAD and step == T - 1:
                    p_grad += load_edge_values(probability_grad, order, entry, in_row, M, K, G, MP)
                total += tl.sum(softmax_backward(p, p_grad) * neighbour, 0, keep_dims=True)
            grad = sum_edges(total, SPREAD) * inverse_temperature
    if not UNIFORM:
        own_total += grad
    node_at = (node + group * 0).to(tl.int64) * (M * D) + offset
    tl.store(node_grad + node_at, tl.reshape(own_total, (G, MP * DP)), valid & (group == 0))

    # third walk, over the edges: what each of them gets from all iterations
    for start in range(first, end, K * G):
        entry, in_row, neighbour = _load_piece(
            z, source, start, end, offset, valid, M * D, K, G, MP, DP
        )
        edge_total = tl.zeros_like(neighbour)
        for step in tl.static_range(T):
            if UNIFORM and step == 0:
                edge_total += grads[T - 1 - step] * (1.0 / M)
            else:
                p = probabilities(neighbour, cs[step] * (inverse_temperature * _LOG2E), M, MP)
                p_grad = inner_product(neighbour, grads[T - 1 - step])
                if HAS_PROBABILITY_GRAD and step == T - 1:
                    p_grad += load_edge_values(probability_grad, order, entry, in_row, M, K, G, MP)
                score_grad = softmax_backward(p, p_grad) * inverse_temperature
                edge_total += p * grads[T - 1 - step] + score_grad * cs[step]
        edge_at = tl.load(slot + entry, in_row, 0).to(tl.int64) * (M * D) + offset
        tl.store(edge_grad + edge_at, tl.reshape(edge_total, (K * G, MP * DP)), in_row & valid)
