r"""The shape of the neighbourhood around each edge, in columns.

Nothing here knows which node is which: two edges in neighbourhoods of the same shape have the same
columns. Everything is found from the triangles of the graph, each of them once, so that a hub of
many neighbours costs no more than it has triangles.
"""

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from lgdgcn.reasons.edges import Array, Edges

__all__ = [
    "COMMON_COLUMNS",
    "SHAPE_COLUMNS",
    "common_neighbours",
    "core_numbers",
    "shape_columns",
    "triangles",
]

COMMON_COLUMNS = ("common neighbours", "Jaccard", "Adamic-Adar", "resource allocation")
SHAPE_COLUMNS = (
    *COMMON_COLUMNS,
    *(f"{which} {what}" for what in ("degree", "clustering", "core number")
      for which in ("smaller", "larger")),
)  # fmt: skip
WEDGES = 2**21  # paths of two edges that are looked at together: 100 MB


def shape_columns(edge_index: Tensor, num_nodes: int) -> Array:
    """The columns :data:`SHAPE_COLUMNS` of every pair ``[P, 10]``.

    Common neighbours are counted, weighed by 1 / log(degree) (Adamic and Adar, 2003) and by
    1 / degree (resource allocation), and taken as a share of all neighbours (Jaccard). Of what
    belongs to a node, degree, clustering and core number, there is the smaller and the larger of
    the two ends.

    Args:
        edge_index: Both directions of each edge, sorted, without loops. Shape ``[2, E]``.
        num_nodes: N.
    """
    pairs = Edges.of(edge_index).ends
    degree = np.bincount(pairs.ravel(), minlength=num_nodes).astype(np.float64)
    # A common neighbour has degree 2 at least, so that no weight of one is infinite.
    several = np.maximum(degree, 2)
    weights = np.stack([np.ones(num_nodes), 1 / np.log(several), 1 / several], axis=1)
    common, adamic_adar, allocation = common_neighbours(pairs, num_nodes, weights).T
    ends = degree[pairs]  # [2, P]
    jaccard = common / np.maximum(ends.sum(0) - common, 1)  # both ends are in the union, too
    of_nodes = [degree, _clustering(pairs, common, degree), core_numbers(pairs, num_nodes)]
    columns = [common, jaccard, adamic_adar, allocation]
    for values in of_nodes:
        columns += [values[pairs].min(0), values[pairs].max(0)]
    return np.stack(columns, axis=1)


def common_neighbours(pairs: Array, num_nodes: int, weights: Array) -> Array:
    """Sum of weights over the common neighbours of every pair.

    These are the entries of A diag(w) A at the pairs, where A is the adjacency matrix.

    Args:
        pairs: Ends of every pair. Shape ``[2, P]``.
        num_nodes: N.
        weights: Weights of the nodes. Shape ``[N, W]``.

    Returns:
        Shape ``[P, W]``.

    Example:
        >>> pairs = np.array([[0, 0, 1, 1], [1, 2, 2, 3]])
        >>> common_neighbours(pairs, 4, np.array([[1], [10], [100], [1000]])).ravel().tolist()
        [100.0, 10.0, 1.0, 0.0]
    """
    sums = np.zeros((pairs.shape[1], weights.shape[1]))
    for sides, corners in triangles(pairs, num_nodes):
        for column in range(weights.shape[1]):  # each side gets the weight of the third corner
            third = weights[corners, column].ravel()
            sums[:, column] += np.bincount(sides.ravel(), third, minlength=len(sums))
    return sums


def triangles(pairs: Array, num_nodes: int) -> Iterator[tuple[Array, Array]]:
    """All triangles, each once, in blocks.

    Every pair points from the end of smaller degree to the other. A triangle is then found at its
    first corner only, as two pairs that leave it and whose other ends are a pair; no node has more
    than sqrt(2 P) pairs that leave it.

    Yields:
        The numbers of the three sides, and the corners that they do not touch ``[3, n]`` each.
    """
    degree = np.bincount(pairs.ravel(), minlength=num_nodes)
    rank = np.empty(num_nodes, dtype=np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(num_nodes)
    low, high = np.sort(rank[pairs], axis=0)  # nodes by their ranks from here on
    order = np.lexsort((high, low))
    low, high = low[order], high[order]
    node = np.argsort(rank)
    key = low * num_nodes + high  # sorted
    last = np.searchsorted(low, low, side="right")  # end of the pairs that leave the same node
    later = last - np.arange(len(low)) - 1  # how many of them come after this one
    total = np.concatenate([[0], np.cumsum(later)])
    start = 0
    while start < len(low):
        stop = max(start + 1, int(np.searchsorted(total, total[start] + WEDGES, side="right")) - 1)
        first = np.repeat(np.arange(start, stop), later[start:stop])
        offset = np.arange(len(first)) - (total[first] - total[start])
        second = first + 1 + offset
        wanted = high[first] * num_nodes + high[second]  # sorted ends: the first one is smaller
        third = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        found = key[third] == wanted
        first, second, third = first[found], second[found], third[found]
        corners = np.stack([high[second], high[first], low[first]])
        yield order[np.stack([first, second, third])], node[corners]
        start = stop


def _clustering(pairs: Array, common: Array, degree: Array) -> Array:
    """Share of the pairs of a node's neighbours that are joined ``[N]``; 0 below two of them."""
    around = np.bincount(pairs.ravel(), np.tile(common, 2), minlength=len(degree))
    return np.asarray(around / np.maximum(degree * (degree - 1), 1))


def core_numbers(pairs: Array, num_nodes: int) -> Array:
    """The largest k for which a node is in a subgraph of smallest degree k ``[N]``.

    Nodes are taken away in rounds: all that have at most k neighbours left.

    Example:
        >>> core_numbers(np.array([[0, 0, 1, 1], [1, 2, 2, 3]]), 5).tolist()
        [2, 2, 2, 1, 0]
    """
    core = np.zeros(num_nodes, dtype=np.int64)
    left = np.ones(num_nodes, dtype=bool)
    degree = np.bincount(pairs.ravel(), minlength=num_nodes)
    k = 0
    while left.any():
        k = max(k, int(degree[left].min()))
        leaving = left & (degree <= k)
        core[leaving] = k
        left &= ~leaving
        pairs = pairs[:, left[pairs].all(0)]
        degree = np.bincount(pairs.ravel(), minlength=num_nodes)
    return core
