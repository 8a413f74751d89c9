"""Everything the page shows, as one JSON object."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn import kernels
from lgdgcn.config import belongs
from lgdgcn.errors import InputError
from lgdgcn.explorer.layout import graph_layout, unit_layout
from lgdgcn.explorer.nodes import (
    chosen,
    confusion,
    known_labels,
    label_numbers,
    latent_neighbours,
    part_of_split,
    predictions,
)
from lgdgcn.explorer.page import encoded
from lgdgcn.metrics.correlation import channel_correlation, factor_correlation
from lgdgcn.metrics.routing import routing_warning, warnings_of_training
from lgdgcn.models import MODELS
from lgdgcn.reasons.explanation import ONE_SEED, Explanation
from lgdgcn.reasons.traits import title_of
from lgdgcn.train.trained import TrainedModel

__all__ = ["MOST_EDGES", "MOST_NODES", "check_size", "correlations", "payload", "training_curves"]

Array = npt.NDArray[Any]

MOST_NODES = 20_000
MOST_EDGES = 500_000
MOST_REASONS = 255  # that a byte can number
MOST_SHARES = 8_000_000  # edges × reasons, of two bytes each
MOST_LETTERS = 2_000  # of a name
MOST_LINE = 500  # letters of a line about a reason
MOST_TEXT = 500  # of a text that belongs to a node
ALL_TEXT = 4_000_000  # of all of them
TRAIT_ENTRIES = 300_000  # of all nodes; beyond them the page has labels only
RANGE_ENTRIES = 2_000_000  # edges × reasons whose range over fits is shown
NEAREST = 15  # nodes that hold a map together
LISTED = 24  # nearest nodes searched for those that are no neighbours in the graph
LATENT = 8  # of these the page shows
LATENT_ENTRIES = 700_000  # in all, so that the page stays small where there are many factors
WHOLE = 65535  # a share of 1


def check_size(data: Data) -> None:
    """Refuse what the page cannot show, before any work is done."""
    nodes, edges = data.x.size(0), data.edge_index.size(1) // 2
    if nodes > MOST_NODES:
        raise InputError(
            f"the graph has {nodes} nodes, the page shows {MOST_NODES} at most; "
            "show some of them (--node or --class)"
        )
    if edges > MOST_EDGES:
        raise InputError(f"the graph has {edges} edges, the page shows {MOST_EDGES} at most")


def payload(
    explanation: Explanation,
    *,
    dataset: str,
    log: Iterable[str] = (),
    scores: Mapping[str, float | None] | None = None,
    measures: Sequence[Mapping[str, Any]] = (),
    warnings: Sequence[str] = (),
    progress: Callable[[str], None] = lambda step: None,
    seed: int = 0,
) -> dict[str, Any]:
    """Collect what the page shows of a graph, the reasons of its edges and predictions.

    Args:
        explanation: The graph with its reasons and, where there is one, the model.
        dataset: Name of the graph.
        log: Lines of the training's ``metrics.jsonl``.
        scores: Scores by name.
        measures: Rows of the measures.
        warnings: What a reader of the scores should know.
        progress: Called with what is done next.
        seed: Seed of the layouts.

    Raises:
        InputError: There are more reasons, or probabilities, than the page can hold.
    """
    data, model, shares = explanation.graph, explanation.model, explanation.reasons.probability
    check_size(data)
    if shares.shape[1] > MOST_REASONS or shares.size > MOST_SHARES:
        raise InputError(
            f"the graph has {len(shares)} edges with {shares.shape[1]} {explanation.noun}s, too "
            "many for one page; see them with lgdgcn predict RUN, or lgdgcn explain RUN"
        )
    progress("layout of the graph")
    position = graph_layout(explanation.edges.ends, len(explanation.ids), seed)
    has_factors = explanation.noun == "factor" and model is not None
    has_factors = has_factors and bool(explanation.outputs[0].layers)
    what = f"{explanation.noun}s of edges" if model is None else MODELS[model.name].title
    has_variants = model is not None and belongs("variant", model.name)
    return {
        "title": f"{what[0].upper()}{what[1:]} {'of' if model is None else 'on'} "
        + _short(dataset, 100),
        "dataset": _short(dataset),
        "model": what,
        "variant": model.settings.variant if model is not None and has_variants else None,
        "nodes": len(explanation.ids),
        "ids": [_short(name) for name in explanation.ids],
        "texts": _texts(data),
        "position": encoded(position, "f32"),
        **_reasons(explanation),
        **_labels(explanation, progress),
        **(_factors(explanation, progress, seed) if has_factors else _no_factors(explanation)),
        "curves": training_curves(log),
        "measures": list(measures),
        "scores": dict(scores or {}),
        "warnings": [_short(warning) for warning in warnings_of_training(warnings)],
    }


# Reasons of edges


def _reasons(explanation: Explanation) -> dict[str, Any]:
    """The edges with their reasons, and what the reasons are about."""
    reasons, noun = explanation.reasons, explanation.noun
    found = reasons.stability
    known = reasons.known
    return {
        "noun": noun,
        "factors": len(reasons.names),
        "fits": explanation.num_fits,
        "edges": encoded(reasons.edges.ends, "u32"),
        "edgeFactors": encoded(_whole_shares(reasons.probability), "u16"),
        "edgeRange": _edge_range(explanation),
        "unknown": encoded(reasons.unknown, "u8"),
        "known": None if known is None else encoded(known, "u8"),
        "factorNames": [
            None if one.name == f"{noun} {number}" else _short(one.name, MOST_LINE)
            for number, one in enumerate(explanation.descriptions, start=1)
        ],
        "about": [
            {
                "lines": [_short(line, MOST_LINE) for line in explanation.lines(k)],
                "stability": ONE_SEED if found is None else found.notes[k],
                "stable": None if found is None else found.rows[k]["stable"],
            }
            for k in range(len(explanation.descriptions))
        ],
        "traits": _traits(explanation),
    }


def _whole_shares(shares: Array) -> Array:
    """Probabilities as 0 to 65535; the strongest stays strongest where rounding makes a tie."""
    rounded = np.round(WHOLE * shares)
    rows, best = np.arange(len(shares)), shares.argmax(1)
    others = rounded.copy()
    others[rows, best] = -1
    rounded[rows, best] = np.minimum(np.maximum(rounded[rows, best], others.max(1) + 1), WHOLE)
    return np.asarray(rounded)


def _edge_range(explanation: Explanation) -> dict[str, Any] | None:
    """Lowest and highest probability over the fits, in bytes."""
    low, high = explanation.reasons.low, explanation.reasons.high
    if low is None or high is None or low.size > RANGE_ENTRIES:
        return None
    return {"low": encoded(255 * low, "u8"), "high": encoded(255 * high, "u8")}


def _traits(explanation: Explanation) -> dict[str, Any] | None:
    """Which traits every node has; only labels where that would make the page large."""
    traits = explanation.traits
    kept = np.arange(len(traits.names))
    if traits.has.nnz > TRAIT_ENTRIES:
        kept = np.flatnonzero([kind == "label" for kind in traits.kinds])
    has = traits.has[:, kept].tocsr()
    has.sort_indices()
    if not has.nnz or has.nnz > TRAIT_ENTRIES:
        return None
    return {
        "names": [_short(title_of(traits.kinds[t], traits.names[t]), 100) for t in kept],
        "start": encoded(has.indptr, "u32"),
        "of": encoded(has.indices, "u32"),
    }


# Labels of nodes, known and predicted


def _labels(explanation: Explanation, progress: Callable[[str], None]) -> dict[str, Any]:
    """Known labels and, where there is a model, predictions with and without each reason."""
    data, model = explanation.graph, explanation.model
    classes = list(data.get("classes") or []) if model is None else model.classes
    truth = known_labels(data, classes) if "y" in data and classes else None
    found = {"classes": [_short(name) for name in classes], "part": part_of_split(data)}
    if model is None:
        return found | {
            "multiLabel": truth is not None and bool((truth.sum(1) > 1).any()),
            "truth": None if truth is None else encoded(label_numbers(truth), "i32"),
        }
    logits = explanation.outputs[0].logits.cpu()
    progress(f"predictions without each {explanation.noun}")
    return found | {
        "multiLabel": model.task.multi_label,
        **predictions(model.task, logits, truth),
        "without": _without(explanation, model),
        "confusion": confusion(model.task, logits, truth, data),
    }


def _without(explanation: Explanation, model: TrainedModel) -> dict[str, Any]:
    """The prediction of every node on the graph without the edges of each reason, run again.

    Returns:
        ``predicted`` ``[N, K]``, where a node has one label; ``kept`` ``[N, K]``, how many of the
        labels predicted before still are; ``probability`` ``[N, K]``, of the labels predicted
        before, their mean where there are several; and the range of that over the seeds of the
        whole graph, ``low`` and ``high`` ``[N]``.
    """
    task = model.task
    labels = chosen(task, explanation.outputs[0].logits)
    count = labels.sum(1).clamp(min=1)

    def of_prediction(logits: Tensor) -> Tensor:
        return (task.probabilities(logits) * labels).sum(1) / count

    predicted, kept, probability = [], [], []
    for k in range(len(explanation.reasons.names)):
        logits = explanation.without(k)[0]
        predicted.append(task.predict(logits))
        kept.append((labels & chosen(task, logits)).sum(1).clamp(max=255))
        probability.append(of_prediction(logits))
    seeds = torch.stack([of_prediction(output.logits) for output in explanation.outputs])
    several = len(seeds) > 1
    return {
        "predicted": None if task.multi_label else encoded(torch.stack(predicted, 1).cpu(), "i32"),
        "kept": encoded(torch.stack(kept, 1).cpu(), "u8"),
        "probability": encoded(WHOLE * torch.stack(probability, 1).cpu(), "u16"),
        "low": encoded(WHOLE * seeds.amin(0).cpu(), "u16") if several else None,
        "high": encoded(WHOLE * seeds.amax(0).cpu(), "u16") if several else None,
    }


# What only factors of a node model have: units, and maps of them


def _no_factors(explanation: Explanation) -> dict[str, Any]:
    return {"channels": 0, "dominant": encoded(explanation.activity.argmax(1), "u8")}


def _factors(
    explanation: Explanation, progress: Callable[[str], None], seed: int
) -> dict[str, Any]:
    """The units of all nodes: a map of each factor, and how they are correlated."""
    model, output = explanation.model, explanation.outputs[0]
    assert model is not None
    last = output.layers[-1]
    units = last.units.cpu().contiguous()  # [N, M, d]
    dominant = model.dominant_factors(output)
    assert dominant is not None
    return {
        "channels": units.size(2),
        "dominant": encoded(dominant.cpu(), "u8"),
        "factorClasses": _factor_classes(model, last.units),
        "unrouted": routing_warning(explanation.edge_factors, model.settings),
        **_by_factor(units, explanation.graph.edge_index.numpy(), progress, seed),
        **correlations(units.numpy()),
    }


def _factor_classes(trained: TrainedModel, units: Tensor) -> dict[str, Any] | None:
    """Each node's class in every factor, and the class that each label is.

    Returns:
        ``ofNodes`` ``[N, M]`` counts classes from 0 in each factor, ``ofLabels`` ``[C]`` over all
        factors, -1 for a label that is no single class; ``None`` where factors have no classes.
    """
    of_nodes, of_labels = trained.model.factor_classes(units), trained.model.label_classes()
    if of_nodes is None or of_labels is None:
        return None
    small = units.size(-1) <= 256  # classes that a byte can number
    return {
        "ofNodes": encoded(of_nodes.cpu(), "u8" if small else "u16"),
        "ofLabels": encoded(of_labels.cpu(), "i32"),
    }


def _by_factor(
    units: Tensor, edge_index: Array, progress: Callable[[str], None], seed: int
) -> dict[str, Any]:
    """One map and one list of latent neighbours for each factor."""
    nodes, factors, _ = units.shape
    count = max(1, min(LATENT, LATENT_ENTRIES // max(nodes * factors, 1)))
    maps = np.zeros((factors, nodes, 2), dtype=np.float32)
    found = np.full((nodes, factors, count), -1)
    far = np.zeros((nodes, factors, count))
    if nodes > 1:
        points = units.transpose(0, 1).contiguous()  # [M, N, d]
        nearest, square = kernels.nearest(points, min(LISTED, nodes - 1))
        distance = square.sqrt()
        for m in range(factors):
            progress(f"map of factor {m + 1} of {factors}")
            own, lists, far_off = (part[m].numpy() for part in (points, nearest, distance))
            maps[m] = unit_layout(own, lists[:, :NEAREST], far_off[:, :NEAREST], seed)
            found[:, m], far[:, m] = latent_neighbours(own, lists, far_off, edge_index, count)
    return {
        "maps": encoded(maps, "f32"),
        "latent": {"neighbours": encoded(found, "i32"), "distance": encoded(far, "f32")},
    }


def _texts(data: Data) -> list[dict[str, Any]]:
    """What a user's table says of the nodes in words, as far as the page has room for it."""
    columns = data.get("node_text") or {}
    letters = max(2, min(MOST_TEXT, ALL_TEXT // max(1, len(columns) * data.x.size(0))))
    return [
        {"name": _short(name, 60), "values": [_short(text, letters) for text in texts]}
        for name, texts in columns.items()
    ]


def _short(name: object, letters: int = MOST_LETTERS) -> str:
    text = str(name)
    return text if len(text) <= letters else text[: letters - 1] + "…"


# Training curves out of a run's log

MOST_SEEDS = 5
MOST_POINTS = 400  # of one curve
LARGEST = 1e300  # a page can draw nothing above it, nor what is no number


def training_curves(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Every loss term and score by epoch, for the first few seeds.

    Args:
        lines: Of ``metrics.jsonl``; what is no record of an epoch is left out.

    Returns:
        ``{"seed", "epochs": [...], "terms": {name: [...]}}`` for each seed; long ones are thinned
        to every n-th epoch and the last.

    Example:
        >>> training_curves(['{"seed": 0, "epoch": 1, "total": 2.5}', "torn"])
        [{'seed': 0, 'epochs': [1], 'terms': {'total': [2.5]}}]
    """
    runs: dict[int, dict[int, dict[str, Any]]] = {}
    for line in lines:
        try:
            record = json.loads(line)
            epochs = runs.setdefault(int(record.pop("seed")), {})
            epochs[int(record.pop("epoch"))] = record
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            continue
    return [_curve(seed, runs[seed]) for seed in sorted(runs)[:MOST_SEEDS] if runs[seed]]


def _curve(seed: int, records: dict[int, dict[str, Any]]) -> dict[str, Any]:
    epochs = sorted(records)
    step = -(-len(epochs) // (MOST_POINTS - 1))
    kept = epochs[::step]
    if kept[-1] != epochs[-1]:
        kept.append(epochs[-1])
    names = dict.fromkeys(name for epoch in kept for name in records[epoch])
    terms = {name: [_number(records[epoch].get(name)) for epoch in kept] for name in names}
    return {"seed": seed, "epochs": kept, "terms": terms}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) < LARGEST else None


# Correlation of channels: a heat map, and its means by factor

MOST_LINES = 256  # of the heat map


def correlations(units: npt.NDArray[Any]) -> dict[str, Any]:
    """|Correlation| of all channels in bytes; where there are many, means of equal blocks.

    Args:
        units: Units. Shape ``[N, M, d]``.

    Returns:
        ``correlation``, the channels behind each of its lines as ``correlationStep``, and
        ``correlationMeans`` by factor, without constant channels and a channel with itself.
    """
    nodes, factors, channels = units.shape
    values = channel_correlation(units.reshape(nodes, -1).astype(np.float64))
    steps = [step for step in range(1, channels + 1) if channels % step == 0]
    wide = factors * channels
    step = next((step for step in steps if wide // step <= MOST_LINES), channels)
    side = wide // step
    blocks = values.reshape(side, step, side, step).mean((1, 3))
    return {
        "correlation": encoded(255 * blocks.clip(0, 1), "u8"),
        "correlationStep": step,
        "correlationMeans": encoded(factor_correlation(units), "f32"),
    }
