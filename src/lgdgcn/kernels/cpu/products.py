"""Sparse products on the CPU: features times weights, and inner products along edges.

Both read rows of a dense array in vectors of a fixed power of two of numbers, `RowShape(1, lanes)`;
columns are padded with zeros until such vectors divide them.
"""

from typing import Any, NamedTuple

import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.threads import Array, in_parallel, row_cuts, to_numpy
from lgdgcn.kernels.cpu.vector_math import mul_add, sum_over_d
from lgdgcn.kernels.cpu.vectors import RowShape, broadcast, lanes_of, load, row_shape, store
from lgdgcn.kernels.graph import (
    CompressedRows,
    IncidentEdges,
    TensorCache,
    incident_edges,
    rows_and_transpose,
)

__all__ = ["edge_agreement", "matmul"]

_MATMUL_STEP = 16  # columns of a product are padded to a multiple of this
_SHORTEST, _EDGE_STEP = 16, 64  # vectors of nodes: to a power of two, or to a multiple of the step
_MOST_LANES = 128  # numbers at once: their sums stay in registers


def _vector_shape(width: int) -> RowShape:
    """The longest vectors that divide the width, a power of two."""
    return row_shape(1, min(width & -width, _MOST_LANES))


# features times weights


class _RowArrays(NamedTuple):
    """A sparse matrix in compressed rows."""

    row_ptr: Array
    column: Array
    value: Array  # [1, nnz], or [R, nnz] where every member has own values


_cache: TensorCache[tuple[_RowArrays, _RowArrays, Tensor]] = TensorCache()


