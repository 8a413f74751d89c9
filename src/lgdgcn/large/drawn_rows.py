"""Neighbours that are drawn for some nodes, hop by hop."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.large.rows import GraphRows

__all__ = ["Drawn", "DrawnRows", "draw_hops", "key_of", "rows_of", "scale_of"]


def key_of(*numbers: int) -> int:
    """Mix whole numbers into one of 64 bits: a key of random numbers (SplitMix64)."""
    key = 0
    for number in numbers:
        key = (key ^ (number % 2**64)) + 0x9E3779B97F4A7C15
        key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) % 2**64
        key ^= key >> 31
    return key


class DrawnRows(NamedTuple):
    """Neighbours that were drawn for n nodes.

    Attributes:
        ptr: Where the neighbours of each node begin ``[n + 1]``.
        row: The node of each, in the batch's own numbers ``[e]``.
        column: The neighbours, likewise ``[e]``.
        entry: Where they are in the graph's rows ``[e]``.
        scale: How many neighbours each drawn one stands for ``[n]``.
    """

    ptr: Tensor
    row: Tensor
    column: Tensor
    entry: Tensor
    scale: Tensor


class Drawn(NamedTuple):
    """What was drawn for the first nodes of a batch: how many each, which entries, whom."""

    counts: Tensor
    entry: Tensor
    column: Tensor

    def of(self, graph: GraphRows, nodes: Tensor) -> DrawnRows:
        """The same as rows of all nodes of the batch; the last ones have no neighbours."""
        rest = self.counts.new_zeros(len(nodes) - len(self.counts))
        ptr = torch.cat([rest.new_zeros(1), torch.cat([self.counts, rest]).cumsum(0)])
        row = rows_of(ptr, len(self.entry))
        return DrawnRows(ptr, row, self.column, self.entry, scale_of(graph, nodes, ptr))


def draw_hops(
    graph: GraphRows, nodes: Tensor, fan_outs: Sequence[int], key: int, first: int = 0
) -> tuple[Tensor, Drawn]:
    """Draw neighbours hop by hop, each time those of the nodes that the last hop has found.

    Args:
        graph: The graph.
        nodes: Nodes to begin with ``[n]``.
        fan_outs: Most neighbours of a node at every hop.
        key: Of the random numbers.
        first: Number of the first hop.

    Returns:
        These nodes and all that were found, and what was drawn for them.
    """
    counts, entries, columns = [nodes[:0]], [nodes[:0]], [nodes[:0]]
    done = 0
    for hop, fan_out in enumerate(fan_outs, first):
        ptr, entry = kernels.sample(graph.row_ptr, nodes[done:], fan_out, key_of(key, 2, hop))
        done = len(nodes)
        nodes, column = kernels.renumber(nodes, graph.column[entry].long())
        counts.append(ptr.diff())
        entries.append(entry)
        columns.append(column)
    return nodes, Drawn(torch.cat(counts), torch.cat(entries), torch.cat(columns))


def scale_of(graph: GraphRows, nodes: Tensor, ptr: Tensor) -> Tensor:
    """How many neighbours each drawn one stands for ``[n]``; 1 where none was drawn."""
    drawn, row_ptr = ptr.diff(), graph.row_ptr
    degree = row_ptr[nodes + 1] - row_ptr[nodes]
    return torch.where(drawn > 0, degree / drawn.clamp_min(1), 1).to(graph.dtype)


def rows_of(ptr: Tensor, entries: int) -> Tensor:
    """The row of every entry ``[entries]``."""
    return torch.repeat_interleave(ptr.diff(), output_size=entries)
