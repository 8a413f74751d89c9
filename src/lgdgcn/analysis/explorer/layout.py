"""Where nodes are drawn: the graph by its edges, the maps by nearness of a factor's units."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from lgdgcn.analysis.explorer.descent import descend
from lgdgcn.analysis.explorer.packing import drawn_in, pack, unit_square
from lgdgcn.analysis.explorer.start import diffused, principal
from lgdgcn.analysis.explorer.walks import walk_weights

__all__ = ["graph_layout", "unit_layout"]

Array = npt.NDArray[Any]

NEAR = 15  # nodes that walks join a node with
LINK = 0.3  # least weight of an edge
PUSHES = 8  # more than maps need: edges should be seen


def graph_layout(pairs: Array, nodes: int, seed: int = 0) -> Array:
    """Draw a graph: what is linked lies together, each connected part on its own.

    Args:
        pairs: Edges, each once, no self loops. Shape ``[2, E]``.
        nodes: Number of nodes, at least 1.
        seed: Seed of the draws.

    Returns:
        Positions ``[N, 2]`` in [-1, 1]: the largest part in the middle, smaller ones in rings
        around it, isolated nodes last.
    """
    adjacency = scipy.sparse.coo_matrix((np.ones(pairs.shape[1]), tuple(pairs)), (nodes, nodes))
    adjacency = (adjacency + adjacency.T).tocsr()
    _, part = connected_components(adjacency, directed=False)
    size = np.bincount(part)[part]
    order = np.lexsort((np.arange(nodes), part, -size))  # larger parts first, nodes by number
    starts = np.append(np.flatnonzero(np.diff(part[order], prepend=-1)), nodes)
    turn = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    group = np.stack([starts[turn], starts[turn + 1]], 1)

    ordered = adjacency[order][:, order]
    start = diffused(ordered, turn, seed)
    joined = scipy.sparse.triu(walk_weights(ordered, NEAR, LINK), format="coo")
    joined_pairs = np.stack([joined.row, joined.col], 1)
    position = descend(
        start, joined_pairs, joined.data, group, epochs=_epochs(nodes), pushes=PUSHES, seed=seed
    )
    position[: starts[1]] = drawn_in(position[: starts[1]])
    result = np.empty((nodes, 2), dtype=np.float32)
    result[order] = unit_square(pack(position.astype(np.float64), starts))
    return result


def unit_layout(units: Array, nearest: Array, distance: Array, seed: int = 0) -> Array:
    """Draw a map of one factor: nodes with similar units lie together.

    Args:
        units: The factor's units. Shape ``[N, d]``.
        nearest: Nearest other nodes by unit. Shape ``[N, k]``.
        distance: How far they are. Shape ``[N, k]``.
        seed: Seed of the draws.

    Returns:
        Positions ``[N, 2]`` in [-1, 1].
    """
    nodes = len(units)
    start = principal(units, seed)
    upper = scipy.sparse.triu(_memberships(nearest, distance), format="coo")
    pairs = np.stack([upper.row, upper.col], 1)
    everyone = np.tile([0, nodes], (nodes, 1))
    epochs = _epochs(nodes)
    position = descend(start, pairs, upper.data, everyone, epochs=epochs, seed=seed)
    return unit_square(drawn_in(position))


def _epochs(nodes: int) -> int:
    """Small graphs are cheap and gain from more."""
    return 500 if nodes <= 5000 else 300


def _memberships(nearest: Array, distance: Array) -> Any:
    """UMAP's fuzzy union: each node's neighbours weigh log2(k) together, the nearest 1."""
    nodes, count = nearest.shape
    beyond = np.maximum(distance - distance[:, :1], 0).astype(np.float64)
    low, high = np.zeros((nodes, 1)), np.full((nodes, 1), max(float(beyond.max()), 1e-12) * 10)
    for _ in range(40):
        width = (low + high) / 2
        heavy = np.exp(-beyond / width).sum(1, keepdims=True) > np.log2(max(count, 2))
        low, high = np.where(heavy, low, width), np.where(heavy, width, high)
    weight = np.exp(-beyond / np.maximum((low + high) / 2, 1e-12))
    rows = np.repeat(np.arange(nodes), count)
    directed = scipy.sparse.csr_matrix(
        (np.maximum(weight, 1e-3).ravel(), (rows, nearest.ravel())), (nodes, nodes)
    )
    return directed + directed.T - directed.multiply(directed.T)
