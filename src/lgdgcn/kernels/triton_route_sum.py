# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Sums of rows on a GPU, in fixed order."""

import triton
import triton.language as tl

from lgdgcn.kernels.triton_route_tile import coordinates, read, row, rows

__all__ = ["sum_rows"]


@triton.jit(do_not_specialize=["begin", "count", "num_nodes", "num_edges"])
def sum_rows(
    x,
    table,
    out,
    begin,
    count,
    num_nodes,
    num_edges,
    W: tl.constexpr,
    WP: tl.constexpr,
    K: tl.constexpr,
    G: tl.constexpr,
    SPREAD: tl.constexpr,
):
    """Add the rows of x `[entries, W]` that belong to a node to its row of out `[N, W]`."""
    member = tl.program_id(1).to(tl.int64)
    x += member * num_edges * W
    out += member * num_nodes * W
    place, real = coordinates(1, W, 1, WP)
    node, _, writes, entry, end = rows(table, begin, count, num_nodes, K, G, SPREAD)
    at = node.to(tl.int64) * W + place
    before = tl.load(out + at, writes & real, 0.0)
    if SPREAD:
        total = tl.zeros((1, G, 1, WP), tl.float32)
        _, first, last = row(table, begin, num_nodes)
        for start in range(first, last, K * G):
            at_edge = start - first + entry
            near = read(x, at_edge, place, (at_edge < end) & real, W, G, 1, WP)
            total += tl.sum(near, 0, keep_dims=True)
        total = tl.sum(total, 1, keep_dims=True)
    else:
        total = tl.sum(read(x, entry, place, (entry < end) & real, W, G, 1, WP), 0, keep_dims=True)
    after = before + tl.reshape(tl.broadcast_to(total, (1, G, 1, WP)), (G, WP))
    tl.store(out + at, after, writes & real)
