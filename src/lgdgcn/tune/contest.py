"""Trials in training: many at once, each over several seeds, the hopeless ones given up early."""

import gc
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.train.member import OWN, Member, Report
from lgdgcn.train.population import Population
from lgdgcn.train.session import members_at_once, out_of_memory
from lgdgcn.train.trained import prepared_alike
from lgdgcn.tune.told_apart import told_apart

__all__ = ["OUT_OF_MEMORY", "Contestant", "compete", "groups"]

RUNGS = (100, 200, 400)  # epochs after which a trial may be given up
WINDOW = 10  # epochs over which the validation score is averaged
OUT_OF_MEMORY = "out of memory"  # a trial's failure; it may do on a larger device


@dataclass
class Runner:
    """One seed of a trial: its validation score, averaged over a few epochs, at its best.

    A single epoch's score on a few hundred nodes is noisy, and the highest of a thousand of them
    favours settings whose curve jumps about; a moving average does not.
    """

    best: float = 0.0
    epoch: int = 0
    over: bool = False
    recent: "deque[float]" = field(default_factory=lambda: deque(maxlen=WINDOW))

    def see(self, report: Report, metric: str) -> None:
        """Take in an epoch."""
        self.over = report.finished
        self.epoch = report.progress.epoch
        score = report.metrics[f"val_{metric}"]
        self.recent.append(0.0 if score is None else score)
        if len(self.recent) == WINDOW or self.over:
            self.best = max(self.best, fmean(self.recent))


@dataclass
class Contestant:
    """A trial: its settings and one runner per seed.

    Attributes:
        number: What the caller calls it.
        settings: Hyper-parameters.
        seeds: One training each.
        failure: Why it has no score, if so.
        given_up: Whether it was pruned.
        factors: How well its models tell factors apart, where that was asked for.
    """

    number: int
    settings: Settings
    seeds: Sequence[int]
    failure: str | None = None
    given_up: bool = False
    factors: dict[str, float] = field(default_factory=dict)
    runners: list[Runner] = field(default_factory=list)
    ahead: list[float] = field(default_factory=lambda: [*RUNGS, math.inf])

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin, or begin again; it does not come to the same rung twice."""
        self.runners = [Runner() for _ in self.seeds]

    @property
    def score(self) -> float:
        """Mean over the seeds of the best validation score so far."""
        return fmean(runner.best for runner in self.runners)

    @property
    def scores(self) -> list[float]:
        """The same for every seed."""
        return [runner.best for runner in self.runners]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to train."""
        done = all(runner.over for runner in self.runners)
        return done or self.given_up or self.failure is not None

    @property
    def at_rung(self) -> bool:
        """Whether all its seeds have come to the next rung."""
        return all(runner.over or runner.epoch >= self.ahead[0] for runner in self.runners)


def compete(
    contestants: Sequence[Contestant],
    graphs: Mapping[int, Data],
    model: str,
    device: torch.device,
    *,
    on_rung: Callable[[Contestant, int], None] = lambda contestant, rung: None,
    hopeless: Callable[[Contestant], bool] = lambda contestant: False,
    on_epoch: Callable[[], None] = lambda: None,
    measured: bool = False,
) -> Iterator[Contestant]:
    """Train all trials, those of one architecture together, and yield each when it is over.

    Where the memory is too small for trials together, fewer of them are trained at once; a trial
    too large by itself fails, and only it.

    Args:
        contestants: The trials.
        graphs: The canonical graph of every seed; only its split may depend on the seed.
        model: A key of :data:`lgdgcn.models.MODELS`.
        device: Where to train.
        on_rung: Told of every trial that has come to a rung, a number of epochs.
        hopeless: Asked after that whether to give it up.
        on_epoch: Called after every epoch of a population; may raise to stop.
        measured: Whether to measure how well the models tell factors apart.

    Raises:
        InputError: The graph alone is too large for the device.
    """
    for group in groups(contestants):
        _free_memory(device)
        try:
            ready = _ready(graphs, group[0].settings, device)
        except torch.OutOfMemoryError:
            raise out_of_memory(device) from None
        largest = max((one.settings for one in group), key=lambda settings: settings.k)
        members = members_at_once(next(iter(ready.values())), largest, device)
        at_once = max(1, members // len(group[0].seeds))
        crews = deque(group[start : start + at_once] for start in range(0, len(group), at_once))
        while crews:
            crew = crews.popleft()
            try:
                yield from _train(crew, ready, model, on_rung, hopeless, on_epoch, measured)
                continue
            except torch.OutOfMemoryError:
                pass  # dealt with out here, where nothing holds the failed population any more
            _free_memory(device)
            rest = [one for one in crew if not one.over]
            if len(rest) == 1:
                rest[0].failure = OUT_OF_MEMORY
                yield rest[0]
                continue
            for one in rest:
                one.start()
            half = len(rest) // 2
            crews.extendleft(part for part in (rest[half:], rest[:half]) if part)


def _train(
    crew: Sequence[Contestant],
    graphs: Mapping[int, Data],
    model: str,
    on_rung: Callable[[Contestant, int], None],
    hopeless: Callable[[Contestant], bool],
    on_epoch: Callable[[], None],
    measured: bool,
) -> Iterator[Contestant]:
    owners = [(one, runner) for one in crew for runner in one.runners]
    places = {one.number: [p for p, (o, _) in enumerate(owners) if o is one] for one in crew}
    members = [Member(one.settings, seed) for one in crew for seed in one.seeds]
    population = Population([graphs[member.seed] for member in members], members, model)
    waiting = list(crew)
    while waiting:
        for report in population.epoch():
            one, runner = owners[report.place]
            if report.diverged is not None:
                one.failure = report.diverged
            elif not one.over:
                runner.see(report, population.tasks[report.place].selection_metric)
        on_epoch()
        arrived = [one for one in waiting if not one.over and one.at_rung]
        for one in arrived:
            on_rung(one, int(one.ahead.pop(0)))
        for one in arrived:  # all of them have reported, none is judged by who came first
            one.given_up = hopeless(one)
        done = [one for one in waiting if one.over]
        waiting = [one for one in waiting if not one.over]
        if done:
            for one in done if measured else ():
                one.factors = {} if one.failure else told_apart(population, places[one.number])
            yield from done  # first, as bringing the others together may take too much memory
            population.retire(place for one in done for place in places[one.number])


def groups(contestants: Sequence[Contestant]) -> list[list[Contestant]]:
    """Trials that may be trained in one population, the largest groups first."""
    found: dict[str, list[Contestant]] = {}
    for one in contestants:
        shared = {k: v for k, v in one.settings.as_dict().items() if k not in OWN}
        found.setdefault(repr(shared), []).append(one)
    return sorted(found.values(), key=len, reverse=True)


def _ready(graphs: Mapping[int, Data], settings: Settings, device: torch.device) -> dict[int, Data]:
    """The graph of every seed on the device."""
    ready = prepared_alike(list(graphs.values()), settings, device)
    return dict(zip(graphs, ready, strict=True))


def _free_memory(device: torch.device) -> None:
    """Give back what earlier populations held, so that it counts as free."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
