"""Row pointers of sorted edges that come piece by piece."""

from typing import Any

import numpy as np

from lgdgcn.data.packed.writer import ArrayWriter

__all__ = ["RowPointers"]

PIECE = 1 << 17  # nodes

Array = np.ndarray[Any, Any]


class RowPointers:
    """Writes where the edges of each node begin, given the sources in ascending order."""

    def __init__(self, array: ArrayWriter) -> None:
        self.array, self.node, self.edges = array, 0, 0
        array.append([0])

    def append(self, source: Array) -> None:
        """Count some more edges ``[n]``."""
        if len(source):
            self._up_to(int(source[-1]), source)
            self.edges += len(source)

    def finish(self, nodes: int) -> None:
        """Write what is left for the nodes behind the last source."""
        self._up_to(nodes, np.zeros(0, np.int64))

    def _up_to(self, node: int, source: Array) -> None:
        """The ends of all nodes before one, of whose edges no more come."""
        for first in range(self.node, node, PIECE):
            ends = np.arange(first, min(node, first + PIECE))
            self.array.append(self.edges + np.searchsorted(source, ends, side="right"))
        self.node = node
