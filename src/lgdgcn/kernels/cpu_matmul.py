"""Sparse features times the weights of every member on the CPU."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu_arrays import Array, row_cuts, to_numpy
from lgdgcn.kernels.numba_shapes import shape_of
from lgdgcn.kernels.numba_sparse import multiply_rows, sum_rows
from lgdgcn.kernels.remembered import Remembered
from lgdgcn.kernels.structure import CompressedRows, both_ways
from lgdgcn.kernels.threads import even_cuts, in_parallel

__all__ = ["matmul", "row_sums"]

_WIDTH = 16  # columns are filled up to a multiple of this
_MOST = 128  # columns at a time: their sums stay in registers


class _Rows(NamedTuple):
    """A sparse matrix in compressed rows."""

    row_ptr: Array
    column: Array
    value: Array


_remembered: Remembered[tuple[_Rows, _Rows]] = Remembered()


def matmul(x: Tensor, weight: Tensor, values: Tensor | None = None) -> Tensor:
    """See `lgdgcn.kernels.matmul`."""
    if values is not None:  # members take turns on the CPU, so nobody asks for it here
        return reference.matmul(x, weight, values)
    if x.layout != torch.sparse_csr:
        return torch.matmul(x, weight)
    out: Tensor = _Matmul.apply(x, weight)  # type: ignore[no-untyped-call]
    return out


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        rows, ctx.columns = _both_ways(x, weight.dtype)
        return _multiply(rows, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        return None, _multiply(ctx.columns, grads[0])


def _multiply(rows: _Rows, dense: Tensor) -> Tensor:
    members, _, width = dense.shape
    fill = -width % _WIDTH
    padded = functional.pad(dense, (0, fill)) if fill else dense
    out = dense.new_empty(members, len(rows.row_ptr) - 1, width + fill)
    lanes = min((width + fill) & -(width + fill), _MOST)  # the largest power of two in it
    if out.numel():
        cuts = row_cuts(rows.row_ptr, 0, out.size(0) * out.size(1))
        arrays = to_numpy(padded), out.numpy()
        in_parallel(multiply_rows, cuts, *rows, *arrays, shape_of(1, lanes))
    return out[..., :width].contiguous() if fill else out


def _both_ways(x: Tensor, dtype: torch.dtype) -> tuple[_Rows, _Rows]:
    """The rows of x and of its transpose as arrays."""

    def build() -> tuple[_Rows, _Rows]:
        rows, columns = both_ways(x)
        return _arrays(rows, dtype), _arrays(columns, dtype)

    return _remembered.get(x, dtype, build)


def _arrays(rows: CompressedRows, dtype: torch.dtype) -> _Rows:
    index = rows.row_ptr.long(), rows.column.long()
    return _Rows(*(to_numpy(part) for part in (*index, rows.value.to(dtype))))


def row_sums(weight: Tensor, row_ptr: Tensor) -> Tensor:
    """See `lgdgcn.kernels.row_sums`."""
    out = weight.new_empty(row_ptr.numel() - 1)
    arrays = to_numpy(weight), to_numpy(row_ptr), out.numpy()
    in_parallel(sum_rows, even_cuts(out.numel(), 1 << 13), *arrays)
    return out
