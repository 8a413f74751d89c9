# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Steps that the routing kernels share, on tiles of vectors in registers.

A tile is `[K, G, MP, DP]`: K in-edges in each of G groups, M factors and d coordinates padded to
powers of two MP and DP. A group is one node with its in-edges, or, when SPREAD, a share of the
in-edges of the one node that the program has. Memory is accessed as `[K*G, MP*DP]`, one row per
vector: this way a thread holds the same few coordinates of K edges, so sums over edges need no
exchange between threads, and sums over coordinates and factors stay within a warp.
"""

import triton
import triton.language as tl

__all__ = [
    "coordinates",
    "inner_product",
    "inverse_length",
    "load_edge_values",
    "load_vectors",
    "node_row",
    "node_rows",
    "probabilities",
    "softmax_backward",
    "sum_edges",
    "sum_rows",
]

_TINY = tl.constexpr(1.1754943508222875e-38)  # smallest normal float32


# reading


@triton.jit
def coordinates(M: tl.constexpr, D: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr):
    """Offsets of a node's coordinates `[1, MP*DP]` in memory `[M, D]`, and which are no padding."""
    flat = tl.arange(0, MP * DP)[None, :]  # factor flat // DP, coordinate flat % DP
    offset = flat
    if D < DP:
        offset = flat // DP * D + flat % DP
    return offset, (flat // DP < M) & (flat % DP < D)


@triton.jit
def node_row(table, begin, num_nodes):
    """The node of this program, its first entry and the end of its entries."""
    at = table + begin + tl.program_id(0)
    return tl.load(at), tl.load(at + num_nodes), tl.load(at + 2 * num_nodes)


@triton.jit
def node_rows(
    table, begin, count, num_nodes, K: tl.constexpr, G: tl.constexpr, SPREAD: tl.constexpr
):
    """Find the nodes of a program `[G, 1]` and their entries `[K*G, 1]`.

    Returns:
        The nodes, which groups have one, which groups write the results of theirs, the entries,
        and the ends of their rows.
    """
    k = tl.arange(0, K)[:, None]
    g = tl.arange(0, G)[None, :]
    if SPREAD:  # one node: group g takes every G-th of its entries, and group 0 writes
        index = tl.program_id(0) + g * 0
        entry = k * G + g
        writes = (index < count) & (g == 0)
    else:  # G nodes: group g takes all entries of the g-th
        index = tl.program_id(0) * G + g
        entry = k + g * 0
        writes = index < count
    exists = index < count
    # the table has three rows: nodes, their first entries, the ends of their entries
    row = table + begin + index
    node = tl.load(row, exists, 0)
    entry += tl.load(row + num_nodes, exists, 0)  # [K, G]
    end = tl.load(row + 2 * num_nodes, exists, 0) + k * 0
    # one row per vector, as memory is accessed
    return (
        tl.reshape(node, (G, 1)),
        tl.reshape(exists, (G, 1)),
        tl.reshape(writes, (G, 1)),
        tl.reshape(entry, (K * G, 1)),
        tl.reshape(end, (K * G, 1)),
    )


@triton.jit
def load_vectors(
    x, row, offset, mask, W: tl.constexpr, G: tl.constexpr, MP: tl.constexpr, DP: tl.constexpr
):
    """Vectors `[rows/G, G, MP, DP]` of the given rows of x `[..., W]`; 0 outside the mask."""
    vectors = tl.load(x + row.to(tl.int64) * W + offset, mask, 0.0)
    return tl.reshape(vectors, (row.shape[0] // G, G, MP, DP))


@triton.jit
def load_edge_values(
    x, order, entry, in_row, M: tl.constexpr, K: tl.constexpr, G: tl.constexpr, MP: tl.constexpr
):
    """Values `[K, G, MP, 1]` of the given entries of x `[E, M]`, which is in order of edge_index.

    One edge of each group at a time: a load with fewer elements than threads takes the layout of
    the vectors, a larger one would impose its own on them.
    """
    m = tl.arange(0, MP)[None, :]
    at = tl.reshape(tl.load(order + entry, in_row, -1), (K, G))  # rows of x; -1 where no edge is
    k = tl.arange(0, K)
    values = tl.zeros((K, G, MP, 1), tl.float32)
    for edge in tl.static_range(K):
        row = tl.sum(tl.where(k[:, None] == edge, at, 0), 0)[:, None]  # at[edge], [G, 1]
        value = tl.load(x + row.to(tl.int64) * M + m, (row >= 0) & (m < M), 0.0)
        value = tl.reshape(value, (1, G, MP, 1))
        values += tl.where(k[:, None, None, None] == edge, value, 0.0)
    return values


# computing


@triton.jit
def inner_product(a, b):
    """Inner products of vectors, `[..., MP, DP] -> [..., MP, 1]`."""
    return tl.sum(a * b, 3, keep_dims=True)


@triton.jit
def inverse_length(v):
    """1 / |v|, or 0 for vectors without a length: they stay zero and pass no gradient."""
    square = inner_product(v, v)
    return tl.where(square >= _TINY, tl.rsqrt(square), 0.0)


@triton.jit
def probabilities(neighbour, c, M: tl.constexpr, MP: tl.constexpr):
    """Softmax over factors of <neighbour, c>, to the base 2, `[K, G, MP, 1]`.

    The caller scales c by log2(e) / tau, which makes it the softmax of the definition. Padded
    factors get probability 0.
    """
    score = inner_product(neighbour, c)
    if M < MP:
        score = tl.where(tl.arange(0, MP)[None, None, :, None] < M, score, float("-inf"))
    raised = tl.exp2(score - tl.max(score, 2, keep_dims=True))  # at most 1
    # the sum is within 1..M, where this is as good as a division and cheaper
    root = tl.rsqrt(tl.sum(raised, 2, keep_dims=True))
    return raised * root * root


@triton.jit
def softmax_backward(p, p_grad):
    """Gradient of the scores from that of the probabilities: p (g - <p, g>)."""
    return p * (p_grad - tl.sum(p * p_grad, 2, keep_dims=True))


@triton.jit
def sum_edges(edges, SPREAD: tl.constexpr):
    """Sum over the edges of each node, `[K, G, MP, DP] -> [1, G, MP, DP]`."""
    total = tl.sum(edges, 0, keep_dims=True)  # within threads
    if SPREAD:  # all groups belong to one node, and each of them needs its sum
        total = tl.broadcast_to(tl.sum(total, 1, keep_dims=True), total.shape)
    return total


# the second pass of the gradient


@triton.jit(do_not_specialize=["begin", "count", "num_nodes", "num_edges"])
def sum_rows(
    x, table, out, begin, count, num_nodes, num_edges,
    W: tl.constexpr, WP: tl.constexpr,
    K: tl.constexpr, G: tl.constexpr, SPREAD: tl.constexpr,
):  # fmt: skip
    """Add the rows of x `[entries, W]` that belong to a node to its row of out `[N, W]`.

    A vector is one row of W numbers here, a tile therefore `[K, G, 1, WP]`. Each node's rows are
    read in order by one program, so the sum is always the same and nothing is added atomically.
    """
    member = tl.program_id(1).to(tl.int64)
    x += member * num_edges * W
    out += member * num_nodes * W
    offset, valid = coordinates(1, W, 1, WP)
    node, _, writes, entry, end = node_rows(table, begin, count, num_nodes, K, G, SPREAD)
    at = node.to(tl.int64) * W + offset
    before = tl.load(out + at, writes & valid, 0.0)
    if SPREAD:  # a long row, K*G entries at a time
        total = tl.zeros((1, G, 1, WP), tl.float32)
        _, first, last = node_row(table, begin, num_nodes)
        for start in range(first, last, K * G):
            at_edge = start - first + entry
            rows = load_vectors(x, at_edge, offset, (at_edge < end) & valid, W, G, 1, WP)
            total += tl.sum(rows, 0, keep_dims=True)
        total = tl.sum(total, 1, keep_dims=True)
    else:
        rows = load_vectors(x, entry, offset, (entry < end) & valid, W, G, 1, WP)
        total = tl.sum(rows, 0, keep_dims=True)
    # what the first pass wrote for the node itself, and the sum over its out-edges
    after = before + tl.reshape(tl.broadcast_to(total, (1, G, 1, WP)), (G, WP))
    tl.store(out + at, after, writes & valid)
