"""CPU backend: numba loops over compressed rows, bitwise repeatable at any thread count."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import numba_graph, numba_route
from lgdgcn.kernels.structure import Neighbours, Union, neighbours
from lgdgcn.kernels.threads import in_parallel, threads

__all__ = ["aggregate", "nearest", "route", "symmetrize"]

_EDGE_BYTES = 1 << 24  # bound on the edge gradients held at once, unless one row needs more
_CHUNKS_PER_THREAD = 4


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int,
    tau: float,
    uniform_start: bool,
    normalize_last: bool,
) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.route`."""
    lists = neighbours(edge_index, z.size(0))
    scale = np.finfo(_numpy(z.detach()).dtype)
    settings = (iterations, scale.dtype.type(1.0 / tau), scale.tiny, uniform_start, normalize_last)
    units: Tensor
    units, chance = _Route.apply(z, lists, settings)  # type: ignore[no-untyped-call]
    return units, chance


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, lists: Neighbours, settings: tuple[Any, ...]
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(z)
        ctx.lists, ctx.settings = lists, settings
        ctx.set_materialize_grads(False)
        units = torch.empty_like(z, memory_format=torch.contiguous_format)
        chance = z.new_empty(lists.source.numel(), z.size(1))
        rows = tuple(map(_numpy, lists[:3]))
        in_parallel(
            numba_route.route_forward,
            _split(rows[0], 0, z.size(0)),
            _numpy(z),
            *rows,
            *settings,
            units.numpy(),
            chance.numpy(),
        )
        return units, chance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        (z,) = ctx.saved_tensors
        units = z.new_zeros(z.shape) if grads[0] is None else grads[0]
        chance = z.new_empty(0, z.size(1)) if grads[1] is None else grads[1]
        grad = torch.empty_like(z, memory_format=torch.contiguous_format)
        row_ptr, source, order, out_ptr, out_entry = map(_numpy, ctx.lists)
        through = torch.zeros_like(grad).numpy()  # gradient through the edges
        cursor = np.zeros(z.size(0), np.int64)
        room = max(1, _EDGE_BYTES // max(1, z.size(1) * z.size(2) * z.element_size()))
        start = 0
        while start < z.size(0):
            stop = int(np.searchsorted(row_ptr, row_ptr[start] + room, side="right")) - 1
            stop = min(max(stop, start + 1), z.size(0))
            first, last = int(row_ptr[start]), int(row_ptr[stop])
            edge_grad = np.empty((last - first, *z.shape[1:]), through.dtype)
            in_parallel(
                numba_route.route_backward,
                _split(row_ptr, start, stop),
                _numpy(z),
                row_ptr,
                source,
                order,
                *ctx.settings,
                _numpy(units),
                _numpy(chance),
                grad.numpy(),
                edge_grad,
                first,
            )
            sources = _split(out_ptr, 0, z.size(0))
            sums = (edge_grad, out_ptr, out_entry, cursor, first, through)
            in_parallel(numba_route.sum_by_source, sources, *sums)
            start = stop
        return grad.add_(torch.from_numpy(through)), None, None


def nearest(z: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.nearest`."""
    points = numba_graph.pad(_numpy(z))
    index = torch.empty(*z.shape[:2], k, dtype=torch.int64)
    distance = z.new_empty(index.shape)
    jobs = numba_graph.nearest_jobs(z.size(0), z.size(1))
    cuts = np.linspace(0, jobs, min(jobs, threads() * _CHUNKS_PER_THREAD) + 1).astype(np.int64)
    filled = index.numpy(), distance.numpy()
    in_parallel(numba_graph.nearest_points, cuts, points, z.size(1), *filled)
    return index, distance


def symmetrize(index: Tensor, keep: Tensor | None) -> Union:
    """See `lgdgcn.kernels.symmetrize`."""
    row_ptr = torch.empty(index.size(0) * index.size(1) + 1, dtype=torch.int64)
    source = torch.empty(2 * index.numel(), dtype=torch.int64)
    mutual = torch.empty(2 * index.numel(), dtype=torch.bool)
    kept = torch.empty(0, 0, 0, dtype=torch.bool) if keep is None else keep
    out = row_ptr.numpy(), source.numpy(), mutual.numpy()
    count = numba_graph.unite_lists(_numpy(index), _numpy(kept), *out)
    return Union(row_ptr, source[:count].clone(), mutual[:count].clone())


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
    arrays = [_numpy(part) for part in (x, *rows, left, right)]
    rows_of = _split(arrays[1], 0, x.size(0))
    in_parallel(numba_graph.gather_rows, rows_of, *arrays, out.numpy())
    return out


def _numpy(x: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = x.detach().contiguous().numpy()
    return array


def _split(row_ptr: np.ndarray[Any, Any], start: int, stop: int) -> np.ndarray[Any, Any]:
    """Boundaries of node ranges with about equal work."""
    work = row_ptr[start : stop + 1] + np.arange(start, stop + 1)  # a node costs about an edge
    cuts = np.linspace(work[0], work[-1], threads() * _CHUNKS_PER_THREAD + 1)
    return start + np.searchsorted(work, cuts).astype(np.int64)
