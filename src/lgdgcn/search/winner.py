"""What a search leaves behind: its winner as a preset file, and pictures of the study."""

import json
import math
import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from optuna.trial import TrialState

from lgdgcn.config import Settings, default_variant, preset, preset_names, to_toml
from lgdgcn.data.source import GraphSource
from lgdgcn.plots import COLORS, save_figure
from lgdgcn.search.tuning import Finalist, SearchProblem
from lgdgcn.storage import write_text

__all__ = ["graph_options", "plot_history", "plot_importance", "preset_text", "write_preset"]


def write_preset(
    folder: Path,
    problem: SearchProblem,
    study: "optuna.Study",
    finalists: list[Finalist],
    command: str,
    *,
    multi_label: bool,
) -> Path:
    """Write ``GRAPH-MODEL[-VARIANT].toml`` into a folder and return its path."""
    graph = problem.source.preset_name or _file_name(problem.source.name)
    variant = problem.space.settings.get("variant")
    names = preset_names(graph, problem.model, variant)
    path = folder / f"{names[1] if variant is None else names[0]}.toml"
    write_text(path, preset_text(problem, study, finalists, command, multi_label=multi_label))
    return path


def _file_name(graph: str) -> str:
    """The name of a user's graph, as far as it makes a name of a file."""
    return re.sub(r"[^a-z0-9.]+", "_", graph.lower()).strip("._")[:100] or "graph"


def preset_text(
    problem: SearchProblem,
    study: "optuna.Study",
    finalists: list[Finalist],
    command: str,
    *,
    multi_label: bool,
) -> str:
    """The file: how it was found, what it scored on validation, and the settings."""
    winner = finalists[0]
    settings = problem.space.settings_of(winner.params).as_dict()
    default = Settings().as_dict()
    variant = problem.space.settings.get("variant")
    graph = problem.source.preset_name
    shipped = preset(graph, problem.model, variant, multi_label=multi_label)
    named = {*winner.params, *problem.space.settings, *shipped}  # train starts from what is shipped
    chosen = {k: _short(v) for k, v in settings.items() if k in named or v != default[k]}
    states = [trial.state.name for trial in study.trials]
    about: dict[str, Any] = {
        "search": command,
        "trials": states.count("COMPLETE") + states.count("PRUNED"),
        "pruned": states.count("PRUNED"),
        "seeds": problem.seeds,
        "finalists": f"best {len(finalists)} trained again on {len(winner.scores)} fresh seeds",
        "validation": round(winner.mean, 4),
        "validation_std": round(winner.std, 4),
        **{name: round(value, 4) for name, value in winner.factors.items()},
    }
    use = f"# lgdgcn train {json.dumps(problem.source.dataset, ensure_ascii=False)[1:-1]}"
    use += "" if problem.model == "lgdgcn" else f" --model {problem.model}"
    use += f" --variant {variant}" if variant not in (None, default_variant(problem.model)) else ""
    use += "".join(f" {option}" for option in graph_options(problem.source))
    day = f"date = {date.today().isoformat()}\n"
    return f"{use}\n{to_toml('preset', about)}{day}\n{to_toml('settings', chosen)}"


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


