# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Sparse products on a GPU: features times weights, and inner products along edges."""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.graph import (
    CompressedRows,
    IncidentEdges,
    TensorCache,
    incident_edges,
    rows_and_transpose,
)

__all__ = ["edge_agreement", "matmul"]

_CROWDED = 1 << 15  # programs from which on the GPU is full whatever one of them takes
_TILE = 2048  # numbers of one program along edges
_WARP = 512  # numbers that keep a warp busy
_NOT_SPECIALIZED = ["num_nodes", "num_edges"]  # one version for all graphs


# features times weights


class _Rows32(NamedTuple):
    """Compressed rows of a sparse matrix with 32-bit indices."""

    row_ptr: Tensor
    column: Tensor
    value: Tensor  # [nnz], or [R, nnz] where every member has own values
    longest: int


_cache: TensorCache[tuple[_Rows32, _Rows32, Tensor]] = TensorCache()


def matmul(x: Tensor, weight: Tensor, values: Tensor | None = None) -> Tensor:
    """See `lgdgcn.kernels.matmul`."""
    if x.layout != torch.sparse_csr:
        return x @ weight
    rows, columns, order = _both(x)
    if values is not None:
        rows = rows._replace(value=values.detach())
        columns = columns._replace(value=values.detach()[:, order])
    out: Tensor = _Matmul.apply(weight, rows, columns)
    return out


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: _Rows32, columns: _Rows32) -> Tensor:
        ctx.columns = columns
        return _multiply(rows, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _multiply(ctx.columns, grads[0]), None, None  # the gradient of W is x^T g


def _both(x: Tensor) -> tuple[_Rows32, _Rows32, Tensor]:
    """The rows of x and of its transpose, and where x has the values of the latter."""

    def build() -> tuple[_Rows32, _Rows32, Tensor]:
        rows, columns = rows_and_transpose(x)
        return _narrow(rows), _narrow(columns), columns.order

    return _cache.get(x, None, build)


def _narrow(rows: CompressedRows) -> _Rows32:
    longest = int(rows.row_ptr.diff().max()) if rows.row_ptr.numel() > 1 else 0
    return _Rows32(rows.row_ptr.int(), rows.column.int(), rows.value, longest)


def _tile(rows: _Rows32, columns: int) -> tuple[int, int]:
    """Entries of a row and columns of the product that a program takes at once."""
    columns = triton.next_power_of_2(max(1, columns))
    if (rows.row_ptr.numel() - 1) * columns // 64 >= _CROWDED:
        return 8, min(columns, 128)
    # a long row must not take many turns while the short ones are done
    wide = triton.next_power_of_2(max(1, rows.longest // 8))
    return min(max(wide, 16), 64), min(columns, 64)


def _multiply(rows: _Rows32, weight: Tensor) -> Tensor:
    members, features, width = weight.shape
    count = rows.row_ptr.numel() - 1
    out = weight.new_empty(members, count, width)
    entries, tile = _tile(rows, members * width)
    own_values = rows.value.dim() == 2
    _multiply_kernel[(count, triton.cdiv(members * width, tile))](
        *rows[:3],
        weight.contiguous(),
        out,
        members,
        count,
        features,
        rows.column.numel() if own_values else 0,
        OWN_VALUES=own_values,
        WIDTH=width,
        ENTRIES=entries,
        TILE=tile,
        num_warps=max(1, entries * tile // 1024),
    )
    return out


@triton.jit
def _multiply_kernel(
    ptr_ptr, column_ptr, value_ptr, weight_ptr, out_ptr, members, count, features, stride,
    OWN_VALUES: tl.constexpr, WIDTH: tl.constexpr, ENTRIES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write TILE columns of one row of the product, ENTRIES entries of the sparse row at a time."""
    row = tl.program_id(0).to(tl.int64)
    start, stop = tl.load(ptr_ptr + row), tl.load(ptr_ptr + row + 1)
    # the members' columns lie side by side, so a tile is full whatever the width
    flat = tl.program_id(1) * TILE + tl.arange(0, TILE)
    member, column = (flat // WIDTH).to(tl.int64), flat % WIDTH
    exists = member < members
    source = weight_ptr + member * features * WIDTH + column  # [TILE]
    total = tl.zeros((ENTRIES, TILE), tl.float32)
    for first in range(start, stop, ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        used = entry < stop
        feature = tl.load(column_ptr + entry, mask=used, other=0).to(tl.int64)
        at = source[None, :] + feature[:, None] * WIDTH
        inside = used[:, None] & exists[None, :]
        weight = tl.load(at, mask=inside, other=0.0)
        if OWN_VALUES:
            own = value_ptr + member[None, :] * stride + entry[:, None]
            total += tl.load(own, mask=inside, other=0.0) * weight
        else:
            total += tl.load(value_ptr + entry, mask=used, other=0.0)[:, None] * weight
    out = out_ptr + (member * count + row) * WIDTH + column
    tl.store(out, tl.sum(total, axis=0), mask=exists)


# inner products along edges


def edge_agreement(q: Tensor, edge_index: Tensor) -> Tensor:
    """See `lgdgcn.kernels.edge_agreement`."""
    if q.numel() == 0 or edge_index.numel() == 0:
        return reference.edge_agreement(q, edge_index)
    out: Tensor = _EdgeAgreement.apply(q, incident_edges(edge_index, q.size(1)))
    return out


class _EdgeAgreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, graph: IncidentEdges) -> Tensor:
        q = q.contiguous()
        ctx.save_for_backward(q)
        ctx.graph = graph
        members, nodes, width = q.shape
        edges = graph.target.numel()
        out = q.new_empty(members, edges)
        ends = graph.lists.source, graph.target, graph.lists.order
        sizes = _sizes(width, edges)
        grid = triton.cdiv(edges, sizes["K"]), members
        with torch.cuda.device_of(q):
            _inner_kernel[grid](q, *ends, out, nodes, edges, **sizes)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (q,) = ctx.saved_tensors
        members, nodes, width = q.shape
        edges = ctx.graph.target.numel()
        grad = torch.empty_like(q)
        sizes = _sizes(width, 2 * edges // nodes)  # the rest of longer rows comes in more rounds
        arrays = q, *ctx.graph[2:], grads[0].contiguous(), grad
        with torch.cuda.device_of(q):
            _gather_kernel[nodes, members](*arrays, nodes, edges, **sizes)
        return grad, None


def _sizes(width: int, edges: int) -> dict[str, int]:
    """Tile of a program that has so many edges to read: K vectors of D padded to DP numbers."""
    padded = triton.next_power_of_2(width)
    count = max(1, min(_TILE // padded, triton.next_power_of_2(max(1, edges))))
    warps = min(4, max(1, count * padded // _WARP))
    return {"D": width, "DP": padded, "K": count, "num_warps": warps}


@triton.jit(do_not_specialize=_NOT_SPECIALIZED)
def _inner_kernel(
    q, source, target, order, out, num_nodes, num_edges,
    D: tl.constexpr, DP: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write out `[E]` of K edges of one member, which lie in the order of their targets."""
    member = tl.program_id(1).to(tl.int64)
    q += member * num_nodes * D
    out += member * num_edges
    column = tl.arange(0, DP)[None, :]
    entry = tl.program_id(0) * K + tl.arange(0, K)[:, None]
    exists = entry < num_edges
    mask = exists & (column < D)
    one = tl.load(q + tl.load(source + entry, exists, 0) * D + column, mask, 0.0)
    two = tl.load(q + tl.load(target + entry, exists, 0) * D + column, mask, 0.0)
    to = out + tl.load(order + entry, exists, 0)
    tl.store(to, tl.sum(one * two, 1, keep_dims=True), exists)


@triton.jit(do_not_specialize=_NOT_SPECIALIZED)
def _gather_kernel(
    q, row_ptr, other, edge, grad_out, grad, num_nodes, num_edges,
    D: tl.constexpr, DP: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write grad `[N, D]` of one node of one member, from K of its edges at a time."""
    node, member = tl.program_id(0), tl.program_id(1).to(tl.int64)
    q += member * num_nodes * D
    grad += member * num_nodes * D
    grad_out += member * num_edges
    column = tl.arange(0, DP)[None, :]
    end = tl.load(row_ptr + node + 1)
    total = tl.zeros([K, DP], tl.float32)
    for start in range(tl.load(row_ptr + node), end, K):
        entry = start + tl.arange(0, K)[:, None]
        exists = entry < end
        share = tl.load(grad_out + tl.load(edge + entry, exists, 0), exists, 0.0)
        neighbour = tl.load(other + entry, exists, 0)
        total += share * tl.load(q + neighbour * D + column, exists & (column < D), 0.0)
    at = node.to(tl.int64) * D + column
    tl.store(grad + at, tl.sum(total, 0, keep_dims=True), column < D)
