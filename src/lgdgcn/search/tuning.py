"""Ask Optuna for trials, race a batch of them, tell it how they did.

:func:`search` is ``lgdgcn tune``: trials are kept in a database, and given up where they are poor.
:func:`search_on` goes on, in memory, from the winner of a race.
"""

import os
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles
from typing import Any

import optuna
import torch
from optuna.trial import FrozenTrial, TrialState
from torch_geometric.data import Data

from lgdgcn.config import AUTO, resolve
from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.search.families import Candidate
from lgdgcn.search.race import Metrics, Outcome, Split, Standing, race
from lgdgcn.search.space import Space, default_space
from lgdgcn.train.task import ChosenMetric, choose_metric
from lgdgcn.training import Epoch

__all__ = [
    "SearchProblem",
    "enqueue",
    "fail_lost",
    "finished",
    "sampler",
    "search",
    "search_on",
    "smoothed",
]

RUNGS = (100, 200, 400)  # epochs after which a trial may be given up
WINDOW = 10  # epochs over which the validation score is averaged
_TRIALS_AT_ONCE = 8  # that are asked for beyond a portfolio
_ENOUGH_SCORES = 9  # at a rung, before any trial is judged by them


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
            "space": {name: vars(kind) for name, kind in self.space.ranges.items()},
            "settings": self.space.settings,
        }

    def splits(self, seeds: Iterable[int]) -> list[Split]:
        """The graph of every seed; one for all where the split does not depend on it."""
        if self.source.varies_with_seed:
            return [Split(self.source.load(seed), seed) for seed in seeds]
        graph = self.source.load()
        return [Split(graph, seed) for seed in seeds]

    def metric(self, data: Data) -> ChosenMetric:
        """The score that trials are compared by."""
        return choose_metric(data, self.space.settings.get("metric", AUTO))

    @property
    def batch_size(self) -> int:
        """Trials to ask for at once: enough for one full population of a GPU."""
        return max(1, (64 if self.device.type == "cuda" else 12) // self.seeds)


def sampler(seed: int | None) -> optuna.samplers.BaseSampler:
    """Tree-structured Parzen estimators; unfinished trials count as bad, so a batch spreads out."""
    return optuna.samplers.TPESampler(
        seed=seed, multivariate=True, constant_liar=True, n_startup_trials=20
    )


def smoothed(log: Sequence[Metrics], metric: str) -> float:
    """The best validation score of a training, averaged over a few epochs.

    A single epoch's score on a few hundred nodes is noisy, and the highest of a thousand of them
    favours settings whose curve jumps about; a moving average does not.
    """
    scores = [epoch[f"val_{metric}"] or 0.0 for epoch in log]
    ends = range(min(WINDOW, len(scores)), len(scores) + 1)
    return max(fmean(scores[max(0, end - WINDOW) : end]) for end in ends)


def is_poor(score: float, reached: Sequence[float]) -> bool:
    """Whether a score is in the lower third of all trials that have come as far.

    Optuna's own pruners compare with trials that are complete, or by who came first; here a batch
    of trials comes to a rung together.
    """
    return len(reached) >= _ENOUGH_SCORES and score < quantiles(reached, n=3)[0]


def search(
    problem: SearchProblem,
    study: optuna.Study,
    wanted: int,
    *,
    with_others: bool = False,
    on_trial: Callable[[], None] = lambda: None,
    stop: StopRequest | None = None,
) -> None:
    """Try settings until so many trials are finished; a batch more may be.

    Args:
        problem: What is searched for.
        study: Has all trials, those of other workers, too.
        wanted: Finished trials; one that a killed worker has begun is none.
        with_others: Leave alone what others have begun, rather than make up for it.
        on_trial: Called after every trial.
        stop: Becomes true when a signal asks to stop.
    """
    splits = problem.splits(range(problem.seeds))
    while True:
        left = wanted - len(finished(study))
        if with_others:
            left -= len(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)))
        if left <= 0:
            return
        count = min(left, problem.batch_size)
        _train_batch(problem, study, splits, count, on_trial, stop)


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """Trials that have come to an end of their own, were it by failing."""
    ends = (TrialState.COMPLETE, TrialState.PRUNED)
    trials = study.get_trials(deepcopy=False)
    return [trial for trial in trials if trial.state in ends or "failure" in trial.user_attrs]