def _short(value: Any) -> Any:
    """Four digits are more than a search can tell apart."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


BLUE, ORANGE, GREEN = COLORS[0], COLORS[1], COLORS[2]
ENOUGH_TRIALS = 8  # complete ones, before their importances are more than chance
_DEPTH = 4  # of the picture, in distances from the best score to that of the upper three quarters


def plot_history(study: optuna.Study, path: Path) -> None:
    """Draw the score of every trial, and the best so far.

    Args:
        study: The study.
        path: ``path.png`` and ``path.svg`` are written.
    """
    figure, axes = _figure(study, 7.2, 4.2)
    trials = study.get_trials(deepcopy=False)
    scored = [t for t in trials if t.value is not None and math.isfinite(t.value)]
    done = [t for t in scored if t.state == TrialState.COMPLETE]
    pruned = [t for t in scored if t.state == TrialState.PRUNED]
    if not scored:
        _say(axes, "No trial has a score yet.")
    else:
        floor = _set_height(axes, [t.value for t in scored])
        _draw_trials(axes, pruned, floor, "pruned", ORANGE, "D", "none")
        _draw_trials(axes, done, floor, "complete", BLUE, "o", BLUE)
        if done:
            _draw_best(axes, done, last=trials[-1].number)
        axes.set_xlabel("trial")
        axes.set_ylabel("validation score, mean over the seeds")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y", color="0.92")
        figure.legend(
            loc="outside lower center", ncols=5, frameon=False, columnspacing=1.4, handletextpad=0.4
        )
    save_figure(figure, path)


def _set_height(axes: Axes, values: list[float]) -> float:
    """Leave out far-off scores: trials that failed to learn would flatten all others."""
    top, low = max(values), min(values)
    floor = max(low, top - _DEPTH * (top - float(np.quantile(values, 0.25))))
    height = max(top - floor, 1e-3)
    axes.set_ylim(top - 1.06 * height, top + 0.1 * height)
    return floor


def _draw_trials(
    axes: Axes, trials: list[Any], floor: float, label: str, edge: str, marker: str, face: str
) -> None:
    inside = [t for t in trials if t.value >= floor]
    below = [t for t in trials if t.value < floor]
    style: dict[str, Any] = {"s": 22, "facecolor": face, "edgecolor": edge, "linewidths": 1.1}
    if trials:
        axes.scatter([t.number for t in inside], [t.value for t in inside], marker=marker,
                     label=label, zorder=2, **style)  # fmt: skip
    if below:
        bottom = axes.get_ylim()[0]
        axes.scatter([t.number for t in below], [bottom] * len(below), marker="v", clip_on=False,
                     label=f"{label}, below", zorder=4, **style)  # fmt: skip


def _draw_best(axes: Axes, done: list[Any], last: int) -> None:
    numbers = [t.number for t in done]
    best = np.maximum.accumulate([t.value for t in done])
    axes.step([*numbers, last], [*best, best[-1]], where="post", color=GREEN, linewidth=1.8,
              label="best so far", zorder=3)  # fmt: skip
    winner = max(done, key=lambda t: t.value)
    axes.annotate(f"{winner.value:.4g}", (winner.number, winner.value), xytext=(0, 6),
                  textcoords="offset points", ha="center", fontsize=9, color="0.2")  # fmt: skip


def plot_importance(study: optuna.Study, path: Path) -> None:
    """Draw how much of the variation of the score each searched setting explains (fANOVA).

    Args:
        study: The study.
        path: ``path.png`` and ``path.svg`` are written.
    """
    importance = _importance(study)
    if isinstance(importance, str):
        figure, axes = _figure(study, 7.2, 2.4)
        _say(axes, importance)
    else:
        figure, axes = _figure(study, 7.2, 1.3 + 0.32 * len(importance))
        names, shares = list(importance), [100 * share for share in importance.values()]
        axes.barh(names, shares, color=BLUE, height=0.66)
        axes.invert_yaxis()  # the most important one on top
        for row, share in enumerate(shares):
            axes.annotate(f"{share:.0f}" if share >= 1 else "<1", (share, row), xytext=(4, 0),
                          textcoords="offset points", va="center", fontsize=9)  # fmt: skip
        axes.set_xlim(0, max(shares) * 1.1)
        axes.set_xlabel("share of the variation of the score, %")
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.92")
    save_figure(figure, path)


def _importance(study: optuna.Study) -> dict[str, float] | str:
    """Importances that add up to 1, or why there are none."""
    done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(done) < ENOUGH_TRIALS:
        return f"{len(done)} complete trials are too few to tell: at least {ENOUGH_TRIALS}."
    if len({t.value for t in done}) == 1:
        return "All trials have the same score: no setting mattered."
    common = set.intersection(*(set(t.params) for t in done))
    names = sorted(name for name in common if len({t.params[name] for t in done}) > 1)
    if len(names) < 2:
        return "Fewer than two settings were varied in all trials: nothing to compare."
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    try:
        found: dict[str, float] = optuna.importance.get_param_importances(
            study, evaluator=evaluator, params=names
        )
    except RuntimeError:  # the trees found nothing to divide the trials by
        return "No setting explains the scores of these few trials."
    return found


def _figure(study: optuna.Study, width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")  # no pyplot: no backend chosen
    axes = figure.subplots()
    axes.set_title(study.study_name, fontsize=12, parse_math=False)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _say(axes: Axes, message: str) -> None:
    axes.text(0.5, 0.5, message, ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()
