"""Which of two models is better on validation, and whether that is more than chance."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.cli.console import percent
from lgdgcn.cli.train_table import model_title, name_title
from lgdgcn.runs.finished import kept_seed
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
        results: Of every model, of which the first is the one of the run.
        folders: Their run folders.
        load: Returns the graph of a seed.
        device: Where the models run.

    Returns:
        What ``result.json`` says as its ``verdict``: a ``sentence``, and the folder of the model
        that is ``better`` than the first on validation, by its name. Where no other was trained
        to the end the sentence is on the race, and ``None`` without one.
    """
    first, *others = results
    beside = [
        (score, result, folder)
        for result, folder in zip(others, folders[1:], strict=True)
        if result["metric"] == first["metric"] and (score := _mean(result, "val")) is not None
    ]
    score = _mean(first, "val")
    if not beside or score is None:
        return _verdict_of_race(first)
    best, rival, folder = max(beside, key=lambda entry: entry[0])
    pair = [_scored(*run, load, device) for run in ((first, folders[0]), (rival, folder))]
    noise, counted = _noise(pair, first, rival, "val")
    sentence = _compared(
        (model_title(first), score), (model_title(rival), best), first["metric"], noise, counted
    )
    tests = [_mean(result, "test") for result in (first, rival)]
    if tests[0] is not None and tests[1] is not None:
        noise, counted = _noise(pair, first, rival, "test")
        if abs(tests[0] - tests[1]) <= noise:
            sentence += f"; on test within the noise of {counted}"
    return {"sentence": sentence, "better": folder.path.name if best > score else None}


def _compared(
    first: tuple[str, float], second: tuple[str, float], metric: str, noise: float, counted: str
) -> str:
    """Which of two models has the higher validation score, and whether that may be by chance."""
    (winner, high), (loser, low) = sorted((first, second), key=lambda one: -one[1])
    by_chance = high - low <= noise
    verb = "is better here than"
    if by_chance:
        verb = "scores higher than" if low < high else "scores as high as"
    sentence = f"{winner} {verb} {loser}: {percent(high)} against {percent(low)} in "
    sentence += f"validation {METRICS[metric]}"
    if by_chance:
        sentence += f", {'but ' if low < high else ''}within the noise of {counted}"
    return sentence


def _verdict_of_race(result: Result) -> dict[str, str | None] | None:
    """Compare the winner with the best of the other families, by how they did in the race."""
    rows = [row for row in result.get("ranking", []) if "validation" in row]
    if len(rows) < 2:
        return None
    scores = [(name_title(row["model"]), row["validation"]) for row in rows[:2]]
    noise = 2 * math.hypot(rows[0]["noise"], rows[1]["noise"])
    search = result["search"]
    counted = f"the race (± {percent(noise)})"
    sentence = _compared(scores[0], scores[1], search["metric"], noise, counted)
    if scores[1][1] > scores[0][1]:
        sentence += f"; {scores[0][0]} is simpler"
    return {"sentence": sentence, "better": None}


def _mean(result: Result, split: str) -> float | None:
    """The mean score of the seeds; ``None`` where one of them has no nodes to be scored on."""
    scores = [run[split] for run in result["runs"]]
    return None if None in scores else fmean(scores)


def _scored(
    result: Result, folder: Run, load: Callable[[int], Data], device: torch.device
) -> Scored:
    """What the model that was kept says of the graph."""
    graph = load(kept_seed(result)["seed"])
    trained = TrainedModel.load(folder.model, device)
    return Scored(trained.task, trained(graph).logits.cpu(), graph)


def _noise(pair: Sequence[Scored], first: Result, rival: Result, split: str) -> tuple[float, str]:
    """The noise of the difference of two models, and in words what it is the noise of."""
    seeds = list(zip(first["runs"], rival["runs"], strict=True))
    differences = [one[split] - other[split] for one, other in seeds]
    noise = noise_of_difference(pair[0], pair[1], split, differences)
    counted = f"{int(pair[0].graph[f'{split}_mask'].sum()):,} nodes"
    counted += f" and {len(seeds)} seeds" if len(seeds) > 1 else ""
    return noise, counted + ("" if math.isinf(noise) else f" (± {percent(noise)})")
