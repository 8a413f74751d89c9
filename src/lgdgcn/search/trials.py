"""Trials in training: many at once, each over several seeds, poor ones pruned at the rungs."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.config import PER_MEMBER_SETTINGS, Settings
from lgdgcn.errors import InputError
from lgdgcn.metrics import headline
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.train.jobs import Job, JobObserver, run_jobs
from lgdgcn.train.population import EpochReport, Member
from lgdgcn.train.trainer import Trainer

__all__ = ["OUT_OF_MEMORY", "TrialRun", "factor_metrics", "group_by_architecture", "train_trials"]

RUNGS = (100, 200, 400)  # epochs after which a trial may be pruned
WINDOW = 10  # epochs over which the validation score is averaged
OUT_OF_MEMORY = "out of memory"  # a trial's failure; it may do on a larger device


@dataclass
class SeedRun:
    """One seed of a trial: its validation score, averaged over a few epochs, at its best.

    A single epoch's score on a few hundred nodes is noisy, and the highest of a thousand of them
    favours settings whose curve jumps about; a moving average does not.
    """

    best: float = 0.0
    epoch: int = 0
    finished: bool = False
    recent: "deque[float]" = field(default_factory=lambda: deque(maxlen=WINDOW))

    def update(self, report: EpochReport, metric: str) -> None:
        """Take in the scores of an epoch."""
        self.finished = report.finished
        self.epoch = report.state.epoch
        score = report.metrics[f"val_{metric}"]
        self.recent.append(0.0 if score is None else score)
        if len(self.recent) == WINDOW or self.finished:
            self.best = max(self.best, fmean(self.recent))


@dataclass
class TrialRun:
    """The training of a trial: its settings and one run per seed.

    Attributes:
        number: What the caller calls it.
        settings: Hyper-parameters.
        seeds: One training each.
        failure: Why it has no score, if so.
        pruned: Whether it was stopped at a rung.
        factors: Headline factor metrics, where they were asked for.
        runs: The training of every seed.
        rungs: Epochs it has yet to come to, and infinity.
    """

    number: int
    settings: Settings
    seeds: Sequence[int]
    failure: str | None = None
    pruned: bool = False
    factors: dict[str, float] = field(default_factory=dict)
    runs: list[SeedRun] = field(default_factory=list)
    rungs: list[float] = field(default_factory=lambda: [*RUNGS, math.inf])

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin, or begin again; it does not come to the same rung twice."""
        self.runs = [SeedRun() for _ in self.seeds]

    @property
    def score(self) -> float:
        """Mean over the seeds of the best validation score so far."""
        return fmean(self.scores)

    @property
    def scores(self) -> list[float]:
        """The best validation score so far of every seed."""
        return [run.best for run in self.runs]

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        done = all(run.finished for run in self.runs)
        return done or self.pruned or self.failure is not None

    @property
    def at_rung(self) -> bool:
        """Whether all its seeds have come to the next rung."""
        return all(run.finished or run.epoch >= self.rungs[0] for run in self.runs)


def train_trials(
    trials: Sequence[TrialRun],
    graphs: Mapping[int, Data],
    model: str,
    device: torch.device,
    *,
    on_finished: Callable[[TrialRun], None] = lambda trial: None,
    on_rung: Callable[[TrialRun, int], None] = lambda trial, rung: None,
    should_prune: Callable[[TrialRun], bool] = lambda trial: False,
    on_epoch: Callable[[], None] = lambda: None,
    measure_factors: bool = False,
) -> None:
    """Train all trials, those of one architecture together.

    If the memory is too small for trials together, fewer of them are trained at once; a trial too
    large by itself fails, and only it.

    Args:
        trials: The trials.
        graphs: The canonical graph of every seed; only its split may depend on the seed.
        model: A key of :data:`lgdgcn.models.MODELS`.
        device: Where to train.
        on_finished: Called with every trial when it is finished.
        on_rung: Told of every trial that has come to a rung, a number of epochs.
        should_prune: Asked after that whether to stop it.
        on_epoch: Called after every epoch of a batch; may raise to stop.
        measure_factors: Whether to compute the factor metrics of the finished models.
    """
    observer = _TrialObserver(on_finished, on_rung, should_prune, on_epoch, measure_factors)
    jobs = []
    for batch_key, group in enumerate(group_by_architecture(trials)):
        for trial in group:
            observer.trials[trial.number] = trial
            jobs += [
                Job(model, Member(trial.settings, seed), graphs[seed], batch_key, trial.number)
                for seed in trial.seeds
            ]
    run_jobs(jobs, device, observer)


