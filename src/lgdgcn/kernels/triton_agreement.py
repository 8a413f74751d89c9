# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Inner products along edges on a GPU, and their gradient, gathered in fixed order."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.incident import Incident, incident

__all__ = ["edge_agreement"]

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
