"""Which program takes which nodes when routing on a GPU, found once per edge_index."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from lgdgcn.kernels.remembered import Remembered
from lgdgcn.kernels.structure import neighbours

__all__ = ["Graph", "Rows", "Tile", "backward_tiles", "forward_tiles", "graph", "sum_tiles"]

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


def graph(edge_index: Tensor, num_nodes: int) -> Graph:
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
