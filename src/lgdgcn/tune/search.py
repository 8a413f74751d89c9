"""The search itself: ask Optuna for trials, train them in populations, tell it how they did."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

import optuna
import torch
from torch_geometric.data import Data

from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError
from lgdgcn.runtime import StopRequest
from lgdgcn.tune.contest import OUT_OF_MEMORY, Contestant, compete, groups
from lgdgcn.tune.space import Space
from lgdgcn.tune.workers import Worker

__all__ = ["Finalist", "Quest", "final", "sampler", "search"]

FINALISTS = 6  # trials that are trained again
FRESH_SEEDS = 8  # on seeds that no trial has seen
_FIRST_FRESH_SEED = 1000
_WAIT_SECONDS = 2.0


@dataclass(frozen=True)
class Quest:
    """What is searched for: the best settings of a model on a graph."""

    source: GraphSource
    model: str
    space: Space
    seeds: int
    device: torch.device

    def describe(self) -> dict[str, Any]:
        """What must be the same for two workers to search together; a folder may lie elsewhere."""
        return {
            "graph": self.source.preset_name or self.source.name,
            "data": fingerprint(self.source.load()),
            "split": self.source.split,
            "features": self.source.features,
            "model": self.model,
            "seeds": self.seeds,
            "space": self.space.ranges,
            "settings": self.space.settings,
        }

    def graphs(self, seeds: range) -> dict[int, Data]:
        """The graph of every seed; one for all where the split does not depend on it."""
        if self.source.varies_with_seed:
            return {seed: self.source.load(seed) for seed in seeds}
        return dict.fromkeys(seeds, self.source.load())

    def check(self, data: Data) -> None:
        """Refuse a graph that has nothing to choose settings by."""
        if not bool(data.val_mask.any()):
            raise InputError(
                f"{self.source.dataset} has no validation nodes to choose settings by; mark some"
            )

    @property
    def batch(self) -> int:
        """Trials to ask for at once: enough for one full population of a GPU."""
        return max(1, (64 if self.device.type == "cuda" else 12) // self.seeds)


@dataclass(frozen=True)
class Finalist:
    """One of the best trials, trained again on fresh seeds."""

    number: int
    params: dict[str, Any]
    scores: tuple[float, ...]  # validation, one per fresh seed
    factors: dict[str, float] = field(default_factory=dict)  # headline measures, see lgdgcn.metrics

    @property
    def mean(self) -> float:
        """Mean validation score."""
        return fmean(self.scores)

    @property
    def std(self) -> float:
        """Sample standard deviation over the seeds."""
        return stdev(self.scores) if len(self.scores) > 1 else 0.0


def sampler(seed: int | None) -> "optuna.samplers.BaseSampler":
    """Tree-structured Parzen estimators; unfinished trials count as bad, so a batch spreads out."""
    return optuna.samplers.TPESampler(
        seed=seed, multivariate=True, constant_liar=True, n_startup_trials=20
    )


def search(
    quest: Quest,
    study: "optuna.Study",
    worker: Worker,
    on_change: Callable[[], None] = lambda: None,
    stop: StopRequest | None = None,
) -> None:
    """Work on a study until its trials are used up, by this and all other workers."""
    graphs = quest.graphs(range(quest.seeds))
    for data in graphs.values():
        quest.check(data)

    def look() -> None:
        on_change()
        if stop:
            stop.check(f"stopped with {len(_done(study))} trials complete; go on with --resume")

    while True:
        asked = worker.ask(quest.batch)
        if not asked:
            if not worker.others_running:
                return
            time.sleep(_WAIT_SECONDS)  # another worker may die, its trials would be ours
            look()
            continue
        _try(quest, worker, asked, graphs, look)


def _try(
    quest: Quest,
    worker: Worker,
    asked: "Sequence[optuna.Trial]",
    graphs: Mapping[int, Data],
    look: Callable[[], None],
) -> None:
    """Train a batch of trials and tell the study of each when it is over."""
    trials = {trial.number: trial for trial in asked}
    contestants = []
    for trial in asked:
        settings = quest.space.settings_of(_suggest(trial, quest.space))
        contestants.append(Contestant(trial.number, settings, range(quest.seeds)))
    over = compete(
        contestants,
        graphs,
        quest.model,
        quest.device,
        on_rung=lambda one, rung: _report(worker, trials[one.number], one, rung),
        hopeless=lambda one: not one.failure and trials[one.number].should_prune(),
        on_epoch=look,
    )
    for one in over:
        score = None if one.failure else one.score  # no score fails the trial, and only it
        notes = {"failure": one.failure} if one.failure else {"scores": one.scores}
        worker.tell(trials[one.number], score, pruned=one.given_up, notes=notes)
        look()


def _report(worker: Worker, trial: "optuna.Trial", one: Contestant, rung: int) -> None:
    """Say how a trial stands; one that others have taken over is not ours to go on with."""
    if not worker.report(trial, one.score, rung):
        one.failure = "taken over by another worker"


def _suggest(trial: "optuna.Trial", space: Space) -> dict[str, Any]:
    """Draw a value for every searched setting."""
    return {name: trial._suggest(name, kind) for name, kind in space.distributions().items()}


def final(
    quest: Quest, study: "optuna.Study", on_epoch: Callable[[], None] = lambda: None
) -> list[Finalist]:
    """Train the best trials again on fresh seeds; the first of the result is the winner.

    The best of many noisy scores is partly luck; scores of fresh seeds are not. Those of a trial
    are kept in the study as soon as all its seeds are over, and are not trained again when it is
    resumed; two machines that come here at the same time may both train a trial.

    Raises:
        InputError: No trial is complete, or none of the best has a score on fresh seeds.
    """
    best = sorted(_done(study), key=lambda trial: trial.value, reverse=True)[:FINALISTS]
    if not best:
        raise InputError("no trial has come to an end, so there is no winner; search longer")
    first = max(_FIRST_FRESH_SEED, quest.seeds)
    seeds = range(first, first + FRESH_SEEDS)
    graphs: dict[int, Data] = {}
    for group in groups([_again(quest, trial, seeds) for trial in best]):
        kept = study.user_attrs  # read anew: another machine may be at it too
        new = [one for one in group if _fresh(one.number) not in kept]
        if not new:
            continue
        graphs = graphs or quest.graphs(seeds)
        again = compete(new, graphs, quest.model, quest.device, on_epoch=on_epoch, measured=True)
        for one in again:
            if one.factors:
                study.set_user_attr(_factors(one.number), one.factors)
            if one.failure != OUT_OF_MEMORY:  # which another device may have
                study.set_user_attr(_fresh(one.number), [] if one.failure else one.scores)
    kept = study.user_attrs
    finalists = [
        Finalist(trial.number, trial.params, tuple(scores), kept.get(_factors(trial.number), {}))
        for trial in best
        if (scores := kept.get(_fresh(trial.number)))
    ]
    if not finalists:
        raise InputError(
            "the best trials all diverge or run out of memory on fresh seeds; "
            "search longer, lower lr or use another --device"
        )
    return sorted(finalists, key=lambda one: one.mean, reverse=True)


def _again(quest: Quest, trial: "optuna.trial.FrozenTrial", seeds: range) -> Contestant:
    return Contestant(trial.number, quest.space.settings_of(trial.params), seeds)


def _fresh(number: int) -> str:
    """The study's attribute with a trial's scores on fresh seeds; empty where it diverged."""
    return f"fresh:{number}"


def _factors(number: int) -> str:
    """The study's attribute with how well a finalist's models tell factors apart."""
    return f"factors:{number}"


def _done(study: "optuna.Study") -> "list[optuna.trial.FrozenTrial]":
    return [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
