"""The training loop: an epoch is steps of Adam on batches of a loader, and a validation.

Many trainings run in one pass: every tensor has a leading axis of R members, each with its own
weights, seed, hyper-parameters and early stopping. A single training is a population of one. On
the whole graph (:class:`~lgdgcn.train.loader.WholeGraph`) an epoch never waits for the host, so
that a GPU can record and replay it; what the host wants to know is one row of numbers per member.
"""

import math
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.models import NodeModel, NodeOutput, build
from lgdgcn.nn import RandomStreams
from lgdgcn.runtime import set_seed
from lgdgcn.train.cuda_graph import CudaGraphRunner
from lgdgcn.train.loader import Batch, Loader, WholeGraph
from lgdgcn.train.population import (
    Epoch,
    Population,
    Training,
    TrainState,
    with_weights,
)
from lgdgcn.train.ranks import Ranks
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel

__all__ = ["Trainer", "loss_terms"]

_drawing = threading.Lock()  # weights are drawn from generators that all threads share
_LOADED = "batch"  # the group of a state that has what the loader saves


class Trainer:
    """Trains models of one architecture on one graph.

    Args:
        trainings: What is wanted; settings may differ in
            :data:`~lgdgcn.config.PER_MEMBER_SETTINGS` only.
        loader: What is computed on; by default their graphs, on the device that they are on, see
            :class:`~lgdgcn.train.loader.WholeGraph`.
    """

    indices: list[int]  # of the members that are still trained
    population: Population
    network: NodeModel
    _columns: list[str]  # names of the numbers that an epoch returns
    _is_first_epoch: bool

    def __init__(self, trainings: Sequence[Training], loader: Loader | None = None) -> None:
        self.trainings = list(trainings)
        if len({one.architecture for one in self.trainings}) > 1:
            raise InputError("trainings of one pass differ in more than their rates and weights")
        self.loader = loader or WholeGraph([one.graph for one in self.trainings])
        count, own = len(self.trainings), self.loader.graphs
        self.graphs = own * count if len(own) == 1 else own
        self.tasks = [
            Task.of(graph, one.settings.metric)
            for graph, one in zip(self.graphs, self.trainings, strict=True)
        ]
        read = [Ranks.current().from_first(one.state) for one in self.trainings]  # by one rank
        self.states = [TrainState() if state is None else replace(state) for state in read]
        self._has_validation = [bool(graph.val_mask.any()) for graph in self.graphs]
        indices = [i for i in range(count) if not self.is_finished(i)]
        self._build(indices)
        for concern in self.network.concerns() if self.indices else ():
            warnings.warn(concern, LGDWarning, stacklevel=2)

    @property
    def finished(self) -> bool:
        """Whether every member is."""
        return not self.indices

    def train(self, on_report: Callable[[Epoch], None] = lambda report: None) -> None:
        """Train to the end; ``on_report`` sees every member's epochs and may raise to stop."""
        while not self.finished:
            for report in self.epoch():
                on_report(report)

    def epoch(self) -> list[Epoch]:
        """Train all unfinished members for one epoch (several on a GPU), and report each."""
        start = time.perf_counter()
        if self._runner is None:
            host_reads = [self._epoch().cpu()]
        else:
            host_reads = self._runner.run(self._epochs_to_refresh())
        seconds = (time.perf_counter() - start) / (len(host_reads) * len(self.indices))
        reports = [report for rows in host_reads for report in self._reports(rows, seconds)]
        self._refresh()
        self._release_finished()
        return reports

    def retire(self, indices: Iterable[int]) -> None:
        """Give up members; they keep the best they have seen."""
        for index in indices:
            self.states[index].retired = True
        self._release_finished()

    def state(self, index: int) -> TrainState:
        """Return a copy of where a member stands, with its tensors."""
        state = self.states[index]
        if index not in self.indices:
            return replace(state, tensors=dict(state.tensors))
        tensors = self.population.tensors(self.indices.index(index))
        beside = {f"{_LOADED}.{name}": one for name, one in self.loader.tensors().items()}
        return replace(state, tensors=tensors | beside)

    def model(self, index: int, weights: str = "best") -> NodeModel:
        """Return a single model with a member's best (or, ``"model"``, present) weights."""
        return with_weights(self.new_model(index), self.state(index), weights)

    def output(self, index: int, trained: TrainedModel) -> NodeOutput:
        """Return what a member's finished model says of all nodes of its graph."""
        return self.loader.output(self.graphs[index], trained)

    # One epoch on the device

    def _epoch(self) -> Tensor:
        """Make all steps and an evaluation; returns a row of numbers per member."""
        now, limits = self.population, self.population.settings
        waited = now.epoch - now.best_epoch
        active = (now.epoch < limits["epochs"]) & (waited < limits["patience"])  # [R]
        losses = self.steps()
        with torch.no_grad():
            now.epoch += active.long()
        val_score, val_loss, logit_sum = self.loader.validate()
        with torch.no_grad():
            row = {name: loss.double() for name, loss in losses.items()}
            row |= {"val_loss": val_loss, "val_score": val_score, "logit_sum": logit_sum}
            finite = torch.stack([*row.values()]).isfinite().all(0)
            self._keep_best(active & finite, val_score, val_loss)
            row |= {"active": active, "epoch": now.epoch, "best_epoch": now.best_epoch}
            row |= {"best_score": now.best_score, "best_loss": now.best_loss}
            self._columns = list(row)
            return torch.stack([column.double() for column in row.values()]).t()  # [R, columns]

    def steps(self) -> dict[str, Tensor]:
        """Make the steps of an epoch; returns the mean terms of the loss, ``[R]`` each."""
        self.network.train()
        if self.loader.num_steps == 1:
            [losses] = [self._step(batches) for batches in self.loader.steps()]
            return losses
        total: dict[str, Tensor] = {}
        for batches in self.loader.steps():
            for name, loss in self._step(batches).items():
                total[name] = total.get(name, 0) + loss / self.loader.num_steps
        return total

    def _step(self, batches: Iterable[Batch]) -> dict[str, Tensor]:
        """Make one step of the optimizer along the gradients of some batches."""
        self.population.optimizer.zero_grad()
        losses: dict[str, Tensor] = {}
        for batch in batches:
            for name, loss in self._backward(batch).items():
                losses[name] = losses[name] + loss if name in losses else loss
        losses = self.loader.join(losses)
        self.population.optimizer.step()
        self.population.update_average()
        self._is_first_epoch = False
        return losses

    def _backward(self, batch: Batch) -> dict[str, Tensor]:
        """Add the gradients of one batch; returns the terms of its loss."""
        network, own = self.network, self.population.settings
        streams = RandomStreams(own["seed"], batch.draw, own["dropout"])
        with batch.subgraph.active() if batch.subgraph else nullcontext():
            with streams.active() if self._is_random else nullcontext():
                x, edge_index, targets = batch.x, batch.edge_index, batch.targets
                output = network.disentangle(x, edge_index, batch.known, targets.pick)
            if self.loader.is_whole:
                if self._is_first_epoch:
                    network.update_statistics(output, "first_epoch")
                network.update_statistics(output, "before_loss")
            weights = self.population.loss_weights()
            losses = loss_terms(network, output, self._task, targets, edge_index, weights)
        losses["total"].sum().backward()  # type: ignore[no-untyped-call]
        return {name: loss.detach() for name, loss in losses.items()}

    def _keep_best(self, valid: Tensor, score: Tensor, loss: Tensor) -> None:
        """Remember better epochs; without validation nodes every valid one ``[R]`` is better."""
        now, validated = self.population, self.loader.validated
        tied = (score == now.best_score) & (loss < now.best_loss)
        better = valid & ((score > now.best_score) | tied | ~validated)
        scored = better & validated
        now.best_score.copy_(torch.where(scored, score, now.best_score))
        now.best_loss.copy_(torch.where(scored, loss, now.best_loss))
        now.keep_best(better)

    # Every so many epochs

    def _epochs_to_refresh(self) -> int | None:
        """Epochs until the first member's time for a refresh; ``None`` if there is none."""
        every = self.network.refresh_every
        return min(every - self.states[i].epoch % every for i in self.indices) if every else None

    def _refresh(self) -> None:
        """Let the network change what depends on the whole graph, where it is time."""
        every = self.network.refresh_every
        due = [
            bool(every) and self.states[i].epoch % every == 0 and not self.is_finished(i)
            for i in self.indices
        ]
        if any(due):
            self.network.eval()
            with self.population.averaged():
                self.loader.refresh(due)

    # What the host makes of it

    def _reports(self, rows: Tensor, seconds: float) -> Iterator[Epoch]:
        for index, values in zip(self.indices, rows.tolist(), strict=True):
            state = self.states[index]
            row = dict(zip(self._columns, values, strict=True))
            if row["active"] and not (state.diverged or state.retired):
                yield self._report(index, row, seconds)

    def _report(self, index: int, row: dict[str, float], seconds: float) -> Epoch:
        """Report a member's epoch and move its state on; a diverged one stays where it was."""
        validated = self._has_validation[index]
        losses = {name: row[name] for name in self._columns[: self._columns.index("val_loss")]}
        epoch, state = int(row["epoch"]), self.states[index]
        error = _divergence(losses, row, validated)
        if error is None:
            score = row["val_score"]
            first = state.epoch == 0
            lowest = score if first else state.lowest_score
            state = replace(
                state,
                epoch=epoch,
                best_epoch=int(row["best_epoch"]),
                best_score=row["best_score"],
                best_loss=row["best_loss"],
                seconds=state.seconds + seconds,
                lowest_score=None if lowest is None else min(lowest, score),
                first_loss=losses["classification"] if first else state.first_loss,
                last_loss=losses["classification"],
            )
        self.states[index] = replace(state, diverged=error)
        metrics = {
            "epoch": epoch,
            **losses,
            "val_loss": row["val_loss"] if validated else None,
            f"val_{self.tasks[index].metric}": row["val_score"] if validated else None,
        }
        now = replace(self.states[index], tensors={})
        return Epoch(self.trainings[index], index, metrics, now, partial(self.state, index))

    # Members brought together, and released

    def _build(self, indices: list[int]) -> None:
        """Stack the members at these indices."""
        self.indices = indices
        if not indices:
            return
        members, states = [self.trainings[i] for i in indices], [self.states[i] for i in indices]
        graphs, tasks = [self.graphs[i] for i in indices], [self.tasks[i] for i in indices]
        models = [self.new_model(i) for i in indices]
        self.population = Population(members, models, states, self.loader.num_steps)
        self.network, self._task = self.population.network, tasks[0]
        self.loader.begin(self.population, models, graphs, tasks)
        if saved := states[0].weights(_LOADED):
            self.loader.load(saved)
        self._is_random = self.population.has_dropout or self.network.is_random_from_start
        self._is_first_epoch = any(state.epoch == 0 for state in states)
        self._columns = []
        self._runner = CudaGraphRunner(self._epoch) if self.loader.is_recorded else None

    def _release_finished(self) -> None:
        """Drop finished members; on a GPU only if they are many, for that means recording anew."""
        going = [index for index in self.indices if not self.is_finished(index)]
        done, is_cuda = len(self.indices) - len(going), self.loader.device.type == "cuda"
        if done and (not is_cuda or not going or 4 * done >= len(self.indices)):
            for index in self.indices:
                self.states[index] = self.state(index)
            self._build(going)

    def new_model(self, index: int) -> NodeModel:
        """Return a member's model as its seed draws it, on the device of its graph."""
        member, graph, loader = self.trainings[index], self.graphs[index], self.loader
        outputs, is_set = self.tasks[index].outputs, graph.y.dim() == 2
        settings = member.settings.as_dict()
        with _drawing:
            set_seed(member.seed)
            model = build(member.model, settings, loader.num_features, outputs, multi_label=is_set)
        model.to(loader.device, loader.dtype)
        loader.prepare(model, graph, outputs, is_new=self.states[index].epoch == 0)
        return model

    def is_finished(self, index: int) -> bool:
        """Whether a member is."""
        return self.states[index].is_finished(self.trainings[index].settings)


