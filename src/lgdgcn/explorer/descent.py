"""The two loops behind a layout: short walks say what is near, and gradient descent draws it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from numba import njit

__all__ = ["gradient_descent", "walk_weights"]

Array = npt.NDArray[Any]

# Walks: nearness is where short random walks from a node come by most often

STEPS = 4
GO_ON = 0.85  # probability that a walk goes on after each step
HELD = 96  # nodes of a walk that are followed further, the likeliest


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
    probability = np.zeros((nodes, count))
    _walk(adjacency.indptr, adjacency.indices, target, probability)
    probability /= np.maximum(probability[:, :1], 1e-12)
    row, column = np.nonzero(target >= 0)
    values = probability[row, column], (row, target[row, column])
    directed = scipy.sparse.csr_matrix(values, adjacency.shape)
    edges = scipy.sparse.csr_matrix(
        (np.full(adjacency.nnz, link), adjacency.indices, adjacency.indptr), adjacency.shape
    )
    return (directed + directed.T - directed.multiply(directed.T)).maximum(edges)


@njit(nogil=True, cache=True)
def _walk(indptr: Array, indices: Array, target: Array, probability: Array) -> None:
    nodes, count = target.shape
    total, now, after = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    seen, there = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for node in range(nodes):
        here, reached = np.full(1, node), 0
        now[node] = 1.0
        for _ in range(STEPS):
            found = 0
            for i in here:
                share = GO_ON * now[i] / max(indptr[i + 1] - indptr[i], 1)
                now[i] = 0.0
                for e in range(indptr[i], indptr[i + 1]):
                    j = indices[e]
                    if after[j] == 0.0:
                        there[found] = j
                        found += 1
                    after[j] += share
            here = _likeliest(there[:found], after, HELD)
            for j in here:
                if total[j] == 0.0:
                    seen[reached] = j
                    reached += 1
                now[j] = after[j]
                total[j] += after[j]
            after[there[:found]] = 0.0
        now[here] = 0.0
        total[node] = 0.0
        best = _likeliest(seen[:reached], total, count)
        for rank, j in enumerate(best):
            if total[j] > 0.0:  # not the node itself
                target[node, rank], probability[node, rank] = j, total[j]
        total[seen[:reached]] = 0.0


@njit(inline="always")
def _likeliest(nodes: Array, probability: Array, count: int) -> Any:
    return nodes[np.argsort(-probability[nodes], kind="mergesort")[:count]]


# Descent: edges pull, random pairs push

FARTHEST_STEP = 4.0  # of a node in one update, before the step size shrinks it


def gradient_descent(
    position: Array,
    pairs: Array,
    weight: Array,
    group: Array,
    *,
    epochs: int,
    pushes: int = 5,
    seed: int,
) -> Array:
    r"""Minimise UMAP's cross-entropy with the similarity :math:`1 / (1 + d^2)`.

    Every edge is drawn as often as its weight says, the heaviest once per epoch; each draw pulls
    its ends together and pushes both away from a few nodes drawn at random from their group.
    Updates come one after the other on one thread, so that equal input gives equal output.

    Args:
        position: Where to start. Shape ``[N, 2]``.
        pairs: Nodes joined by an edge, each once, within a group. Shape ``[E, 2]``.
        weight: Weight of every edge, above 0. Shape ``[E]``.
        group: First node and one past the last of each node's group. Shape ``[N, 2]``.
        epochs: Number of passes.
        pushes: Random nodes per end of a drawn edge.
        seed: Seed of the draws.

    Returns:
        New positions ``[N, 2]`` in float32.
    """
    result = np.array(position, dtype=np.float32)
    if len(pairs):
        period = (weight.max() / weight).astype(np.float64)
        _gradient_steps(
            result,
            np.ascontiguousarray(pairs, dtype=np.int32),
            period,
            np.ascontiguousarray(group, dtype=np.int32),
            epochs,
            pushes,
            np.uint64(seed),
        )
    return result


@njit(inline="always")
def _limited(value: Any) -> Any:
    return min(max(value, np.float32(-FARTHEST_STEP)), np.float32(FARTHEST_STEP))


@njit(nogil=True, cache=True)
def _gradient_steps(
    position: Array,
    pairs: Array,
    period: Array,
    group: Array,
    epochs: int,
    pushes: int,
    seed: Any,
) -> None:
    one, two, soft = np.float32(1), np.float32(2), np.float32(1e-3)
    state = (seed + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    due = period.copy()
    for epoch in range(epochs):
        rate = np.float32(1 - epoch / epochs)
        for e in range(len(pairs)):
            if due[e] > epoch + 1:
                continue
            due[e] += period[e]
            for end in range(2):
                i, j = pairs[e, end], pairs[e, 1 - end]
                x, y = position[i, 0], position[i, 1]
                dx, dy = x - position[j, 0], y - position[j, 1]
                pull = -two / (one + dx * dx + dy * dy) * rate
                x += _limited(pull * dx)
                y += _limited(pull * dy)
                low, size = np.uint64(group[i, 0]), np.uint64(group[i, 1] - group[i, 0])
                for _ in range(pushes):
                    state ^= state << np.uint64(13)  # xorshift: cheap, and even enough for this
                    state ^= state >> np.uint64(7)
                    state ^= state << np.uint64(17)
                    other = low + (((state >> np.uint64(32)) * size) >> np.uint64(32))
                    dx, dy = x - position[other, 0], y - position[other, 1]
                    square = dx * dx + dy * dy
                    push = two / ((soft + square) * (one + square))
                    x += rate * _limited(push * dx)
                    y += rate * _limited(push * dy)
                position[i, 0], position[i, 1] = x, y
