"""A loader of batches of nodes: an epoch is many steps on parts of the graph.

An epoch is one pass over all nodes in an order that seed and epoch decide. A step has
``batch_size`` of them, in ``batch_parts`` parts; each part is a graph of its own
(:mod:`lgdgcn.large.batches`) with random numbers of its own, and brings some training nodes along.
The gradients of the parts are averaged, by the ranks of :mod:`lgdgcn.train.ranks` if there are any.
What a network with a structure propagates along is found by every rank for all nodes, from weights
that are kept for it: so a training that goes on finds the same.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice, pairwise
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.labels import class_sizes, label_pieces
from lgdgcn.data.node_arrays import node_array, nodes_of
from lgdgcn.errors import InputError
from lgdgcn.large.batch_input import BatchSource
from lgdgcn.large.batches import BatchSampler, Sampled, key_of
from lgdgcn.large.inference import SCORED, unit_table
from lgdgcn.large.rows import GraphRows
from lgdgcn.models import ClassUnitGCN, NodeModel, NodeOutput
from lgdgcn.nn import ClassUnitConv
from lgdgcn.nn.ours.batch_edges import EdgeMoments, sum_of_seen
from lgdgcn.nn.ours.label_groups import meetings
from lgdgcn.progress import long_work
from lgdgcn.train.loader import Batch, Loader
from lgdgcn.train.population import Population
from lgdgcn.train.ranks import Ranks
from lgdgcn.train.scores import Counts
from lgdgcn.train.targets import Targets, balanced_weights
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel

__all__ = ["EpochOrder", "NeighbourLoader", "prefetch"]

T = TypeVar("T")

_LEAST_RATE = 0.2  # weight of a step in the running means of the edge loss
_LOSS_EDGES = 4  # of so many neighbours that are drawn for a seed, one edge is evidence
_EVALUATED = 4096  # nodes that are scored at once, at most
_READY = 3  # batches that lie ready or are made


class NeighbourLoader(Loader):
    """Batches of nodes with drawn neighbours, for a population of one.

    Args:
        graph: A canonical graph that :func:`~lgdgcn.large.rows.prepared_rows` made.

    Attributes:
        order: Which nodes a part of a step has.
    """

    is_whole = False

    def __init__(self, graph: Data, settings: Settings, device: torch.device | str = "cpu") -> None:
        self.graphs, self.settings, self.device = [graph], settings, torch.device(device)
        self.rows, self.ranks = GraphRows.of(graph), Ranks.current()
        self.dtype, self.num_features = self.rows.dtype, self.rows.num_features
        self.source = BatchSource(self.rows, settings, self.device)
        self.train_nodes, self.val_nodes = nodes_of(graph.train_mask), nodes_of(graph.val_mask)
        nodes, labelled = self.rows.num_nodes, len(self.train_nodes)
        self.order = EpochOrder(nodes, labelled, settings.batch_size, settings.batch_parts)
        self.num_steps = self.order.steps

    def prepare(self, model: NodeModel, graph: Data, outputs: int, *, is_new: bool) -> None:
        """Show a model how often labels meet and, if it is new, the spread of features."""
        network = cast("ClassUnitGCN", model)
        network.begin_labels(self.label_meetings(outputs), len(self.train_nodes))
        network.keep_past()
        if is_new:
            self.source.set_input_scale(network)

    def label_meetings(self, outputs: int) -> Tensor:
        """How many training nodes have both of two labels ``[C, C]``."""
        y, train_mask = self.graphs[0].y, self.graphs[0].train_mask
        if y.dim() == 1:
            return class_sizes(y, train_mask, outputs).double().cpu().diag()
        met = torch.zeros(outputs, outputs, dtype=torch.float64)
        for piece in label_pieces(y, train_mask):
            met += meetings(piece)
        return met

    def begin(
        self,
        population: Population,
        models: Sequence[NodeModel],
        graphs: Sequence[Data],
        tasks: Sequence[Task],
    ) -> None:
        """Weigh classes, start the running means of the edge loss, and find the structure."""
        self.population, self.network, self.task = population, population.network, tasks[0]
        self.seed = population.members[0].seed
        self.validated = torch.tensor([len(self.val_nodes) > 0], device=self.device)
        self._class_weights = self._weights_of_classes()
        self._moments = []
        for layer in self._layers:
            channels = layer.out_channels // layer.factors
            rate = max(_LEAST_RATE, 1 / self.num_steps)
            layer.moments = EdgeMoments(layer.factor_weights, channels, rate)
            self._moments.append(layer.moments)
        self._single = cast("ClassUnitGCN", models[0])
        self.source.look_at(self._single)

    @property
    def _layers(self) -> Sequence[ClassUnitConv]:
        return cast("Sequence[ClassUnitConv]", self.network.layers)

    def _weights_of_classes(self) -> Tensor | None:
        """What classes or labels count ``[1, C]``; ``None`` if all count alike."""
        if self.settings.class_weights != "balanced":
            return None
        y, train_mask = self.graphs[0].y, self.graphs[0].train_mask
        sizes = class_sizes(y, train_mask, self.task.outputs)[None]
        total = torch.tensor([[len(self.train_nodes)]])
        return balanced_weights(sizes, total, is_set=y.dim() == 2)

    def tensors(self) -> dict[str, Tensor]:
        """The running means of every layer."""
        return {
            f"{number}.{name}": tensor.detach().cpu().clone()
            for number, moments in enumerate(self._moments)
            for name, tensor in moments.tensors().items()
        }

    def load(self, saved: dict[str, Tensor]) -> None:
        """Go on with the running means of every layer."""
        for number, moments in enumerate(self._moments):
            prefix = f"{number}."
            moments.load(
                {k.removeprefix(prefix): t for k, t in saved.items() if k.startswith(prefix)}
            )

    # Steps

    def steps(self) -> Iterator[Iterator[Batch]]:
        """The steps of an epoch, each with the parts that are this rank's."""
        epoch = int(self.population.epoch)
        nodes = self.order.nodes_of_epoch(self.seed, epoch)
        parts = range(self.ranks.rank, self.order.parts, self.ranks.size)
        make = [
            partial(self.batch, nodes, epoch, step, part)
            for step in range(self.num_steps)
            for part in parts
        ]
        with closing(prefetch(make, self.device)) as batches:
            for _ in range(self.num_steps):
                yield islice(batches, len(parts))

    def batch(self, order: Tensor, epoch: int, step: int, part: int) -> Batch:
        """Read one part of a step."""
        trained_on = self.train_nodes[self.order.training(self.seed, epoch, step, part)].long()
        sampled = self._read(
            self.source.sampler(),
            self.order.seeds(order, step, part),
            trained_on,
            key_of(self.seed, epoch, step, part),
            self.num_steps * self.order.parts,
            -(-self.settings.fan_out // _LOSS_EDGES),
        )
        targets = self._targets(trained_on)._replace(nodes=sampled.others[None])
        if self._class_weights is not None:
            targets = targets.weighted(self._class_weights)
        number = (epoch * self.num_steps + step) * self.order.parts + part
        draw = torch.full_like(self.population.settings["seed"], number)
        targets, subgraph = targets.to(self.device), sampled.subgraph
        return Batch(sampled.x, sampled.edge_index, targets, draw, subgraph=subgraph)

    def _read(self, sampler: BatchSampler, seeds: Tensor, others: Tensor, *rest: Any) -> Sampled:
        """Sample where the graph is, and bring it to where it is computed."""
        where = sampler.device
        sampled = sampler.batch(seeds.to(where), others.to(where), *rest)
        if where.type != self.device.type:
            sampled = sampled.pin()  # which a GPU can copy while it computes
        return sampled.to(self.device, self.dtype)

    def _targets(self, nodes: Tensor) -> Targets:
        """Labelled nodes as targets that count alike."""
        y = self.graphs[0].y[nodes.long()]
        return Targets(nodes[None], y[None], torch.ones(1, len(nodes)))

    def join(self, losses: dict[str, Tensor]) -> dict[str, Tensor]:
        """Average gradients and losses over all parts of a step, and move the running means."""
        parameters = [p for p in self.network.parameters() if p.grad is not None]
        rows = [p.grad.flatten() for p in parameters if p.grad is not None]
        sizes = [len(row) for row in rows]
        rows += [torch.cat([*losses.values()]).to(rows[0].dtype), sum_of_seen(self._moments)]
        summed = self.ranks.sum(torch.cat(rows))  # one row of numbers, one message
        *grads, loss, seen = torch.split(summed, [*sizes, len(losses), len(rows[-1])])
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = (grad / self.order.parts).view_as(parameter)
        layers = self._layers
        by_layer = torch.split(seen, [len(seen) // len(layers)] * len(layers))
        for layer, moments, row in zip(layers, self._moments, by_layer, strict=True):
            layer.factor_weights.copy_(moments.update(row, layer.owned))
        return dict(zip(losses, (loss / self.order.parts).unsqueeze(1), strict=True))

    # Validation, structure and the final output

    @torch.no_grad()
    def validate(self) -> tuple[Tensor, Tensor, Tensor]:
        """Score the validation nodes, always with the same draws.

        Without any, the first training nodes say whether the network's scores are finite.
        """
        self.network.eval()
        with self.population.averaged():
            if len(self.val_nodes) and self.task.is_counted:
                return self._count()
            nodes = self.val_nodes
            if not len(nodes):
                nodes = self.train_nodes[: self.order.batch_size]
            logits = self.scores(self.network, nodes, 1)
        logit_sum = torch.where(self.validated, 0, logits.sum((-1, -2)).double())
        logits = logits[..., : len(self.val_nodes), :]
        targets = self._targets(self.val_nodes).to(self.device)
        score, loss = self.task.selection_score(logits, targets), self.task.loss(logits, targets)
        return score, loss.double(), logit_sum

    def _count(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same of a score that needs no more than counts: no class scores are kept."""
        nodes, task = self.val_nodes, self.task
        losses = node_array((1, len(nodes)), self.dtype).to(self.device)
        total = torch.zeros(3, 1, task.outputs, dtype=torch.float64, device=self.device)
        for chunk, logits in self._scored(self.network, nodes):
            targets = self._targets(nodes[chunk]).to(self.device)
            losses[:, chunk] = task.losses(logits, targets)
            total += torch.stack(task.counts(logits, targets.y))
        counts = Counts(*self.ranks.sum(total))
        loss = self.ranks.sum(losses).sum(-1) / len(nodes)
        score = counts.score(task.metric, one_each=not task.multi_label)
        return score, loss.double(), torch.zeros_like(score)

    def scores(self, network: NodeModel, nodes: Tensor, *members: int) -> Tensor:
        """Class scores of nodes ``[*members, n, C]``, found by all ranks together."""
        size = (*members, len(nodes), self.task.outputs)
        found = node_array(size, self.dtype).to(self.device)
        for chunk, logits in self._scored(network, nodes):
            found[..., chunk, :] = logits
        return self.ranks.sum(found)

    def _scored(self, network: NodeModel, nodes: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Which of the nodes this rank has scored, and their class scores ``[*, n, C]``."""
        network, size = network.to(self.device), min(self.order.batch_size, _EVALUATED)
        chunks = [slice(low, low + size) for low in range(0, len(nodes), size)]
        mine = chunks[self.ranks.rank :: self.ranks.size]
        key, none = key_of(self.seed, 3), torch.zeros(0, dtype=torch.long)
        sampler = self.source.sampler(evaluates=True)

        def read(chunk: slice) -> Sampled:
            return self._read(sampler, nodes[chunk].long(), none, key)

        make = [partial(read, chunk) for chunk in mine]
        for chunk, batch in zip(mine, prefetch(make, self.device), strict=True):
            pick = partial(torch.narrow, dim=-2, start=0, length=batch.subgraph.seeds)
            with batch.subgraph.active(), torch.no_grad():
                output = network.disentangle(batch.x, batch.edge_index, (), pick)
            yield chunk, output.logits

    def refresh(self, due: Sequence[bool]) -> None:
        """Keep the present weights, and find with them what is propagated along from now on."""
        cast("ClassUnitGCN", self.network).remember(int(self.population.epoch))
        self._single.load_state_dict({k: t[0] for k, t in self.population.weights().items()})
        self.source.look_at(self._single)

    def output(self, graph: Data, trained: TrainedModel) -> NodeOutput:
        """What a finished model says of all nodes, as a prediction finds it.

        Of a mapped graph that is layer by layer, which gives class scores and no layers.
        """
        self.source.release()  # its tables, before there are others
        if graph.edge_index is not None:
            trained.model.cpu()
            return trained.run(graph)
        table = unit_table(self.rows, cast("ClassUnitGCN", trained.model))
        nodes = self.rows.num_nodes
        logits = node_array((nodes, trained.task.outputs), self.dtype)
        with long_work("scoring", "nodes") as advance:
            for low, high in pairwise([*range(0, nodes, SCORED), nodes]):
                logits[low:high] = table.logits(table.rows(torch.arange(low, high)))
                advance(high, high / nodes)
        return NodeOutput(logits, [])


@dataclass(frozen=True)
class EpochOrder:
    """Which nodes every part of a step has, in an order that only seed and epoch decide.

    Attributes:
        parts: Parts of a step, which may be computed on different devices.

    Raises:
        InputError: There are more parts than nodes for them.
    """

    nodes: int
    train: int
    batch_size: int
    parts: int = 1

    def __post_init__(self) -> None:
        if self.nodes < self.steps * self.parts:
            raise InputError(
                f"{self.nodes:,} nodes in {self.steps:,} steps of {self.parts:,} parts "
                "(batch_parts, or ranks) leave some empty; take fewer parts, or more nodes in a "
                "step (--batch-size)"
            )

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return max(1, -(-self.nodes // self.batch_size))

    @property
    def train_size(self) -> int:
        """Training nodes of a part: all, or half as many as there are others."""
        part = -(-min(self.batch_size, self.nodes) // self.parts)
        return min(self.train, max(1, part // 2))

    def nodes_of_epoch(self, seed: int, epoch: int) -> Tensor:
        """All nodes in the order of an epoch ``[N]``."""
        return _shuffled(self.nodes, key_of(seed, epoch, 1))

    def seeds(self, order: Tensor, step: int, part: int) -> Tensor:
        """The nodes of one part of a step; parts differ by one node at most."""
        total, index = self.steps * self.parts, step * self.parts + part
        low, high = (self.nodes * i // total for i in (index, index + 1))
        return order[low:high].long()

    def training(self, seed: int, epoch: int, step: int, part: int) -> Tensor:
        """Which of the training nodes a part has: the next ones, shuffled anew when all had a turn.

        Their pass over the training nodes goes on from part to part and from epoch to epoch.
        """
        size = self.train_size
        if size == self.train:
            return torch.arange(size)
        start = ((epoch * self.steps + step) * self.parts + part) * size
        chosen = []
        while size > 0:
            cycle, low = divmod(start, self.train)
            chosen.append(_last_shuffled(self.train, key_of(seed, cycle, 2))[low : low + size])
            start, size = start + len(chosen[-1]), size - len(chosen[-1])
        return torch.cat(chosen).long()


def _shuffled(count: int, key: int) -> Tensor:
    """The numbers from 0 to ``count - 1`` in random order, as small as they can be stored."""
    dtype = torch.int32 if count < 2**31 else torch.int64
    numbers = torch.arange(count, dtype=dtype, out=node_array((count,), dtype))
    np.random.Generator(np.random.Philox(key=key)).shuffle(numbers.numpy())
    return numbers


# Parts take a few training nodes each from the same order, so the last one is kept.
_last_shuffled = lru_cache(maxsize=1)(_shuffled)


def prefetch(
    make: Sequence[Callable[[], T]],
    device: torch.device = torch.device("cpu"),  # noqa: B008 - it cannot be changed
) -> Generator[T, None, None]:
    """Call functions in a thread, a few of them ahead of what is asked for.

    On a GPU the thread has a CUDA stream of its own, so what it copies and draws there runs beside
    the computation.
    """
    stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def work(function: Callable[[], T]) -> T:
        with torch.cuda.stream(stream) if stream is not None else nullcontext():
            result = function()
            if stream is not None:
                stream.synchronize()  # only this thread waits
        return result

    left = iter(make)
    with ThreadPoolExecutor(1, "lgdgcn-batches") as pool:
        ready = deque(pool.submit(work, function) for function in islice(left, _READY))
        try:
            while ready:
                result = ready.popleft().result()
                ready.extend(pool.submit(work, function) for function in islice(left, 1))
                if stream is not None:
                    _use_here(result, device)
                yield result
        finally:
            pool.shutdown(cancel_futures=True)


def _use_here(result: Any, device: torch.device) -> None:
    """Keep the memory of tensors, once they are freed, until the present stream has read them."""
    now = torch.cuda.current_stream(device)
    for tensor in pytree.tree_leaves(result):
        if not isinstance(tensor, Tensor):
            continue
        parts = [tensor]
        if tensor.layout == torch.sparse_csr:
            parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        for part in parts:
            if part.is_cuda:
                part.record_stream(now)
