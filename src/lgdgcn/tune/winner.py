"""The winner of a search as a preset file."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import optuna

from lgdgcn.config import Settings, preset, preset_names, to_toml
from lgdgcn.data.source import GraphSource
from lgdgcn.storage import write_text
from lgdgcn.tune.search import Finalist, SearchProblem

__all__ = ["graph_options", "preset_text", "write_preset"]


def write_preset(
    folder: Path,
    problem: SearchProblem,
    study: "optuna.Study",
    finalists: list[Finalist],
    command: str,
) -> Path:
    """Write ``DATASET-MODEL[-VARIANT].toml`` into a folder and return its path."""
    graph = problem.source.preset_name or "graph"
    variant = problem.space.settings.get("variant")
    names = preset_names(graph, problem.model, variant)
    path = folder / f"{names[1] if variant is None else names[0]}.toml"
    write_text(path, preset_text(problem, study, finalists, command))
    return path


def preset_text(
    problem: SearchProblem, study: "optuna.Study", finalists: list[Finalist], command: str
) -> str:
    """The file: how it was found, what it scored on validation, and the settings."""
    winner = finalists[0]
    settings = problem.space.settings_of(winner.params).as_dict()
    default = Settings().as_dict()
    variant = problem.space.settings.get("variant")
    shipped = preset(problem.source.preset_name, problem.model, variant)  # train starts from these
    named = {*winner.params, *problem.space.settings, *shipped}
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
    use += f" --variant {variant}" if variant not in (None, "paper") else ""
    use += "".join(f" {option}" for option in graph_options(problem.source))
    day = f"date = {date.today().isoformat()}\n"
    return f"{use}\n{to_toml('preset', about)}{day}\n{to_toml('settings', chosen)}"


def graph_options(source: GraphSource) -> list[str]:
    """The options that, beside its name, make a command work on the same graph.

    Example:
        >>> graph_options(GraphSource("cora", split="random"))
        ['--split', 'random']
    """
    options = [] if source.split == "standard" else ["--split", source.split]
    return options if source.features is None else [*options, "--features", source.features]


def _short(value: Any) -> Any:
    """Four digits are more than a search can tell apart."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
