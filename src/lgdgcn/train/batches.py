"""Batches of nodes: which ones, with which neighbours, in an order that only the seed decides."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import Queue
from threading import Event, Thread
from typing import TypeVar

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.nn.propagation import SampledPropagator
from lgdgcn.nn.subgraph import Subgraph
from lgdgcn.train.drawn_rows import DrawnRows, draw_hops, key_of, rows_of, scale_of
from lgdgcn.train.graph_rows import GraphRows

__all__ = ["Batch", "BatchSampler", "Deal", "ahead", "key_of"]

T = TypeVar("T")


@dataclass(frozen=True)
class Deal:
    """How the nodes of a graph are dealt to the steps of an epoch, and the parts of a step.

    Attributes:
        nodes: Number of nodes N.
        train: Number of training nodes.
        batch_size: Most nodes of a step.
        parts: Parts of a step, which may be computed on different devices.
    """

    nodes: int
    train: int
    batch_size: int
    parts: int = 1

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return max(1, -(-self.nodes // self.batch_size))

    @property
    def train_size(self) -> int:
        """Training nodes of a part: all, or half as many as there are others."""
        part = -(-min(self.batch_size, self.nodes) // self.parts)
        return min(self.train, max(1, part // 2))

    def order(self, seed: int, epoch: int) -> Tensor:
        """All nodes in the order of an epoch ``[N]``."""
        generator = np.random.Generator(np.random.Philox(key=key_of(seed, epoch, 1)))
        dtype = np.int32 if self.nodes < 2**31 else np.int64
        return torch.from_numpy(generator.permutation(np.arange(self.nodes, dtype=dtype)))

    def seeds(self, order: Tensor, step: int, part: int) -> Tensor:
        """The nodes of one part of a step; parts differ by one node at most."""
        total, index = self.steps * self.parts, step * self.parts + part
        low, high = (self.nodes * i // total for i in (index, index + 1))
        return order[low:high].long()

    def training(self, seed: int, epoch: int, step: int, part: int) -> Tensor:
        """Which of the training nodes a part has: the next ones of an endless deck."""
        size = self.train_size
        if size == self.train:
            return torch.arange(size)
        start = ((epoch * self.steps + step) * self.parts + part) * size
        cards = []
        while size > 0:
            cycle, low = divmod(start, self.train)
            shuffled = np.random.Generator(np.random.Philox(key=key_of(seed, cycle, 2)))
            cards.append(shuffled.permutation(self.train)[low : low + size])
            start, size = start + len(cards[-1]), size - len(cards[-1])
        return torch.from_numpy(np.concatenate(cards))


@dataclass(frozen=True)
class Batch:
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
        part = self.subgraph
        propagator = SampledPropagator(*(tensor.pin_memory() for tensor in part.propagator))
        part = part._replace(
            propagator=propagator,
            vote_scale=part.vote_scale.pin_memory(),
            edges=part.edges.pin_memory(),
            edge_weight=part.edge_weight.pin_memory(),
            variance=None if part.variance is None else part.variance.pin_memory(),
        )
        x = self.x if self.x.layout != torch.strided else self.x.pin_memory()
        edges, others = self.edge_index.pin_memory(), self.others.pin_memory()
        return Batch(self.nodes, x, edges, part, others)

    def to(self, device: torch.device, dtype: torch.dtype) -> "Batch":
        """The same on a device."""
        if device.type == "cpu" and dtype == self.x.dtype:
            return self
        x = self.x.to(device, dtype, non_blocking=True)
        edges, others = (
            tensor.to(device, non_blocking=True) for tensor in (self.edge_index, self.others)
        )
        return Batch(self.nodes, x, edges, self.subgraph.to(device, dtype), others)


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
        ends, weight = seeds.new_zeros(2, 0), torch.zeros(0, dtype=graph.dtype)
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
        row_ptr = ptr + torch.arange(size + 1)
        place = torch.arange(len(entry)) + row + 1
        columns, values = column.new_empty(len(entry) + size), value.new_empty(len(entry) + size)
        columns[place], values[place] = column, value
        columns[row_ptr[:-1]], values[row_ptr[:-1]] = torch.arange(size), root.square()
        matrix = csr_array((values.numpy(), columns.numpy(), row_ptr.numpy()), shape=(size, size))
        turned = matrix.tocsc()
        by_column = (
            torch.from_numpy(turned.indptr).long(),
            torch.from_numpy(turned.indices).long(),
            torch.from_numpy(turned.data),
        )
        return SampledPropagator(row_ptr, columns, values, *by_column)


def ahead(make: Sequence[Callable[[], T]], depth: int = 2) -> Iterator[T]:
    """Call functions in a thread, a few of them ahead of what is asked for.

    So the next batches are read while the last one is computed.
    """
    ready: Queue[tuple[T | None, BaseException | None]] = Queue(maxsize=depth)
    over = Event()

    def work() -> None:
        for function in make:
            if over.is_set():
                return
            try:
                ready.put((function(), None))
            except BaseException as error:  # raised where the result is asked for
                ready.put((None, error))
                return

    thread = Thread(target=work, name="lgdgcn-batches", daemon=True)
    thread.start()
    try:
        for _ in make:
            result, error = ready.get()
            if error is not None:
                raise error
            yield result  # type: ignore[misc]
    finally:
        over.set()
        while thread.is_alive():  # it may wait for room
            while not ready.empty():
                ready.get()
            thread.join(0.01)
