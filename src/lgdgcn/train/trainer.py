"""The training loop: one epoch is a forward pass, losses, a step of Adam and an evaluation.

Many trainings run in one pass: every tensor has a leading axis of R members, each with its own
weights, seed, hyper-parameters and early stopping. A single training is a population of one. An
epoch is a program of tensor operations that never synchronises with the host, so that a GPU can
record and replay it; what the host wants to know of it is one row of numbers per member.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.errors import LGDWarning
from lgdgcn.kernels.dispatch import is_recordable
from lgdgcn.models import NodeModel, NodeOutput
from lgdgcn.nn import Disentangled, RandomStreams
from lgdgcn.train.cuda_graph import CudaGraphRunner
from lgdgcn.train.loss import loss_terms
from lgdgcn.train.members import StackedMembers, check_alike, new_model, with_weights
from lgdgcn.train.memory import check_memory
from lgdgcn.train.state import EpochReport, Member, TrainState
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task, selection_scores
from lgdgcn.train.trained import TrainedModel, attach_edge_weights

__all__ = ["Trainer"]


class Trainer:
    """Trains models of one architecture on one graph.

    Args:
        graphs: A canonical graph for each member, on the device it is trained on; they may differ
            in the split only. Or one graph for all.
        members: Settings and seeds; settings may differ in
            :data:`~lgdgcn.config.PER_MEMBER_SETTINGS` only.
        model_name: A key of :data:`lgdgcn.models.MODELS`.
        states: Where each member stands; ``None`` if it is new.
    """

    indices: list[int]  # of the members that are still trained
    stacked: StackedMembers
    network: NodeModel
    _known_layers: list[Disentangled]  # computed by the last evaluation, reused by the next step
    _columns: list[str]  # names of the numbers that an epoch returns
    _is_first_epoch: bool

    def __init__(
        self,
        graphs: Data | Sequence[Data],
        members: Sequence[Member],
        model_name: str = "lgdgcn",
        states: Sequence[TrainState | None] | None = None,
    ) -> None:
        self.members = list(members)
        self.graphs = [graphs] * len(self.members) if isinstance(graphs, Data) else list(graphs)
        self.model_name = model_name
        states = [None] * len(self.members) if states is None else states
        check_alike(self.members, self.graphs, states)
        self.tasks = [
            Task.of(graph, member.settings.metric)
            for graph, member in zip(self.graphs, self.members, strict=True)
        ]
        self.states = [TrainState() if state is None else replace(state) for state in states]
        self._has_validation = [bool(graph.val_mask.any()) for graph in self.graphs]
        indices = [i for i in range(len(self.members)) if not self._is_finished(i)]
        self._check_memory(indices)
        self._build(indices)
        for concern in self.network.concerns() if self.indices else ():
            warnings.warn(concern, LGDWarning, stacklevel=2)

    def _check_memory(self, indices: list[int]) -> None:
        """Refuse members that cannot fit."""
        unfinished = [self.members[i].settings for i in indices]
        check_memory(self.graphs[0], unfinished, self.model_name, self.graphs[0].x.device)

    @property
    def finished(self) -> bool:
        """Whether every member is."""
        return not self.indices

    def train(self, on_report: Callable[[EpochReport], None] = lambda report: None) -> None:
        """Train to the end; ``on_report`` sees every member's epochs and may raise to stop."""
        while not self.finished:
            for report in self.epoch():
                on_report(report)

    def epoch(self) -> list[EpochReport]:
        """Train all unfinished members for one epoch (several on a GPU), and report each."""
        start = time.perf_counter()
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
        return replace(state, tensors=self.stacked.tensors(self.indices.index(index)))

    def model(self, index: int, weights: str = "best") -> NodeModel:
        """Return a single model with a member's best (or, ``"model"``, present) weights."""
        return with_weights(self._new_model(index), self.state(index), weights)

    def output(self, index: int, trained: TrainedModel) -> NodeOutput:
        """Return what a member's finished model says of all nodes of its graph."""
        return trained.run(self.graphs[index])

    # One epoch on the device

    def _epoch(self) -> Tensor:
        """Make a step and an evaluation; returns a row of numbers per member."""
        now, limits = self.stacked, self.stacked.settings
        waited = now.epoch - now.best_epoch
        active = (now.epoch < limits["epochs"]) & (waited < limits["patience"])  # [R]
        losses = self.step()
        with torch.no_grad():
            now.epoch += active.long()
        val_score, val_loss, logit_sum = self._validate()
        with torch.no_grad():
            row = {name: loss.double() for name, loss in losses.items()}
            row |= {"val_loss": val_loss, "val_score": val_score, "logit_sum": logit_sum}
            finite = torch.stack([*row.values()]).isfinite().all(0)
            self._keep_best(active & finite, val_score, val_loss)
            row |= {"active": active, "epoch": now.epoch, "best_epoch": now.best_epoch}
            row |= {"best_score": now.best_score, "best_loss": now.best_loss}
            self._columns = list(row)
            return torch.stack([column.double() for column in row.values()]).t()  # [R, columns]

    def step(self) -> dict[str, Tensor]:
        """Make one step of the optimizer; returns the terms of the loss, ``[R]`` each."""
        network = self.network.train()
        output = self._forward()
        if self._is_first_epoch:
            network.update_statistics(output, "first_epoch")
        network.update_statistics(output, "before_loss")
        weights = self.stacked.loss_weights()
        losses = loss_terms(network, output, self.task, self.targets, self.edge_index, weights)
        self.stacked.optimizer.zero_grad()
        losses["total"].sum().backward()  # type: ignore[no-untyped-call]
        self.stacked.optimizer.step()
        self.stacked.update_average()
        self._is_first_epoch = False
        return {name: loss.detach() for name, loss in losses.items()}

    def _forward(self) -> NodeOutput:
        """Run the networks on the training nodes, beginning with the layers that are known."""
        known, self._known_layers = self._known_layers, []
        own = self.stacked.settings
        streams = RandomStreams(own["seed"], self.stacked.epoch + 1, own["dropout"])
        with streams.active() if self._is_random else nullcontext():
            return self.network.disentangle(self.x, self.edge_index, known, self.targets.pick)

    def _validate(self) -> tuple[Tensor, Tensor, Tensor]:
        """Evaluate: score and loss of the validation nodes, without any the sum of all scores."""
        logits = self._evaluate()
        with torch.no_grad():
            logit_sum = torch.where(self.validated, 0, logits.sum((-1, -2)).double())
            if not self._all_validated:
                logits = self.validation.pick(logits)
            score = selection_scores(self._tasks, logits, self.validation)
            return score, self.task.loss(logits, self.validation).double(), logit_sum

    def _evaluate(self) -> Tensor:
        """Score the validation nodes; the units also move the statistics (Alg. 2).

        The next step begins with the same weights, so up to the first dropout its forward pass is
        this one: these layers are computed with gradients and kept for it (``_known_layers``),
        unless the weights of an evaluation are averages. All nodes are scored if a member has no
        validation nodes.
        """
        self.network.eval()
        reused = None  # all layers
        if self._runner.capture or self.network.is_random_from_start or self.stacked.average:
            reused = 0
        elif self._has_dropout:
            reused = 1
        pick = self.validation.pick if self._all_validated else None
        with self.stacked.averaged():
            with torch.enable_grad():
                known = self.network.factors(self.x, self.edge_index, count=reused)
            with torch.no_grad():
                output = self.network.disentangle(self.x, self.edge_index, known, pick)
                self.network.update_statistics(output, "after_step")
        self._known_layers = known
        return output.logits

    def _keep_best(self, valid: Tensor, score: Tensor, loss: Tensor) -> None:
        """Remember better epochs; without validation nodes every valid one ``[R]`` is better."""
        now = self.stacked
        tied = (score == now.best_score) & (loss < now.best_loss)
        better = valid & ((score > now.best_score) | tied | ~self.validated)
        scored = better & self.validated
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
            bool(every) and self.states[i].epoch % every == 0 and not self._is_finished(i)
            for i in self.indices
        ]
        if any(due):
            self.network.eval()
            with self.stacked.averaged():
                self._find_structure(due)

    def _find_structure(self, due: list[bool]) -> None:
        """Let the network weigh anew what it propagates along, for members whose time it is."""
        self.network.refresh(self.x, self.edge_index, torch.tensor(due, device=self.x.device))

    # What the host makes of it

    def _reports(self, rows: Tensor, seconds: float) -> Iterator[EpochReport]:
        for index, values in zip(self.indices, rows.tolist(), strict=True):
            state = self.states[index]
            row = dict(zip(self._columns, values, strict=True))
            if row["active"] and not (state.diverged or state.retired):
                yield self._report(index, row, seconds)

    def _report(self, index: int, row: dict[str, float], seconds: float) -> EpochReport:
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
        self.states[index] = replace(state, diverged=error is not None)
        metrics = {
            "epoch": epoch,
            **losses,
            "val_loss": row["val_loss"] if validated else None,
            f"val_{self.tasks[index].metric}": row["val_score"] if validated else None,
        }
        now = replace(self.states[index], tensors={})
        return EpochReport(index, metrics, now, self._is_finished(index), error)

    # Members brought together, and released

    def _build(self, indices: list[int]) -> None:
        """Stack the members at these indices."""
        self.indices = indices
        if not indices:
            return
        members, graphs = [self.members[i] for i in indices], [self.graphs[i] for i in indices]
        states, self._tasks = [self.states[i] for i in indices], [self.tasks[i] for i in indices]
        for graph in graphs:
            attach_edge_weights(graph)
        self.x, self.edge_index, self.task = graphs[0].x, graphs[0].edge_index, self._tasks[0]
        self.stacked = StackedMembers(members, [self._new_model(i) for i in indices], states)
        self.network = self.stacked.network
        self._read_targets(graphs, members[0].settings.class_weights == "balanced")
        self._all_validated = bool(self.validated.all())
        self._has_dropout = any(member.settings.dropout > 0 for member in members)
        self._is_random = self._has_dropout or self.network.is_random_from_start
        self._is_first_epoch = any(state.epoch == 0 for state in states)
        self._known_layers, self._columns = [], []
        capture = self.network.can_be_captured and is_recordable(self.x)
        self._runner = CudaGraphRunner(self._epoch, capture)

    def _read_targets(self, graphs: Sequence[Data], balanced: bool) -> None:
        """Read which nodes are trained on, and which are validation nodes."""
        self.targets = Targets.of(graphs, "train_mask")
        if balanced:
            self.targets = self.targets.balanced(self.task.outputs)
        self.validation = Targets.of(graphs, "val_mask")
        self.validated = self.validation.weight.any(-1).expand(len(graphs))  # [R]

    def _release_finished(self) -> None:
        """Drop finished members; on a GPU only if they are many, for that means recording anew."""
        going = [index for index in self.indices if not self._is_finished(index)]
        done = len(self.indices) - len(going)
        if done and (not self.x.is_cuda or not going or 4 * done >= len(self.indices)):
            for index in self.indices:
                self.states[index] = self.state(index)
            self._build(going)

    def _new_model(self, index: int) -> NodeModel:
        outputs = self.tasks[index].outputs
        return new_model(self.model_name, self.members[index], self.graphs[index], outputs)

    def _is_finished(self, index: int) -> bool:
        return self.states[index].is_finished(self.members[index].settings)


def _divergence(losses: dict[str, float], row: dict[str, float], validated: bool) -> str | None:
    """Name the first non-finite loss, if any."""
    last = {"validation": row["val_loss"]} if validated else {"evaluation": row["logit_sum"]}
    for name, value in (losses | last).items():
        if not math.isfinite(value):
            return f"training diverged: the {name} loss is {value} in epoch {int(row['epoch'])}"
    return None
