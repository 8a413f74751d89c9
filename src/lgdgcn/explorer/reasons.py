"""What the page says of factors and edges: what they are about, evidence, and what-if."""

from typing import Any

import numpy as np
import torch

from lgdgcn.errors import InputError
from lgdgcn.explorer.layout import graph_layout
from lgdgcn.explorer.nodes import known_labels, label_numbers
from lgdgcn.explorer.page import encoded
from lgdgcn.reasons.edges import Array
from lgdgcn.reasons.explain import Explainer
from lgdgcn.reasons.explain_reasons import ReasonExplainer
from lgdgcn.reasons.explained import ONE_SEED, ExplainedGraph

__all__ = ["about_factors", "reason_payload", "without_factors"]

WHOLE = 65535
MOST_LETTERS = 500  # of a line about a factor, or of a name in it
TRAIT_ENTRIES = 300_000  # of all nodes; beyond them the page has labels only
MOST_REASONS = 255  # that a byte can number
MOST_SHARES = 8_000_000  # edges × reasons, of two bytes each
RANGE_ENTRIES = 2_000_000  # edges × factors whose range over seeds is shown


def about_factors(explained: ExplainedGraph) -> dict[str, Any]:
    """Names and lines of the factors, ranges over the seeds, and the traits of the nodes."""
    notes = [] if explained.stability is None else explained.stability.notes
    rows = [] if explained.stability is None else explained.stability.rows
    told = explained.descriptions
    return {
        "noun": explained.noun,
        "fits": explained.num_fits,
        "factorNames": [
            None if one.name == f"{explained.noun} {number}" else _short(one.name)
            for number, one in enumerate(told, start=1)
        ],
        "about": [
            {
                "lines": [_short(line) for line in one.lines],
                "stability": notes[m] if notes else ONE_SEED,
                "stable": rows[m]["stable"] if rows else None,
            }
            for m, one in enumerate(told)
        ],
        "edgeRange": _edge_range(explained),
        "traits": _traits(explained),
    }


def without_factors(explainer: Explainer) -> dict[str, Any]:
    """The prediction of every node on the graph without the edges of each factor, run again.

    Returns:
        ``predicted`` ``[N, M]``, where a node has one label; ``kept`` ``[N, M]``, how many of the
        labels predicted before still are; ``probability`` ``[N, M]``, of the labels predicted
        before, their mean where there are several; and the range of that over the seeds of the
        whole graph, ``low`` and ``high`` ``[N]``.
    """
    task = explainer.trained.task
    before = task.predict(explainer.output.logits)
    labels = before.bool() if task.multi_label else _one_hot(before, task.outputs)
    count = labels.sum(1).clamp(min=1)

    def of_prediction(logits: torch.Tensor) -> torch.Tensor:
        return (task.probabilities(logits) * labels).sum(1) / count

    predicted, kept, probability = [], [], []
    for m in range(explainer.factors.shape[1]):
        logits = explainer.without(m).logits
        after = task.predict(logits)
        sets = after.bool() if task.multi_label else _one_hot(after, task.outputs)
        predicted.append(after if not task.multi_label else after[:, 0])
        kept.append((labels & sets).sum(1).clamp(max=255))
        probability.append(of_prediction(logits))
    outputs = [explainer.output, *explainer.other_outputs]
    own = torch.stack([of_prediction(output.logits) for output in outputs])
    several = len(outputs) > 1
    one = None if task.multi_label else encoded(torch.stack(predicted, 1).cpu(), "i32")
    return {
        "predicted": one,
        "kept": encoded(torch.stack(kept, 1).cpu(), "u8"),
        "probability": encoded(WHOLE * torch.stack(probability, 1).cpu(), "u16"),
        "low": encoded(WHOLE * own.amin(0).cpu(), "u16") if several else None,
        "high": encoded(WHOLE * own.amax(0).cpu(), "u16") if several else None,
    }


