"""Many trainings in one pass: own weights, seeds and hyper-parameters, own early stopping.

A lone training is a population of one. All state lives in tensors with a leading axis of members
and an epoch is one program on them without a look at any value, so that a GPU can record it once
and repeat it; what the host wants to know of an epoch is a row of numbers per member.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lgdgcn.models import LGDGCN, LGDOutput
from lgdgcn.models.stacked import Ensemble
from lgdgcn.nn import Disentangled, RandomStreams
from lgdgcn.train.member import Member, MemberState, Report
from lgdgcn.train.memory import check_memory
from lgdgcn.train.objective import objective
from lgdgcn.train.recorded import Recorded, recordable
from lgdgcn.train.reporting import Reading, report_epoch, warn_of_too_few_classes
from lgdgcn.train.stacking import Columns, Standing, Weights, check_alike, load_part, lone_model
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task, selection_scores

__all__ = ["Population"]


class Population:
    """Models of one architecture in training on one graph.

    Args:
        graphs: A canonical graph for each member, on the device it is trained on; they may differ
            in the split only. Or one graph for all.
        members: Settings and seeds; settings may differ in :data:`~lgdgcn.train.member.OWN` only.
        model_name: A key of :data:`lgdgcn.models.MODELS`.
        states: Where each member stands; ``None`` where it is new.
    """

    def __init__(
        self,
        graphs: Data | Sequence[Data],
        members: Sequence[Member],
        model_name: str = "lgdgcn",
        states: Sequence[MemberState | None] | None = None,
    ) -> None:
        self.members = list(members)
        self.graphs = [graphs] * len(self.members) if isinstance(graphs, Data) else list(graphs)
        self.model_name = model_name
        states = [None] * len(self.members) if states is None else states
        check_alike(self.members, self.graphs, states)
        self.tasks = [Task.of(graph) for graph in self.graphs]
        self.states = [MemberState() if state is None else replace(state) for state in states]
        places = [place for place in range(len(self.members)) if not self._done(place)]
        going = [self.members[place].settings for place in places]
        check_memory(self.graphs[0], going, model_name, self.graphs[0].x.device)
        self._build(places)
        if self.places:
            warn_of_too_few_classes(self.network)

    @property
    def finished(self) -> bool:
        """Whether every member is."""
        return not self.places

    def train(self, on_report: Callable[[Report], None] = lambda report: None) -> None:
        """Train to the end; ``on_report`` sees every member's epochs and may raise to stop."""
        while not self.finished:
            for report in self.epoch():
                on_report(report)

    def epoch(self) -> list[Report]:
        """Train all unfinished members for one epoch, on a GPU for a few, and report each."""
        start = time.perf_counter()
        looks = self._program.run()
        seconds = (time.perf_counter() - start) / (len(looks) * len(self.places))
        reports = [report for rows in looks for report in self._reports(rows, seconds)]
        self._release_finished()
        return reports

    def retire(self, places: Iterable[int]) -> None:
        """Give up members; they keep the best they have seen."""
        for place in places:
            self.states[place].retired = True
        self._release_finished()

    def state(self, place: int) -> MemberState:
        """A copy of where a member stands."""
        state = self.states[place]
        if place not in self.places:
            return replace(state, tensors=dict(state.tensors))
        return replace(state, tensors=self._weights.member(self.places.index(place)))

    def model(self, place: int, part: str = "best") -> nn.Module:
        """A lone model with a member's best (or, ``"model"``, present) weights."""
        return load_part(self._lone(place), self.state(place), part)

    # Members in one, and out again

    def _build(self, places: list[int]) -> None:
        """Bring the members at these places together."""
        self.places = places
        if not places:
            return
        members, states = [self.members[p] for p in places], [self.states[p] for p in places]
        graphs, self._tasks = [self.graphs[p] for p in places], [self.tasks[p] for p in places]
        self.x, self.edge_index, self.task = graphs[0].x, graphs[0].edge_index, self._tasks[0]
        device, progress = self.x.device, [state.progress for state in states]
        self._weights = Weights([self._lone(place) for place in places], states)
        self.network = self._weights.network
        self.own = Columns.of(members, device)
        standing = Standing.of(progress, device)
        self.counted, self.best_epoch, self.best_score, self.best_loss = standing
        self.targets = Targets.of(graphs, "train_mask")
        self.validation = Targets.of(graphs, "val_mask")
        self.validated = self.validation.weight.any(-1).expand(len(places))  # [R]
        self._all_validated = bool(self.validated.all())
        self._fresh = any(one.epoch == 0 for one in progress)
        self._drops = any(member.settings.dropout > 0 for member in members)
        self._carried: LGDOutput | Disentangled | None = None
        self._terms: list[str] = []
        self._program = Recorded(self._epoch, device.type == "cuda" and recordable(self.network))

    def _lone(self, place: int) -> nn.Module:
        outputs = self.tasks[place].outputs
        return lone_model(self.model_name, self.members[place], self.graphs[place], outputs)

    def _done(self, place: int) -> bool:
        return self.states[place].finished(self.members[place].settings)

    def _reports(self, rows: Tensor, seconds: float) -> Iterator[Report]:
        for place, row in zip(self.places, rows.tolist(), strict=True):
            member, state = self.members[place], self.states[place]
            metric = self.tasks[place].selection_metric
            reading = Reading.of(self._terms, row)
            if reading.active and not (state.diverged or state.retired):
                yield report_epoch(place, member, state, reading, metric, seconds)

    def _release_finished(self) -> None:
        """Drop finished members; on a GPU only when they are many, for that means a new record."""
        going = [place for place in self.places if not self._done(place)]
        done = len(self.places) - len(going)
        if done and (self.x.device.type == "cpu" or not going or 4 * done >= len(self.places)):
            for place in self.places:
                self.states[place] = self.state(place)
            self._build(going)

    # One epoch, without a look at any value

    def _epoch(self) -> Tensor:
        """A step and an evaluation; returns every member's :class:`Reading`, ``[R, columns]``."""
        waited = self.counted - self.best_epoch
        active = (self.counted < self.own.epochs) & (waited < self.own.patience)
        terms = self.step()
        with torch.no_grad():
            self.counted += active.long()
        logits = self._evaluate()
        with torch.no_grad():
            logit_sum = torch.where(self.validated, 0, logits.sum((-1, -2)).double())
            if not self._all_validated:
                logits = self.validation.pick(logits)
            score = selection_scores(self._tasks, logits, self.validation)
            loss = self.task.loss(logits, self.validation).double()
            losses = {name: term.double() for name, term in terms.items()}
            finite = torch.stack([*losses.values(), loss, score, logit_sum]).isfinite().all(0)
            self._keep_best(active & finite, score, loss)
            self._terms, self._fresh = [*terms], False
            bests = self.best_epoch, self.best_score, self.best_loss
            numbers = Reading(
                losses, loss, score, logit_sum, self.validated, active, self.counted, *bests
            )
            return torch.stack([column.double() for column in numbers.flat()]).t()

    def step(self) -> dict[str, Tensor]:
        """One optimiser step of every member; returns the terms of the loss, ``[R]`` each."""
        self.network.train()
        for parameter in self._weights.parameters.values():
            parameter.grad = None
        streams = RandomStreams(self.own.seed, self.counted + 1, self.own.rate)
        output = self._forward(streams)
        if isinstance(self.network, LGDGCN):
            self.network.before_loss(output.layers, first_epoch=self._fresh)
        terms = objective(
            self.network, output, self.task, self.targets, self.edge_index, self.own.weights
        )
        terms["total"].sum().backward()  # type: ignore[no-untyped-call]
        self._optimize()
        return {name: term.detach() for name, term in terms.items()}

    def _forward(self, streams: RandomStreams) -> LGDOutput:
        """The training forward; what the last evaluation already computed is not repeated."""
        if not isinstance(self.network, LGDGCN):
            assert isinstance(self.network, Ensemble)
            logits = self.network(self.x, self.edge_index, streams)
            return LGDOutput(self.targets.pick(logits), [])
        carried, self._carried = self._carried, None
        pick = self.targets.pick
        if isinstance(carried, LGDOutput):
            return LGDOutput(self.network.classify(carried.layers[-1].units, pick), carried.layers)
        with streams.active() if self._drops else nullcontext():
            return self.network.disentangle(self.x, self.edge_index, carried, pick)

    def _optimize(self) -> None:
        self._weights.descend(self.own.lr, self.own.decay, self.counted + 1)

    def _evaluate(self) -> Tensor:
        """Scores of the updated networks, whose units also move the statistics (Alg. 2).

        Only validation nodes are classified, or all nodes where a member has no such. The next
        step begins with the same weights: up to the first dropout its forward is this one, which
        is kept for it.
        """
        self.network.eval()
        pick = self.validation.pick if self._all_validated else None
        if not isinstance(self.network, LGDGCN):
            with torch.no_grad():
                logits = self.network(self.x, self.edge_index)
                return logits if pick is None else pick(logits)
        carry = not self._program.recording
        with torch.set_grad_enabled(carry):
            first = self.network.first_layer(self.x, self.edge_index)
        with torch.set_grad_enabled(carry and not self._drops):
            output = self.network.disentangle(self.x, self.edge_index, first, pick)
        if carry:
            self._carried = first if self._drops else output
        self.network.after_step(output.layers)
        return output.logits.detach()

    def _keep_best(self, valid: Tensor, score: Tensor, loss: Tensor) -> None:
        """Remember better epochs; without validation nodes every valid one ``[R]`` is better."""
        tied = (score == self.best_score) & (loss < self.best_loss)
        better = valid & ((score > self.best_score) | tied | ~self.validated)
        scored = better & self.validated
        self.best_score.copy_(torch.where(scored, score, self.best_score))
        self.best_loss.copy_(torch.where(scored, loss, self.best_loss))
        self.best_epoch.copy_(torch.where(better, self.counted, self.best_epoch))
        self._weights.keep_best(better)
