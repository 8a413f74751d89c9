"""Nearness in a graph: where short random walks from a node come by most often."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from numba import njit

__all__ = ["walk_weights"]

Array = npt.NDArray[Any]

STEPS = 4
GO_ON = 0.85  # chance that a walk goes on after each step
HELD = 96  # places of a walk followed further, the likeliest


def walk_weights(adjacency: Any, count: int, link: float) -> Any:
    """Weights between nodes that walks join, many more than edges: they show what clusters.

    Args:
        adjacency: Undirected graph without self loops, CSR.
        count: Most nodes that one node is joined with.
        link: Least weight of nodes that an edge joins.

    Returns:
        Symmetric sparse matrix; the weight is 1 where one end is the other's likeliest.
    """
    nodes = adjacency.shape[0]
    target = np.full((nodes, count), -1, dtype=np.int64)
    chance = np.zeros((nodes, count))
    _walk(adjacency.indptr, adjacency.indices, target, chance)
    chance /= np.maximum(chance[:, :1], 1e-12)
    row, column = np.nonzero(target >= 0)
    values = chance[row, column], (row, target[row, column])
    directed = scipy.sparse.csr_matrix(values, adjacency.shape)
    edges = scipy.sparse.csr_matrix(
        (np.full(adjacency.nnz, link), adjacency.indices, adjacency.indptr), adjacency.shape
    )
    return (directed + directed.T - directed.multiply(directed.T)).maximum(edges)


@njit(nogil=True, cache=True)
def _walk(indptr: Array, indices: Array, target: Array, chance: Array) -> None:
    nodes, count = target.shape
    total, now, after = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    seen, there = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for node in range(nodes):
        here, reached = np.full(1, node), 0
        now[node] = 1.0
        for _ in range(STEPS):
            places = 0
            for i in here:
                share = GO_ON * now[i] / max(indptr[i + 1] - indptr[i], 1)
                now[i] = 0.0
                for e in range(indptr[i], indptr[i + 1]):
                    j = indices[e]
                    if after[j] == 0.0:
                        there[places] = j
                        places += 1
                    after[j] += share
            here = _likeliest(there[:places], after, HELD)
            for j in here:
                if total[j] == 0.0:
                    seen[reached] = j
                    reached += 1
                now[j] = after[j]
                total[j] += after[j]
            after[there[:places]] = 0.0
        now[here] = 0.0
        total[node] = 0.0
        best = _likeliest(seen[:reached], total, count)
        for place, j in enumerate(best):
            if total[j] > 0.0:  # not the node itself
                target[node, place], chance[node, place] = j, total[j]
        total[seen[:reached]] = 0.0


@njit(inline="always")
def _likeliest(places: Array, chance: Array, count: int) -> Any:
    return places[np.argsort(-chance[places], kind="mergesort")[:count]]
