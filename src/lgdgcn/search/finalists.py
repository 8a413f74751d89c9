"""The best trials of a search again, on fresh seeds: which of them is the winner."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import optuna
import torch
from optuna.trial import FrozenTrial, TrialState

from lgdgcn.errors import InputError
from lgdgcn.metrics import headline
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.runtime import StopRequest
from lgdgcn.search.race import Metrics, Split
from lgdgcn.search.tuning import SearchProblem, smoothed
from lgdgcn.training import Epoch, Result, Training, run

__all__ = ["Finalist", "train_finalists"]

FINALISTS = 6  # trials that are trained again
FRESH_SEEDS = 8  # on seeds that no trial has seen
_FIRST_FRESH_SEED = 1000


@dataclass(frozen=True)
class Finalist:
    """One of the best trials, trained again on fresh seeds.

    Attributes:
        number: Of the trial.
        params: What was searched.
        scores: Validation, one per fresh seed.
        factors: Headline measures of its factors, see :mod:`lgdgcn.metrics`.
    """

    number: int
    params: dict[str, Any]
    scores: list[float]
    factors: dict[str, float]

    @property
    def mean(self) -> float:
        """Mean validation score."""
        return fmean(self.scores)

    @property
    def std(self) -> float:
        """Sample standard deviation over the seeds."""
        return stdev(self.scores) if len(self.scores) > 1 else 0.0


def train_finalists(
    problem: SearchProblem, study: optuna.Study, stop: StopRequest | None = None
) -> list[Finalist]:
    """Train the best trials again on fresh seeds; the first of the result is the winner.

    The best of many noisy scores is partly luck; scores of fresh seeds are not. Those of a trial
    are kept in the study as soon as all its seeds are finished, and are not trained again when it
    is resumed.

    Raises:
        InputError: No trial is complete, or none of the best has a score on fresh seeds.
    """
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if not complete:
        raise InputError("no trial has come to an end, so there is no winner; search longer")
    best = sorted(complete, key=lambda trial: trial.value, reverse=True)[:FINALISTS]
    first = max(_FIRST_FRESH_SEED, problem.seeds)
    splits = problem.splits(range(first, first + FRESH_SEEDS))
    for trial in best:
        if _key(trial) not in study.user_attrs:
            _train_again(problem, study, trial, splits, stop)
    kept = study.user_attrs
    finalists = [Finalist(t.number, t.params, **kept[_key(t)]) for t in best if _key(t) in kept]
    if not finalists:
        raise InputError(
            "the best trials all diverge or run out of memory on fresh seeds; "
            "search longer, lower lr or use another --device"
        )
    return sorted(finalists, key=lambda finalist: finalist.mean, reverse=True)


def _train_again(
    problem: SearchProblem,
    study: optuna.Study,
    trial: FrozenTrial,
    splits: Sequence[Split],
    stop: StopRequest | None,
) -> None:
    """Train a trial on fresh seeds; one that fails, perhaps on this device alone, keeps nothing."""
    settings = problem.space.settings_of(trial.params)
    metric = problem.metric(splits[0].graph).metric
    logs: dict[Training, list[Metrics]] = {
        Training(problem.model, settings, split.seed, split.graph): [] for split in splits
    }

    def on_epoch(epochs: Sequence[Epoch]) -> None:
        for epoch in epochs:
            logs[epoch.training][epoch.state.epoch - 1 :] = [epoch.metrics]
        if stop:
            stop.check("stopped among the finalists; go on with --resume")

    results = list(run(list(logs), problem.device, on_epoch))
    if any(result.error for result in results):
        return
    scores = [smoothed(log, metric) for log in logs.values()]
    factors = [_factors(result) for result in results]
    means = {name: fmean(each[name] for each in factors) for name in factors[0]}
    study.set_user_attr(_key(trial), {"scores": scores, "factors": means})


def _key(trial: FrozenTrial) -> str:
    """The study's attribute with a trial's scores on fresh seeds."""
    return f"finalist:{trial.number}"


@torch.no_grad()
def _factors(result: Result) -> dict[str, float]:
    """Headline measures of a model's factors, without those of test nodes; nothing without any."""
    model, graph = result.network().eval(), result.graph
    if not model.num_factors:
        return {}
    y_factor = graph.get("y_factor")
    if y_factor is not None:
        y_factor = y_factor.masked_fill(graph.test_mask.unsqueeze(1), -1)
    last = model.disentangle(graph.x, graph.edge_index).layers[-1]
    found = headline(last, graph.edge_index, y_factor)
    return {name: found[name] for name in HEADLINE if name in found}
