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
from lgdgcn.train.graph_rows import GraphRows

__all__ = ["Batch", "BatchSampler", "Deal", "ahead", "key_of"]

T = TypeVar("T")


def key_of(*numbers: int) -> int:
    """Mix whole numbers into one of 64 bits: a key of random numbers (SplitMix64)."""
    key = 0
    for number in numbers:
        key = (key ^ (number % 2**64)) + 0x9E3779B97F4A7C15
        key = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        key = ((key ^ (key >> 27)) * 0x94D049BB133111EB) % 2**64
        key ^= key >> 31
    return key


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
    ) -> None:
        self.variance = variance
        self.graph, self.features, self.fan_outs = graph, features, tuple(fan_outs)
        self.propagates, self.votes = propagates, votes

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
            own, scale = _rows_of(ptr, len(entry)), self._scale(seeds, ptr)
            ends, weight = torch.stack([own, other]), scale[own]
        # 2. hop by hop, the rows of the nodes that the last hop has found
        ptrs, entries, columns = [], [], []
        done = 0
        for hop, fan_out in enumerate(self.fan_outs):
            ptr, entry = kernels.sample(graph.row_ptr, nodes[done:], fan_out, key_of(key, 2, hop))
            done = len(nodes)
            nodes, column = kernels.renumber(nodes, graph.column[entry].long())
            ptrs.append(ptr.diff())
            entries.append(entry)
            columns.append(column)
        counts = torch.cat([*ptrs, seeds.new_zeros(len(nodes) - done)])
        ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        entry = torch.cat([*entries, seeds.new_zeros(0)])
        column = torch.cat([*columns, seeds.new_zeros(0)])
        scale = self._scale(nodes, ptr)
        row = _rows_of(ptr, len(entry))
        voted = torch.stack([column, row]) if self.votes else seeds.new_zeros(2, 0)
        part = Subgraph(
            self._propagator(nodes, ptr, row, column, entry, scale),
            scale,
            len(seeds),
            ends,
            weight,
            parts,
            graph.num_nodes,
            graph.num_edges,
            None if self.variance is None else self.variance[nodes],
        )
        return Batch(nodes, self.features(nodes), voted, part, where)

    def _scale(self, nodes: Tensor, ptr: Tensor) -> Tensor:
        """How many neighbours each drawn one stands for ``[n]``; 1 where none was drawn."""
        drawn, row_ptr = ptr.diff(), self.graph.row_ptr
        degree = row_ptr[nodes + 1] - row_ptr[nodes]
        return torch.where(drawn > 0, degree / drawn.clamp_min(1), 1).to(self.graph.dtype)

    def _propagator(
        self,
        nodes: Tensor,
        ptr: Tensor,
        row: Tensor,
        column: Tensor,
        entry: Tensor,
        scale: Tensor,
    ) -> SampledPropagator:
        """The drawn rows of the normalised adjacency matrix; the loop at a node is always there."""
        if not self.propagates:
            zeros, none, nothing = torch.zeros_like(ptr), column[:0], scale[:0]
            return SampledPropagator(zeros, none, nothing, zeros, none, nothing)
        root = self.graph.degrees(nodes).rsqrt()
        value = root[row] * root[column] * scale[row]
        if self.graph.weight is not None:
            value = value * self.graph.weight[entry]
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


def _rows_of(ptr: Tensor, entries: int) -> Tensor:
    """The row of every entry ``[entries]``."""
    return torch.repeat_interleave(ptr.diff(), output_size=entries)


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
