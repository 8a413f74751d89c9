"""The pairs of linked nodes of a graph: each edge once, whatever its direction."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from torch import Tensor

from lgdgcn.errors import InputError

__all__ = ["Array", "Pairs", "blocks", "find_pairs", "of_pairs", "pair_numbers", "pairs_of"]

Array = npt.NDArray[Any]

MOST_ENTRIES = 2**23  # of a sparse matrix that is made for some rows at a time: 100 MB


@dataclass(frozen=True)
class Pairs:
    """Every pair of linked nodes once.

    Attributes:
        ends: The two nodes of each pair, the smaller first ``[2, P]``.
        num_nodes: N.
        of_edge: The pair of each column of ``edge_index``, -1 for a self loop ``[E]``.
    """

    ends: Array
    num_nodes: int
    of_edge: Array

    def __len__(self) -> int:
        return int(self.ends.shape[1])

    @cached_property
    def incidence(self) -> Any:
        """Sparse ``[N, P]`` with a one where a node is an end of a pair."""
        count = len(self)
        columns = np.tile(np.arange(count), 2)
        ones = np.ones(2 * count)
        return scipy.sparse.csr_matrix(
            (ones, (self.ends.ravel(), columns)), (self.num_nodes, count)
        )

    @cached_property
    def adjacency(self) -> Any:
        """Sparse symmetric ``[N, N]``."""
        shape = (self.num_nodes, self.num_nodes)
        upper = scipy.sparse.csr_matrix((np.ones(len(self)), tuple(self.ends)), shape)
        return (upper + upper.T).tocsr()

    @cached_property
    def degree(self) -> Array:
        """Number of pairs of each node ``[N]``."""
        return np.bincount(self.ends.ravel(), minlength=self.num_nodes).astype(float)

    def mean(self, values: Array) -> Array:
        """Mean over the directions of each pair of what edges have, ``[E, M] -> [P, M]``."""
        proper = self.of_edge >= 0
        total = np.zeros((len(self), values.shape[1]))
        np.add.at(total, self.of_edge[proper], values[proper])
        counts = np.bincount(self.of_edge[proper], minlength=len(self))
        result: Array = total / np.maximum(counts, 1)[:, None]
        return result

    def keep(self, kept: Array) -> "Pairs":
        """The graph of the pairs where ``kept`` is true."""
        return Pairs(self.ends[:, kept], self.num_nodes, np.arange(int(kept.sum())))


def blocks(entries: Array, most: int = MOST_ENTRIES) -> Iterator[slice]:
    """Divide rows so that no block has many more than ``most`` entries.

    Every pair of a hub may bring along all other pairs of the hub, so that a matrix of all of them
    would grow with the square of its degree.

    Args:
        entries: How many entries each row may have ``[rows]``.
        most: In a block; a single row may have more.

    Example:
        >>> list(blocks(np.array([2, 2, 9, 1]), most=4))
        [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    total, start = np.cumsum(entries), 0
    while start < len(total):
        before = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, before + most, side="right")))
        yield slice(start, stop)
        start = stop


def find_pairs(edge_index: Any, num_nodes: int) -> Pairs:
    """Each pair once, from edges in one or both directions; self loops are no pairs.

    Args:
        edge_index: Integers, a tensor or an array. Shape ``[2, E]``.
        num_nodes: N.
    """
    edges = np.asarray(edge_index)
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        raise InputError(
            f"edge_index has shape {list(edges.shape)} and type {edges.dtype}: give integers [2, E]"
        )
    edges = edges.astype(np.int64)
    if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
        wrong = edges.min() if edges.min() < 0 else edges.max()
        raise InputError(f"edge_index names node {wrong}: give nodes 0 to {num_nodes - 1}")
    low, high = edges.min(0, initial=num_nodes), edges.max(0, initial=0)
    proper = low < high
    codes, inverse = np.unique(low[proper] * num_nodes + high[proper], return_inverse=True)
    of_edge = np.full(edges.shape[1], -1)
    of_edge[proper] = inverse
    return Pairs(np.stack(np.divmod(codes, max(num_nodes, 1))), num_nodes, of_edge)


def pairs_of(edge_index: Tensor) -> Array:
    """The ends of every pair, smaller node first ``[2, P]``, of canonical edges ``[2, E]``."""
    edges = edge_index.cpu().numpy()
    return np.asarray(edges[:, edges[0] < edges[1]])


def of_pairs(edge_index: Tensor, values: Tensor) -> Array:
    """What edges have, for each pair once ``[P, *]``; both directions have the same."""
    return np.asarray(values[edge_index[0] < edge_index[1]].cpu().numpy())


def pair_numbers(edge_index: Tensor) -> Array:
    """The number of the pair that each edge is a direction of ``[E]``.

    Example:
        >>> import torch
        >>> pair_numbers(torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]])).tolist()
        [0, 1, 0, 1]
    """
    edges = edge_index.cpu().numpy()
    nodes = int(edges.max()) + 1 if edges.size else 0
    _, number = np.unique(edges.min(0) * nodes + edges.max(0), return_inverse=True)
    return np.asarray(number)
