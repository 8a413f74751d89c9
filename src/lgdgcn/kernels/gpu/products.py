# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Products of a sparse feature matrix with the weights of many members, and along edges."""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.graph import CompressedRows, Incident, Remembered, both_ways, incident

__all__ = ["edge_agreement", "matmul"]

_CROWDED = 1 << 15  # programs from which on the GPU is full whatever one of them takes


class _Rows(NamedTuple):
    """Compressed rows of a sparse matrix in 32-bit indices."""

    row_ptr: Tensor
    column: Tensor
    value: Tensor  # [nnz], or [R, nnz] where every member has own values
    longest: int


_remembered: Remembered[tuple[_Rows, _Rows, Tensor]] = Remembered()


def matmul(x: Tensor, weight: Tensor, values: Tensor | None = None) -> Tensor:
    """See `lgdgcn.kernels.matmul`."""
    if x.layout != torch.sparse_csr:
        return x @ weight
    rows, columns, order = _both_ways(x)
    if values is not None:
        rows = rows._replace(value=values.detach())
        columns = columns._replace(value=values.detach()[:, order])
    out: Tensor = _Matmul.apply(weight, rows, columns)
    return out


class _Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: _Rows, columns: _Rows) -> Tensor:
        ctx.columns = columns
        return _multiply(rows, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _multiply(ctx.columns, grads[0]), None, None


def _both_ways(x: Tensor) -> tuple[_Rows, _Rows, Tensor]:
    """The rows of x and of its transpose in 32-bit indices, and where the latter's values are."""

    def build() -> tuple[_Rows, _Rows, Tensor]:
        rows, columns = both_ways(x)
        return _narrow(rows), _narrow(columns), columns.order

    return _remembered.get(x, None, build)


def _narrow(rows: CompressedRows) -> _Rows:
    longest = int(rows.row_ptr.diff().max()) if rows.row_ptr.numel() > 1 else 0
    return _Rows(rows.row_ptr.int(), rows.column.int(), rows.value, longest)


def _tile(rows: _Rows, columns: int) -> tuple[int, int]:
    """Entries of a row and columns of the product that a program takes at once."""
    columns = triton.next_power_of_2(max(1, columns))
    if (rows.row_ptr.numel() - 1) * columns // 64 >= _CROWDED:
        return 8, min(columns, 128)
    # a long row must not take many turns while the short ones are done
    wide = triton.next_power_of_2(max(1, rows.longest // 8))
    return min(max(wide, 16), 64), min(columns, 64)


def _multiply(rows: _Rows, weight: Tensor) -> Tensor:
    members, features, width = weight.shape
    count = rows.row_ptr.numel() - 1
    out = weight.new_empty(members, count, width)
    entries, tile = _tile(rows, members * width)
    _multiply_kernel[(count, triton.cdiv(members * width, tile))](
        rows.row_ptr,
        rows.column,
        rows.value,
        weight.contiguous(),
        out,
        members,
        count,
        features,
        rows.column.numel() if rows.value.dim() == 2 else 0,
        OWN_VALUES=rows.value.dim() == 2,
        WIDTH=width,
        ENTRIES=entries,
        TILE=tile,
        num_warps=max(1, entries * tile // 1024),
    )
    return out


@triton.jit
def _multiply_kernel(
    ptr_ptr,
    column_ptr,
    value_ptr,
    weight_ptr,
    out_ptr,
    members,
    count,
    features,
    stride,
    OWN_VALUES: tl.constexpr,
    WIDTH: tl.constexpr,
    ENTRIES: tl.constexpr,
    TILE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    start, stop = tl.load(ptr_ptr + row), tl.load(ptr_ptr + row + 1)
    # the members' columns lie side by side, so a tile is full whatever the width
    flat = tl.program_id(1) * TILE + tl.arange(0, TILE)
    member, column = (flat // WIDTH).to(tl.int64), flat % WIDTH
    real = member < members
    source = weight_ptr + member * features * WIDTH + column  # [TILE]
    total = tl.zeros((ENTRIES, TILE), tl.float32)
    for first in range(start, stop, ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        used = entry < stop
        feature = tl.load(column_ptr + entry, mask=used, other=0).to(tl.int64)
        at = source[None, :] + feature[:, None] * WIDTH
        inside = used[:, None] & real[None, :]
        weight = tl.load(at, mask=inside, other=0.0)
        if OWN_VALUES:
            own = value_ptr + member[None, :] * stride + entry[:, None]
            total += tl.load(own, mask=inside, other=0.0) * weight
        else:
            total += tl.load(value_ptr + entry, mask=used, other=0.0)[:, None] * weight
    out = out_ptr + (member * count + row) * WIDTH + column
    tl.store(out, tl.sum(total, axis=0), mask=real)


_TILE = 2048  # numbers of one program
_WARP = 512  # numbers that keep a warp busy
_PLAIN = ["num_nodes", "num_edges"]


def edge_agreement(q: Tensor, edge_index: Tensor) -> Tensor:
    """See `lgdgcn.kernels.edge_agreement`."""
    if q.numel() == 0 or edge_index.numel() == 0:
        return reference.edge_agreement(q, edge_index)
    out: Tensor = _EdgeAgreement.apply(q, incident(edge_index, q.size(1)))
    return out


class _EdgeAgreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, graph: Incident) -> Tensor:
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


@triton.jit(do_not_specialize=_PLAIN)
def _inner_kernel(
    q, source, target, order, out, num_nodes, num_edges,
    D: tl.constexpr, DP: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write out `[E]` of K edges of one member, which lie in the order of their targets."""
    member = tl.program_id(1).to(tl.int64)
    q += member * num_nodes * D
    out += member * num_edges
    place = tl.arange(0, DP)[None, :]
    entry = tl.program_id(0) * K + tl.arange(0, K)[:, None]
    live = entry < num_edges
    mask = live & (place < D)
    one = tl.load(q + tl.load(source + entry, live, 0) * D + place, mask, 0.0)
    two = tl.load(q + tl.load(target + entry, live, 0) * D + place, mask, 0.0)
    tl.store(out + tl.load(order + entry, live, 0), tl.sum(one * two, 1, keep_dims=True), live)


@triton.jit(do_not_specialize=_PLAIN)
def _gather_kernel(
    q, row_ptr, other, edge, grad_out, grad, num_nodes, num_edges,
    D: tl.constexpr, DP: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write grad `[N, D]` of one node of one member, from K of its edges at a time."""
    node, member = tl.program_id(0), tl.program_id(1).to(tl.int64)
    q += member * num_nodes * D
    grad += member * num_nodes * D
    grad_out += member * num_edges
    place = tl.arange(0, DP)[None, :]
    end = tl.load(row_ptr + node + 1)
    total = tl.zeros([K, DP], tl.float32)
    for start in range(tl.load(row_ptr + node), end, K):
        entry = start + tl.arange(0, K)[:, None]
        live = entry < end
        share = tl.load(grad_out + tl.load(edge + entry, live, 0), live, 0.0)
        near = tl.load(q + tl.load(other + entry, live, 0) * D + place, live & (place < D), 0.0)
        total += share * near
    at = node.to(tl.int64) * D + place
    tl.store(grad + at, tl.sum(total, 0, keep_dims=True), place < D)
