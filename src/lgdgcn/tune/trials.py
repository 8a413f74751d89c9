"""Trials in training: many at once, each over several seeds, poor ones pruned at the rungs."""

import gc
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.metrics import headline
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.models import LGDGCN
from lgdgcn.train.member import OWN, Member, Report
from lgdgcn.train.population import Population
from lgdgcn.train.session import members_at_once, out_of_memory
from lgdgcn.train.trained import prepared_alike

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

    def update(self, report: Report, metric: str) -> None:
        """Take in the scores of an epoch."""
        self.finished = report.finished
        self.epoch = report.progress.epoch
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
    on_rung: Callable[[TrialRun, int], None] = lambda trial, rung: None,
    should_prune: Callable[[TrialRun], bool] = lambda trial: False,
    on_epoch: Callable[[], None] = lambda: None,
    measure_factors: bool = False,
) -> Iterator[TrialRun]:
    """Train all trials, those of one architecture together, and yield each when it is finished.

    Where the memory is too small for trials together, fewer of them are trained at once; a trial
    too large by itself fails, and only it.

    Args:
        trials: The trials.
        graphs: The canonical graph of every seed; only its split may depend on the seed.
        model: A key of :data:`lgdgcn.models.MODELS`.
        device: Where to train.
        on_rung: Told of every trial that has come to a rung, a number of epochs.
        should_prune: Asked after that whether to stop it.
        on_epoch: Called after every epoch of a population; may raise to stop.
        measure_factors: Whether to compute the factor metrics of the finished models.

    Raises:
        InputError: The graph alone is too large for the device.
    """
    for group in group_by_architecture(trials):
        _free_memory(device)
        try:
            prepared = _prepare(graphs, group[0].settings, device)
        except torch.OutOfMemoryError:
            raise out_of_memory(device) from None
        largest = max((trial.settings for trial in group), key=lambda settings: settings.k)
        members = members_at_once(next(iter(prepared.values())), largest, device)
        at_once = max(1, members // len(group[0].seeds))
        batches = deque(group[start : start + at_once] for start in range(0, len(group), at_once))
        while batches:
            batch = batches.popleft()
            try:
                yield from _train_batch(
                    batch, prepared, model, on_rung, should_prune, on_epoch, measure_factors
                )
                continue
            except torch.OutOfMemoryError:
                pass  # dealt with out here, where nothing holds the failed population any more
            _free_memory(device)
            rest = [trial for trial in batch if not trial.finished]
            if len(rest) == 1:
                rest[0].failure = OUT_OF_MEMORY
                yield rest[0]
                continue
            for trial in rest:
                trial.start()
            half = len(rest) // 2
            batches.extendleft(part for part in (rest[half:], rest[:half]) if part)


def _train_batch(
    batch: Sequence[TrialRun],
    graphs: Mapping[int, Data],
    model: str,
    on_rung: Callable[[TrialRun, int], None],
    should_prune: Callable[[TrialRun], bool],
    on_epoch: Callable[[], None],
    measure_factors: bool,
) -> Iterator[TrialRun]:
    """Train trials as one population, whose members are all their seeds."""
    owners = [(trial, run) for trial in batch for run in trial.runs]
    indices = {one.number: [i for i, (t, _) in enumerate(owners) if t is one] for one in batch}
    members = [Member(trial.settings, seed) for trial in batch for seed in trial.seeds]
    population = Population([graphs[member.seed] for member in members], members, model)
    unfinished = list(batch)
    while unfinished:
        for report in population.epoch():
            trial, run = owners[report.place]
            if report.diverged is not None:
                trial.failure = report.diverged
            elif not trial.finished:
                run.update(report, population.task.metric)
        on_epoch()
        arrived = [trial for trial in unfinished if not trial.finished and trial.at_rung]
        for trial in arrived:
            on_rung(trial, int(trial.rungs.pop(0)))
        for trial in arrived:  # all of them have reported, none is judged by who came first
            trial.pruned = should_prune(trial)
        done = [trial for trial in unfinished if trial.finished]
        unfinished = [trial for trial in unfinished if not trial.finished]
        if done:
            for trial in done if measure_factors else ():
                if not trial.failure:
                    trial.factors = factor_metrics(population, indices[trial.number])
            yield from done  # first, as bringing the others together may take too much memory
            population.retire(index for trial in done for index in indices[trial.number])


def group_by_architecture(trials: Sequence[TrialRun]) -> list[list[TrialRun]]:
    """Trials that may be trained in one population, the largest groups first."""
    found: dict[str, list[TrialRun]] = {}
    for trial in trials:
        shared = {k: v for k, v in trial.settings.as_dict().items() if k not in OWN}
        found.setdefault(repr(shared), []).append(trial)
    return sorted(found.values(), key=len, reverse=True)


@torch.no_grad()
def factor_metrics(population: Population, indices: Sequence[int]) -> dict[str, float]:
    """Mean headline factor metrics of some members' best weights; reported, never searched for.

    The factors of the test nodes are not read.

    Args:
        population: Members after their training.
        indices: Which of them.

    Returns:
        What exists: nothing for models without factors, or where the memory is too small.
    """
    found = []
    for index in indices:
        model, graph = population.model(index).eval(), population.graphs[index]
        if not isinstance(model, LGDGCN):
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


def _prepare(
    graphs: Mapping[int, Data], settings: Settings, device: torch.device
) -> dict[int, Data]:
    """The graph of every seed on the device."""
    prepared = prepared_alike(list(graphs.values()), settings, device)
    return dict(zip(graphs, prepared, strict=True))


def _free_memory(device: torch.device) -> None:
    """Give back what earlier populations held, so that it counts as free."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
