"""Searches small enough to be run again and again."""

from typing import Any

import optuna
import torch

from lgdgcn.data.source import GraphSource
from lgdgcn.search.space import Space, _space
from lgdgcn.search.tuning import SearchProblem, sampler

GRAPH = GraphSource("synthetic:nodes=60,factors=2,classes=3")
CPU = torch.device("cpu")
FIXED = {"epochs": 12, "hidden_channels": 8}
RANGES = {
    "lr": {"low": 0.01, "high": 0.3, "log": True},
    "num_layers": {"low": 1, "high": 2},
    "dropout": {"low": 0.0, "high": 0.8},
}


def space_with(ranges: dict[str, Any] = RANGES, **settings: Any) -> Space:
    return _space({"space": ranges, "settings": settings})


def problem_of(
    ranges: dict[str, Any] = RANGES,
    *,
    source: GraphSource = GRAPH,
    model: str = "mlp",
    seeds: int = 3,
    **settings: Any,
) -> SearchProblem:
    fixed = {name: value for name, value in FIXED.items() if name not in ranges}
    return SearchProblem(source, model, space_with(ranges, **{**fixed, **settings}), seeds, CPU)


def new_study(seed: int = 0) -> optuna.Study:
    """In memory, as a search opens it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(study_name="study", direction="maximize", sampler=sampler(seed))
