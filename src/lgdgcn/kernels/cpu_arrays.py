"""Tensors as arrays for compiled loops, and how to divide their rows among threads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from lgdgcn.kernels.threads import parts

__all__ = ["Array", "edges_before", "row_cuts", "to_numpy"]

Array = np.ndarray[Any, Any]

_GRAIN = 1000  # edges and nodes that are worth a range of their own


def edges_before(row_ptr: Array, v: int) -> int:
    """In-edges of all nodes below v; node t of member r is r*N + t."""
    member, t = divmod(v, max(1, len(row_ptr) - 1))
    return int(member * row_ptr[-1] + row_ptr[t])


def row_cuts(row_ptr: Array, start: int, stop: int) -> Sequence[int]:
    """Boundaries of ranges of the nodes start to stop with about equal work."""
    nodes = len(row_ptr) - 1
    low, high = (edges_before(row_ptr, v) + v for v in (start, stop))  # a node costs an edge
    count = parts(high - low, _GRAIN)
    if count == 1:
        return start, stop
    work = row_ptr + np.arange(nodes + 1)
    goals = low + (high - low) * np.arange(1, count) // count
    members, rests = np.divmod(goals, work[-1])
    inner = members * nodes + np.searchsorted(work, rests)
    return [start, *inner.tolist(), stop]


def to_numpy(x: Tensor) -> Array:
    """The numbers of a tensor in one block, copied only where they are not."""
    array: Array = x.detach().contiguous().numpy()
    return array
