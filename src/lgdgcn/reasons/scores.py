"""How well types of edges are predicted: single ones by accuracy, several by their ranking.

A method gives every pair a score for each of K types, or of K clusters without names. Scores are
compared with the known types of P pairs, 0/1 ``[P, T]``. Clusters are matched to types one to one
in the way that scores best, once for each measure that needs it; types are taken as they are named.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from lgdgcn.reasons.edges import Array

__all__ = [
    "EdgeTypeScores",
    "ReliabilityCurve",
    "accuracy",
    "balanced_accuracy",
    "edge_type_scores",
    "expected_calibration_error",
    "information",
    "macro_auroc",
    "matched",
    "ranking_measures",
    "recall_at",
    "reliability_curve",
    "single_types",
]

BINS = 15  # of equal width, as is usual for the expected calibration error


class ReliabilityCurve(NamedTuple):
    """Mean confidence, accuracy and number of pairs of every bin that is not empty ``[B]``."""

    confidence: Array
    accuracy: Array
    pairs: Array


class EdgeTypeScores(NamedTuple):
    """All measures; ``None`` where there is no pair to measure, or no name to compare with.

    Attributes:
        accuracy: Share of pairs of one type that are given that type.
        balanced: The same for each type that occurs, and the mean over types.
        information: Adjusted mutual information of given and true types; 0 by chance.
        auroc: Area under the ROC curve of one type against all others, mean over types.
        calibration_error: Expected calibration error; only of named types.
        ranking_precision: Label ranking average precision of pairs with several types.
        coverage: How far down the ranking all true types of such a pair are found.
        recall_at_3: Share of the types of such a pair among the first three.
    """

    accuracy: float | None
    balanced: float | None
    information: float | None
    auroc: float | None
    calibration_error: float | None
    ranking_precision: float | None
    coverage: float | None
    recall_at_3: float | None


def edge_type_scores(
    scores: Array, types: Array, *, named: bool, scored: Array | None = None
) -> EdgeTypeScores:
    """All measures of a method on the pairs that are scored.

    Args:
        scores: Probability of each type, or of each cluster. Shape ``[P, K]``.
        types: Known types, 0/1. Shape ``[P, T]``; T = K if they are named.
        named: Whether column k is type k, rather than a cluster of any name.
        scored: Which pairs count, all by default; those whose types were shown should not.
    """
    chosen = np.ones(len(types), dtype=bool) if scored is None else scored
    true = single_types(types)
    one, several = chosen & (true >= 0), chosen & (types.sum(1) > 1)
    if not one.any():  # clusters have no names then; named types can still be ranked
        ranking = ranking_measures(scores[several], types[several]) if named else (None,) * 3
        return EdgeTypeScores(None, None, None, None, None, *ranking)
    guess, count = scores[one].argmax(1), types.shape[1]
    to_type = None if named else _best_match(_table(guess, true[one], count), balanced=True)
    aligned = scores if to_type is None else matched(scores, to_type, count)
    error = expected_calibration_error(scores[one], true[one]) if named else None
    ranking = ranking_measures(aligned[several], types[several])
    return EdgeTypeScores(
        accuracy(guess, true[one], named=named),
        balanced_accuracy(guess, true[one], named=named),
        information(guess, true[one]),
        macro_auroc(aligned[one], true[one]),
        error,
        *ranking,
    )


def single_types(types: Array) -> Array:
    """The type of every pair that has exactly one ``[P]``, -1 for the others.

    Example:
        >>> single_types(np.array([[0, 1], [1, 1], [0, 0]])).tolist()
        [1, -1, -1]
    """
    return np.asarray(np.where(types.sum(1) == 1, types.argmax(1), -1))


def accuracy(guess: Array, true: Array, *, named: bool) -> float:
    """Share of pairs whose type is right; clusters are matched to types first.

    Example:
        >>> accuracy(np.array([1, 1, 0]), np.array([0, 0, 0]), named=True)
        0.3333333333333333
        >>> accuracy(np.array([1, 1, 0]), np.array([0, 0, 0]), named=False)
        0.6666666666666666
    """
    if named:
        return float((guess == true).mean())
    table = _table(guess, true, true.max() + 1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def balanced_accuracy(guess: Array, true: Array, *, named: bool) -> float:
    """Mean over the types that occur of the share of their pairs that is right.

    Example:
        >>> balanced_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), named=True)
        0.75
        >>> balanced_accuracy(np.array([1, 1, 1, 0]), np.array([0, 0, 1, 1]), named=False)
        0.75
    """
    table = _table(guess, true, max(guess.max(), true.max()) + 1)
    occurs = table.sum(0) > 0
    recall = table / np.where(occurs, table.sum(0), 1)  # [K, T]
    if named:
        return float(np.diag(recall)[occurs].mean())
    rows, columns = linear_sum_assignment(recall, maximize=True)
    return float(recall[rows, columns].sum() / occurs.sum())


def information(guess: Array, true: Array) -> float:
    """Adjusted mutual information: 0 by chance, 1 where groups and types are the same.

    Example:
        >>> information(np.array([2, 2, 0, 0]), np.array([0, 0, 1, 1]))
        1.0
    """
    from sklearn.metrics import adjusted_mutual_info_score

    return float(adjusted_mutual_info_score(true, guess))


def macro_auroc(scores: Array, true: Array) -> float | None:
    """Area under the ROC curve of each type against the others, mean over the types that occur.

    Args:
        scores: Shape ``[P, T]``.
        true: The type of every pair ``[P]``.

    Returns:
        ``None`` if all pairs have the same type.

    Example:
        >>> macro_auroc(np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]),
        ...             np.array([0, 0, 1, 1]))
        0.75
    """
    from sklearn.metrics import roc_auc_score

    occurring = np.unique(true)
    if len(occurring) < 2:
        return None
    areas = [roc_auc_score(true == one, scores[:, one]) for one in occurring]
    return float(np.mean(areas))


def reliability_curve(probability: Array, true: Array, bins: int = BINS) -> ReliabilityCurve:
    """How often the likeliest type is the true one, over how likely it is said to be.

    Args:
        probability: Shape ``[P, T]``.
        true: The type of every pair ``[P]``.
        bins: Number of bins of equal width between 0 and 1.

    Example:
        >>> curve = reliability_curve(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1]))
        >>> curve.confidence.tolist(), curve.accuracy.tolist(), curve.pairs.tolist()
        ([0.9], [0.5], [2])
    """
    confidence, right = probability.max(1), probability.argmax(1) == true
    number = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    count = np.bincount(number, minlength=bins)
    filled = count > 0
    sums = [np.bincount(number, values, minlength=bins)[filled] for values in (confidence, right)]
    return ReliabilityCurve(sums[0] / count[filled], sums[1] / count[filled], count[filled])


def expected_calibration_error(probability: Array, true: Array, bins: int = BINS) -> float:
    """Mean distance of confidence and accuracy over the bins of :func:`reliability_curve`.

    Example:
        >>> round(expected_calibration_error(np.array([[0.9, 0.1], [0.9, 0.1]]),
        ...                                  np.array([0, 1])), 6)
        0.4
    """
    curve = reliability_curve(probability, true, bins)
    gaps = np.abs(curve.confidence - curve.accuracy)
    return float((gaps * curve.pairs).sum() / curve.pairs.sum())


def ranking_measures(
    scores: Array, types: Array
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Label ranking average precision, coverage and recall at 3 of pairs with several types.

    Pairs that have all types have no ranking, and are left out.

    Args:
        scores: Shape ``[P, T]``.
        types: 0/1. Shape ``[P, T]``.

    Example:
        >>> ranking_measures(np.array([[0.5, 0.3, 0.2, 0.0]]), np.array([[1, 0, 1, 0]]))
        (0.8333333333333333, 3.0, 1.0)
    """
    from sklearn.metrics import coverage_error, label_ranking_average_precision_score

    ranked = types.sum(1) < types.shape[1]
    scores, types = scores[ranked], types[ranked]
    if not len(types):
        return None, None, None
    precision = float(label_ranking_average_precision_score(types, scores))
    return precision, float(coverage_error(types, scores)), recall_at(scores, types, 3)


