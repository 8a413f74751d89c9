"""What a search leaves behind: its winner as a preset file, and pictures of the study."""

import json
import re
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from lgdgcn.config import Settings, model_name, to_toml
from lgdgcn.data.source import GraphSource
from lgdgcn.plots import save_figure
from lgdgcn.search.finalists import Finalist
from lgdgcn.search.tuning import SearchProblem

__all__ = ["PICTURES", "draw", "graph_options", "preset_text", "search_name"]

PICTURES = ("history", "importance")
_LONGEST = 100  # of a graph's name in that of a file


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