def reason_payload(
    explained: ReasonExplainer, *, dataset: str, scores: dict[str, float | None], seed: int = 0
) -> dict[str, Any]:
    """Everything the page shows of a run of ``--task edges``: no node has a prediction there.

    Args:
        explained: The reasons and their graph.
        dataset: Name of the graph.
        scores: What was measured on types that were held back, by name.
        seed: Seed of the layout.

    Raises:
        InputError: There are more reasons, or probabilities, than the page can hold.
    """
    data, nodes = explained.data, len(explained.ids)
    ends, shares = explained.pairs.ends, explained.factors
    if shares.shape[1] > MOST_REASONS or shares.size > MOST_SHARES:
        raise InputError(
            f"the graph has {len(shares)} edges with {shares.shape[1]} {explained.noun}s, too many "
            "for one page; see them with lgdgcn predict RUN, or lgdgcn explain RUN"
        )
    classes = [_short(str(name)) for name in data.get("classes") or []]
    truth = known_labels(data, data.classes) if "y" in data and classes else None
    known = explained.known_types
    return {
        "title": f"Edges of {_short(dataset, 100)}",
        "dataset": _short(dataset),
        "model": "types of edges" if explained.typed else "reasons of edges",
        "variant": None,
        "factors": shares.shape[1],
        "nodes": nodes,
        "multiLabel": truth is not None and bool((truth.sum(1) > 1).any()),
        "channels": 0,
        "ids": [_short(name, 2000) for name in explained.ids],
        "texts": [],
        "classes": classes,
        "truth": None if truth is None else encoded(label_numbers(truth), "i32"),
        "part": encoded(np.zeros(nodes), "u8"),
        "dominant": encoded(explained.activity.argmax(1), "u8"),
        "position": encoded(graph_layout(ends, nodes, seed), "f32"),
        "edges": encoded(ends, "u32"),
        "edgeFactors": encoded(_ordered_shares(shares), "u16"),
        "unknown": encoded(explained.unknown, "u8"),
        "known": None if known is None else encoded(known, "u8"),
        **about_factors(explained),
        "curves": [],
        "measures": [],
        "scores": scores,
        "warnings": [],
    }


def _ordered_shares(shares: Array) -> Array:
    """Probabilities as 0 to 65535; the strongest stays strongest where rounding makes a tie."""
    rounded = np.round(WHOLE * shares)
    rows, best = np.arange(len(shares)), shares.argmax(1)
    rest = rounded.copy()
    rest[rows, best] = -1
    rounded[rows, best] = np.minimum(np.maximum(rounded[rows, best], rest.max(1) + 1), WHOLE)
    return np.asarray(rounded)


def _edge_range(explained: ExplainedGraph) -> dict[str, Any] | None:
    """Lowest and highest probability over the seeds, in bytes."""
    if explained.interval is None or explained.factors.size > RANGE_ENTRIES:
        return None
    low, high = explained.interval
    return {"low": encoded(255 * low, "u8"), "high": encoded(255 * high, "u8")}


def _traits(explained: ExplainedGraph) -> dict[str, Any] | None:
    """Which traits every node has; only labels where that would make the page large."""
    traits = explained.traits
    chosen = np.arange(len(traits.names))
    if traits.has.nnz > TRAIT_ENTRIES:
        chosen = np.flatnonzero([kind == "label" for kind in traits.kinds])
    has = traits.has[:, chosen].tocsr()
    has.sort_indices()
    if not has.nnz or has.nnz > TRAIT_ENTRIES:
        return None
    return {
        "names": [_short(f"{traits.kinds[t]} {traits.names[t]}", 100) for t in chosen],
        "start": encoded(has.indptr, "u32"),
        "of": encoded(has.indices, "u32"),
    }


def _one_hot(labels: torch.Tensor, count: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(labels, count).bool()


def _short(text: str, letters: int = MOST_LETTERS) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
