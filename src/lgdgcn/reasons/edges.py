"""Every undirected edge of a graph once, and the only way there and back."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from torch_geometric.data import Data

from lgdgcn.errors import InputError

__all__ = ["Array", "Edges", "blocks"]

Array = npt.NDArray[Any]

MOST_ENTRIES = 2**23  # of a sparse matrix that is made for some rows at a time: 100 MB


@dataclass(frozen=True)
class Edges:
    """Every undirected edge of a graph once.

    Attributes:
        ends: The two nodes of each edge, the smaller first ``[2, E]``.
        num_nodes: N.
        number: The edge that each of the C columns of ``edge_index`` is a direction of, -1 for a
            self loop ``[C]``.
    """

    ends: Array
    num_nodes: int
    number: Array

    @classmethod
    def of(cls, edge_index: Any, num_nodes: int | None = None) -> "Edges":
        """Find each edge once; self loops are no edges.

        Args:
            edge_index: Integers, a tensor or an array; edges in one or both directions ``[2, C]``.
            num_nodes: N; by default as many as the edges name.

        Example:
            >>> edges = Edges.of(np.array([[0, 0, 1, 2], [1, 2, 0, 0]]), 3)
            >>> edges.ends.tolist(), edges.number.tolist()
            ([[0, 0], [1, 2]], [0, 1, 0, 1])
            >>> edges.once(np.array([0.2, 0.5, 0.4, 0.5])).round(2).tolist()
            [0.3, 0.5]
        """
        columns = np.asarray(edge_index)
        if columns.ndim != 2 or len(columns) != 2 or columns.dtype.kind not in "iu":
            found = f"shape {list(columns.shape)} and type {columns.dtype}"
            raise InputError(f"edge_index has {found}: give integers [2, E]")
        columns = columns.astype(np.int64)
        nodes = int(columns.max(initial=-1)) + 1 if num_nodes is None else num_nodes
        if columns.size and (columns.min() < 0 or columns.max() >= nodes):
            wrong = columns.min() if columns.min() < 0 else columns.max()
            raise InputError(f"edge_index names node {wrong}: give nodes 0 to {nodes - 1}")
        low, high = columns.min(0, initial=nodes), columns.max(0, initial=0)
        proper = low < high
        codes, inverse = np.unique(low[proper] * nodes + high[proper], return_inverse=True)
        number = np.full(columns.shape[1], -1)
        number[proper] = inverse
        return cls(np.stack(np.divmod(codes, max(nodes, 1))), nodes, number)

    @classmethod
    def of_graph(cls, data: Data) -> "Edges":
        """Find each edge of a graph once."""
        return cls.of(data.edge_index, data.num_nodes)

    def __len__(self) -> int:
        return int(self.ends.shape[1])

    def once(self, values: Any) -> Array:
        """Mean over the directions of each edge, ``[C] -> [E]`` or ``[C, K] -> [E, K]``."""
        given = np.asarray(values, dtype=float)
        return np.asarray(self._directions @ given)

    def both(self, values: Array) -> Array:
        """What every direction has of its edge, ``[E, *] -> [C, *]``; zeros for a self loop."""
        result = np.zeros((len(self.number), *values.shape[1:]), values.dtype)
        proper = self.number >= 0
        result[proper] = values[self.number[proper]]
        return result

    @cached_property
    def _directions(self) -> Any:
        """Sparse ``[E, C]`` that takes the mean over the directions of each edge."""
        proper = np.flatnonzero(self.number >= 0)
        number = self.number[proper]
        weight = 1 / np.bincount(number, minlength=len(self))[number]
        shape = (len(self), len(self.number))
        return scipy.sparse.csr_matrix((weight, (number, proper)), shape)

    @cached_property
    def incidence(self) -> Any:
        """Sparse ``[N, E]`` with a one where a node is an end of an edge."""
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
        """Number of edges of each node ``[N]``."""
        return np.bincount(self.ends.ravel(), minlength=self.num_nodes).astype(float)

    def keep(self, kept: Array) -> "Edges":
        """The graph of the edges where ``kept`` is true."""
        return Edges(self.ends[:, kept], self.num_nodes, np.arange(int(kept.sum())))


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
