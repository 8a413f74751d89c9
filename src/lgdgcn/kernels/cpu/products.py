"""Sparse features times the weights of every member, and inner products along edges."""

from typing import Any, NamedTuple

import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.threads import Array, in_parallel, row_cuts, to_numpy
from lgdgcn.kernels.cpu.vector_math import fold, mul_add
from lgdgcn.kernels.cpu.vectors import Shape, fill, lanes_of, load, shape_of, store
from lgdgcn.kernels.graph import (
    CompressedRows,
    Incident,
    Remembered,
    both_ways,
    incident,
)

__all__ = ["edge_agreement", "matmul"]

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


@njit(nogil=True, cache=True, error_model="numpy")
def multiply_rows(
    start: int,
    stop: int,
    row_ptr: Array,
    column: Array,
    value: Array,
    dense: Array,
    out: Array,
    shape: Shape,
) -> None:
    """Fill rows start to stop of out `[R * N, H]` with sparse `[N, F]` times dense `[R, F, H]`.

    Columns are taken as many at a time as `shape` has lanes, a divisor of H.
    """
    nodes, blocks = len(row_ptr) - 1, dense.shape[2] // lanes_of(shape)
    zeros = fill(dense.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        i, offset = v - member * nodes, member * dense.shape[1]
        for block in range(blocks):
            total = zeros
            for e in range(row_ptr[i], row_ptr[i + 1]):
                near = load(dense, (offset + column[e]) * blocks + block, shape)
                total = mul_add(fill(value[e], shape), near, total)
            store(out, v * blocks + block, total)


_FEWEST, _STEP = 16, 64  # vectors are filled up to a power of two, or to a multiple of the step


def edge_agreement(q: Tensor, edge_index: Tensor) -> Tensor:
    """See `lgdgcn.kernels.edge_agreement`."""
    if q.numel() == 0:
        return reference.edge_agreement(q, edge_index)
    graph = incident(edge_index, q.size(1))
    step = min(_STEP, max(_FEWEST, 1 << (q.size(2) - 1).bit_length()))
    fill = -q.size(2) % step
    padded = functional.pad(q, (0, fill)) if fill else q
    out: Tensor = _EdgeAgreement.apply(padded, graph)  # type: ignore[no-untyped-call]
    return out


class _EdgeAgreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, graph: Incident) -> Tensor:
        ctx.save_for_backward(q)
        ctx.graph = graph
        members, nodes, width = q.shape
        out = q.new_empty(members, graph.target.numel())
        lists = [to_numpy(part) for part in graph.lists[:3]]
        cuts = row_cuts(lists[0], 0, members * nodes)
        in_parallel(inner_products, cuts, to_numpy(q), *lists, out.numpy(), _shape(width))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (q,) = ctx.saved_tensors
        members, nodes, width = q.shape
        grad = torch.empty_like(q, memory_format=torch.contiguous_format)
        rows = [to_numpy(part) for part in ctx.graph[2:]]
        arrays = to_numpy(q), *rows, to_numpy(grads[0]), grad.numpy()
        cuts = row_cuts(rows[0], 0, members * nodes)
        in_parallel(gather_gradients, cuts, *arrays, _shape(width))
        return grad, None


def _shape(width: int) -> Shape:
    """As many numbers at a time as divide the width, a power of two."""
    return shape_of(1, min(width & -width, _MOST))


@njit(nogil=True, cache=True, error_model="numpy")
def inner_products(
    start: int,
    stop: int,
    q: Array,
    row_ptr: Array,
    source: Array,
    order: Array,
    out: Array,
    shape: Shape,
) -> None:
    """Fill out `[R, E]` for the in-edges of the nodes from start to stop."""
    nodes, blocks = len(row_ptr) - 1, q.shape[2] // lanes_of(shape)
    for v in range(start, stop):
        member = v // nodes
        t, offset, first_edge = v - member * nodes, member * nodes, member * len(source)
        own = load(q, v * blocks, shape)
        for e in range(row_ptr[t], row_ptr[t + 1]):
            near = (offset + source[e]) * blocks
            total = own * load(q, near, shape)
            for block in range(1, blocks):
                piece = load(q, v * blocks + block, shape)
                total = mul_add(piece, load(q, near + block, shape), total)
            store(out, first_edge + order[e], fold(total, shape))


@njit(nogil=True, cache=True, error_model="numpy")
def gather_gradients(
    start: int,
    stop: int,
    q: Array,
    row_ptr: Array,
    other: Array,
    edge: Array,
    grad_out: Array,
    grad: Array,
    shape: Shape,
) -> None:
    """Fill grad `[R, N, D]` of the nodes from start to stop from all edges at each of them."""
    nodes, blocks = len(row_ptr) - 1, q.shape[2] // lanes_of(shape)
    zeros = fill(q.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        t, offset = v - member * nodes, member * nodes
        for block in range(blocks):
            total = zeros
            for i in range(row_ptr[t], row_ptr[t + 1]):
                near = load(q, (offset + other[i]) * blocks + block, shape)
                share = grad_out[member, edge[i]]
                total = mul_add(fill(share, shape), near, total)
            store(grad, v * blocks + block, total)
