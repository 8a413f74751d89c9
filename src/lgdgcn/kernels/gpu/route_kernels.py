# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# mypy: disable-error-code="assignment"
# ruff: noqa: RUF005 (the compiler knows no other way to make a tuple longer)
"""Routing on a GPU: few in-edges of a node are held in registers, many are read in pieces."""

import triton
import triton.language as tl

from lgdgcn.kernels.gpu.route_tile import (
    chances,
    coordinates,
    inner,
    read,
    read_chances,
    row,
    rows,
    slopes,
    sum_edges,
    unit,
)

__all__ = ["held_backward", "held_forward", "streamed_backward", "streamed_forward"]

_LOG2E = tl.constexpr(1.4426950408889634)
_PLAIN = ["begin", "count", "num_nodes", "num_edges"]


@triton.jit(do_not_specialize=_PLAIN)
def held_forward(
    z,
    tau,
    table,
    source,
    order,
    units,
    chance,
    begin,
    count,
    num_nodes,
    num_edges,
    T: tl.constexpr,
    UNIFORM: tl.constexpr,
    NORMALIZE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    MP: tl.constexpr,
    DP: tl.constexpr,
    K: tl.constexpr,
    G: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """Write units `[N, M, D]` and chance `[E, M]` of some nodes of one member."""
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units += member * num_nodes * (M * D)
    chance += member * num_edges * M
    sharp = _LOG2E / tl.load(tau + member)
    place, real = coordinates(M, D, MP, DP)
    node, exists, writes, entry, end = rows(table, begin, count, num_nodes, K, G, SPREAD)
    live = entry < end
    own = read(z, node, place, exists & real, M * D, G, MP, DP)
    near = read(z, tl.load(source + entry, live, 0), place, live & real, M * D, G, MP, DP)
    if UNIFORM:
        p = tl.full((K, G, MP, 1), 1.0 / M, tl.float32)
    else:
        p = chances(near, own * sharp, M, MP)
    c = own + sum_edges(p * near, SPREAD)
    for _ in range(1, T):
        p = chances(near, c * (unit(c) * sharp), M, MP)
        c = own + sum_edges(p * near, SPREAD)
    if NORMALIZE:
        c *= unit(c)
    at = node.to(tl.int64) * (M * D) + place
    tl.store(units + at, tl.reshape(c, (G, MP * DP)), writes & real)
    m = tl.arange(0, MP)[None, :]
    at = tl.load(order + entry, live, 0).to(tl.int64) * M + m
    tl.store(chance + at, tl.reshape(p, (K * G, MP)), live & (m < M))


@triton.jit(do_not_specialize=_PLAIN)
def held_backward(
    z,
    tau,
    table,
    source,
    order,
    slot,
    units_grad,
    chance_grad,
    node_grad,
    edge_grad,
    begin,
    count,
    num_nodes,
    num_edges,
    HAS_CHANCE: tl.constexpr,
    T: tl.constexpr,
    UNIFORM: tl.constexpr,
    NORMALIZE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    MP: tl.constexpr,
    DP: tl.constexpr,
    K: tl.constexpr,
    G: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """Run the iterations again, then walk them backwards.

    Writes node_grad `[N, M, D]`, each node's gradient through itself, and at the slot of each
    in-edge in edge_grad `[E, M, D]` the gradient towards its source.
    """
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units_grad += member * num_nodes * (M * D)
    node_grad += member * num_nodes * (M * D)
    chance_grad += member * num_edges * M
    edge_grad += member * num_edges * (M * D)
    sharp = 1.0 / tl.load(tau + member)
    place, real = coordinates(M, D, MP, DP)
    node, exists, writes, entry, end = rows(table, begin, count, num_nodes, K, G, SPREAD)
    live = entry < end
    own = read(z, node, place, exists & real, M * D, G, MP, DP)
    near = read(z, tl.load(source + entry, live, 0), place, live & real, M * D, G, MP, DP)
    cs = (own,)
    factors = ()
    for step in tl.static_range(T):
        if UNIFORM and step == 0:
            c = own + sum_edges(near, SPREAD) * (1.0 / M)
        else:
            p = chances(near, cs[step] * (sharp * _LOG2E), M, MP)
            c = own + sum_edges(p * near, SPREAD)
        factor = unit(c)
        factors = factors + (factor,)
        cs = cs + (c * factor,)
    grad = read(units_grad, node, place, exists & real, M * D, G, MP, DP)
    through_node = tl.zeros_like(own)
    through_edge = tl.zeros_like(near)
    for step in tl.static_range(T - 1, -1, -1):
        if step < T - 1 or NORMALIZE:
            c = cs[step + 1]
            grad = (grad - c * inner(grad, c)) * factors[step]
        through_node += grad
        if UNIFORM and step == 0:
            through_edge += grad * (1.0 / M)
        else:
            p = chances(near, cs[step] * (sharp * _LOG2E), M, MP)
            received = inner(near, grad)
            if HAS_CHANCE and step == T - 1:
                received += read_chances(chance_grad, order, entry, live, M, K, G, MP)
            slope = slopes(p, received) * sharp
            through_edge += p * grad + slope * cs[step]
            grad = sum_edges(slope * near, SPREAD)
    if not UNIFORM:
        through_node += grad
    at = node.to(tl.int64) * (M * D) + place
    tl.store(node_grad + at, tl.reshape(through_node, (G, MP * DP)), writes & real)
    at = tl.load(slot + entry, live, 0).to(tl.int64) * (M * D) + place
    tl.store(edge_grad + at, tl.reshape(through_edge, (K * G, MP * DP)), live & real)


@triton.jit
def _piece(
    z,
    source,
    start,
    end,
    place,
    real,
    W: tl.constexpr,
    K: tl.constexpr,
    G: tl.constexpr,
    MP: tl.constexpr,
    DP: tl.constexpr,
):
    """Entries from start on, which of them are before the end, and their vectors."""
    entry = start + tl.arange(0, K * G)[:, None]
    live = entry < end
    sender = tl.load(source + entry, live, 0)
    return entry, live, read(z, sender, place, live & real, W, G, MP, DP)


@triton.jit(do_not_specialize=_PLAIN)
def streamed_forward(
    z,
    tau,
    table,
    source,
    order,
    units,
    chance,
    begin,
    count,
    num_nodes,
    num_edges,
    T: tl.constexpr,
    UNIFORM: tl.constexpr,
    NORMALIZE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    MP: tl.constexpr,
    DP: tl.constexpr,
    K: tl.constexpr,
    G: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """Write units `[N, M, D]` and chance `[E, M]` of one node of one member."""
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units += member * num_nodes * (M * D)
    chance += member * num_edges * M
    sharp = _LOG2E / tl.load(tau + member)
    place, real = coordinates(M, D, MP, DP)
    m = tl.arange(0, MP)[None, :]
    node, first, end = row(table, begin, num_nodes)
    group = tl.arange(0, G)[:, None]
    own = read(z, node + group * 0, place, real, M * D, G, MP, DP)
    c = own
    for step in range(T):
        total = tl.zeros_like(own)
        for start in range(first, end, K * G):
            entry, live, near = _piece(z, source, start, end, place, real, M * D, K, G, MP, DP)
            p = chances(near, c * sharp, M, MP)
            if UNIFORM:
                p = tl.where(step == 0, 1.0 / M, p)
            total += tl.sum(p * near, 0, keep_dims=True)
            if step == T - 1:
                at = tl.load(order + entry, live, 0).to(tl.int64) * M + m
                tl.store(chance + at, tl.reshape(p, (K * G, MP)), live & (m < M))
        c = own + sum_edges(total, SPREAD)
        if NORMALIZE:
            c *= unit(c)
        else:
            c *= tl.where(step == T - 1, 1.0, unit(c))
    at = (node + group * 0).to(tl.int64) * (M * D) + place
    tl.store(units + at, tl.reshape(c, (G, MP * DP)), real & (group == 0))


@triton.jit(do_not_specialize=_PLAIN)
def streamed_backward(
    z,
    tau,
    table,
    source,
    order,
    slot,
    units_grad,
    chance_grad,
    node_grad,
    edge_grad,
    begin,
    count,
    num_nodes,
    num_edges,
    HAS_CHANCE: tl.constexpr,
    T: tl.constexpr,
    UNIFORM: tl.constexpr,
    NORMALIZE: tl.constexpr,
    M: tl.constexpr,
    D: tl.constexpr,
    MP: tl.constexpr,
    DP: tl.constexpr,
    K: tl.constexpr,
    G: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """Run the iterations again, walk them backwards, then give every in-edge its share.

    Writes what the kernel for few in-edges writes. Each walk computes the chances anew, which
    is cheaper than to read and write a gradient per edge and iteration.
    """
    member = tl.program_id(1).to(tl.int64)
    z += member * num_nodes * (M * D)
    units_grad += member * num_nodes * (M * D)
    node_grad += member * num_nodes * (M * D)
    chance_grad += member * num_edges * M
    edge_grad += member * num_edges * (M * D)
    sharp = 1.0 / tl.load(tau + member)
    place, real = coordinates(M, D, MP, DP)
    node, first, end = row(table, begin, num_nodes)
    group = tl.arange(0, G)[:, None]
    own = read(z, node + group * 0, place, real, M * D, G, MP, DP)
    cs = (own,)
    factors = ()
    for step in tl.static_range(T):
        total = tl.zeros_like(own)
        for start in range(first, end, K * G):
            entry, live, near = _piece(z, source, start, end, place, real, M * D, K, G, MP, DP)
            if UNIFORM and step == 0:
                sent = near * (1.0 / M)
            else:
                sent = near * chances(near, cs[step] * (sharp * _LOG2E), M, MP)
            total += tl.sum(sent, 0, keep_dims=True)
        c = own + sum_edges(total, SPREAD)
        factor = unit(c)
        factors = factors + (factor,)
        cs = cs + (c * factor,)
    grad = read(units_grad, node + group * 0, place, real, M * D, G, MP, DP)
    through_node = tl.zeros_like(own)
    grads = ()  # of the last iteration first
    for step in tl.static_range(T - 1, -1, -1):
        if step < T - 1 or NORMALIZE:
            c = cs[step + 1]
            grad = (grad - c * inner(grad, c)) * factors[step]
        grads = grads + (grad,)
        through_node += grad
        if not (UNIFORM and step == 0):
            total = tl.zeros_like(own)
            for start in range(first, end, K * G):
                entry, live, near = _piece(z, source, start, end, place, real, M * D, K, G, MP, DP)
                p = chances(near, cs[step] * (sharp * _LOG2E), M, MP)
                received = inner(near, grad)
                if HAS_CHANCE and step == T - 1:
                    received += read_chances(chance_grad, order, entry, live, M, K, G, MP)
                total += tl.sum(slopes(p, received) * near, 0, keep_dims=True)
            grad = sum_edges(total, SPREAD) * sharp
    if not UNIFORM:
        through_node += grad
    node_at = (node + group * 0).to(tl.int64) * (M * D) + place
    tl.store(node_grad + node_at, tl.reshape(through_node, (G, MP * DP)), real & (group == 0))
    for start in range(first, end, K * G):
        entry, live, near = _piece(z, source, start, end, place, real, M * D, K, G, MP, DP)
        through_edge = tl.zeros_like(near)
        for step in tl.static_range(T):
            if UNIFORM and step == 0:
                through_edge += grads[T - 1 - step] * (1.0 / M)
            else:
                p = chances(near, cs[step] * (sharp * _LOG2E), M, MP)
                received = inner(near, grads[T - 1 - step])
                if HAS_CHANCE and step == T - 1:
                    received += read_chances(chance_grad, order, entry, live, M, K, G, MP)
                slope = slopes(p, received) * sharp
                through_edge += p * grads[T - 1 - step] + slope * cs[step]
        edge_at = tl.load(slot + entry, live, 0).to(tl.int64) * (M * D) + place
        tl.store(edge_grad + edge_at, tl.reshape(through_edge, (K * G, MP * DP)), live & real)
