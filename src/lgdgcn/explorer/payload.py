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
from lgdgcn.errors import InputError
from lgdgcn.explorer.layout import graph_layout, unit_layout
from lgdgcn.explorer.nodes import confusion, known_labels, latent_neighbours, predictions
from lgdgcn.explorer.page import encoded
from lgdgcn.explorer.reasons import about_factors, without_factors
from lgdgcn.metrics.correlation import channel_correlation, factor_correlation
from lgdgcn.metrics.routing import routing_warning, told_of_training
from lgdgcn.models import MODELS
from lgdgcn.reasons.explain import Explainer
from lgdgcn.reasons.large_explain import explainer_of
from lgdgcn.train.trained import TrainedModel

__all__ = ["MOST_EDGES", "MOST_NODES", "check_size", "correlations", "payload", "training_curves"]

Array = npt.NDArray[Any]

MOST_NODES = 20_000
MOST_EDGES = 500_000
MOST_LETTERS = 2_000  # of a name
MOST_TEXT = 500  # of a text that belongs to a node
ALL_TEXT = 4_000_000  # of all of them
NEAREST = 15  # nodes that hold a map together
LISTED = 24  # nearest nodes searched for those that are no neighbours in the graph
LATENT = 8  # of these the page shows
LATENT_ENTRIES = 700_000  # in all, so that the page stays small where there are many factors


def check_size(trained: TrainedModel | None, data: Data) -> None:
    """Refuse what the page cannot show, before any work is done."""
    nodes, edges = data.x.size(0), data.edge_index.size(1) // 2
    if trained is not None and not trained.model.num_factors:
        title = MODELS[trained.name].title
        raise InputError(f"{title} has no factors to explore; train lgdgcn or disengcn")
    if nodes > MOST_NODES:
        raise InputError(
            f"the graph has {nodes} nodes, the page shows {MOST_NODES} at most; "
            "show some of them (--node or --class)"
        )
    if edges > MOST_EDGES:
        raise InputError(f"the graph has {edges} edges, the page shows {MOST_EDGES} at most")


def payload(
    trained: TrainedModel,
    data: Data,
    *,
    dataset: str,
    log: Iterable[str] = (),
    scores: Mapping[str, float | None] | None = None,
    measures: Sequence[Mapping[str, Any]] = (),
    warnings: Sequence[str] = (),
    others: Sequence[TrainedModel] = (),
    progress: Callable[[str], None] = lambda step: None,
    seed: int = 0,
) -> dict[str, Any]:
    """Collect what the page shows of a model with factors on a graph.

    Args:
        trained: The model.
        data: The graph in canonical form.
        dataset: Name of the graph.
        log: Lines of the training's ``metrics.jsonl``.
        scores: Scores by name.
        measures: Rows of the measures.
        warnings: What a reader of the scores should know.
        others: The same model trained with other seeds.
        progress: Told what is done next.
        seed: Seed of the layouts.
    """
    check_size(trained, data)
    progress("model")
    explainer = explainer_of(trained, data, others)
    output = explainer.output
    logits, last = output.logits.cpu(), output.layers[-1]
    units = last.units.cpu().contiguous()  # [N, M, d]
    nodes, factors, channels = units.shape
    truth = known_labels(data, trained.classes)
    edge_factors = torch.from_numpy(explainer.factors)
    unrouted = routing_warning(explainer.edge_factors_of_graph, trained.settings)
    dominant = trained.dominant_factors(output)
    assert dominant is not None
    model = MODELS[trained.name].title
    names = getattr(data, "node_ids", range(nodes))
    progress("layout of the graph")
    position = graph_layout(explainer.pairs.ends, nodes, seed)
    return {
        "title": f"{model} on {_short(dataset, 100)}",
        "dataset": _short(dataset),
        "model": model,
        "variant": trained.settings.variant,
        "factors": factors,
        "nodes": nodes,
        "multiLabel": trained.task.multi_label,
        "channels": channels,
        "ids": [_short(name) for name in names],
        "texts": _texts(data),
        "classes": [_short(name) for name in trained.classes],
        **predictions(trained.task, logits, truth, data),
        "dominant": encoded(dominant.cpu(), "u8"),
        "factorClasses": _factor_classes(trained, last.units),
        "position": encoded(position, "f32"),
        "edges": encoded(explainer.pairs.ends, "u32"),
        "edgeFactors": encoded(_whole_shares(edge_factors), "u16"),
        "unrouted": unrouted,
        **about_factors(explainer),
        "without": _without(explainer, progress),
        **_by_factor(units, data.edge_index.numpy(), progress, seed),
        "curves": training_curves(log),
        **correlations(units.numpy()),
        "confusion": confusion(trained.task, logits, truth, data),
        "measures": list(measures),
        "scores": dict(scores or {}),
        "warnings": [_short(warning) for warning in told_of_training(warnings)],
    }


def _without(explainer: Explainer, progress: Callable[[str], None]) -> dict[str, Any]:
    progress("predictions without each factor")
    return without_factors(explainer)


def _texts(data: Data) -> list[dict[str, Any]]:
    """What a user's table says of the nodes in words, as far as the page has room for it."""
    columns = data.get("node_text") or {}
    letters = max(2, min(MOST_TEXT, ALL_TEXT // max(1, len(columns) * data.x.size(0))))
    return [
        {"name": _short(name, 60), "values": [_short(text, letters) for text in texts]}
        for name, texts in columns.items()
    ]


def _whole_shares(edge_factors: Tensor) -> Tensor:
    """Probabilities as 0 to 65535; the strongest stays strongest where rounding makes a tie."""
    rounded = (65535 * edge_factors.double()).round()
    strongest = edge_factors.argmax(1, keepdim=True)
    largest = rounded.scatter(1, strongest, -1).amax(1, keepdim=True)
    return rounded.scatter(1, strongest, rounded.gather(1, strongest).maximum(largest + 1))


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
