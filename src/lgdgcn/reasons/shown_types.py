"""A probability for each type of a pair, learned from the pairs whose types are shown."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgdgcn.reasons.activity import fit_activity
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.evidence import Evidence, deal_folds

__all__ = ["TypeModel", "fit_types"]

STRENGTHS = (0.01, 0.03, 0.1)  # inverse regularisation of the regressions
FOLDS = 5
MANY = 2000  # shown pairs from which two folds tell as much
EVIDENCE_FOLDS = 10
FEWEST = FOLDS  # shown pairs from which anything is chosen by cross-validation
TREES = 200
DRAWN = 10.0  # how strongly the weights of the pool are drawn to equal ones
STEPS = 30  # of EM for activities of types
LEAST = 1e-4  # probability of a type that a learner has not met


@dataclass(frozen=True)
class TypeModel:
    """Types of all pairs.

    Attributes:
        probability: Of each type at each pair, shown or not; rows sum to 1 ``[P, T]``.
        usual: Share of each type among the shown ones, with half a pseudo-count ``[T]``.
        log_loss: Cross-validated at the shown pairs, None where they are too few.
        weights: How much each learner counts in the pool.
    """

    probability: Array
    usual: Array
    log_loss: float | None
    weights: dict[str, float]


def fit_types(columns: Array, evidence: Evidence, types: Array, seed: int = 0) -> TypeModel:
    """Learn types from the shown pairs and predict all.

    Four learners: logistic regression on what the graph says, the same with what the other shown
    types say, trees on all of it, and an activity for each type. Their log probabilities are added
    with weights that are fitted out of fold, so that the sum is also calibrated.

    Args:
        columns: What the graph says about each pair ``[P, F]``.
        evidence: Makes the columns of shown types.
        types: Share of each type in each pair, a row of zeros where it is not shown ``[P, T]``.
        seed: Of the folds and trees.
    """
    shown = np.flatnonzero(types.sum(1))
    counts = types[shown].sum(0)
    usual = (counts + 0.5) / (counts + 0.5).sum()
    if np.count_nonzero(counts) < 2:
        return TypeModel(np.tile(usual, (len(types), 1)), usual, None, {})
    everywhere = np.arange(len(types))
    if len(shown) < FEWEST:
        parts = _learn(columns, evidence, types, STRENGTHS[1], seed, everywhere)
        weights, loss = np.full(len(parts), 1 / len(parts)), None
    else:
        strength, weights, loss = _choose(columns, evidence, types, shown, seed)
        parts = _learn(columns, evidence, types, strength, seed, everywhere)
    named = dict(zip(parts, weights.tolist(), strict=True))
    return TypeModel(_pool(list(parts.values()), weights), usual, loss, named)


def _learn(
    columns: Array, evidence: Evidence, types: Array, strength: float, seed: int, wanted: Array
) -> dict[str, Array]:
    """Probabilities of every learner at the wanted pairs ``[W, T]``."""
    from sklearn.ensemble import ExtraTreesClassifier

    shown = np.flatnonzero(types.sum(1))
    fold = deal_folds(types[shown], min(EVIDENCE_FOLDS, len(shown)), seed)
    known = evidence.out_of_fold(types, shown, fold)  # as a pair with a hidden type sees it
    mean, deviation = known.mean(0), known.std(0) + 1e-3
    told = (evidence.columns(types)[wanted] - mean) / deviation
    ask = np.concatenate([columns[wanted], told], 1)
    train = np.concatenate([columns[shown], (known - mean) / deviation], 1)
    target = types[shown]
    trees = ExtraTreesClassifier(TREES, random_state=seed)
    activity = _type_activities(evidence.pairs, types)[wanted]
    return {
        "graph": _fit(_regression(strength), columns[shown], target, columns[wanted]),
        "graph and shown": _fit(_regression(strength), train, target, ask),
        "trees": _fit(trees, train, target, ask),
        "activities": activity,
    }


def _type_activities(pairs: Edges, types: Array) -> Array:
    """Shares of the types where every type is an activity and the shown pairs keep theirs."""
    usual = types.sum(0) / types.sum()
    known = types.any(1, keepdims=True)
    model = fit_activity(pairs, np.where(known, types, usual), known=types, iterations=STEPS)
    shares = np.maximum(model.shares(pairs.ends), LEAST)
    result: Array = shares / shares.sum(1, keepdims=True)
    return result


def _choose(
    columns: Array, evidence: Evidence, types: Array, shown: Array, seed: int
) -> tuple[float, Array, float | None]:
    """Regularisation and weights with the best cross-validated log loss, and that loss."""
    fold = deal_folds(types[shown], FOLDS if len(shown) < MANY else 2, seed + 1)
    strength = min(
        STRENGTHS, key=lambda value: _regression_loss(columns[shown], types[shown], fold, value)
    )
    rows, parts = [], []
    for one in np.unique(fold):
        out, rest = shown[fold == one], types.copy()
        rest[out] = 0
        out = out[(types[out] * rest.sum(0)).sum(1) > 0]  # a type met once says nothing here
        rows.append(types[out])
        parts.append(list(_learn(columns, evidence, rest, strength, seed, out).values()))
    joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
    weights, loss = _fit_weights(joined, np.concatenate(rows))
    return strength, weights, loss


def _regression_loss(columns: Array, target: Array, fold: Array, strength: float) -> float:
    """Cross-validated log loss of the regression on what the graph says."""
    loss = 0.0
    for one in np.unique(fold):
        out = fold == one
        found = _fit(_regression(strength), columns[~out], target[~out], columns[out])
        loss -= float((target[out] * np.log(found)).sum())
    return loss


def _regression(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, max_iter=200)


def _fit(learner: Any, train: Array, target: Array, wanted: Array) -> Array:
    """Fit a learner; a pair with several types is a row for each, with its share as weight."""
    row, kind = np.nonzero(target)
    found = np.full((len(wanted), target.shape[1]), LEAST)
    if len(np.unique(kind)) < 2 or not len(wanted):
        found[:, kind] = 1
    else:
        learner.fit(train[row], kind, sample_weight=target[row, kind])
        found[:, learner.classes_] = np.maximum(learner.predict_proba(wanted), LEAST)
    result: Array = found / found.sum(1, keepdims=True)
    return result


def _pool(parts: list[Array], weights: Array) -> Array:
    """Weighted sum of log probabilities, as probabilities again."""
    logs = sum(weight * np.log(part) for weight, part in zip(weights, parts, strict=True))
    found = np.exp(logs - np.max(logs, axis=1, keepdims=True))
    result: Array = found / found.sum(1, keepdims=True)
    return result


def _fit_weights(parts: list[Array], target: Array) -> tuple[Array, float | None]:
    """Weights ≥ 0 of the pool with the least log loss, near equal ones if few types are shown."""
    from scipy.optimize import minimize

    equal = np.full(len(parts), 1 / len(parts))
    if not len(target):  # every shown type is shown once
        return equal, None

    def loss(weights: Array) -> float:
        fit = -(target * np.log(_pool(parts, weights) + 1e-12)).sum()
        return float(fit + DRAWN * ((weights - equal) ** 2).sum())

    found = minimize(loss, equal, bounds=[(0, 3)] * len(parts))
    pooled = _pool(parts, found.x)
    return found.x, float(-(target * np.log(pooled + 1e-12)).sum() / len(target))
