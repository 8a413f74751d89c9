"""Which of the models that stand side by side is better, and whether that is more than chance."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.commands.console import percent
from lgdgcn.commands.train_table import model_name
from lgdgcn.runs.folder import Run
from lgdgcn.train.checks import Scored, noise_of_difference
from lgdgcn.train.scores import METRICS
from lgdgcn.train.trained import TrainedModel

__all__ = ["find_verdict"]

Result = dict[str, Any]


def find_verdict(
    results: Sequence[Result],
    folders: Sequence[Run],
    load: Callable[[int], Data],
    device: torch.device,
) -> dict[str, str | None] | None:
    """Compare the first model with the best of the others by their validation scores.

    Args:
        results: Of every model, of which the first is the one that was asked for.
        folders: Their run folders.
        load: Returns the graph of a seed.
        device: Where the models run.

    Returns:
        What ``result.json`` says as its ``verdict``: a ``sentence``, and the folder of the model
        that is ``better`` than the first on validation, by its name; ``None`` where nothing can
        be compared.
    """
    own, *others = results
    beside = [
        (score, result, folder)
        for result, folder in zip(others, folders[1:], strict=True)
        if result["metric"] == own["metric"] and (score := _mean(result, "val")) is not None
    ]
    score = _mean(own, "val")
    if not beside or score is None:
        return None
    best, rival, folder = max(beside, key=lambda entry: entry[0])
    pair = [_scored(*run, load, device) for run in ((own, folders[0]), (rival, folder))]
    noise, counted = _noise(pair, own, rival, "val")
    names = [model_name(own), model_name(rival)]
    winner, loser = reversed(names) if best > score else names
    low, high = sorted([score, best])
    by_chance = high - low <= noise
    verb = "is better here than"
    if by_chance:
        verb = "scores higher than" if low < high else "scores as high as"
    sentence = f"{winner} {verb} {loser}: {percent(high)} against {percent(low)} in "
    sentence += f"validation {METRICS[own['metric']]}"
    if by_chance:
        sentence += f", {'but ' if low < high else ''}within the noise of {counted}"
    ours, other = (_mean(result, "test") for result in (own, rival))
    if ours is not None and other is not None:
        noise, counted = _noise(pair, own, rival, "test")
        if abs(ours - other) <= noise:
            sentence += f"; on test within the noise of {counted}"
    return {"sentence": sentence, "better": folder.path.name if best > score else None}


def _mean(result: Result, split: str) -> float | None:
    """The mean score of the seeds; ``None`` where one of them has no nodes to be scored on."""
    scores = [run[split] for run in result["runs"]]
    return None if None in scores else fmean(scores)


def _scored(
    result: Result, folder: Run, load: Callable[[int], Data], device: torch.device
) -> Scored:
    """What the model that was kept says of the graph."""
    kept = max(result["runs"], key=lambda run: run["val"] or 0)
    trained, graph = TrainedModel.load(folder.model, device), load(kept["seed"])
    return Scored(trained.task, trained(graph).logits.cpu(), graph)


def _noise(pair: Sequence[Scored], own: Result, rival: Result, split: str) -> tuple[float, str]:
    """The noise of the difference of two models, and in words what it is the noise of."""
    seeds = list(zip(own["runs"], rival["runs"], strict=True))
    differences = [one[split] - other[split] for one, other in seeds]
    noise = noise_of_difference(pair[0], pair[1], split, differences)
    counted = f"{int(pair[0].graph[f'{split}_mask'].sum()):,} nodes"
    counted += f" and {len(seeds)} seeds" if len(seeds) > 1 else ""
    return noise, counted + ("" if math.isinf(noise) else f" (± {percent(noise)})")
