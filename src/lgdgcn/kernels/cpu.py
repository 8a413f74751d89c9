"""CPU backend: numba loops over compressed rows, bitwise repeatable at any thread count."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import numba_graph
from lgdgcn.kernels.cpu_agreement import edge_agreement
from lgdgcn.kernels.cpu_arrays import row_cuts, to_numpy
from lgdgcn.kernels.cpu_matmul import matmul, row_sums
from lgdgcn.kernels.cpu_route import route
from lgdgcn.kernels.cpu_units import adam, diversity_loss, dropout, unit_length
from lgdgcn.kernels.numba_knn import nearest
from lgdgcn.kernels.numba_union import symmetrize
from lgdgcn.kernels.threads import in_parallel

__all__ = [
    "adam",
    "aggregate",
    "diversity_loss",
    "dropout",
    "edge_agreement",
    "matmul",
    "nearest",
    "route",
    "row_sums",
    "symmetrize",
    "unit_length",
]


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
    arrays = [to_numpy(part) for part in (x, *rows, left, right)]
    rows_of = row_cuts(arrays[1], 0, x.size(0))
    in_parallel(numba_graph.gather_rows, rows_of, *arrays, out.numpy())
    return out