@dataclass
class _TrialObserver(JobObserver):
    """Turns epochs of seeds into scores of trials; a job's group is the number of its trial."""

    on_finished: Callable[[TrialRun], None]
    on_rung: Callable[[TrialRun, int], None]
    should_prune: Callable[[TrialRun], bool]
    after_epoch: Callable[[], None]
    measure_factors: bool
    trials: dict[Any, TrialRun] = field(default_factory=dict)

    def on_epoch(
        self, jobs: Sequence[Job], trainer: Trainer, reports: Sequence[EpochReport]
    ) -> None:
        """Score, prune and finish trials."""
        for report in reports:
            job = jobs[report.index]
            trial = self.trials[job.group]
            if report.diverged is not None:
                trial.failure = report.diverged
            elif not trial.finished:
                run = trial.runs[list(trial.seeds).index(job.member.seed)]
                run.update(report, trainer.tasks[report.index].metric)
        self.after_epoch()
        unfinished = dict.fromkeys(job.group for job in jobs if not job.done)
        trials = [self.trials[number] for number in unfinished]
        arrived = [trial for trial in trials if not trial.finished and trial.at_rung]
        for trial in arrived:
            self.on_rung(trial, int(trial.rungs.pop(0)))
        for trial in arrived:  # all of them have reported, none is judged by who came first
            trial.pruned = self.should_prune(trial)
        done = [trial for trial in trials if trial.finished]
        for trial in done:  # before others are stacked anew, which may take too much memory
            self._finish(trial, jobs, trainer)
        numbers = {trial.number for trial in done}
        trainer.retire(i for i, job in enumerate(jobs) if job.group in numbers)

    def _finish(self, trial: TrialRun, jobs: Sequence[Job], trainer: Trainer) -> None:
        indices = [i for i, job in enumerate(jobs) if job.group == trial.number]
        if self.measure_factors and not trial.failure:
            trial.factors = factor_metrics(trainer, indices)
        for index in indices:
            jobs[index].done = True
        self.on_finished(trial)

    def on_restart(self, jobs: Sequence[Job]) -> None:
        """Begin again with no scores; a trial does not come to the same rung twice."""
        for number in dict.fromkeys(job.group for job in jobs):
            self.trials[number].start()

    def on_too_large(self, jobs: Sequence[Job], error: InputError) -> None:
        """Let a trial that is too large by itself fail, and only it."""
        trial = self.trials[jobs[0].group]
        trial.failure = OUT_OF_MEMORY
        self.on_finished(trial)


def group_by_architecture(trials: Sequence[TrialRun]) -> list[list[TrialRun]]:
    """Trials that may be trained in one population, the largest groups first."""
    found: dict[str, list[TrialRun]] = {}
    for trial in trials:
        shared = {k: v for k, v in trial.settings.as_dict().items() if k not in PER_MEMBER_SETTINGS}
        found.setdefault(repr(shared), []).append(trial)
    return sorted(found.values(), key=len, reverse=True)


@torch.no_grad()
def factor_metrics(trainer: Trainer, indices: Sequence[int]) -> dict[str, float]:
    """Mean headline factor metrics of some members' best weights; reported, never searched for.

    The factors of the test nodes are not read.

    Args:
        trainer: After their training.
        indices: Which of them.

    Returns:
        What exists: nothing for models without factors, or where the memory is too small.
    """
    found = []
    for index in indices:
        model, graph = trainer.model(index).eval(), trainer.graphs[index]
        if not model.num_factors:
            return {}
        y_factor = graph.get("y_factor")
        if y_factor is not None:
            y_factor = y_factor.masked_fill(graph.test_mask.unsqueeze(1), -1)
        try:
            last = model.disentangle(graph.x, graph.edge_index).layers[-1]
        except torch.OutOfMemoryError:
            return {}
        found.append(headline(last, graph.edge_index, y_factor))
    known = [name for name in HEADLINE if found and all(name in each for each in found)]
    return {name: fmean(each[name] for each in found) for name in known}
