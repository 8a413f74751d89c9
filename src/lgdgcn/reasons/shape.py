"""The shape of the neighbourhood around each edge: common neighbours, and how they are linked.

Nothing here knows which node is which: two edges in neighbourhoods of the same shape have the same
columns. The loops go over the neighbours of the end with fewer of them, so that a hub costs no
more than its triangles.
"""

import numpy as np
from numba import njit

from lgdgcn.reasons.edges import Array, Edges

__all__ = ["COMMON", "common_neighbours", "links_among_common", "shape_columns", "sorted_ends"]

COMMON = (0, 12, 1, 2)  # columns of common neighbours: count, Jaccard, Adamic-Adar, allocation


def shape_columns(edges: Edges) -> Array:
    """The common neighbourhood of the two ends: how many, how linked, how special ``[E, 19]``.

    Common neighbours are counted, weighed by 1 / log(degree) (Adamic and Adar, 2003), 1 / degree
    (resource allocation) and 1 / sqrt(degree), and taken as a share of all neighbours (Jaccard).
    Of what belongs to a node there is the smaller and the larger of the two ends.
    """
    degree = edges.degree
    several = np.maximum(degree, 2)  # a common neighbour has degree 2 at least
    weights = [np.ones_like(degree), 1 / several, 1 / np.log(several), 1 / np.sqrt(several)]
    (common, rare, adamic, root), _ = common_neighbours(edges, np.stack(weights, 1))
    linked = links_among_common(edges)
    around = common_neighbours(edges, np.zeros((edges.num_nodes, 0)), common)[1]
    around /= np.maximum(2 * common, 1)
    at_node = edges.incidence @ common
    clustering = at_node / np.maximum(degree * (degree - 1), 1)
    strength = at_node / np.maximum(degree, 1)
    small, large = sorted_ends(degree, edges.ends)
    logs = [common, adamic, rare, root, small, large, around, linked]
    logs += sorted_ends(strength, edges.ends)
    plain = [
        *sorted_ends(clustering, edges.ends),
        common / np.maximum(small + large - common, 1),
        common / np.maximum(small - 1, 1),
        common / np.maximum(large - 1, 1),
        linked / np.maximum(common * (common - 1) / 2, 1),
        common == 0,
        rare / np.maximum(common, 1),
        np.log1p(around) - np.log1p(common),
    ]
    return np.column_stack([*np.log1p(logs), *plain])


def sorted_ends(values: Array, ends: Array) -> list[Array]:
    """The smaller and the larger of the two ends' values."""
    return [np.minimum(*values[ends]), np.maximum(*values[ends])]


def common_neighbours(
    edges: Edges, weights: Array, of_edge: Array | None = None
) -> tuple[Array, Array]:
    """Sums over the common neighbours of the ends of every edge.

    Args:
        edges: The graph.
        weights: Of the nodes ``[N, W]``.
        of_edge: What is summed over the two edges that join a common neighbour ``[E]``.

    Returns:
        Sums of each weight ``[W, E]`` and of the edges ``[E]``.

    Example:
        >>> edges = Edges.of(np.array([[0, 0, 1, 1], [1, 2, 2, 3]]))
        >>> common_neighbours(edges, np.array([[1.0], [10], [100], [1000]]))[0].tolist()
        [[100.0, 10.0, 1.0, 0.0]]
    """
    sums, around = np.zeros((len(edges), weights.shape[1])), np.zeros(len(edges))
    values = np.zeros(len(edges)) if of_edge is None else of_edge
    _sum_common(*_by_larger_end(edges), values, weights, sums, around)
    return sums.T, around


def links_among_common(edges: Edges) -> Array:
    """How many edges join two common neighbours of an edge's ends ``[E]``."""
    found = np.zeros(len(edges))
    _count_links(*_by_larger_end(edges), found)
    return found


def _by_larger_end(edges: Edges) -> tuple[Array, ...]:
    """Neighbours and edges of each node in sorted rows, and edges ordered by their larger end."""
    ends = np.concatenate([edges.ends, edges.ends[::-1]], 1)
    order = np.lexsort((ends[1], ends[0]))
    start = np.r_[0, np.bincount(ends[0], minlength=edges.num_nodes).cumsum()]
    first, second = edges.ends
    larger = edges.degree[first] > edges.degree[second]
    big, small = np.where(larger, first, second), np.where(larger, second, first)
    by_big = np.argsort(big, kind="stable")
    return start, ends[1][order], order % max(len(edges), 1), by_big, big, small


@njit(cache=True, nogil=True)
def _sum_common(
    start: Array, to: Array, edge: Array, order: Array, big: Array, small: Array,
    values: Array, weights: Array, sums: Array, around: Array,
) -> None:  # fmt: skip
    via = np.full(len(start) - 1, -1)  # the edge from the present larger end to each neighbour
    here = -1
    for e in order:
        if big[e] != here:
            if here >= 0:
                for place in range(start[here], start[here + 1]):
                    via[to[place]] = -1
            here = big[e]
            for place in range(start[here], start[here + 1]):
                via[to[place]] = edge[place]
        for place in range(start[small[e]], start[small[e] + 1]):
            third = to[place]
            if via[third] >= 0:
                around[e] += values[edge[place]] + values[via[third]]
                for column in range(weights.shape[1]):
                    sums[e, column] += weights[third, column]


@njit(cache=True, nogil=True)
def _count_links(
    start: Array, to: Array, edge: Array, order: Array, big: Array, small: Array, found: Array
) -> None:
    near = np.full(len(start) - 1, -1)  # the larger end whose neighbour each node was last
    common = np.full(len(start) - 1, -1)  # the edge whose common neighbour each node was last
    members = np.empty(len(start) - 1, np.int64)
    here = -1
    for e in order:
        if big[e] != here:
            here = big[e]
            for place in range(start[here], start[here + 1]):
                near[to[place]] = here
        count = 0
        for place in range(start[small[e]], start[small[e] + 1]):
            if near[to[place]] == here:
                common[to[place]] = e
                members[count] = to[place]
                count += 1
        for first in members[:count]:
            row = to[start[first] : start[first + 1]]
            if len(row) < 16 * count:  # look at all neighbours, or search for each member
                for node in row:
                    if common[node] == e:
                        found[e] += 0.5
            else:
                for node in members[:count]:
                    place = np.searchsorted(row, node)
                    if place < len(row) and row[place] == node:
                        found[e] += 0.5
