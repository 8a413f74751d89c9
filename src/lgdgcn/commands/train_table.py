"""What ``lgdgcn train`` prints in the end: scores, factors, warnings and notes."""

from collections.abc import Callable
from functools import partial
from statistics import fmean, stdev
from typing import Any

from lgdgcn.commands.console import out, percent, plain, print_table, print_warning
from lgdgcn.config import default_variant, preset_note
from lgdgcn.data.labels import IDENTIFIER
from lgdgcn.models import MODELS
from lgdgcn.train.scores import METRICS

__all__ = ["model_name", "print_notes", "print_results"]

Result = dict[str, Any]

# What is printed of the factors: a heading, and how its numbers are shown.
FACTOR_COLUMNS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "edge_attribution": ("edge attr.\nin %", percent),
    "routing_entropy": ("routing\nentropy", plain),
    "factor_usage": ("factors\nin use", partial(plain, digits=2)),
    "dci_disentanglement": ("DCI\ndisent.", partial(plain, digits=3)),
    "correlation_ratio": ("correlation\nratio", partial(plain, digits=2)),
}


def print_results(dataset: str, results: list[Result]) -> None:
    """Print the scores of all models, what is known of their factors, and every warning."""
    multi_label = "micro_f1_at_0.5" in results[0]["runs"][0]["scores"]["test"]
    usual = ["micro_f1", "macro_f1"] if multi_label else ["accuracy"]
    names = list(dict.fromkeys([results[0]["metric"], *usual]))
    titles = METRICS | {"average_precision": "av. prec.", "balanced_accuracy": "bal. acc."}
    header = ["model", *(f"test\n{titles[name]}" for name in names), "validation", "epochs"]
    rows = []
    for result in results:
        runs = result["runs"]
        cells = [_mean([run["scores"]["test"].get(name) for run in runs]) for name in names]
        cells.append(_mean([run["val"] for run in runs]))
        cells.append(f"{sum(run['epochs'] for run in runs) / len(runs):.0f}")
        rows.append([model_name(result), *cells])
    count = len(results[0]["runs"])
    title = f"{dataset}, in %" + (f", mean ± std of {count} seeds" if count > 1 else "")
    if multi_label:
        title += f"; {_f1_caption(results)}"
    print_table(title, header, rows)
    _print_factors(results, count)
    for result in results:
        model = f"{model_name(result)}: " if len(results) > 1 else ""
        for warning in result.get("warnings", []):
            # it was said when the graph was read; a seed may stand before it
            if IDENTIFIER not in warning:
                print_warning(model + warning)


def _print_factors(results: list[Result], seeds: int) -> None:
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
            model_name(result),
            *(show(result["factors"].get(name)) for name, (_, show) in shown.items()),
        ]
        for result in known
    ]
    title = "Factors" + (" of the seed that is best on validation" if seeds > 1 else "")
    print_table(title, ["model", *(heading for heading, _ in shown.values())], rows)


def _f1_caption(results: list[Result]) -> str:
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


def print_notes(dataset: str, results: list[Result], multi_label: bool) -> None:
    """Say what a reader of these presets' results should know."""
    for result in results:
        model, variant = result["model"], result["variant"]
        if note := preset_note(dataset, model, variant, multi_label=multi_label):
            out.print(f"{model_name(result)}: {note}", soft_wrap=True)


def model_name(result: Result) -> str:
    """The model; of LGD-GCN the variant, of DisenGCN where it is not the paper's."""
    model, variant = result["model"], result["variant"]
    title = MODELS[model].title
    is_plain = variant is None or variant == "paper" == default_variant(model)
    return title if is_plain else f"{title} ({variant})"


def _mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return percent(None)
    return percent(fmean(known), stdev(known) if len(known) > 1 else None)
