"""Training in batches of nodes: the same loop, but an epoch is many steps on parts of the graph.

An epoch is one pass over all nodes in an order that seed and epoch decide. A step has
``batch_size`` of them, in ``batch_parts`` parts; each part is a graph of its own
(:mod:`lgdgcn.large.batches`) with random numbers of its own, and brings some training nodes along.
The gradients of the parts are averaged, by the ranks of :mod:`lgdgcn.train.ranks` if there are any.
What a network with a structure propagates along is found by every rank for all nodes, from weights
that are kept for it: so a training that goes on finds the same.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.labels import class_sizes, label_pieces
from lgdgcn.large.ahead import ahead
from lgdgcn.large.batch_input import check_batchable
from lgdgcn.large.batch_source import BatchSource
from lgdgcn.large.batches import Batch, BatchSampler
from lgdgcn.large.deal import Deal
from lgdgcn.large.drawn_rows import key_of
from lgdgcn.large.inference import SCORED, unit_table
from lgdgcn.large.rows import GraphRows, node_array, nodes_of
from lgdgcn.large.waiting import Waiting
from lgdgcn.models import ClassUnitGCN, NodeModel, NodeOutput, build
from lgdgcn.nn import ClassUnitConv, RandomStreams
from lgdgcn.nn.ours.batch_edges import EdgeMoments, sum_of_seen
from lgdgcn.nn.ours.label_groups import meetings
from lgdgcn.progress import long_work
from lgdgcn.runtime import set_seed
from lgdgcn.train.loss import loss_terms
from lgdgcn.train.members import with_weights
from lgdgcn.train.ranks import Ranks
from lgdgcn.train.scores import Counts
from lgdgcn.train.state import Member, TrainState
from lgdgcn.train.targets import Targets, balanced_weights
from lgdgcn.train.trained import TrainedModel
from lgdgcn.train.trainer import Trainer

__all__ = ["BatchTrainer"]

_LEAST_RATE = 0.2  # weight of a step in the running means of the edge loss
_LOSS_EDGES = 4  # of so many neighbours that are drawn for a seed, one edge is evidence
_EVALUATED = 4096  # nodes that are scored at once, at most
_GROUP = "batch"  # of tensors in a state


class BatchTrainer(Trainer):
    """Trains one model in batches of nodes.

    Args:
        graph: A canonical graph that :func:`~lgdgcn.large.rows.prepared_rows` made.
        member: Settings and seed.
        model_name: A key of :data:`lgdgcn.models.MODELS`.
        state: Where it stands; ``None`` if it is new.
        device: Where it is trained.

    Attributes:
        stepped: Seconds that the steps of the last epoch took, without its evaluation.
        waited: Seconds of them in which there was no batch to compute.
    """

    stepped: float
    waited: float
    _class_weights: Tensor | None  # of classes or labels ``[1, C]``

    def __init__(
        self,
        graph: Data,
        member: Member,
        model_name: str = "lgdgcn",
        state: TrainState | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        check_batchable(member.settings, model_name)
        self.device = torch.device(device)
        self.ranks = Ranks.current()
        self.rows = GraphRows.of(graph)
        self._source = BatchSource(self.rows, member.settings, self.device)
        self._train_nodes, self._val_nodes = nodes_of(graph.train_mask), nodes_of(graph.val_mask)
        settings = member.settings
        nodes, labelled = self.rows.num_nodes, len(self._train_nodes)
        self.deal = Deal(nodes, labelled, settings.batch_size, settings.batch_parts)
        # rank 0 alone reads checkpoints
        super().__init__([graph], [member], model_name, [self.ranks.from_first(state)])

    def state(self, index: int) -> TrainState:
        """Return a copy of where the training stands, with its running means."""
        state = super().state(index)
        if self.indices:
            for number, own in enumerate(self._moments):
                for name, tensor in own.tensors().items():
                    state.tensors[f"{_GROUP}.{number}.{name}"] = tensor.detach().cpu().clone()
        return state

    def output(self, index: int, trained: TrainedModel) -> NodeOutput:
        """Return what a finished model says of all nodes, with all their neighbours.

        It is found as a prediction is: of a mapped graph step by step, which gives class scores
        and no layers.
        """
        self._source.release()  # its tables, before there are others
        if self.graphs[index].edge_index is not None:
            trained.model.cpu()
            return super().output(index, trained)
        table = unit_table(self.rows, cast("ClassUnitGCN", trained.model))
        nodes = self.rows.num_nodes
        logits = node_array((nodes, self.tasks[0].outputs), self.rows.dtype)
        with long_work("scoring", "nodes") as advance:
            for low, high in pairwise([*range(0, nodes, SCORED), nodes]):
                logits[low:high] = table.logits(table.rows(torch.arange(low, high)))
                advance(high, high / nodes)
        return NodeOutput(logits, [])

    # One epoch

    def step(self) -> dict[str, Tensor]:
        """Make the steps of an epoch; returns the mean terms of the loss, ``[1]`` each."""
        network = self.network.train()
        epoch, seed = int(self.stacked.epoch), self.members[0].seed
        order = self.deal.order(seed, epoch)
        parts = range(self.ranks.rank, self.deal.parts, self.ranks.size)
        make = [
            partial(self._part, order, epoch, step, part)
            for step in range(self.deal.steps)
            for part in parts
        ]
        batches = Waiting(ahead(make, self.device), self.device)
        total: dict[str, Tensor] = {}
        for step in range(self.deal.steps):
            self.stacked.optimizer.zero_grad()
            losses: dict[str, Tensor] = {}
            for part in parts:
                batch, targets = next(batches)
                number = (epoch * self.deal.steps + step) * self.deal.parts + part
                for name, loss in self._backward(network, batch, targets, number).items():
                    losses[name] = losses.get(name, 0) + loss
            losses = self._reduce(losses)
            self.stacked.optimizer.step()
            self.stacked.update_average()
            for name, loss in losses.items():
                total[name] = total.get(name, 0) + loss / self.deal.steps
        self.waited, self.stepped = batches.seconds()
        return total

    def _part(self, order: Tensor, epoch: int, step: int, part: int) -> tuple[Batch, Targets]:
        """Read one part of a step."""
        seed = self.members[0].seed
        others = self._train_nodes[self.deal.training(seed, epoch, step, part)].long()
        batch = self._read(
            self._source.sampler(),
            self.deal.seeds(order, step, part),
            others,
            key_of(seed, epoch, step, part),
            self.deal.steps * self.deal.parts,
            self._loss_edges,
        )
        targets = self._targets(others)._replace(nodes=batch.others[None])
        if self._class_weights is not None:
            targets = targets.weighted(self._class_weights)
        return batch, targets.to(self.device)

    def _read(self, sampler: BatchSampler, seeds: Tensor, others: Tensor, *rest: Any) -> Batch:
        """Make a batch where its graph is, and bring it to where it is computed."""
        where = sampler.device
        batch = sampler.batch(seeds.to(where), others.to(where), *rest)
        if where.type != self.device.type:
            batch = batch.pin()  # which a GPU can copy while it computes
        return batch.to(self.device, self.rows.dtype)

    def _backward(
        self, network: NodeModel, batch: Batch, targets: Targets, number: int
    ) -> dict[str, Tensor]:
        """Add the gradients of one part; returns the terms of its loss."""
        own = self.stacked.settings
        streams = RandomStreams(own["seed"], torch.full_like(own["seed"], number), own["dropout"])
        with batch.subgraph.active():
            with streams.active():
                output = network.disentangle(batch.x, batch.edge_index, (), targets.pick)
            weights = self.stacked.loss_weights()
            losses = loss_terms(network, output, self.task, targets, batch.edge_index, weights)
        losses["total"].sum().backward()  # type: ignore[no-untyped-call]
        return {name: loss.detach() for name, loss in losses.items()}

    def _reduce(self, losses: dict[str, Tensor]) -> dict[str, Tensor]:
        """Average gradients and losses over all parts of a step, and move the running means."""
        parameters = [p for p in self.network.parameters() if p.grad is not None]
        rows = [p.grad.flatten() for p in parameters if p.grad is not None]
        sizes = [len(row) for row in rows]
        rows += [torch.cat([*losses.values()]).to(rows[0].dtype), sum_of_seen(self._moments)]
        summed = self.ranks.sum(torch.cat(rows))
        *grads, loss, seen = torch.split(summed, [*sizes, len(losses), len(rows[-1])])
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = (grad / self.deal.parts).view_as(parameter)
        layers = cast("Sequence[ClassUnitConv]", self.network.layers)
        lengths = [len(seen) // len(layers)] * len(layers)
        for layer, own, row in zip(layers, self._moments, torch.split(seen, lengths), strict=True):
            layer.factor_weights.copy_(own.update(row, layer.owned))
        return dict(zip(losses, (loss / self.deal.parts).unsqueeze(1), strict=True))

    def _targets(self, nodes: Tensor) -> Targets:
        """Some labelled nodes as targets that count alike."""
        y = self.graphs[0].y[nodes.long()]
        return Targets(nodes[None], y[None], torch.ones(1, len(nodes)))

    @torch.no_grad()
    def _validate(self) -> tuple[Tensor, Tensor, Tensor]:
        """Score the validation nodes (or, without any, some nodes), always with the same draws."""
        self.network.eval()
        with self.stacked.averaged():
            if len(self._val_nodes) and self.task.is_counted:
                return self._count()
            nodes = self._val_nodes
            if not len(nodes):
                nodes = self._train_nodes[: self.deal.batch_size]
            logits = self._scores(self.network, nodes, 1)
        logit_sum = torch.where(self.validated, 0, logits.sum((-1, -2)).double())
        logits = logits[..., : len(self._val_nodes), :]
        targets = self._targets(self._val_nodes).to(self.device)
        score, loss = self.task.selection_score(logits, targets), self.task.loss(logits, targets)
        return score, loss.double(), logit_sum

    def _count(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same of a score that needs no more than counts: no scores are kept."""
        nodes, task = self._val_nodes, self.task
        losses = node_array((1, len(nodes)), self.rows.dtype).to(self.device)
        total = torch.zeros(3, 1, task.outputs, dtype=torch.float64, device=self.device)
        for chunk, logits in self._scored(self.network, nodes):
            targets = self._targets(nodes[chunk]).to(self.device)
            losses[:, chunk] = task.losses(logits, targets)
            total += torch.stack(task.counts(logits, targets.y))
        counts = Counts(*self.ranks.sum(total))
        loss = self.ranks.sum(losses).sum(-1) / len(nodes)
        score = counts.score(task.metric, one_each=not task.multi_label)
        return score, loss.double(), torch.zeros_like(score)

    def _scores(self, network: NodeModel, nodes: Tensor, *members: int) -> Tensor:
        """Class scores of some nodes ``[*members, n, C]``, found by all ranks together."""
        size = (*members, len(nodes), self.tasks[0].outputs)
        found = node_array(size, self.rows.dtype).to(self.device)
        for chunk, logits in self._scored(network, nodes):
            found[..., chunk, :] = logits
        return self.ranks.sum(found)

    def _scored(self, network: NodeModel, nodes: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Which of some nodes this rank has scored, and their class scores ``[*, n, C]``."""
        network = network.to(self.device)
        own = [*self._chunks(nodes)][self.ranks.rank :: self.ranks.size]
        key, none = key_of(self.members[0].seed, 3), torch.zeros(0, dtype=torch.long)
        sampler = self._source.sampler(evaluates=True)

        def read(chunk: slice) -> Batch:
            return self._read(sampler, nodes[chunk].long(), none, key)

        make = [partial(read, chunk) for chunk in own]
        for chunk, batch in zip(own, ahead(make, self.device), strict=True):
            pick = partial(torch.narrow, dim=-2, start=0, length=batch.subgraph.seeds)
            with batch.subgraph.active(), torch.no_grad():
                output = network.disentangle(batch.x, batch.edge_index, (), pick)
            yield chunk, output.logits

    def _chunks(self, nodes: Tensor) -> Iterator[slice]:
        """Which of some nodes are scored at once."""
        size = min(self.deal.batch_size, _EVALUATED)
        return (slice(low, low + size) for low in range(0, len(nodes), size))

    def _find_structure(self, due: list[bool]) -> None:
        """Keep the present weights, and find with them what is propagated along from now on."""
        cast("ClassUnitGCN", self.network).remember(int(self.stacked.epoch))
        self._look_at_network()

    def _look_at_network(self) -> None:
        """Read batches for the network as it is now."""
        model = with_weights(self._bare_model(0), self.state(0), "model")
        self._source.look_at(cast("ClassUnitGCN", model))

    # Building

    def _check_memory(self, indices: list[int]) -> None:
        """A batch is as large as the settings say."""

    def _build(self, indices: list[int]) -> None:
        super()._build(indices)
        if not indices:
            return
        self.stacked.optimizer.param_groups[0]["step"].mul_(self.deal.steps)
        saved = self.states[0].weights(_GROUP)
        self._loss_edges = -(-self.members[0].settings.fan_out // _LOSS_EDGES)
        rate = max(_LEAST_RATE, 1 / self.deal.steps)
        self._moments = []
        for number, layer in enumerate(cast("Sequence[ClassUnitConv]", self.network.layers)):
            channels = layer.out_channels // layer.factors
            layer.moments = EdgeMoments(layer.factor_weights, channels, rate)
            prefix = f"{number}."
            own = {k.removeprefix(prefix): t for k, t in saved.items() if k.startswith(prefix)}
            if own:
                layer.moments.load(own)
            self._moments.append(layer.moments)
        self._look_at_network()

    def _read_targets(self, graphs: Sequence[Data], balanced: bool) -> None:
        """Count classes; the labels of a batch are read with it."""
        y, train_mask = graphs[0].y, graphs[0].train_mask
        self.validated = torch.tensor([len(self._val_nodes) > 0], device=self.device)
        self._class_weights = None
        if balanced:
            sizes = class_sizes(y, train_mask, self.task.outputs)[None]
            total = torch.tensor([[len(self._train_nodes)]])
            self._class_weights = balanced_weights(sizes, total, is_set=y.dim() == 2)

    def _new_model(self, index: int) -> NodeModel:
        model = self._bare_model(index)
        if self.states[index].epoch == 0:  # later weights know the spread of features
            self._source.look_at(model).begin(model, self.rows)
        return model

    def _bare_model(self, index: int) -> ClassUnitGCN:
        """A model as its seed draws it, which has seen labels, but no features."""
        member, graph, outputs = self.members[index], self.graphs[index], self.tasks[index].outputs
        set_seed(member.seed)
        made = build(
            self.model_name,
            member.settings.as_dict(),
            self.rows.num_features,
            outputs,
            multi_label=graph.y.dim() == 2,
        )
        model = cast("ClassUnitGCN", made).to(self.device, self.rows.dtype)
        model.begin_labels(self._met(graph, outputs), len(self._train_nodes))
        model.keep_past()
        return model

    def _met(self, graph: Data, outputs: int) -> Tensor:
        """How many training nodes have both of two labels ``[C, C]``."""
        if graph.y.dim() == 1:
            return class_sizes(graph.y, graph.train_mask, outputs).double().cpu().diag()
        met = torch.zeros(outputs, outputs, dtype=torch.float64)
        for piece in label_pieces(graph.y, graph.train_mask):
            met += meetings(piece)
        return met