def matmul(x: Tensor, weight: Tensor, values: Tensor | None = None) -> Tensor:
    """See `lgdgcn.kernels.matmul`."""
    if x.layout != torch.sparse_csr:
        return torch.matmul(x, weight)
    rows, columns, order = _row_arrays(x, weight.dtype)
    if values is not None:
        own = values.detach().to(weight.dtype)
        rows = rows._replace(value=to_numpy(own))
        columns = columns._replace(value=to_numpy(own[:, order]))
    out: Tensor = _Matmul.apply(weight, rows, columns)  # type: ignore[no-untyped-call]
    return out


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: _RowArrays, columns: _RowArrays) -> Tensor:
        ctx.columns = columns
        return _multiply(rows, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _multiply(ctx.columns, grads[0]), None, None  # the gradient of W is x^T g


def _row_arrays(x: Tensor, dtype: torch.dtype) -> tuple[_RowArrays, _RowArrays, Tensor]:
    """The rows of x and of its transpose, and where x has the values of the latter."""

    def build() -> tuple[_RowArrays, _RowArrays, Tensor]:
        rows, columns = rows_and_transpose(x)
        return _to_arrays(rows, dtype), _to_arrays(columns, dtype), columns.order

    return _cache.get(x, dtype, build)


def _to_arrays(rows: CompressedRows, dtype: torch.dtype) -> _RowArrays:
    value = rows.value.to(dtype).unsqueeze(0)
    parts = rows.row_ptr.long(), rows.column.long(), value
    return _RowArrays(*(to_numpy(tensor) for tensor in parts))


def _multiply(rows: _RowArrays, dense: Tensor) -> Tensor:
    members, _, width = dense.shape
    padding = -width % _MATMUL_STEP
    padded = functional.pad(dense, (0, padding)) if padding else dense
    out = dense.new_empty(members, len(rows.row_ptr) - 1, width + padding)
    if out.numel():
        cuts = row_cuts(rows.row_ptr, 0, out.size(0) * out.size(1))
        arrays = to_numpy(padded), out.numpy()
        in_parallel(_multiply_rows, cuts, *rows, *arrays, _vector_shape(width + padding))
    return out[..., :width].contiguous() if padding else out


@njit(nogil=True, cache=True, error_model="numpy")
def _multiply_rows(
    start: int,
    stop: int,
    row_ptr: Array,
    column: Array,
    value: Array,
    dense: Array,
    out: Array,
    shape: RowShape,
) -> None:
    """Fill rows start to stop of out `[R * N, H]` with sparse `[N, F]` times dense `[R, F, H]`."""
    nodes, blocks = len(row_ptr) - 1, dense.shape[2] // lanes_of(shape)
    zeros = broadcast(dense.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        i, offset = v - member * nodes, member * dense.shape[1]
        own = value[min(member, len(value) - 1)]
        for block in range(blocks):
            total = zeros
            for e in range(row_ptr[i], row_ptr[i + 1]):
                if own[e] != 0:  # many entries are dropped in training
                    row = load(dense, (offset + column[e]) * blocks + block, shape)
                    total = mul_add(broadcast(own[e], shape), row, total)
            store(out, v * blocks + block, total)


# inner products along edges


def edge_agreement(q: Tensor, edge_index: Tensor) -> Tensor:
    """See `lgdgcn.kernels.edge_agreement`."""
    if q.numel() == 0:
        return reference.edge_agreement(q, edge_index)
    graph = incident_edges(edge_index, q.size(1))
    step = min(_EDGE_STEP, max(_SHORTEST, 1 << (q.size(2) - 1).bit_length()))
    padding = -q.size(2) % step
    padded = functional.pad(q, (0, padding)) if padding else q
    out: Tensor = _EdgeAgreement.apply(padded, graph)  # type: ignore[no-untyped-call]
    return out


class _EdgeAgreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, graph: IncidentEdges) -> Tensor:
        ctx.save_for_backward(q)
        ctx.graph = graph
        members, nodes, width = q.shape
        out = q.new_empty(members, graph.target.numel())
        lists = [to_numpy(tensor) for tensor in graph.lists[:3]]
        cuts = row_cuts(lists[0], 0, members * nodes)
        shape = _vector_shape(width)
        in_parallel(_inner_products, cuts, to_numpy(q), *lists, out.numpy(), shape)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (q,) = ctx.saved_tensors
        members, nodes, width = q.shape
        grad = torch.empty_like(q, memory_format=torch.contiguous_format)
        rows = [to_numpy(tensor) for tensor in ctx.graph[2:]]
        arrays = to_numpy(q), *rows, to_numpy(grads[0]), grad.numpy()
        cuts = row_cuts(rows[0], 0, members * nodes)
        in_parallel(_gather_gradients, cuts, *arrays, _vector_shape(width))
        return grad, None


@njit(nogil=True, cache=True, error_model="numpy")
def _inner_products(
    start: int,
    stop: int,
    q: Array,
    row_ptr: Array,
    source: Array,
    order: Array,
    out: Array,
    shape: RowShape,
) -> None:
    """Fill out `[R, E]` for the in-edges of the nodes from start to stop.

    Nodes of all members are numbered consecutively: node t of member r is r*N + t.
    """
    nodes, blocks = len(row_ptr) - 1, q.shape[2] // lanes_of(shape)
    for v in range(start, stop):
        member = v // nodes
        t, offset, first_edge = v - member * nodes, member * nodes, member * len(source)
        own = load(q, v * blocks, shape)
        for e in range(row_ptr[t], row_ptr[t + 1]):
            neighbour = (offset + source[e]) * blocks
            total = own * load(q, neighbour, shape)
            for block in range(1, blocks):
                piece = load(q, v * blocks + block, shape)
                total = mul_add(piece, load(q, neighbour + block, shape), total)
            store(out, first_edge + order[e], sum_over_d(total, shape))


@njit(nogil=True, cache=True, error_model="numpy")
def _gather_gradients(
    start: int,
    stop: int,
    q: Array,
    row_ptr: Array,
    other: Array,
    edge: Array,
    grad_out: Array,
    grad: Array,
    shape: RowShape,
) -> None:
    """Fill grad `[R, N, D]` of the nodes from start to stop from all edges at each of them."""
    nodes, blocks = len(row_ptr) - 1, q.shape[2] // lanes_of(shape)
    zeros = broadcast(q.dtype.type(0), shape)
    for v in range(start, stop):
        member = v // nodes
        t, offset = v - member * nodes, member * nodes
        for block in range(blocks):
            total = zeros
            for i in range(row_ptr[t], row_ptr[t + 1]):
                neighbour = load(q, (offset + other[i]) * blocks + block, shape)
                share = grad_out[member, edge[i]]
                total = mul_add(broadcast(share, shape), neighbour, total)
            store(grad, v * blocks + block, total)
