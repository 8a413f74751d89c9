"""The winner of a search: the best trials again on fresh seeds, a preset file and pictures."""

import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import optuna
import torch
from optuna.trial import FrozenTrial, TrialState

from lgdgcn.config import Settings, model_name, to_toml
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.metrics import headline
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.plots import save_figure
from lgdgcn.runtime import StopRequest
from lgdgcn.search.race import Metrics, Split
from lgdgcn.search.tuning import SearchProblem, smoothed
from lgdgcn.training import Epoch, Result, Training, run

__all__ = ["Finalist", "draw", "graph_options", "preset_text", "search_name", "train_finalists"]

FINALISTS = 6  # trials that are trained again
FRESH_SEEDS = 8  # on seeds that no trial has seen
_FIRST_FRESH_SEED = 1000
_LONGEST = 100  # of a graph's name in that of a file


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

    The best of many noisy scores is partly chance; scores of fresh seeds are not. Those of a trial
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


def search_name(source: GraphSource, model: str) -> str:
    """Name of a study, and of its files: ``GRAPH-MODEL``, as far as it makes a name of a file.

    Example:
        >>> search_name(GraphSource("some/My (2nd) graph"), "lgdgcn-paper")
        'my_2nd_graph-lgdgcn-paper'
    """
    graph = re.sub(r"[^a-z0-9.]+", "_", (source.preset_name or source.name).lower())
    return f"{graph.strip('._')[:_LONGEST] or 'graph'}-{model}"


def graph_options(source: GraphSource) -> list[str]:
    """The options that, beside its name, make a command work on the same graph.

    Example:
        >>> graph_options(GraphSource("cora", split="random"))
        ['--split', 'random']
    """
    return [
        word
        for key, value in source.options.items()
        for one in ([value] if isinstance(value, str) else value)
        for word in (f"--{key}", one)
    ]


def preset_text(
    problem: SearchProblem,
    study: optuna.Study,
    finalists: list[Finalist],
    command: str,
    shipped: dict[str, Any],
) -> str:
    """A preset file: how it was found, what it scored on validation, and the settings.

    Args:
        problem: What was searched for.
        study: All trials.
        finalists: The first of them is the winner.
        command: What a user wrote.
        shipped: The settings that train starts from, which the file may have to undo.
    """
    winner, space, source = finalists[0], problem.space, problem.source
    settings, usual = space.settings_of(winner.params).as_dict(), Settings().as_dict()
    named = {*winner.params, *space.settings, *shipped}
    chosen = {k: _short(v) for k, v in settings.items() if k in named or v != usual[k]}
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    about: dict[str, Any] = {
        "search": command,
        "trials": states.count(TrialState.COMPLETE) + states.count(TrialState.PRUNED),
        "pruned": states.count(TrialState.PRUNED),
        "seeds": problem.seeds,
        "finalists": f"best {len(finalists)} trained again on {len(winner.scores)} fresh seeds",
        "validation": round(winner.mean, 4),
        "validation_std": round(winner.std, 4),
        **{name: round(value, 4) for name, value in winner.factors.items()},
    }
    graph = json.dumps(source.dataset, ensure_ascii=False)[1:-1]  # in one line, whatever it is
    name = model_name(problem.model, space.settings.get("variant"))
    use = " ".join(["# lgdgcn train", graph, *graph_options(source), "--model", name])
    day = f"date = {date.today().isoformat()}\n"
    return f"{use}\n{to_toml('preset', about)}{day}\n{to_toml('settings', chosen)}"


def _short(value: Any) -> Any:
    """Four digits are more than a search can tell apart."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def draw(study: optuna.Study, folder: Path) -> None:
    """Draw the score of every trial, and how much of it each setting explains (fANOVA)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from optuna.visualization import matplotlib as pictures

    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these pictures are experimental
        axes = pictures.plot_optimization_history(study)
        save_figure(axes.figure, folder / "history")
        try:
            axes = pictures.plot_param_importances(study, evaluator=evaluator)
            save_figure(axes.figure, folder / "importance")
        except (RuntimeError, ValueError):
            pass  # one trial alone, or all alike, say nothing of any setting
        pyplot.close("all")
