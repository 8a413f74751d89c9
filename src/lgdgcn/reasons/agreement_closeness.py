"""How near two nodes are by walks along weighted edges, their edge itself left out."""

import numpy as np
import scipy.sparse
from numba import njit

from lgdgcn.reasons.edges import Array, Edges

__all__ = ["walk_closeness"]


def walk_closeness(
    pairs: Edges, weight: Array, ends: Array, without: Array | None = None
) -> tuple[Array, Array]:
    """Weights of the walks of two and of three steps between the ends ``[n]``, twice.

    A step counts less at nodes with many edges: the matrix is D^{-1/2} W D^{-1/2}. Walks along the
    edge between the two ends do not count. So that a random pair can be compared with an edge, it
    must lose an edge at each end, too: it takes their place.

    Args:
        pairs: The graph.
        weight: Of each of its edges ``[P]``.
        ends: Edges of nodes, linked or not ``[2, n]``.
        without: A neighbour of each end whose edge with it is left out, -1 for none ``[2, n]``.
    """
    degree = pairs.incidence @ weight
    scale = 1 / np.sqrt(degree + 0.5 * degree.mean() + 1e-12)
    first, second = pairs.ends
    values = weight * scale[first] * scale[second]
    shape = (pairs.num_nodes, pairs.num_nodes)
    upper = scipy.sparse.csr_matrix((values, (first, second)), shape)
    steps = (upper + upper.T).tocsr()
    steps.sort_indices()
    if without is None:
        without = np.full(ends.shape, -1)
    order = np.argsort(ends[0], kind="stable")
    two, three = _walks(steps.indptr, steps.indices, steps.data, ends[:, order], without[:, order])
    result = np.empty((2, ends.shape[1]))
    result[0, order], result[1, order] = two, three
    result[result < 1e-9] = 0  # what subtraction leaves
    return result[0], result[1]


@njit(cache=True, nogil=True)
def _walks(
    start: Array, to: Array, step: Array, ends: Array, without: Array
) -> tuple[Array, Array]:
    """Walks between pairs that are sorted by their first end."""
    nodes = len(start) - 1
    around, mine = np.zeros(nodes), np.zeros(nodes)  # S² and S of the present first node
    back = np.zeros(nodes)  # (S²)_jj of every node
    for j in range(nodes):
        for e in range(start[j], start[j + 1]):
            back[j] += step[e] ** 2
    two, three = np.zeros(ends.shape[1]), np.zeros(ends.shape[1])
    here = -1
    for pair in range(ends.shape[1]):
        i, j = ends[0, pair], ends[1, pair]
        if i != here:
            if here >= 0:
                for e in range(start[here], start[here + 1]):
                    mine[to[e]] = 0.0
                    for g in range(start[to[e]], start[to[e] + 1]):
                        around[to[g]] = 0.0
            for e in range(start[i], start[i + 1]):
                mine[to[e]] = step[e]
                for g in range(start[to[e]], start[to[e] + 1]):
                    around[to[g]] += step[e] * step[g]
            here = i
        x, y = without[0, pair], without[1, pair]
        two[pair] = around[j]
        last = 0.0  # S_yj
        for e in range(start[j], start[j + 1]):
            three[pair] += step[e] * around[to[e]]
            if to[e] == y:
                last = step[e]
            if to[e] == x:
                two[pair] -= mine[x] * step[e]
        direct = mine[j]
        three[pair] -= direct * (back[i] + back[j] - direct**2)
        if y >= 0:
            three[pair] -= last * around[y]
            if y != x:
                two[pair] -= mine[y] * last
        if x >= 0:
            a, b = start[x], start[j]  # Σ_l S_xl S_lj over l other than y
            while a < start[x + 1] and b < start[j + 1]:
                if to[a] == to[b]:
                    if to[a] != y:
                        three[pair] -= mine[x] * step[a] * step[b]
                    a, b = a + 1, b + 1
                elif to[a] < to[b]:
                    a += 1
                else:
                    b += 1
    return two, three
