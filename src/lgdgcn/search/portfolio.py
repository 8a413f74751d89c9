"""Settings for a graph that has none of its own: a portfolio of them, chosen on validation.

Successive halving: all candidates are trained for a few epochs, the better ones go on. How long is
counted in epochs, so the choice depends on the graph and the seed alone; a time limit can only end
it early.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.config import PER_MEMBER_SETTINGS
from lgdgcn.errors import InputError
from lgdgcn.progress import Advance, long_work
from lgdgcn.runtime import StopRequest
from lgdgcn.search.race import Candidate
from lgdgcn.search.sample import is_for_graph, is_searched_by_sample, search_sample
from lgdgcn.train.jobs import Job, JobObserver, run_jobs
from lgdgcn.train.population import EpochReport, Member, TrainState
from lgdgcn.train.task import choose_metric
from lgdgcn.train.trainer import Trainer

__all__ = ["ROUNDS", "Candidate", "Choice", "choose_each", "choose_settings"]

Metrics = dict[str, float | None]
# epochs trained in the end, candidates that go on
ROUNDS = ((50, 8), (100, 4), (200, 1))
LEAST = 50  # epochs that the best are trained for, whatever the time
_ALIKE = 0.25  # standard errors of a validation score; scores that are nearer say nothing


@dataclass(frozen=True)
class Choice:
    """What was chosen, and from what.

    Attributes:
        best: The candidate with the best validation score.
        number: Its place in the portfolio, from 1.
        scores: Validation score of every candidate when it was last judged; ``None`` where its
            training diverged or did not fit into memory.
        epochs: Epochs of every candidate when it was last judged.
        seconds: Time taken.
        early: Whether time ran out before the last round.
        state: Where the training of the best one stands, to go on with; ``None`` if nothing was
            trained.
        log: The metrics of its epochs so far.
        searched: Settings that were tried beyond the portfolio.
        sample: Nodes of the part of the graph that they were tried on; 0 for all of it.
        too_large: Candidates that were not tried, as the whole graph is too large for them.
    """

    best: Candidate
    number: int
    scores: tuple[float | None, ...]
    epochs: tuple[int, ...]
    seconds: float
    early: bool
    state: TrainState | None = field(default=None, repr=False, compare=False)
    log: tuple[Metrics, ...] = field(default=(), repr=False, compare=False)
    searched: int = 0
    sample: int = 0
    too_large: int = 0

    @property
    def score(self) -> float:
        """Validation score of the best one."""
        found = self.scores[self.number - 1]
        return float("-inf") if found is None else found

    def __str__(self) -> str:
        where = f", on a sample of {self.sample:,} nodes" if self.sample else ""
        if self.searched:
            return f"settings: the best on validation of a search over {self.searched} more{where}"
        if len(self.scores) > 1 and not self.early and not any(self.epochs):
            if self.too_large == len(self.scores) - 1:
                return f"settings: number {self.number}, the only one for a graph of this size"
            return (
                f"settings: the first of {len(self.scores)}, as without validation nodes nothing "
                "could be chosen"
            )
        text = f"settings: number {self.number} of {len(self.scores)} tried on validation{where}"
        if self.too_large:
            text += f"; {self.too_large} were not, as they are not for a graph of this size"
        last = max(self.epochs)
        return text + (f"; time was over after {last} epochs of the best" if self.early else "")

    def as_dict(self) -> dict[str, Any]:
        """Return what ``result.json`` and ``config.toml`` say of it."""
        scores = [-1.0 if score is None else round(score, 4) for score in self.scores]
        return {"number": self.number, "validation": scores, "epochs": list(self.epochs),
                "early": self.early, "searched": self.searched, "sample": self.sample}  # fmt: skip


def choose_settings(
    candidates: Sequence[Candidate],
    data: Data,
    device: torch.device,
    *,
    seed: int = 0,
    seconds: float = 60.0,
    stop: StopRequest | None = None,
    at_least: bool = True,
) -> Choice:
    """Train candidates, ever fewer for ever longer, and choose by the validation score.

    On a large graph, or where candidates are trained in batches of nodes, they are tried on a
    sample of it, all nodes of the sample at once.

    Args:
        candidates: Of those that score alike, within a quarter of the score's standard error, the
            one of lowest validation loss is chosen.
        data: The canonical graph.
        device: Where to train.
        seed: Of weights and dropout, for all candidates.
        seconds: Time limit.
        stop: Becomes true when a signal asks to stop.
        at_least: Whether the rounds up to :data:`LEAST` epochs are finished even so; if not, there
            may be no scores.

    Raises:
        InputError: No candidate can be trained here.
    """
    limits: Any = {"seconds": seconds, "stop": stop, "at_least": at_least}
    if len(candidates) == 1 or not is_searched_by_sample(data, candidates[0].settings):
        return choose_each(candidates, [data], [seed], device, **limits)[0]
    return _choose_on_sample(candidates, data, seed, device, limits)


def _choose_on_sample(
    candidates: Sequence[Candidate], data: Data, seed: int, device: torch.device, limits: Any
) -> Choice:
    """Choose on a sample from the candidates that can be used for the whole graph.

    Where none can, that is what a user has asked for, and all are tried.
    """
    usable = [
        number
        for number, one in enumerate(candidates)
        if is_for_graph(data, one.settings, one.model, device)
    ] or [*range(len(candidates))]
    graph = search_sample(data, seed)
    metric = choose_metric(data, candidates[0].settings.metric).metric  # that of the whole graph
    tried = [
        Candidate(one.model, replace(one.settings, batch_size=0, metric=metric))
        for one in (candidates[number] for number in usable)
    ]
    found = choose_each(tried, [graph], [seed], device, **limits)[0]
    number = usable[found.number - 1]
    judged = dict(zip(usable, zip(found.scores, found.epochs, strict=True), strict=True))
    rows = [judged.get(index, (None, 0)) for index in range(len(candidates))]
    # what was trained on a sample is not where a training on the graph goes on
    return replace(
        found,
        best=candidates[number],
        number=number + 1,
        scores=tuple(score for score, _ in rows),
        epochs=tuple(epochs for _, epochs in rows),
        state=None,
        log=(),
        sample=0 if graph is data else int(graph.num_nodes or 0),
        too_large=len(candidates) - len(usable),
    )


def choose_each(
    candidates: Sequence[Candidate],
    graphs: Sequence[Data],
    seeds: Sequence[int],
    device: torch.device,
    *,
    seconds: float = math.inf,
    stop: StopRequest | None = None,
    at_least: bool = True,
) -> list[Choice]:
    """Choose for every split of a graph by itself, in as few passes; see :func:`choose_settings`.

    Args:
        candidates: The same for all.
        graphs: The canonical graph with each split.
        seeds: A seed for each.
        device: Where to train.
        seconds: Time limit for all together.
        stop: Becomes true when a signal asks to stop.
        at_least: Whether the rounds up to :data:`LEAST` epochs are finished even so.
    """
    start = time.monotonic()
    if len(candidates) == 1 or not bool(graphs[0].val_mask.any()):  # nothing to choose from, or by
        nothing = (None,) * len(candidates), (0,) * len(candidates)
        return [Choice(candidates[0], 1, *nothing, 0.0, False) for _ in graphs]
    searches = [
        [_Run(number, candidate, graph, seed) for number, candidate in enumerate(candidates)]
        for graph, seed in zip(graphs, seeds, strict=True)
    ]
    planned = sum(
        (epochs - before) * count for (epochs, before, count) in _plan(len(candidates))
    )  # epochs of all candidates together
    going, early = searches, False
    with long_work("trying settings", "epochs") as advance:
        clock = _Clock(start + seconds, planned * len(graphs), advance, stop, limited=not at_least)
        for epochs, keep in ROUNDS:
            try:
                _train_round([run for runs in going for run in runs], epochs, device, clock)
            except _TimeIsOver:
                early = True
                break
            clock.limited |= epochs >= LEAST
            for run in (run for runs in going for run in runs):
                run.judge()
            going = [_best(runs)[:keep] if keep > 1 else [*_chosen(runs)] for runs in going]
    taken = time.monotonic() - start
    return [
        _choice(runs, left or runs, taken, early)
        for runs, left in zip(searches, going, strict=True)
    ]


def _best(runs: "Sequence[_Run]") -> "list[_Run]":
    """Those that can be trained, the best first."""
    return [run for run in sorted(runs, key=_Run.rank) if run.score is not None]


def _chosen(runs: "Sequence[_Run]") -> "Iterator[_Run]":
    """The one to take, if any can be trained: of those near the best score, that of lowest loss."""
    ranked = _best(runs)
    if ranked:
        top = ranked[0].score or 0.0
        graph = ranked[0].graph
        labels = graph.y.size(1) if graph.y.dim() == 2 else 1
        judged = max(1, int(graph.val_mask.sum()) * labels)
        least = top - _ALIKE * math.sqrt(max(0.0, top * (1 - top)) / judged)
        yield min((run for run in ranked if (run.score or 0.0) >= least), key=_Run.loss)


def _choice(runs: "Sequence[_Run]", left: "Sequence[_Run]", taken: float, early: bool) -> Choice:
    """Sum up a search: all its runs, and those that were left in the end."""
    ranked = [*_chosen(left)] or (runs[:1] if early else [])
    if not ranked:
        reasons = dict.fromkeys(run.failure for run in runs if run.failure)
        models = ", ".join(dict.fromkeys(run.candidate.model for run in runs))
        raise InputError(f"no settings of {models} can be trained here: {'; '.join(reasons)}")
    best = ranked[0]
    return Choice(
        best.candidate,
        best.number + 1,
        tuple(run.score for run in runs),
        tuple(run.epochs for run in runs),
        taken,
        early,
        best.state,
        tuple(best.log),
    )


@dataclass
class _Run:
    """The training of one candidate."""

    number: int
    candidate: Candidate
    graph: Data
    seed: int
    state: TrainState | None = None
    log: list[Metrics] = field(default_factory=list)
    score: float | None = None
    epochs: int = 0
    failure: str = ""

    def judge(self) -> None:
        """Take down how it stands."""
        if self.state is not None:
            self.epochs = self.state.epoch
        failed = bool(self.failure) or self.state is None
        self.score = None if failed or self.state is None else self.state.best_score

    def loss(self) -> float:
        """Validation loss at its best epoch."""
        return math.inf if self.state is None else self.state.best_loss

    def rank(self) -> tuple[float, float, int]:
        """The best first; of two alike, the one of lower loss, then the first in the portfolio.

        Early on, many name the most common class always: the loss says which of them learn.
        """
        if self.score is None or self.state is None:
            return (math.inf, math.inf, self.number)
        return (-self.score, self.loss(), self.number)


class _TimeIsOver(Exception):  # noqa: N818 (no error, only an end)
    pass


@dataclass
class _Clock(JobObserver):
    """Keeps where trainings stand, shows how far they are, and ends them when time is over."""

    end: float
    planned: int
    advance: Advance
    stop: StopRequest | None
    limited: bool = False
    done: int = 0
    runs: "dict[Any, _Run] | None" = None

    def on_epoch(
        self, jobs: Sequence[Job], trainer: Trainer, reports: Sequence[EpochReport]
    ) -> None:
        """Count epochs; a training that diverges has failed."""
        assert self.runs is not None
        for report in reports:
            run = self.runs[jobs[report.index].group]
            if report.diverged is not None:
                run.failure = report.diverged
            else:
                run.log[report.state.epoch - 1 :] = [report.metrics]
        self.done += len(reports)
        self.advance(self.done, min(1.0, self.done / self.planned))
        if self.stop:
            self.stop.check("stopped while trying settings")
        if self.limited and time.monotonic() > self.end:
            raise _TimeIsOver

    def on_end(self, jobs: Sequence[Job], trainer: Trainer) -> None:
        """Keep where every training stands, on the CPU."""
        assert self.runs is not None
        for index, job in enumerate(jobs):
            self.runs[job.group].state = trainer.state(index)
            job.done = True

    def on_too_large(self, jobs: Sequence[Job], error: InputError) -> None:
        """A candidate that does not fit into memory has failed, and only it."""
        assert self.runs is not None
        self.runs[jobs[0].group].failure = str(error)


def _train_round(runs: Sequence[_Run], epochs: int, device: torch.device, clock: _Clock) -> None:
    """Train up to a number of epochs, candidates of one architecture in one pass."""
    clock.runs = dict(enumerate(runs))
    jobs = []
    for group, run in enumerate(runs):
        model, full = run.candidate.model, run.candidate.settings
        shared = {k: v for k, v in full.as_dict().items() if k not in PER_MEMBER_SETTINGS}
        member = Member(replace(full, epochs=min(epochs, full.epochs)), run.seed)
        jobs.append(Job(model, member, run.graph, (model, repr(shared)), group, run.state))
    run_jobs(jobs, device, clock)


def _plan(candidates: int) -> list[tuple[int, int, int]]:
    """Epochs in the end and before of every round, and how many candidates it has."""
    counts = [candidates, *(min(candidates, keep) for _, keep in ROUNDS[:-1])]
    ends = [epochs for epochs, _ in ROUNDS]
    return list(zip(ends, [0, *ends[:-1]], counts, strict=True))