def loss_terms(
    model: NodeModel,
    output: NodeOutput,
    task: Task,
    targets: Targets,
    edge_index: Tensor,
    weights: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    r"""Return the terms of every member's loss and their sum, ``[R]`` each.

    .. math:: L_{total} = L_{cls} + \sum_l 10^{l-L} (\lambda_{space} L_{space}^{(l)}
        + \lambda_{div} L_{div}^{(l)} + \lambda_{edge} L_{edge}^{(l)})

    Args:
        model: The members' network.
        output: What it says of the target nodes; its class scores are ``[R, n, C]``.
        task: What is predicted.
        targets: The nodes that are trained on.
        edge_index: Edges. Shape ``[2, E]``.
        weights: The members' weights :math:`\lambda` by the name of the loss, ``[R]`` each. A
            loss of the model that has none counts once.

    Returns:
        ``classification``, the model's own losses (before their weights) and ``total``.
    """
    total = task.loss(output.logits, targets.repeated(model.views))
    own = model.losses(output, edge_index)
    terms = {"classification": total, **own}
    for name in dict.fromkeys([*weights, *own]):
        if name in own:
            total = total + (weights[name] * own[name] if name in weights else own[name])
    return {**terms, "total": total}


def _divergence(losses: dict[str, float], row: dict[str, float], validated: bool) -> str | None:
    """Name the first non-finite loss, if any."""
    last = {"validation": row["val_loss"]} if validated else {"evaluation": row["logit_sum"]}
    for name, value in (losses | last).items():
        if not math.isfinite(value):
            return f"training diverged: the {name} loss is {value} in epoch {int(row['epoch'])}"
    return None
