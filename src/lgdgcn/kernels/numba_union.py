"""Union of neighbour lists: who lists whom, in either direction."""

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lgdgcn.kernels.cpu_arrays import Array, to_numpy
from lgdgcn.kernels.structure import Union
from lgdgcn.kernels.threads import in_parallel

__all__ = ["symmetrize"]


def symmetrize(index: Tensor, keep: Tensor | None) -> Union:
    """See `lgdgcn.kernels.symmetrize`."""
    sets, size, k = index.shape
    kept = torch.empty(0, 0, 0, dtype=torch.bool) if keep is None else keep
    row_ptr = torch.zeros(sets * size + 1, dtype=torch.int64)
    room = np.empty((sets, 2 * size * k), np.int32), np.empty((sets, 2 * size * k), np.uint8)
    in_parallel(_unite, range(sets + 1), to_numpy(index), to_numpy(kept), *room, row_ptr.numpy())
    torch.cumsum(row_ptr, 0, out=row_ptr)
    source = torch.empty(int(row_ptr[-1]), dtype=torch.int64)
    ends = torch.empty(source.shape, dtype=torch.uint8)
    joined = row_ptr.numpy(), source.numpy(), ends.numpy()
    in_parallel(_join, range(sets + 1), *room, *joined)
    return Union(row_ptr, source, ends)


@njit
def _turn(start: Array, stop: Array, lists: Array, turned_start: Array, turned: Array) -> None:
    """Fill who lists each node, ascending; afterwards `turned_start` holds where the lists stop."""
    for i in range(stop.shape[0]):
        for at in range(start[i], stop[i]):
            j = lists[at]
            turned[turned_start[j]] = i
            turned_start[j] += 1


@njit(nogil=True, cache=True)
def _unite(
    start: int,
    stop: int,
    index: Array,
    keep: Array,
    source: Array,
    ends: Array,
    degree: Array,
) -> None:
    """Fill the union of sets start to stop, numbered within the set, row after row.

    `keep` has no sets when every entry counts. `degree[1:]` receives the length of each row.
    """
    size, k = index.shape[1:]
    lists, mine, theirs = np.empty((3, size * k), np.int32)
    my_ptr, their_ptr = np.empty((2, size + 1), np.int32)
    for b in range(start, stop):
        their_ptr[:] = 0
        count = 0
        for i in range(size):
            my_ptr[i] = count
            for e in range(k):
                j = index[b, i, e]
                counts = j != i and (keep.shape[0] == 0 or keep[b, i, e])
                lists[count] = j
                count += counts
                their_ptr[j + 1] += counts
        my_ptr[size] = count
        for i in range(size):
            their_ptr[i + 1] += their_ptr[i]
        my_stop, their_stop = my_ptr[:size].copy(), their_ptr[:size].copy()
        _turn(my_ptr[:size], my_ptr[1:], lists, their_stop, theirs)
        _turn(their_ptr[:size], their_stop, theirs, my_stop, mine)  # back again: sorted
        total = 0
        for i in range(size):
            own, own_stop = my_ptr[i], my_stop[i]
            other, other_stop = their_ptr[i], their_stop[i]
            row, last = total, -1
            while own < own_stop or other < other_stop:
                a = mine[own] if own < own_stop else size
                c = theirs[other] if other < other_stop else size
                own += a <= c
                other += c <= a
                source[b, total] = min(a, c)
                ends[b, total] = 1 + (a == c)
                total += min(a, c) != last  # what is listed twice counts once
                last = min(a, c)
            degree[b * size + i + 1] = total - row


@njit(nogil=True, cache=True)
def _join(
    start: int,
    stop: int,
    set_source: Array,
    set_ends: Array,
    row_ptr: Array,
    source: Array,
    ends: Array,
) -> None:
    """Number the nodes of sets start to stop through and move their rows together."""
    size = (row_ptr.shape[0] - 1) // max(1, set_source.shape[0])
    for b in range(start, stop):
        low, high = row_ptr[b * size], row_ptr[(b + 1) * size]
        for e in range(high - low):
            source[low + e] = set_source[b, e] + b * size
            ends[low + e] = set_ends[b, e]
