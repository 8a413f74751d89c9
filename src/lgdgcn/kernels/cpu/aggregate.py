"""The latent graph on the CPU: union of neighbour lists, row sums and aggregation.

A graph is in compressed rows: the neighbours of node i are `source[row_ptr[i] : row_ptr[i + 1]]`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel, row_cuts, to_numpy
from lgdgcn.kernels.cpu.vector_math import broadcast16, load16, mul_add
from lgdgcn.kernels.cpu.vectors import LANES, store
from lgdgcn.kernels.graph import UndirectedGraph

__all__ = ["aggregate", "row_sums", "symmetrize"]

_GRAIN = 1 << 13  # row sums that are worth a range of their own


# union of neighbour lists


def symmetrize(index: Tensor, keep: Tensor | None) -> UndirectedGraph:
    """See `lgdgcn.kernels.symmetrize`."""
    sets, size, k = index.shape
    kept = torch.empty(0, 0, 0, dtype=torch.bool) if keep is None else keep
    row_ptr = torch.zeros(sets * size + 1, dtype=torch.int64)
    buffers = np.empty((sets, 2 * size * k), np.int32), np.empty((sets, 2 * size * k), np.uint8)
    in_parallel(_unite, range(sets + 1), to_numpy(index), to_numpy(kept), *buffers, row_ptr.numpy())
    torch.cumsum(row_ptr, 0, out=row_ptr)
    source = torch.empty(int(row_ptr[-1]), dtype=torch.int64)
    ends = torch.empty(source.shape, dtype=torch.uint8)
    joined = row_ptr.numpy(), source.numpy(), ends.numpy()
    in_parallel(_concatenate, range(sets + 1), *buffers, *joined)
    return UndirectedGraph(row_ptr, source, ends)


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
    """Fill the union of sets start to stop, with node numbers within the set, row after row.

    `keep` has no sets if every entry counts. `degree[1:]` receives the length of each row.
    """
    size, k = index.shape[1:]
    lists, listed, listing = np.empty((3, size * k), np.int32)
    listed_ptr, listing_ptr = np.empty((2, size + 1), np.int32)
    for b in range(start, stop):
        # lists[listed_ptr[i] : listed_ptr[i + 1]] are the entries of list i that count
        listing_ptr[:] = 0
        count = 0
        for i in range(size):
            listed_ptr[i] = count
            for e in range(k):
                j = index[b, i, e]
                counts = j != i and (keep.shape[0] == 0 or keep[b, i, e])
                lists[count] = j
                count += counts
                listing_ptr[j + 1] += counts
        listed_ptr[size] = count
        for i in range(size):
            listing_ptr[i + 1] += listing_ptr[i]
        # transposed once: who lists node i; transposed again: whom i lists, now ascending
        listed_stop, listing_stop = listed_ptr[:size].copy(), listing_ptr[:size].copy()
        _transpose(listed_ptr[:size], listed_ptr[1:], lists, listing_stop, listing)
        _transpose(listing_ptr[:size], listing_stop, listing, listed_stop, listed)
        # merge the two ascending lists of every node
        total = 0
        for i in range(size):
            own, own_stop = listed_ptr[i], listed_stop[i]
            other, other_stop = listing_ptr[i], listing_stop[i]
            row, last = total, -1
            while own < own_stop or other < other_stop:
                a = listed[own] if own < own_stop else size
                c = listing[other] if other < other_stop else size
                own += a <= c
                other += c <= a
                source[b, total] = min(a, c)
                ends[b, total] = 1 + (a == c)
                total += min(a, c) != last  # what is listed twice counts once
                last = min(a, c)
            degree[b * size + i + 1] = total - row


@njit
def _transpose(start: Array, stop: Array, lists: Array, turned_stop: Array, turned: Array) -> None:
    """Fill who lists each node, ascending.

    `turned_stop` holds where each transposed list begins, and afterwards where it ends.
    """
    for i in range(stop.shape[0]):
        for at in range(start[i], stop[i]):
            j = lists[at]
            turned[turned_stop[j]] = i
            turned_stop[j] += 1


@njit(nogil=True, cache=True)
def _concatenate(
    start: int,
    stop: int,
    set_source: Array,
    set_ends: Array,
    row_ptr: Array,
    source: Array,
    ends: Array,
) -> None:
    """Copy the rows of sets start to stop to where they belong, node i of set b as b*N + i."""
    size = (row_ptr.shape[0] - 1) // max(1, set_source.shape[0])
    for b in range(start, stop):
        low, high = row_ptr[b * size], row_ptr[(b + 1) * size]
        for e in range(high - low):
            source[low + e] = set_source[b, e] + b * size
            ends[low + e] = set_ends[b, e]


# row sums


def row_sums(weight: Tensor, row_ptr: Tensor) -> Tensor:
    """See `lgdgcn.kernels.row_sums`."""
    out = weight.new_empty(row_ptr.numel() - 1)
    arrays = to_numpy(weight), to_numpy(row_ptr), out.numpy()
    in_parallel(_sum_rows, even_cuts(out.numel(), _GRAIN), *arrays)
    return out


@njit(nogil=True, cache=True)
def _sum_rows(start: int, stop: int, weight: Array, row_ptr: Array, out: Array) -> None:
    """Fill out `[n]` with the sums of the rows start to stop."""
    for i in range(start, stop):
        total = 0.0
        for e in range(row_ptr[i], row_ptr[i + 1]):
            total += weight[e]
        out[i] = total


# aggregation


def aggregate(
    x: Tensor, row_ptr: Tensor, source: Tensor, weight: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    """See `lgdgcn.kernels.aggregate`."""
    out: Tensor = _Aggregate.apply(  # type: ignore[no-untyped-call]
        x, row_ptr, source, weight.to(x.dtype), left.to(x.dtype), right.to(x.dtype)
    )
    return out


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *operator: Tensor) -> Tensor:
        ctx.save_for_backward(*operator)
        rows, left, right = operator[:3], operator[3], operator[4]
        return _gather(x, rows, left, right)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        *rows, left, right = ctx.saved_tensors
        # A is symmetric, so the transpose only swaps the two diagonals
        return _gather(grads[0], rows, right, left), None, None, None, None, None


def _gather(x: Tensor, rows: Sequence[Tensor], left: Tensor, right: Tensor) -> Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    arrays = [to_numpy(tensor) for tensor in (x, *rows, left, right)]
    cuts = row_cuts(arrays[1], 0, x.size(0))
    in_parallel(_gather_rows, cuts, *arrays, out.numpy())
    return out


@njit(nogil=True, cache=True, fastmath={"contract"})
def _gather_rows(
    start: int,
    stop: int,
    x: Array,
    row_ptr: Array,
    source: Array,
    weight: Array,
    left: Array,
    right: Array,
    out: Array,
) -> None:
    """Fill rows start to stop of out `[n, d]` with L (A + I) R x."""
    size = x.shape[1]
    if size % LANES == 0:  # sixteen columns at once, their sums in registers
        pieces = size // LANES
        for i in range(start, stop):
            for piece in range(pieces):
                total = broadcast16(right[i]) * load16(x, i * pieces + piece)
                for e in range(row_ptr[i], row_ptr[i + 1]):
                    s = source[e]
                    scale = broadcast16(weight[e] * right[s])
                    total = mul_add(scale, load16(x, s * pieces + piece), total)
                store(out, i * pieces + piece, broadcast16(left[i]) * total)
        return
    sums = np.empty(size, x.dtype)
    for i in range(start, stop):
        for j in range(size):
            sums[j] = right[i] * x[i, j]
        for e in range(row_ptr[i], row_ptr[i + 1]):
            s = source[e]
            scale = weight[e] * right[s]
            for j in range(size):
                sums[j] += scale * x[s, j]
        for j in range(size):
            out[i, j] = left[i] * sums[j]
