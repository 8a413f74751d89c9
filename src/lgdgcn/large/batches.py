"""A batch of nodes with the neighbours that a network needs of them: a graph of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from lgdgcn import kernels
from lgdgcn.large.rows import GraphRows
from lgdgcn.nn.propagation import SampledPropagator
from lgdgcn.nn.subgraph import Subgraph

__all__ = ["BatchSampler", "Sampled", "key_of"]


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

    Returns:
        The nodes to begin with and all that were found, and what was drawn for them.
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


class Sampled(NamedTuple):
    """A part of a graph that a network can run on.

    Attributes:
        nodes: The graph's numbers of its nodes ``[n]``, seeds first.
        x: What the network reads of them.
        edge_index: Edges that nodes vote along, in the batch's own numbers ``[2, e]``.
        subgraph: What the network has to know beside.
        others: Where the nodes are that were asked for beside the seeds.
    """

    nodes: Tensor
    x: Tensor
    edge_index: Tensor
    subgraph: Subgraph
    others: Tensor

    def pin(self) -> "Sampled":
        """The same in memory that a GPU can copy while it computes."""
        return self._each(lambda t: t.pin_memory() if t.layout == torch.strided else t)

    def to(self, device: torch.device, dtype: torch.dtype) -> "Sampled":
        """The same on a device, without synchronising; its numbers in another type."""

        def move(tensor: Tensor) -> Tensor:
            own = dtype if tensor.is_floating_point() else tensor.dtype
            return tensor.to(device, own, non_blocking=True)

        return self._each(move)

    def _each(self, function: Callable[[Tensor], Tensor]) -> "Sampled":
        """The same with other tensors, also those of the subgraph and its propagator."""
        moved: Sampled = pytree.tree_map_only(Tensor, function, self)
        return moved


@dataclass(frozen=True)
class BatchSampler:
    """Finds what a network has to know of the surroundings of some nodes.

    Attributes:
        graph: The graph, along whose edges nodes vote.
        features: Returns what the network reads of some nodes ``[n, ...]``.
        votes: Hops of drawn neighbours that vote.
        drawn: Hops of drawn neighbours that the network propagates along.
        fan_out: Most neighbours of a node at the first hop, later ones have fewer, but two at
            least; 0 for all of them.
        along: What the network propagates along: the graph, or a structure.
        variance: That of a table of hops ``[N]``, if the features are of one.
    """

    graph: GraphRows
    features: Callable[[Tensor], Tensor]
    votes: int
    drawn: int
    fan_out: int
    along: GraphRows
    variance: Tensor | None = None

    @property
    def device(self) -> torch.device:
        """Where batches are made, and the nodes that are asked for must be."""
        return self.graph.row_ptr.device

    def batch(
        self,
        seeds: Tensor,
        others: Tensor,
        key: int,
        parts: int = 1,
        loss_edges: int | None = None,
    ) -> Sampled:
        """Return some nodes with their surroundings.

        Args:
            seeds: Nodes that losses are taken from, all different ``[B]``.
            others: More nodes whose scores are wanted ``[m]``.
            key: Of the random numbers.
            parts: Into how many such batches the nodes of the graph are divided.
            loss_edges: Edges of every seed that are drawn for the edge loss, 0 for all of them;
                ``None`` for no edge loss.
        """
        graph = self.graph
        nodes, where = kernels.renumber(seeds, others)
        # 1. edges that are evidence: their other ends are looked at as closely as the seeds
        ends, weight = seeds.new_zeros(2, 0), seeds.new_zeros(0, dtype=graph.dtype)
        if loss_edges is not None:
            ptr, entry = kernels.sample(graph.row_ptr, seeds, loss_edges, key_of(key, 1))
            nodes, other = kernels.renumber(nodes, graph.column[entry].long())
            own, scale = rows_of(ptr, len(entry)), scale_of(graph, seeds, ptr)
            ends, weight = torch.stack([own, other]), scale[own]
        # 2. hop by hop, the rows of the nodes that the last hop has found
        every = range(self.votes + self.drawn)
        fan_outs = [max(2, self.fan_out >> hop) if self.fan_out else 0 for hop in every]
        if self.along is graph:  # along which nodes vote, too
            nodes, drawn = draw_hops(graph, nodes, fan_outs, key)
            voters = carriers = drawn.of(graph, nodes)
        else:  # votes are the last that a network does, so they are the first hops
            hops = self.votes
            nodes, drawn = draw_hops(graph, nodes, fan_outs[:hops], key)
            nodes, others_drawn = draw_hops(self.along, nodes, fan_outs[hops:], key, hops)
            voters, carriers = drawn.of(graph, nodes), others_drawn.of(self.along, nodes)
        voted = seeds.new_zeros(2, 0)
        if self.votes:
            voted = torch.stack([voters.column, voters.row])
        part = Subgraph(
            self._propagator(nodes, carriers),
            voters.scale,
            len(seeds),
            ends,
            weight,
            parts,
            graph.num_nodes,
            graph.num_edges,
            None if self.variance is None else self.variance[nodes],
        )
        return Sampled(nodes, self.features(nodes), voted, part, where)

    def _propagator(self, nodes: Tensor, drawn: DrawnRows) -> SampledPropagator:
        """The drawn rows of the normalised adjacency matrix; the loop at a node is always there."""
        ptr, row, column, entry, scale = drawn
        if not self.drawn:
            zeros, none, nothing = torch.zeros_like(ptr), column[:0], scale[:0]
            return SampledPropagator(zeros, none, nothing, zeros, none, nothing)
        root = self.along.degrees(nodes).rsqrt()
        value = root[row] * root[column] * scale[row]
        if self.along.weight is not None:
            value = value * self.along.weight[entry]
        # every row begins with the loop
        size = len(nodes)
        number = torch.arange(size + 1, device=ptr.device)
        row_ptr = ptr + number
        place = torch.arange(len(entry), device=ptr.device) + row + 1
        columns, values = column.new_empty(len(entry) + size), value.new_empty(len(entry) + size)
        columns[place], values[place] = column, value
        columns[row_ptr[:-1]], values[row_ptr[:-1]] = number[:-1], root.square()
        return SampledPropagator(
            row_ptr, columns, values, *kernels.transpose(row_ptr, columns, values)
        )
