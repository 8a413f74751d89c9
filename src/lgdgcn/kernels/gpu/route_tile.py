# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Steps that the routing programs for GPUs share.

Tiles are `[K, G, MP, DP]`: K in-edges in each of G groups, channels and sizes padded to powers of
two. A group is one node, or, when SPREAD, a share of the one node of its program. Memory is
accessed as `[K*G, MP*DP]`: this way a thread holds the same few coordinates of K edges, sums over
edges need no exchange, and sums over coordinates and channels stay within a warp.
"""

import triton
import triton.language as tl

__all__ = [
    "chances",
    "coordinates",
    "inner",
    "read",
    "read_chances",
    "row",
    "rows",
    "slopes",
    "sum_edges",
    "sum_rows",
    "unit",
]

_TINY = tl.constexpr(1.1754943508222875e-38)


@triton.jit
def coordinates(M: tl.constexpr, D: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr):
    """Offsets of a node's coordinates `[1, MP*DP]` and which of them are no padding."""
    flat = tl.arange(0, MP * DP)[None, :]
    offset = flat
    if D < DP:
        offset = flat // DP * D + flat % DP
    return offset, (flat // DP < M) & (flat % DP < D)


@triton.jit
def row(table, begin, num_nodes):
    """The node of this program and where its row begins and ends."""
    at = table + begin + tl.program_id(0)
    return tl.load(at), tl.load(at + num_nodes), tl.load(at + 2 * num_nodes)


@triton.jit
def rows(table, begin, count, num_nodes, K: tl.constexpr, G: tl.constexpr, SPREAD: tl.constexpr):
    """Find the nodes of a program `[G, 1]` and their entries `[K*G, 1]`.

    Returns:
        The nodes, which groups have one, which groups write the results of theirs, the entries,
        and the ends of their rows.
    """
    k = tl.arange(0, K)[:, None]
    g = tl.arange(0, G)[None, :]
    if SPREAD:
        index = tl.program_id(0) + g * 0
        entry = k * G + g
        writes = (index < count) & (g == 0)
    else:
        index = tl.program_id(0) * G + g
        entry = k + g * 0
        writes = index < count
    exists = index < count
    row = table + begin + index
    node = tl.load(row, exists, 0)
    entry += tl.load(row + num_nodes, exists, 0)
    end = tl.load(row + 2 * num_nodes, exists, 0) + k * 0
    return (
        tl.reshape(node, (G, 1)),
        tl.reshape(exists, (G, 1)),
        tl.reshape(writes, (G, 1)),
        tl.reshape(entry, (K * G, 1)),
        tl.reshape(end, (K * G, 1)),
    )


@triton.jit
def read(x, row, place, mask, W: tl.constexpr, G: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr):
    """Vectors `[rows/G, G, MP, DP]` of the given rows of x `[..., W]`."""
    vectors = tl.load(x + row.to(tl.int64) * W + place, mask, 0.0)
    return tl.reshape(vectors, (row.shape[0] // G, G, MP, DP))


@triton.jit
def read_chances(
    x, order, entry, live, M: tl.constexpr, K: tl.constexpr, G: tl.constexpr, MP: tl.constexpr
):
    """Values `[K, G, MP, 1]` of the given entries of x `[E, M]`.

    One edge of each group at a time: a load with fewer elements than threads takes the layout of
    the vectors, a larger one would impose its own on them.
    """
    m = tl.arange(0, MP)[None, :]
    at = tl.reshape(tl.load(order + entry, live, -1), (K, G))
    k = tl.arange(0, K)
    values = tl.zeros((K, G, MP, 1), tl.float32)
    for edge in tl.static_range(K):
        row = tl.sum(tl.where(k[:, None] == edge, at, 0), 0)[:, None]
        value = tl.load(x + row.to(tl.int64) * M + m, (row >= 0) & (m < M), 0.0)
        value = tl.reshape(value, (1, G, MP, 1))
        values += tl.where(k[:, None, None, None] == edge, value, 0.0)
    return values


@triton.jit
def inner(a, b):
    """Inner products of vectors."""
    return tl.sum(a * b, 3, keep_dims=True)


@triton.jit
def unit(v):
    """Factors that scale vectors to length 1, or to 0 those without a length."""
    square = inner(v, v)
    return tl.where(square >= _TINY, tl.rsqrt(square), 0.0)


@triton.jit
def chances(near, c, M: tl.constexpr, MP: tl.constexpr):
    """Softmax over channels `[K, G, MP, 1]` to the base 2; padded channels get 0."""
    score = inner(near, c)
    if M < MP:
        score = tl.where(tl.arange(0, MP)[None, None, :, None] < M, score, float("-inf"))
    raised = tl.exp2(score - tl.max(score, 2, keep_dims=True))
    # the sum is within 1..M, where this is as good as a division and cheaper
    root = tl.rsqrt(tl.sum(raised, 2, keep_dims=True))
    return raised * root * root


@triton.jit
def slopes(p, received):
    """Gradient of the scores from the gradient that the chances received."""
    return p * (received - tl.sum(p * received, 2, keep_dims=True))


@triton.jit
def sum_edges(edges, SPREAD: tl.constexpr):
    """Sum over the edges of each node `[1, G, MP, DP]`."""
    total = tl.sum(edges, 0, keep_dims=True)
    if SPREAD:
        total = tl.broadcast_to(tl.sum(total, 1, keep_dims=True), total.shape)
    return total


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