def recall_at(scores: Array, types: Array, k: int) -> float:
    """Mean share of the types of a pair among the k of the largest scores.

    Example:
        >>> recall_at(np.array([[0.5, 0.3, 0.2]]), np.array([[1, 0, 1]]), 2)
        0.5
    """
    first = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = np.take_along_axis(types, first, axis=1).sum(1)
    return float((found / types.sum(1)).mean())


def matched(scores: Array, to_type: Array, count: int) -> Array:
    """Scores of clusters ``[P, K]`` as scores of the types ``[P, T]`` that they are matched to.

    Args:
        scores: Shape ``[P, K]``.
        to_type: The type of every cluster, -1 for none ``[K]``.
        count: T.

    Example:
        >>> matched(np.array([[0.7, 0.2, 0.1]]), np.array([1, -1, 0]), 2).tolist()
        [[0.1, 0.7]]
    """
    found = np.zeros((len(scores), count))
    kept = np.flatnonzero(to_type[: scores.shape[1]] >= 0)  # with fewer clusters some types stay 0
    found[:, to_type[kept]] = scores[:, kept]
    return found


def _best_match(table: Array, *, balanced: bool) -> Array:
    """The type of every cluster, -1 for none ``[K]``; see :func:`balanced_accuracy`."""
    if balanced:
        table = table / np.maximum(table.sum(0), 1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    to_type = np.full(len(table), -1)
    to_type[rows] = columns
    return to_type


def _table(guess: Array, true: Array, types: int) -> Array:
    """How many pairs each cluster has of each type ``[K, T]``."""
    clusters = max(int(guess.max()) + 1, int(types))
    cells = np.bincount(guess * types + true, minlength=clusters * types)
    return np.asarray(cells.reshape(clusters, types).astype(np.float64))
