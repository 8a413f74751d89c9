"""What ``lgdgcn train`` prints in the end: ranking, scores, factors, verdict and warnings."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.cli import console
from lgdgcn.cli.console import percent, plain
from lgdgcn.config import MODEL_NAMES, model_and_variant, preset_note
from lgdgcn.data.labels import IDENTIFIER
from lgdgcn.data.source import GraphSource
from lgdgcn.models import MODELS
from lgdgcn.runs.finished import kept_seed, lost_to
from lgdgcn.runs.folder import Run
from lgdgcn.train.checks import Scored, noise_of_difference
from lgdgcn.train.scores import METRICS
from lgdgcn.train.trained import TrainedModel

__all__ = ["factors_beside", "find_verdict", "print_results", "told"]

Result = dict[str, Any]

OURS: Result = {"model": "lgdgcn", "variant": "ours"}

# What is printed of the factors: a heading, and how its numbers are shown.
FACTOR_COLUMNS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "edge_attribution": ("edge attr.\nin %", percent),
    "routing_entropy": ("routing\nentropy", plain),
    "factor_usage": ("factors\nin use", partial(plain, digits=2)),
    "dci_disentanglement": ("DCI\ndisent.", partial(plain, digits=3)),
    "correlation_ratio": ("correlation\nratio", partial(plain, digits=2)),
}


def told(result: Result) -> str:
    """The model of a result in words: of LGD-GCN with its reading, as in ``LGD-GCN (ours)``."""
    model, variant = result["model"], result.get("variant")
    title = MODELS[model].title
    is_plain = variant is None or (model == "disengcn" and variant == "paper")
    return title if is_plain else f"{title} ({variant})"


def factors_beside(winner: Result, result: Result, folder: Path) -> str:
    """Say whose factors are those of a run whose model has none."""
    where = f"factors are those of {told(result)}, in {folder}"
    return f"{where}; {told(winner)} predicts labels"


def _told_name(name: str) -> str:
    """The same of a name that ``--model`` takes."""
    if name not in MODEL_NAMES:
        return name
    model, variant = model_and_variant(name)
    return told({"model": model, "variant": variant})


def print_results(
    source: GraphSource, results: Sequence[Result], path: Path, *, notes: bool
) -> None:
    """Print all that is known of the models.

    Args:
        source: The graph.
        results: Of the run, and of the models beside it.
        path: The run folder.
        notes: Whether to say what a reader of shipped presets should know.
    """
    first = results[0]
    if len(first.get("ranking", [])) > 1:
        _print_ranking(first)
    _print_scores(source.name, results)
    _print_factors(results)
    for result in results:
        model = f"{told(result)}: " if len(results) > 1 else ""
        for warning in result.get("warnings", []):
            # it was said when the graph was read; a seed may stand before it
            if IDENTIFIER not in warning:
                console.warn(model + warning)
    if lost := lost_to(first, path):
        console.warn(lost)
    elif verdict := first.get("verdict"):
        console.say(verdict["sentence"])
    ours = Run.open(path).compared("lgdgcn").path
    for result in results[1:]:
        if not first["factors"] and result["factors"] and told(result) == told(OURS):
            console.say(factors_beside(first, result, ours))
    multi_label = _is_multi_label(first)
    for result in results if notes else ():
        about = (source.preset_name, result["model"], result["variant"])
        if note := preset_note(*about, multi_label=multi_label):
            console.say(f"{told(result)}: {note}")


def _is_multi_label(result: Result) -> bool:
    return "micro_f1_at_0.5" in result["runs"][0]["scores"]["test"]


def _print_ranking(result: Result) -> None:
    """Print how the best settings of every family did in the race."""
    search = result["search"]
    rows = []
    for number, row in enumerate(result["ranking"]):
        marker = "→ " if number == 0 else "  "
        score = percent(row.get("validation"), row.get("noise"))
        rows.append(
            [marker + _told_name(row["model"]), score, str(row["epochs"]), str(row["tried"])]
        )
    count = search["splits"]
    splits = f" on {count} splits" if count > 1 else ""
    metric = METRICS.get(search["metric"], search["metric"])
    title = f"Race on validation, {metric} in %{splits}, ± standard error"
    console.table(title, ["model", "validation", "epochs", "settings\ntried"], rows)
    judged = [row for row in result["ranking"] if row.get("validation") is not None]
    if better := [row for row in judged[1:] if row["validation"] > judged[0]["validation"]]:
        names = " and ".join(_told_name(row["model"]) for row in better)
        console.say(
            f"{_told_name(judged[0]['model'])} is chosen: {names} scored higher by less than a "
            "quarter of the standard error, and of models that score alike the simplest is taken"
        )


def _print_scores(dataset: str, results: Sequence[Result]) -> None:
    multi_label = _is_multi_label(results[0])
    usual = ["micro_f1", "macro_f1"] if multi_label else ["accuracy"]
    names = list(dict.fromkeys([results[0]["metric"], *usual]))
    titles = METRICS | {"average_precision": "av. prec.", "balanced_accuracy": "bal. acc."}
    header = ["model", *(f"test\n{titles[name]}" for name in names), "validation", "epochs"]
    rows = []
    for result in results:
        runs = result["runs"]
        cells = [_spread([run["scores"]["test"].get(name) for run in runs]) for name in names]
        cells.append(_spread([run["val"] for run in runs]))
        cells.append(f"{sum(run['epochs'] for run in runs) / len(runs):.0f}")
        rows.append([told(result), *cells])
    count = len(results[0]["runs"])
    title = f"{dataset}, in %" + (f", mean ± std of {count} seeds" if count > 1 else "")
    if multi_label:
        title += f"; {_f1_caption(results)}"
    console.table(title, header, rows)


def _print_factors(results: Sequence[Result]) -> None:
    """Print the measures of the models with factors; those no model has on this graph are not."""
    known = [result for result in results if result["factors"]]
    shown = {
        name: show
        for name, show in FACTOR_COLUMNS.items()
        if any(result["factors"].get(name) is not None for result in known)
    }
    if not shown:
        return
    rows = [
        [told(result), *(show(result["factors"].get(name)) for name, (_, show) in shown.items())]
        for result in known
    ]
    several = len(results[0]["runs"]) > 1
    title = "Factors" + (" of the seed that is best on validation" if several else "")
    console.table(title, ["model", *(heading for heading, _ in shown.values())], rows)


def _f1_caption(results: Sequence[Result]) -> str:
    """Say which labels count as predicted."""
    runs = [run for result in results for run in result["runs"]]
    thresholds = [run["threshold"] for run in runs if "threshold" in run]
    if not thresholds:
        return "F1 of the highest-scoring labels, at threshold 0.5 see result.json"
    more = "other scores see result.json"
    if all(run["val"] is None for run in runs):
        return f"F1 at threshold 0.5, as there are no validation nodes to tune it on; {more}"
    low, high = f"{min(thresholds):.2g}", f"{max(thresholds):.2g}"
    tuned = low if low == high else f"{low} to {high}"
    return f"F1 at thresholds per label, tuned on validation (in common {tuned}); {more}"


def _spread(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return percent(None)
    return percent(fmean(known), stdev(known) if len(known) > 1 else None)


# The verdict


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
    sentence = _compared((told(first), score), (told(rival), best), first["metric"], noise, counted)
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
    scores = [(_told_name(row["model"]), row["validation"]) for row in rows[:2]]
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
