"""Neighbours drawn on the CPU, the numbers that nodes have in a batch, and a matrix by columns.

All loops leave the interpreter lock alone, so that a thread can prepare the next batch while torch
computes the last one.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from scipy.sparse import csr_array
from torch import Tensor

from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel, to_numpy
from lgdgcn.kernels.cpu.units import _mix

__all__ = ["renumber", "sample", "transpose"]

_GRAIN = 256  # nodes that are worth a range of their own


def sample(row_ptr: Tensor, nodes: Tensor, fan_out: int, key: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.sample`."""
    boundaries, chosen = to_numpy(row_ptr), to_numpy(nodes)
    degree = boundaries[chosen + 1] - boundaries[chosen]
    counts = np.minimum(degree, fan_out) if fan_out else degree
    ptr = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(counts, out=ptr[1:])
    entry = np.empty(ptr[-1], np.int64)
    first, second = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    cuts = even_cuts(len(chosen), _GRAIN)
    in_parallel(_draw, cuts, boundaries, chosen, fan_out, first, second, ptr, entry)
    return torch.from_numpy(ptr), torch.from_numpy(entry)


@njit(nogil=True, cache=True)
def _draw(
    start: int,
    stop: int,
    row_ptr: Array,
    nodes: Array,
    fan_out: int,
    first: Any,
    second: Any,
    ptr: Array,
    entry: Array,
) -> None:
    """Fill the entries of nodes start to stop: all of a short row, Floyd's subset of a long one."""
    for i in range(start, stop):
        node, low = nodes[i], ptr[i]
        begin = row_ptr[node]
        degree = row_ptr[node + 1] - begin
        count = ptr[i + 1] - low
        if count == degree:
            for s in range(count):
                entry[low + s] = begin + s
            continue
        own = _mix(np.uint32(np.uint32(node & 0xFFFFFFFF) ^ first))
        own = _mix(np.uint32(own + second + np.uint32((node >> 32) * 0x9E3779B9)))
        for s in range(count):
            # Floyd: the s-th draw is from the first j + 1 entries; one that is taken becomes j
            j = degree - count + s
            random = np.int64(_mix(np.uint32(own + np.uint32(0x9E3779B9 * (s + 1)))))
            value = begin + ((random * (j + 1)) >> 32)
            for other in range(s):
                if entry[low + other] == value:
                    value = begin + j
                    break
            entry[low + s] = value
        entry[low : low + count].sort()


def renumber(known: Tensor, more: Tensor) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.renumber`."""
    size = 1 << max(4, (2 * (len(known) + len(more))).bit_length())
    nodes = np.empty(len(known) + len(more), np.int64)
    position = np.empty(len(more), np.int64)
    slots = np.full(size, -1, np.int64)
    count = _number(to_numpy(known), to_numpy(more), slots, nodes, position)
    return torch.from_numpy(nodes[:count].copy()), torch.from_numpy(position)


@njit(nogil=True, cache=True)
def _number(known: Array, more: Array, slots: Array, nodes: Array, position: Array) -> int:
    """Look every id up in a hash table of the positions that ids have in `nodes`."""
    mask, count = len(slots) - 1, 0
    for i in range(len(known) + len(more)):
        node = known[i] if i < len(known) else more[i - len(known)]
        slot = np.int64(_mix(np.uint32((node ^ (node >> 32)) & 0xFFFFFFFF))) & mask
        while slots[slot] >= 0 and nodes[slots[slot]] != node:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            nodes[count] = node
            count += 1
        if i >= len(known):
            position[i - len(known)] = slots[slot]
    return count


def transpose(row_ptr: Tensor, column: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """See `lgdgcn.kernels.transpose`."""
    parts = (to_numpy(value), to_numpy(column), to_numpy(row_ptr))
    size = len(row_ptr) - 1
    turned = csr_array(parts, shape=(size, size)).tocsc()
    found = (torch.from_numpy(part) for part in (turned.indptr, turned.indices, turned.data))
    column_ptr, row, by_column = found
    return column_ptr.long(), row.long(), by_column
