"""A batch of nodes with the neighbours that a network needs of them: a graph of its own."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.large.drawn_rows import DrawnRows, draw_hops, key_of, rows_of, scale_of
from lgdgcn.large.rows import GraphRows
from lgdgcn.nn.propagation import SampledPropagator
from lgdgcn.nn.subgraph import Subgraph
from lgdgcn.train.tensors import map_tensors

__all__ = ["Batch", "BatchSampler"]


class Batch(NamedTuple):
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

    def pin(self) -> "Batch":
        """The same in memory that a GPU can copy while it computes."""
        return map_tensors(self, lambda t: t.pin_memory() if t.layout == torch.strided else t)

    def to(self, device: torch.device, dtype: torch.dtype) -> "Batch":
        """The same on a device, without waiting for it; its numbers in another type."""

        def move(tensor: Tensor) -> Tensor:
            own = dtype if tensor.is_floating_point() else tensor.dtype
            return tensor.to(device, own, non_blocking=True)

        return map_tensors(self, move)


class BatchSampler:
    """Finds what a network has to know of the surroundings of some nodes.

    Args:
        graph: The graph.
        features: Returns what the network reads of some nodes ``[n, ...]``.
        fan_outs: Most neighbours of a node, one number for every hop that the network looks; 0 for
            all of them.
        propagates: Whether the network propagates along the drawn neighbours.
        votes: Whether they vote.
        variance: That of a table of hops ``[N]``, if the features are of one.
        along: What the network propagates along, if that is not the graph.
        vote_hops: The first hops, which are those of votes where ``along`` is given.
    """

    def __init__(
        self,
        graph: GraphRows,
        features: Callable[[Tensor], Tensor],
        fan_outs: Sequence[int],
        *,
        propagates: bool,
        votes: bool,
        variance: Tensor | None = None,
        along: GraphRows | None = None,
        vote_hops: int = 0,
    ) -> None:
        self.variance = variance
        self.graph, self.features, self.fan_outs = graph, features, tuple(fan_outs)
        self.propagates, self.votes = propagates, votes
        self.along = graph if along is None else along
        self.vote_hops = vote_hops

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
    ) -> Batch:
        """Return some nodes with their surroundings.

        Args:
            seeds: Nodes that losses are taken from, all different ``[B]``.
            others: More nodes whose scores are wanted ``[m]``.
            key: Of the random numbers.
            parts: Into how many such batches the nodes of the graph are dealt.
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
        if self.along is graph:  # along which nodes vote, too
            nodes, drawn = draw_hops(graph, nodes, self.fan_outs, key)
            voters = carriers = drawn.of(graph, nodes)
        else:  # votes are the last that a network does, so they are the first hops
            hops = self.vote_hops
            nodes, drawn = draw_hops(graph, nodes, self.fan_outs[:hops], key)
            nodes, others_drawn = draw_hops(self.along, nodes, self.fan_outs[hops:], key, hops)
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
        return Batch(nodes, self.features(nodes), voted, part, where)

    def _propagator(self, nodes: Tensor, drawn: DrawnRows) -> SampledPropagator:
        """The drawn rows of the normalised adjacency matrix; the loop at a node is always there."""
        ptr, row, column, entry, scale = drawn
        if not self.propagates:
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
