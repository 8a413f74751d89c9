# mypy: allow-untyped-calls
"""Routing on a GPU: one launch for the nodes of each range of degrees, sums in fixed order."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import triton_route_held as held
from lgdgcn.kernels import triton_route_plan as plan
from lgdgcn.kernels import triton_route_streamed as streamed
from lgdgcn.kernels.triton_route_sum import sum_rows

__all__ = ["route"]

_EDGE_BYTES = 1 << 31  # bound on the edge gradients held at once, unless one member needs more


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int,
    tau: Tensor,
    uniform_start: bool,
    normalize_last: bool,
) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.route`."""
    graph = plan.graph(edge_index, z.size(1))
    settings = {"T": iterations, "UNIFORM": uniform_start, "NORMALIZE": normalize_last}
    units: Tensor
    units, chance = _Route.apply(z, tau, graph, settings)
    return units, chance


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, tau: Tensor, graph: plan.Graph, settings: dict[str, Any]
    ) -> tuple[Tensor, Tensor]:
        z, tau = z.contiguous(), tau.contiguous()
        ctx.save_for_backward(z, tau)
        ctx.graph, ctx.settings = graph, settings
        ctx.set_materialize_grads(False)
        members, nodes, channels, size = z.shape
        edges = graph.source.numel()
        units = torch.empty_like(z)
        chance = z.new_empty(members, edges, channels)
        sizes = _sizes(channels, size)
        tiles = plan.forward_tiles(sizes["MP"] * sizes["DP"])
        with torch.cuda.device_of(z):
            for tile, begin, count, programs in graph.incoming.spans(tiles, empty=True):
                kernels = streamed if tile.streams else held
                kernels.route_forward[programs, members](
                    z,
                    tau,
                    graph.incoming.table,
                    graph.source,
                    graph.order,
                    units,
                    chance,
                    begin,
                    count,
                    nodes,
                    edges,
                    **settings,
                    **sizes,
                    **_options(tile),
                )
        return units, chance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        z, tau = ctx.saved_tensors
        units = torch.zeros_like(z) if grads[0] is None else grads[0].contiguous()
        chance = None if grads[1] is None else grads[1].contiguous()
        grad = torch.empty_like(z)
        member_bytes = ctx.graph.source.numel() * z.size(2) * z.size(3) * z.element_size()
        room = max(1, _EDGE_BYTES // max(1, member_bytes))
        with torch.cuda.device_of(z):
            for first in range(0, z.size(0), room):
                some = slice(first, first + room)
                received = units[some], None if chance is None else chance[some]
                _backward(ctx.graph, ctx.settings, z[some], tau[some], received, grad[some])
        return grad, None, None, None


def _backward(
    graph: plan.Graph,
    settings: dict[str, Any],
    z: Tensor,
    tau: Tensor,
    received: tuple[Tensor, Tensor | None],
    grad: Tensor,
) -> None:
    """Write the gradient of some members."""
    members, nodes, channels, size = z.shape
    edges = graph.source.numel()
    edge_grad = z.new_empty(members, edges, channels, size)
    sizes = _sizes(channels, size)
    tiles = plan.backward_tiles(sizes["MP"] * sizes["DP"])
    for tile, begin, count, programs in graph.incoming.spans(tiles, empty=True):
        kernels = streamed if tile.streams else held
        kernels.route_backward[programs, members](
            z,
            tau,
            graph.incoming.table,
            graph.source,
            graph.order,
            graph.slot,
            received[0],
            received[0] if received[1] is None else received[1],
            grad,
            edge_grad,
            begin,
            count,
            nodes,
            edges,
            HAS_CHANCE=received[1] is not None,
            **settings,
            **sizes,
            **_options(tile),
        )
    width = _power(channels * size)
    for tile, begin, count, programs in graph.outgoing.spans(plan.sum_tiles(width), empty=False):
        sum_rows[programs, members](
            edge_grad,
            graph.outgoing.table,
            grad,
            begin,
            count,
            nodes,
            edges,
            W=channels * size,
            WP=width,
            **_options(tile),
        )


def _sizes(channels: int, size: int) -> dict[str, int]:
    return {"M": channels, "D": size, "MP": _power(channels), "DP": _power(size)}


def _power(size: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(0, size - 1).bit_length()


def _options(tile: plan.Tile) -> dict[str, Any]:
    shape = {"K": tile.edges, "G": tile.groups, "SPREAD": tile.spread}
    return {**shape, "num_warps": tile.warps}
