# mypy: allow-untyped-calls
"""Routing on a GPU: one launch for the nodes of each range of degrees, sums in fixed order."""

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
from lgdgcn.kernels.graph import Remembered, neighbours

__all__ = ["route"]

_EDGE_BYTES = 1 << 31  # bound on the edge gradients held at once, unless one member needs more
_UNBOUNDED = 1 << 31
_LENGTHS = (0, *(1 << power for power in range(32)))
_WARP = 128  # coordinates that fill a warp, four in each thread: one load of 16 bytes


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
    """Like `forward_tiles`; every edge needs more registers, for its gradient."""
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


class Rows(NamedTuple):
    """Rows of compressed entries by falling length.

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


class Graph(NamedTuple):
    """What routing on a GPU needs to know about the edges; entries are in order of their target.

    Attributes:
        incoming: In-edges of every node.
        outgoing: Out-edges of every node, as slots.
        source: `[E]` source of each entry.
        order: `[E]` position of each entry in edge_index.
        slot: `[E]` position of each entry in the order of sources.
    """

    incoming: Rows
    outgoing: Rows
    source: Tensor
    order: Tensor
    slot: Tensor


_remembered: Remembered[Graph] = Remembered()


def prepare(edge_index: Tensor, num_nodes: int) -> Graph:
    """Prepare a graph, remembered for as long as `edge_index` lives unchanged."""
    return _remembered.get(edge_index, num_nodes, lambda: _build(edge_index, num_nodes))


def _build(edge_index: Tensor, num_nodes: int) -> Graph:
    lists = neighbours(edge_index, num_nodes)
    slot = torch.empty_like(lists.out_entry)
    slot[lists.out_entry] = torch.arange(slot.numel(), device=slot.device)
    return Graph(
        _rows(lists.row_ptr),
        _rows(lists.out_ptr),
        lists.source.int(),
        lists.order.int(),
        slot.int(),
    )


def _rows(row_ptr: Tensor) -> Rows:
    length, node = row_ptr.diff().sort(descending=True, stable=True)
    table = torch.stack([node, row_ptr[node], row_ptr[node + 1]]).int()
    bounds = torch.tensor(_LENGTHS, device=length.device)
    longer = torch.searchsorted(length.neg(), bounds.neg())
    return Rows(table, tuple(longer.tolist()))


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int,
    tau: Tensor,
    uniform_start: bool,
    normalize_last: bool,
) -> tuple[Tensor, Tensor]:
    """See `lgdgcn.kernels.route`."""
    graph = prepare(edge_index, z.size(1))
    settings = {"T": iterations, "UNIFORM": uniform_start, "NORMALIZE": normalize_last}
    units: Tensor
    units, chance = _Route.apply(z, tau, graph, settings)
    return units, chance


class _Route(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, tau: Tensor, graph: Graph, settings: dict[str, Any]
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
        tiles = forward_tiles(sizes["MP"] * sizes["DP"])
        with torch.cuda.device_of(z):
            for tile, begin, count, programs in graph.incoming.spans(tiles, empty=True):
                kernel = streamed_forward if tile.streams else held_forward
                kernel[programs, members](
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
    graph: Graph,
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
    tiles = backward_tiles(sizes["MP"] * sizes["DP"])
    for tile, begin, count, programs in graph.incoming.spans(tiles, empty=True):
        kernel = streamed_backward if tile.streams else held_backward
        kernel[programs, members](
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
    for tile, begin, count, programs in graph.outgoing.spans(sum_tiles(width), empty=False):
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


def _options(tile: Tile) -> dict[str, Any]:
    shape = {"K": tile.edges, "G": tile.groups, "SPREAD": tile.spread}
    return {**shape, "num_warps": tile.warps}
