"""Whether the reason named for a prediction matters: deletion of its edges against random ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lgdgcn.errors import InputError
from lgdgcn.reasons import Edges, Explanation
from lgdgcn.reasons.edges import Array
from lgdgcn.reasons.explanation import without_edges

__all__ = ["DeletionCurve", "deletion_curve", "faithfulness"]


@dataclass(frozen=True)
class DeletionCurve:
    """How far the probability of the prediction falls when edges of the node are removed.

    Attributes:
        removed: Number of edges k ``[K]``.
        named: Mean fall without k edges of the named factor ``[K]``.
        random: Mean fall without k random edges of the same nodes ``[K]``.
        nodes: Number of nodes with at least k edges of the named factor and one more ``[K]``.
        error: Standard error of the mean difference over these nodes ``[K]``; NaN of fewer than 2.
    """

    removed: Array
    named: Array
    random: Array
    nodes: Array
    error: Array


def deletion_curve(
    predict: Callable[[Array], Array],
    pairs: Edges,
    probability: Array,
    named: Array,
    nodes: Array,
    *,
    most: int = 5,
    draws: int = 3,
    seed: int = 0,
) -> DeletionCurve:
    """Remove the edges of the named factor from each node, the likeliest first.

    The prediction of a node is its most probable label on the whole graph; the model is run anew
    for every node, number of edges and draw. Where no node has enough edges the means are NaN.

    Args:
        predict: From the pairs that are removed, bool ``[P]``, to probabilities ``[N, C]``.
        pairs: The graph.
        probability: Of each factor ``[P, M]``; a pair belongs to its likeliest one.
        named: The factor named for each node ``[N]``.
        nodes: The nodes to look at.
        most: K, the largest number of edges.
        draws: Random sets of edges for each node and number.
        seed: Of the random edges.
    """
    generator = np.random.default_rng(seed)
    winner, whole = probability.argmax(1), predict(np.zeros(len(pairs), dtype=bool))

    def fall(node: int, removed: Array) -> float:
        mask = np.zeros(len(pairs), dtype=bool)
        mask[removed] = True
        label = whole[node].argmax()
        return float(whole[node, label] - predict(mask)[node, label])

    falls = np.full((2, len(nodes), most), np.nan)
    for row, node in enumerate(nodes):
        own = np.flatnonzero((pairs.ends == node).any(0))
        factor = named[node]
        mine = own[winner[own] == factor]
        mine = mine[np.argsort(-probability[mine, factor], kind="stable")]
        for k in range(1, min(most, len(mine), len(own) - 1) + 1):
            falls[0, row, k - 1] = fall(node, mine[:k])
            others = [generator.choice(own, k, replace=False) for _ in range(draws)]
            falls[1, row, k - 1] = np.mean([fall(node, other) for other in others])
    count = np.isfinite(falls[0]).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.nansum(falls, axis=1) / count
        difference = falls[0] - falls[1]
        square = np.nansum((difference - (means[0] - means[1])) ** 2, axis=0)
        error = np.sqrt(square / np.where(count > 1, count - 1, np.nan) / count)
    return DeletionCurve(np.arange(1, most + 1), means[0], means[1], count, error)


def faithfulness(
    explanation: Explanation, *, count: int = 50, most: int = 5, draws: int = 3, seed: int = 0
) -> DeletionCurve:
    """The deletion curve of a trained model, on nodes drawn at random from those with edges.

    The reason named for a node is the factor that adds most to its highest score, as in
    ``lgdgcn predict``, or the one that most of its edges have.

    Args:
        explanation: The graph with its reasons and the model.
        count: How many nodes to draw.
        most: K, the largest number of edges.
        draws: Random sets of edges for each node and number.
        seed: Of the nodes and the random edges.
    """
    model, data, edges = explanation.model, explanation.graph, explanation.edges
    linked = np.flatnonzero(edges.degree > 1)
    if model is None or not len(linked):
        raise InputError("faithfulness needs a model and a node with two edges")
    named = explanation.activity.argmax(1)
    if explanation.noun == "factor":
        named = model.dominant_factors(explanation.outputs[0]).cpu().numpy()

    def predict(removed: Array) -> Array:
        logits = model(without_edges(data, edges, removed)).logits
        found: Array = model.task.probabilities(logits).double().cpu().numpy()
        return found

    nodes = np.random.default_rng(seed).permutation(linked)[:count]
    shares = explanation.reasons.probability
    options = {"most": most, "draws": draws, "seed": seed}
    return deletion_curve(predict, edges, shares, named, nodes, **options)
