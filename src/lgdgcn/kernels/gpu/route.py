# mypy: allow-untyped-calls
"""Routing on a GPU: which program takes which nodes, and the launches of `route_kernels`.

Degrees differ by orders of magnitude, so nodes are sorted by their number of in-edges, and each
range of degrees has a launch of its own with a tile that fits it: several nodes per warp where
there are few edges, one node for several warps where there are many. The order depends on the graph
only and is cached with it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels.gpu.route_kernels import (
    held_backward,
    held_forward,
    streamed_backward,
    streamed_forward,
)
from lgdgcn.kernels.gpu.route_tile import sum_rows
from lgdgcn.kernels.graph import TensorCache, neighbours

__all__ = ["route"]

_EDGE_BYTES = 1 << 31  # bound on the edge gradients held at once, unless one member needs more
_UNBOUNDED = 1 << 31
_LENGTHS = (0, *(1 << power for power in range(32)))
_WARP = 128  # coordinates that fill a warp, four in each thread: one load of 16 bytes


# the plan


class Tile(NamedTuple):
    """How a program takes its nodes.

    Attributes:
        longest: Most edges of a node: 0 or a power of two.
        edges: K, edges in one group.
        groups: G, nodes or, when spread, shares of one node.
        spread: Whether the program takes one node.
        warps: Warps of the program.
    """

    longest: int
    edges: int
    groups: int
    spread: bool
    warps: int

    @property
    def streams(self) -> bool:
        """Whether the edges are too many to hold and are read in pieces."""
        return self.longest > self.edges * self.groups


def forward_tiles(width: int) -> list[Tile]:
    """Tiles for vectors of `width` coordinates (a power of two), by rising longest."""
    share = _WARP // width
    if share == 0:
        warps = _warps(width)
        return [Tile(4, 4, 1, False, warps), Tile(_UNBOUNDED, 4, 1, True, warps)]
    tiles = [
        Tile(4, 4, share, False, 1),
        Tile(8, 8, share, False, 1),
        Tile(8 * share, 8, share, True, 1),
        Tile(_UNBOUNDED, 8, 4 * share, True, 4),
    ]
    return tiles if share > 1 else tiles[:2] + tiles[3:]


def backward_tiles(width: int) -> list[Tile]:
    """Like `forward_tiles`, with fewer edges: each needs more registers, for its gradient."""
    share = _WARP // width
    if share == 0:
        warps = _warps(width)
        return [Tile(2, 2, 1, False, warps), Tile(_UNBOUNDED, 2, 1, True, warps)]
    tiles = [
        Tile(4, 4, share, False, 1),
        Tile(4 * share, 4, share, True, 1),
        Tile(8 * share, 4, 2 * share, True, 2),
        Tile(_UNBOUNDED, 4, 4 * share, True, 4),
    ]
    return tiles if share > 1 else tiles[:1] + tiles[2:]


def sum_tiles(width: int) -> list[Tile]:
    """Like `forward_tiles`, for sums of rows."""
    share, warps = max(1, _WARP // width), _warps(width)
    return [
        Tile(4, 4, share, False, warps),
        Tile(8, 8, share, False, warps),
        Tile(_UNBOUNDED, 8, 4 * share, True, 4 * warps),
    ]


def _warps(width: int) -> int:
    return min(8, max(1, width // (2 * _WARP)))


class SortedRows(NamedTuple):
    """Rows of a compressed structure by falling length.

    Attributes:
        table: `[3, N]` int32: the node of each row, its first entry and the end of its entries.
        longer: Number of rows longer than each of 0, 1, 2, 4, 8, ...
    """

    table: Tensor
    longer: tuple[int, ...]

    def spans(self, tiles: list[Tile], empty: bool) -> Iterator[tuple[Tile, int, int, int]]:
        """Begin, number of rows and number of programs of every tile that is needed.

        Args:
            tiles: Tiles by rising longest.
            empty: Whether rows without entries count.
        """
        end = self.table.size(1) if empty else self.longer[0]
        for tile in tiles:
            begin = self.longer[tile.longest.bit_length()]
            if begin < end:
                count = end - begin
                yield tile, begin, count, count if tile.spread else -(-count // tile.groups)
                end = begin


class RoutingGraph(NamedTuple):
    """The edges as the routing kernels read them; entries are in order of their target.

    Attributes:
        incoming: In-edges of every node.
        outgoing: Out-edges of every node, as slots.
        source: `[E]` source of each entry.
        order: `[E]` position of each entry in edge_index.
        slot: `[E]` position of each entry in the order of sources.
    """

    incoming: SortedRows
    outgoing: SortedRows
    source: Tensor
    order: Tensor
    slot: Tensor


_cache: TensorCache[RoutingGraph] = TensorCache()


def routing_graph(edge_index: Tensor, num_nodes: int) -> RoutingGraph:
    """Prepare a graph; cached for as long as `edge_index` lives unchanged."""
    return _cache.get(edge_index, num_nodes, lambda: _build(edge_index, num_nodes))


def _build(edge_index: Tensor, num_nodes: int) -> RoutingGraph:
    lists = neighbours(edge_index, num_nodes)
    slot = torch.empty_like(lists.out_entry)
    slot[lists.out_entry] = torch.arange(slot.numel(), device=slot.device)
    return RoutingGraph(
        _sort_rows(lists.row_ptr),
        _sort_rows(lists.out_ptr),
        lists.source.int(),
        lists.order.int(),
        slot.int(),
    )


def _sort_rows(row_ptr: Tensor) -> SortedRows:
    length, node = row_ptr.diff().sort(descending=True, stable=True)
    table = torch.stack([node, row_ptr[node], row_ptr[node + 1]]).int()
    bounds = torch.tensor(_LENGTHS, device=length.device)
    longer = torch.searchsorted(length.neg(), bounds.neg())
    return SortedRows(table, tuple(longer.tolist()))


# the launches


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int,
    tau: Tensor,
    uniform_start: bool,
    normalize_last: bool,
) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.route`."""
    graph = routing_graph(edge_index, z.size(1))
    settings = {"T": iterations, "UNIFORM": uniform_start, "NORMALIZE": normalize_last}
    units: Tensor
    units, probability = _Route.apply(z, tau, graph, settings)
    return units, probability


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, tau: Tensor, graph: RoutingGraph, settings: dict[str, Any]
    ) -> tuple[Tensor, Tensor]:
        z, tau = z.contiguous(), tau.contiguous()
        ctx.save_for_backward(z, tau)
        ctx.graph, ctx.settings = graph, settings
        ctx.set_materialize_grads(False)
        members, nodes, factors, size = z.shape
        edges = graph.source.numel()
        units = torch.empty_like(z)
        probability = z.new_empty(members, edges, factors)
        lists = graph.incoming.table, graph.source, graph.order
        sizes = _sizes(factors, size)
        tiles = forward_tiles(sizes["MP"] * sizes["DP"])
        with torch.cuda.device_of(z):
            for tile, *span, programs in graph.incoming.spans(tiles, empty=True):
                kernel = streamed_forward if tile.streams else held_forward
                arguments = z, tau, *lists, units, probability, *span, nodes, edges
                options = {**settings, **sizes, **_options(tile)}
                kernel[programs, members](*arguments, **options)
        return units, probability

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        z, tau = ctx.saved_tensors
        units = torch.zeros_like(z) if grads[0] is None else grads[0].contiguous()
        probability = None if grads[1] is None else grads[1].contiguous()
        grad = torch.empty_like(z)
        # as many members at once as the bound on edge gradients allows
        member_bytes = ctx.graph.source.numel() * z.size(2) * z.size(3) * z.element_size()
        most = max(1, _EDGE_BYTES // max(1, member_bytes))
        with torch.cuda.device_of(z):
            for first in range(0, z.size(0), most):
                some = slice(first, first + most)
                given = units[some], None if probability is None else probability[some]
                _backward(ctx.graph, ctx.settings, z[some], tau[some], given, grad[some])
        return grad, None, None, None


def _backward(
    graph: RoutingGraph,
    settings: dict[str, Any],
    z: Tensor,
    tau: Tensor,
    given: tuple[Tensor, Tensor | None],
    grad: Tensor,
) -> None:
    """Write the gradient of some members, from the given gradients of units and probability."""
    members, nodes, factors, size = z.shape
    edges = graph.source.numel()
    edge_grad = z.new_empty(members, edges, factors, size)
    # 1. gradients of the nodes themselves, and one for each of their in-edges
    lists = graph.incoming.table, graph.source, graph.order, graph.slot
    units_grad, probability_grad = given
    has_grad = {"HAS_PROBABILITY_GRAD": probability_grad is not None}
    grads = units_grad, units_grad if probability_grad is None else probability_grad
    sizes = _sizes(factors, size)
    tiles = backward_tiles(sizes["MP"] * sizes["DP"])
    for tile, *span, programs in graph.incoming.spans(tiles, empty=True):
        kernel = streamed_backward if tile.streams else held_backward
        arguments = z, tau, *lists, *grads, grad, edge_grad, *span, nodes, edges
        options = {**has_grad, **settings, **sizes, **_options(tile)}
        kernel[programs, members](*arguments, **options)
    # 2. each source adds the gradients of its out-edges
    width = _power(factors * size)
    for tile, *span, programs in graph.outgoing.spans(sum_tiles(width), empty=False):
        arguments = edge_grad, graph.outgoing.table, grad, *span, nodes, edges
        sum_rows[programs, members](*arguments, W=factors * size, WP=width, **_options(tile))


def _sizes(factors: int, size: int) -> dict[str, int]:
    return {"M": factors, "D": size, "MP": _power(factors), "DP": _power(size)}


def _power(size: int) -> int:
    """The smallest power of two that is not smaller."""
    return 1 << max(0, size - 1).bit_length()


def _options(tile: Tile) -> dict[str, Any]:
    shape = {"K": tile.edges, "G": tile.groups, "SPREAD": tile.spread}
    return {**shape, "num_warps": tile.warps}
