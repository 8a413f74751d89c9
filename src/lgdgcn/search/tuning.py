"""The search itself: ask Optuna for trials, train them in populations, tell it how they did."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles, stdev
from typing import Any

import optuna
import torch
from torch_geometric.data import Data

from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError
from lgdgcn.runtime import StopRequest
from lgdgcn.search.space import Space
from lgdgcn.search.trials import OUT_OF_MEMORY, TrialRun, group_by_architecture, train_trials
from lgdgcn.search.workers import Worker

__all__ = [
    "Finalist",
    "LowerThirdPruner",
    "SearchProblem",
    "sampler",
    "search",
    "train_finalists",
]

FINALISTS = 6  # trials that are trained again
FRESH_SEEDS = 8  # on seeds that no trial has seen
_FIRST_FRESH_SEED = 1000
_ENOUGH_SCORES = 9  # at a rung, before any trial is judged by them
_WAIT_SECONDS = 2.0


@dataclass(frozen=True)
class SearchProblem:
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
    def batch_size(self) -> int:
        """Trials to ask for at once: enough for one full population of a GPU."""
        return max(1, (64 if self.device.type == "cuda" else 12) // self.seeds)


def sampler(seed: int | None) -> "optuna.samplers.BaseSampler":
    """Tree-structured Parzen estimators; unfinished trials count as bad, so a batch spreads out."""
    return optuna.samplers.TPESampler(
        seed=seed, multivariate=True, constant_liar=True, n_startup_trials=20
    )


class LowerThirdPruner(optuna.pruners.BasePruner):
    """Prunes a trial that is in the lower third of all that have come as far.

    Optuna's own pruners compare with trials that are complete, or by who came first; here a batch
    of trials comes to a rung together.
    """

    def prune(self, study: "optuna.Study", trial: "optuna.trial.FrozenTrial") -> bool:
        """Whether the trial's last reported score is in the lower third."""
        step = trial.last_step
        if step is None:
            return False
        trials = study.get_trials(deepcopy=False)
        scores = [t.intermediate_values[step] for t in trials if step in t.intermediate_values]
        if len(scores) < _ENOUGH_SCORES:
            return False
        return bool(trial.intermediate_values[step] < quantiles(scores, n=3)[0])


def search(
    problem: SearchProblem,
    study: "optuna.Study",
    worker: Worker,
    on_change: Callable[[], None] = lambda: None,
    stop: StopRequest | None = None,
) -> None:
    """Work on a study until its trials are used up, by this and all other workers."""
    graphs = problem.graphs(range(problem.seeds))
    for data in graphs.values():
        problem.check(data)

    def on_epoch() -> None:
        on_change()
        if stop:
            done = len(_complete_trials(study))
            stop.check(f"stopped with {done} trials complete; go on with --resume")

    while True:
        claimed = worker.ask(problem.batch_size)
        if not claimed:
            if not worker.others_running:
                return
            time.sleep(_WAIT_SECONDS)  # another worker may die, its trials would be ours
            on_epoch()
            continue
        _train_claimed(problem, worker, claimed, graphs, on_epoch)


def _train_claimed(
    problem: SearchProblem,
    worker: Worker,
    claimed: "Sequence[optuna.Trial]",
    graphs: Mapping[int, Data],
    on_epoch: Callable[[], None],
) -> None:
    """Train a batch of trials and tell the study of each when it is finished."""
    trials = {trial.number: trial for trial in claimed}
    runs = []
    for trial in claimed:
        settings = problem.space.settings_of(_suggest(trial, problem.space))
        runs.append(TrialRun(trial.number, settings, range(problem.seeds)))

    def tell(run: TrialRun) -> None:
        score = None if run.failure else run.score  # no score fails the trial, and only it
        notes = {"failure": run.failure} if run.failure else {"scores": run.scores}
        worker.tell(trials[run.number], score, pruned=run.pruned, notes=notes)
        on_epoch()

    train_trials(
        runs,
        graphs,
        problem.model,
        problem.device,
        on_finished=tell,
        on_rung=lambda run, rung: _report(worker, trials[run.number], run, rung),
        should_prune=lambda run: not run.failure and trials[run.number].should_prune(),
        on_epoch=on_epoch,
    )


def _report(worker: Worker, trial: "optuna.Trial", run: TrialRun, rung: int) -> None:
    """Say how a trial stands; one that others have taken over is not ours to go on with."""
    if not worker.report(trial, run.score, rung):
        run.failure = "taken over by another worker"


def _suggest(trial: "optuna.Trial", space: Space) -> dict[str, Any]:
    """Draw a value for every searched setting."""
    return {name: trial._suggest(name, kind) for name, kind in space.distributions().items()}


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


def train_finalists(
    problem: SearchProblem, study: "optuna.Study", on_epoch: Callable[[], None] = lambda: None
) -> list[Finalist]:
    """Train the best trials again on fresh seeds; the first of the result is the winner.

    The best of many noisy scores is partly luck; scores of fresh seeds are not. Those of a trial
    are kept in the study as soon as all its seeds are finished, and are not trained again when it
    is resumed; two machines that come here at the same time may both train a trial.

    Raises:
        InputError: No trial is complete, or none of the best has a score on fresh seeds.
    """
    best = sorted(_complete_trials(study), key=lambda trial: trial.value, reverse=True)[:FINALISTS]
    if not best:
        raise InputError("no trial has come to an end, so there is no winner; search longer")
    first = max(_FIRST_FRESH_SEED, problem.seeds)
    seeds = range(first, first + FRESH_SEEDS)
    runs = [TrialRun(t.number, problem.space.settings_of(t.params), seeds) for t in best]
    graphs: dict[int, Data] = {}

    def keep(run: TrialRun) -> None:
        if run.factors:
            study.set_user_attr(_factors_key(run.number), run.factors)
        if run.failure != OUT_OF_MEMORY:  # which another device may have
            study.set_user_attr(_scores_key(run.number), [] if run.failure else run.scores)

    for group in group_by_architecture(runs):
        kept = study.user_attrs  # read anew: another machine may be at it too
        new = [run for run in group if _scores_key(run.number) not in kept]
        if not new:
            continue
        graphs = graphs or problem.graphs(seeds)
        train_trials(
            new,
            graphs,
            problem.model,
            problem.device,
            on_finished=keep,
            on_epoch=on_epoch,
            measure_factors=True,
        )
    kept = study.user_attrs
    finalists = [
        Finalist(t.number, t.params, tuple(scores), kept.get(_factors_key(t.number), {}))
        for t in best
        if (scores := kept.get(_scores_key(t.number)))
    ]
    if not finalists:
        raise InputError(
            "the best trials all diverge or run out of memory on fresh seeds; "
            "search longer, lower lr or use another --device"
        )
    return sorted(finalists, key=lambda finalist: finalist.mean, reverse=True)


def _scores_key(number: int) -> str:
    """The study's attribute with a trial's scores on fresh seeds; empty where it diverged."""
    return f"fresh:{number}"


def _factors_key(number: int) -> str:
    """The study's attribute with a finalist's factor metrics."""
    return f"factors:{number}"


def _complete_trials(study: "optuna.Study") -> "list[optuna.trial.FrozenTrial]":
    trials: list[optuna.trial.FrozenTrial] = study.get_trials(
        states=(optuna.trial.TrialState.COMPLETE,)
    )
    return trials
