"""The nodes most alike in a factor that no edge joins: what the latent graph adds."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

__all__ = ["latent_neighbours"]

Array = npt.NDArray[Any]

ROWS = 512  # nodes whose distances to all others are held at once


def latent_neighbours(
    units: Array, nearest: Array, distance: Array, edge_index: Array, count: int
) -> tuple[Array, Array]:
    """Find the nearest nodes in a factor that are not neighbours in the graph.

    Args:
        units: The factor's units. Shape ``[N, d]``.
        nearest: Nearest other nodes, nearest first. Shape ``[N, k]``.
        distance: How far they are. Shape ``[N, k]``.
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        count: How many to find.

    Returns:
        Nodes, -1 where there are too few, and distances, both ``[N, count]``.
    """
    nodes, size = nearest.shape
    linked = scipy.sparse.csr_matrix(
        (np.ones(edge_index.shape[1], dtype=bool), tuple(edge_index)), (nodes, nodes)
    )
    rows = np.repeat(np.arange(nodes), size)
    apart = ~np.asarray(linked[rows, nearest.ravel()]).reshape(nodes, size)
    first = np.argsort(~apart, axis=1, kind="stable")[:, :count]  # those apart, in their order
    found = np.full((nodes, count), -1, dtype=np.int64)
    far = np.zeros((nodes, count))
    width = first.shape[1]
    keep = np.take_along_axis(apart, first, 1)
    found[:, :width] = np.where(keep, np.take_along_axis(nearest, first, 1), -1)
    far[:, :width] = np.where(keep, np.take_along_axis(distance, first, 1), 0)
    short = np.flatnonzero((found < 0).any(1)) if size < nodes - 1 else np.empty(0, dtype=np.int64)
    points = units.astype(np.float64)
    for low in range(0, len(short), ROWS):
        some = short[low : low + ROWS]
        found[some], far[some] = _search(points, some, linked, count)
    return found, far


def _search(units: Array, some: Array, linked: Any, count: int) -> tuple[Array, Array]:
    """The same for some nodes whose list is mostly neighbours, looking at every other node."""
    norm = (units**2).sum(1)
    square = np.maximum(norm[some, None] + norm - 2 * units[some] @ units.T, 0)
    square[linked[some].toarray()] = np.inf
    square[np.arange(len(some)), some] = np.inf
    order = np.sort(np.argpartition(square, min(count, len(units) - 1), axis=1)[:, :count], axis=1)
    values = np.take_along_axis(square, order, 1)
    nearest_first = np.argsort(values, axis=1, kind="stable")
    order, values = (np.take_along_axis(part, nearest_first, 1) for part in (order, values))
    found = np.full((len(some), count), -1, dtype=np.int64)
    far = np.zeros((len(some), count))
    reached = np.isfinite(values)
    found[:, : order.shape[1]] = np.where(reached, order, -1)
    far[:, : order.shape[1]] = np.sqrt(np.where(reached, values, 0))
    return found, far
