"""Routing on the CPU: the autograd function around the loops of `route_kernels`.

Forward packs the vectors and runs all iterations of every node in one pass; nothing per iteration
is stored. Backward repeats the iterations of each node, walks them backwards and leaves one
gradient per edge, which a second pass sums by source. Edge gradients are held for a range of nodes
at a time, so that memory stays bounded on graphs with many edges.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.route_kernels import (
    pack_rows,
    route_backward,
    route_forward,
    sum_by_source,
)
from lgdgcn.kernels.cpu.threads import Array, edges_before, in_parallel, row_cuts, to_numpy
from lgdgcn.kernels.cpu.vectors import row_shape
from lgdgcn.kernels.graph import Neighbours, neighbours

__all__ = ["route"]

_EDGE_BYTES = 1 << 24  # bound on the edge gradients held at once, unless one node needs more
_MOST_LANES = 1024  # longer rows leave the registers and take long to compile


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int,
    tau: Tensor,
    uniform_start: bool,
    normalize_last: bool,
) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.route`."""
    settings = iterations, uniform_start, normalize_last
    if z.numel() == 0 or row_shape(*z.shape[2:]).lanes > _MOST_LANES:
        return reference.route(z, edge_index, iterations, tau, uniform_start, normalize_last)
    lists = neighbours(edge_index, z.size(1))
    inverse_temperature = tau.to(z.dtype).reciprocal()
    units: Tensor
    units, probability = _Route.apply(  # type: ignore[no-untyped-call]
        z, inverse_temperature, lists, settings
    )
    return units, probability


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        inverse_temperature: Tensor,
        lists: Neighbours,
        settings: tuple[int, bool, bool],
    ) -> tuple[Tensor, Tensor]:
        members, nodes, factors, size = z.shape
        shape = row_shape(factors, size)
        row_ptr, source, order = map(to_numpy, lists[:3])
        packed = z.new_empty(members * nodes, shape.lanes).numpy()
        cuts = row_cuts(row_ptr, 0, members * nodes)
        in_parallel(pack_rows, cuts, to_numpy(z), packed, shape)
        units = torch.empty_like(z, memory_format=torch.contiguous_format)
        probability = z.new_empty(members, source.size, factors)
        graph = nodes, row_ptr, source
        arguments = packed, graph, order, to_numpy(inverse_temperature), settings
        in_parallel(route_forward, cuts, *arguments, units.numpy(), probability.numpy(), shape)
        ctx.set_materialize_grads(False)
        ctx.arguments, ctx.lists = arguments, lists
        ctx.shape, ctx.dtype = z.shape, z.dtype
        return units, probability

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        members, nodes, factors, size = ctx.shape
        shape = row_shape(factors, size)
        packed = ctx.arguments[0]
        row_ptr, _, _, out_ptr, out_entry = map(to_numpy, ctx.lists)
        given = [np.empty(0, packed.dtype) if grad is None else to_numpy(grad) for grad in grads]
        # ranges of nodes whose edge gradients fit into the bound, and the first edge of each
        pieces = _pieces(row_ptr, members, _EDGE_BYTES // (shape.lanes * packed.itemsize))
        firsts = [edges_before(row_ptr, v) for v in pieces]
        most = max(last - first for first, last in pairwise(firsts))
        grad = torch.empty(ctx.shape, dtype=ctx.dtype)
        # tensors, because torch aligns them to cache lines
        edge_grad = grad.new_empty(most, shape.lanes).numpy()
        own_grad = grad.new_empty(members * nodes, shape.lanes).numpy()
        partial = grad.new_empty(own_grad.shape if len(pieces) > 2 else (0, 0)).numpy()
        for piece in range(len(pieces) - 1):
            start, stop = pieces[piece : piece + 2]
            base, last = firsts[piece : piece + 2]
            held = edge_grad[: last - base]
            # 1. gradients of the nodes themselves, and one for each of their in-edges
            in_parallel(
                route_backward,
                row_cuts(row_ptr, start, stop),
                *ctx.arguments,
                *given,
                own_grad,
                held,
                base,
                shape,
            )
            # 2. each source sums the gradients of its out-edges, in the order of the edges
            sources = row_cuts(out_ptr, start // nodes * nodes, -(-stop // nodes) * nodes)
            outgoing, sums = (nodes, out_ptr, out_entry), (own_grad, partial, grad.numpy(), shape)
            in_parallel(sum_by_source, sources, outgoing, held, base, stop, *sums)
        return grad, None, None, None


def _pieces(row_ptr: Array, members: int, most: int) -> list[int]:
    """Boundaries of node ranges with at most `most` in-edges, or one node."""
    nodes, edges, bounds = len(row_ptr) - 1, int(row_ptr[-1]), [0]
    while edges and bounds[-1] < members * nodes:
        member, rest = divmod(edges_before(row_ptr, bounds[-1]) + most, edges)
        stop = member * nodes + int(np.searchsorted(row_ptr, rest, side="right")) - 1
        bounds.append(min(max(stop, bounds[-1] + 1), members * nodes))
    return bounds if edges else [0, members * nodes]
