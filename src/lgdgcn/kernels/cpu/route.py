"""Routing on the CPU: numba loops over compressed rows, and their gradient."""

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
from lgdgcn.kernels.cpu.vectors import shape_of
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
    if z.numel() == 0 or shape_of(*z.shape[2:]).lanes > _MOST_LANES:
        return reference.route(z, edge_index, iterations, tau, uniform_start, normalize_last)
    lists = neighbours(edge_index, z.size(1))
    sharpness = tau.to(z.dtype).reciprocal()
    units: Tensor
    units, chance = _Route.apply(z, sharpness, lists, settings)  # type: ignore[no-untyped-call]
    return units, chance


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, sharpness: Tensor, lists: Neighbours, settings: tuple[int, bool, bool]
    ) -> tuple[Tensor, Tensor]:
        members, nodes, channels, size = z.shape
        shape = shape_of(channels, size)
        row_ptr, source, order = map(to_numpy, lists[:3])
        packed = z.new_empty(members * nodes, shape.lanes).numpy()
        cuts = row_cuts(row_ptr, 0, members * nodes)
        in_parallel(pack_rows, cuts, to_numpy(z), packed, shape)
        units = torch.empty_like(z, memory_format=torch.contiguous_format)
        chance = z.new_empty(members, source.size, channels)
        arguments = packed, (nodes, row_ptr, source), order, to_numpy(sharpness), settings
        results = units.numpy(), chance.numpy()
        in_parallel(route_forward, cuts, *arguments, *results, shape)
        ctx.set_materialize_grads(False)
        ctx.arguments, ctx.lists = arguments, lists
        ctx.shape, ctx.dtype = z.shape, z.dtype
        return units, chance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        members, nodes, channels, size = ctx.shape
        shape = shape_of(channels, size)
        packed = ctx.arguments[0]
        row_ptr, _, _, out_ptr, out_entry = map(to_numpy, ctx.lists)
        given = [np.empty(0, packed.dtype) if grad is None else to_numpy(grad) for grad in grads]
        pieces = _pieces(row_ptr, members, _EDGE_BYTES // (shape.lanes * packed.itemsize))
        firsts = [edges_before(row_ptr, v) for v in pieces]
        most = max(last - first for first, last in pairwise(firsts))
        grad = torch.empty(ctx.shape, dtype=ctx.dtype)
        # tensors, because torch aligns them to cache lines
        edge_grad = grad.new_empty(most, shape.lanes).numpy()
        own_grad = grad.new_empty(members * nodes, shape.lanes).numpy()
        through = grad.new_empty(own_grad.shape if len(pieces) > 2 else (0, 0)).numpy()
        for piece in range(len(pieces) - 1):
            start, stop = pieces[piece : piece + 2]
            base, last = firsts[piece : piece + 2]
            held = edge_grad[: last - base]
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
            sources = row_cuts(out_ptr, start // nodes * nodes, -(-stop // nodes) * nodes)
            outgoing, sums = (nodes, out_ptr, out_entry), (own_grad, through, grad.numpy(), shape)
            in_parallel(sum_by_source, sources, outgoing, held, base, stop, *sums)
        return grad, None, None, None


def _pieces(row_ptr: Array, members: int, room: int) -> list[int]:
    """Boundaries of node ranges with at most `room` in-edges, or one node."""
    nodes, edges, bounds = len(row_ptr) - 1, int(row_ptr[-1]), [0]
    while edges and bounds[-1] < members * nodes:
        member, rest = divmod(edges_before(row_ptr, bounds[-1]) + room, edges)
        stop = member * nodes + int(np.searchsorted(row_ptr, rest, side="right")) - 1
        bounds.append(min(max(stop, bounds[-1] + 1), members * nodes))
    return bounds if edges else [0, members * nodes]