def _train_batch(
    problem: SearchProblem,
    study: optuna.Study,
    splits: Sequence[Split],
    count: int,
    on_trial: Callable[[], None],
    stop: StopRequest | None,
) -> None:
    """Ask for trials, race them, and tell the study of each as soon as it is finished."""
    candidates, open_trials = [], {}
    for _ in range(count):
        trial = study.ask(problem.space.ranges)
        trial.set_user_attr("process", f"{socket.gethostname()}:{os.getpid()}")
        candidates.append(Candidate(problem.model, problem.space.settings_of(trial.params)))
        open_trials[id(candidates[-1])] = trial
    metric = problem.metric(splits[0].graph).metric

    def tell(one: Standing, *, pruned: bool = False) -> None:
        trial = open_trials.pop(id(one.candidate), None)
        if trial is None:
            return
        if one.failure:
            trial.set_user_attr("failure", one.failure)
            study.tell(trial, state=TrialState.FAIL)
        else:
            scores = [smoothed(log, metric) for log in one.logs]
            trial.set_user_attr("scores", scores)
            state = TrialState.PRUNED if pruned else TrialState.COMPLETE
            study.tell(trial, None if pruned else fmean(scores), state)
        on_trial()

    def keep(standings: Sequence[Standing], rung: int) -> Iterator[Standing]:
        going = [one for one in standings if not one.is_finished(one.candidate.settings)]
        for one in going:
            score = fmean(smoothed(log, metric) for log in one.logs)
            open_trials[id(one.candidate)].report(score, rung)
        known = (trial.intermediate_values for trial in study.get_trials(deepcopy=False))
        reached = [scores[rung] for scores in known if rung in scores]
        for one in standings:
            if one not in going:
                tell(one)
            elif is_poor(fmean(smoothed(log, metric) for log in one.logs), reached):
                tell(one, pruned=True)
            else:
                yield one

    def on_epoch(epochs: Sequence[Epoch]) -> None:
        if stop:
            stop.check("stopped; what is finished is kept, go on with --resume")

    longest = max(one.settings.epochs for one in candidates)
    rungs = [*(rung for rung in RUNGS if rung < longest), longest]
    try:
        outcome = race(candidates, splits, rungs, keep, problem.device, on_epoch=on_epoch)
    except StoppedError:
        for trial in open_trials.values():
            study.tell(trial, state=TrialState.FAIL)
        raise
    for one in outcome.standings:
        tell(one)


def fail_lost(study: optuna.Study) -> None:
    """Fail the trials that dead processes of this machine had begun; they are lost."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        host, _, process = trial.user_attrs.get("process", "").rpartition(":")
        if host == socket.gethostname() and not _is_alive(int(process)):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)


def _is_alive(process: int) -> bool:
    """Whether another process has this number; our own has not begun any trial yet."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return process != os.getpid()


def enqueue(study: optuna.Study, starts: Iterable[dict[str, Any]]) -> None:
    """Let these settings be tried first, unless they are tried already."""
    trials = study.get_trials(deepcopy=False)
    known = [t.system_attrs.get("fixed_params") for t in trials if t.state != TrialState.FAIL]
    for start in starts:
        if start and start not in known:
            study.enqueue_trial(start)


def search_on(
    best: Candidate,
    raced: Callable[[Sequence[Candidate]], Outcome],
    count: int,
    *,
    multi_label: bool,
    fixed: Collection[str] = (),
    seed: int = 0,
) -> Outcome:
    """Race more settings of the model that has won, and return how they did.

    Trials have the settings of the winner where the model's search space does not name them.

    Args:
        best: The winner.
        raced: Races candidates, as those of the portfolio were.
        count: How many trials.
        multi_label: Whether nodes have sets of labels.
        fixed: Settings that stay as they are.
        seed: Of the sampler.
    """
    start = best.settings.as_dict()
    space = default_space(best.model, multi_label, best.settings.variant)
    fixed = {name for name in fixed if name in space.ranges}
    space = space.fixing({name: start[name] for name in fixed if start[name] != AUTO})
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler(seed))
    study.enqueue_trial(space.inside(start))
    total = Outcome([], False)
    while len(total.standings) < count and not total.early:
        left = min(_TRIALS_AT_ONCE, count - len(total.standings))
        trials = [study.ask(space.ranges) for _ in range(left)]
        batch = []
        for trial in trials:
            drawn = space.settings_of(trial.params).as_dict()
            kept = {name: value for name, value in start.items() if name not in trial.params}
            if "factors" in trial.params and "hidden_channels" not in trial.params:
                kept["hidden_channels"] = drawn["hidden_channels"]  # which the factors divide
            batch.append(Candidate(best.model, resolve(start, drawn, kept)))
        found = raced(batch)
        for trial, one in zip(trials, found.standings, strict=True):
            failed = one.score is None
            study.tell(trial, one.score, optuna.trial.TrialState.FAIL if failed else None)
        total = Outcome(total.standings + found.standings, found.early)
    return total
