"""What ``lgdgcn train`` prints: graph, progress, ranking, scores, factors and warnings."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from torch_geometric.data import Data

from lgdgcn.cli import console
from lgdgcn.cli.console import percent, plain
from lgdgcn.config import AUTO, MODEL_NAMES, Settings, model_and_variant, preset_note
from lgdgcn.data.labels import IDENTIFIER
from lgdgcn.data.source import GraphSource
from lgdgcn.large.rows import rows_scaling
from lgdgcn.models import MODELS
from lgdgcn.runs.finished import lost_to
from lgdgcn.runs.folder import Run
from lgdgcn.train.scores import METRICS
from lgdgcn.train.task import choose_metric
from lgdgcn.training import Epoch

__all__ = [
    "epoch_progress",
    "factors_beside",
    "model_title",
    "name_title",
    "print_results",
    "say_what_was_read",
]

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


def model_title(result: Result) -> str:
    """The model of a result in words: of LGD-GCN with its reading, as in ``LGD-GCN (ours)``."""
    model, variant = result["model"], result.get("variant")
    title = MODELS[model].title
    is_plain = variant is None or (model == "disengcn" and variant == "paper")
    return title if is_plain else f"{title} ({variant})"


def factors_beside(winner: Result, result: Result, folder: Path) -> str:
    """Say whose factors are those of a run whose model has none."""
    where = f"factors are those of {model_title(result)}, in {folder}"
    return f"{where}; {model_title(winner)} predicts labels"


def name_title(name: str) -> str:
    """The same of a name that ``--model`` takes."""
    if name not in MODEL_NAMES:
        return name
    model, variant = model_and_variant(name)
    return model_title({"model": model, "variant": variant})


def say_what_was_read(name: str, data: Data, settings: Settings) -> None:
    """Print the size of a graph, how its features are scaled, and the score that is fair to it."""
    text = f"{name}: {len(data.y):,} nodes"
    if data.edge_index is not None:
        text += f", {data.edge_index.size(1) // 2:,} edges, {data.x.size(1):,} features"
    is_set = data.y.dim() == 2
    text += f", {data.y.size(1)} labels" if is_set else f", {len(data.classes)} classes"
    sizes = (int(data[f"{split}_mask"].sum()) for split in ("train", "val", "test"))
    split = " / ".join(f"{size:,}" for size in sizes)
    console.say(f"{text}; {split} nodes to train / validate / test")
    if settings.scaling == AUTO:
        console.say(str(rows_scaling(data, AUTO)))
    console.say(str(choose_metric(data, settings.metric)))


@contextmanager
def epoch_progress(label: str, runs: int) -> Iterator[Callable[[Epoch], None]]:
    """Show the epochs of all seeds.

    The epochs that an early stop leaves out are not waited for: the bar ends at the last one.
    """
    with console.progress(label if runs == 1 else f"{label}, {runs} runs") as update:
        update(None, "compiling kernels, once; first epoch")
        latest: dict[int, Epoch] = {}  # by seed

        def on_epoch(epoch: Epoch) -> None:
            latest[epoch.training.seed] = epoch
            most = epoch.training.settings.epochs
            done = sum(one.state.epoch for one in latest.values())
            going = [one for one in latest.values() if not one.finished]
            total = done + sum(most - one.state.epoch for one in going)
            total += (runs - len(latest)) * most
            best = [one.state.best_score for one in latest.values()]
            note = f"{done}/{total}, loss {epoch.metrics['total']:.4g}"
            if all(math.isfinite(score) for score in best):
                note += f", val. {percent(sum(best) / len(best))}"
            update(done / total, note + (f", {runs - len(going)} done" if runs > 1 else ""))

        yield on_epoch


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
        model = f"{model_title(result)}: " if len(results) > 1 else ""
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
        if not first["factors"] and result["factors"] and model_title(result) == model_title(OURS):
            console.say(factors_beside(first, result, ours))
    multi_label = _is_multi_label(first)
    for result in results if notes else ():
        about = (source.preset_name, result["model"], result["variant"])
        if note := preset_note(*about, multi_label=multi_label):
            console.say(f"{model_title(result)}: {note}")


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
            [marker + name_title(row["model"]), score, str(row["epochs"]), str(row["tried"])]
        )
    count = search["splits"]
    splits = f" on {count} splits" if count > 1 else ""
    metric = METRICS.get(search["metric"], search["metric"])
    title = f"Race on validation, {metric} in %{splits}, ± standard error"
    console.table(title, ["model", "validation", "epochs", "settings\ntried"], rows)
    judged = [row for row in result["ranking"] if row.get("validation") is not None]
    if better := [row for row in judged[1:] if row["validation"] > judged[0]["validation"]]:
        names = " and ".join(name_title(row["model"]) for row in better)
        console.say(
            f"{name_title(judged[0]['model'])} is chosen: {names} scored higher by less than a "
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
        rows.append([model_title(result), *cells])
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
        [
            model_title(result),
            *(show(result["factors"].get(name)) for name, (_, show) in shown.items()),
        ]
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
