"""A probability for each type of an edge, learned from the edges whose types are shown."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from lgdgcn.progress import long_work
from lgdgcn.reasons.edges import Array
from lgdgcn.reasons.evidence import Evidence, fold_of_each, usual_shares
from lgdgcn.reasons.structure import Structure

__all__ = ["TypeModel", "fit_types"]

FOLDS = 5
EVIDENCE_FOLDS = 10
MANY = 2000  # shown edges from which two folds say as much
MOST = 30_000  # shown edges that learners are fitted to: more of them say no more
TREES = 200
SMOOTHING = 0.01  # share of the usual types in every prediction
SAME = 10.0  # how strongly weights in a sum are drawn to each other's first proportions
SCALE = 1.0  # how strongly their sum is drawn to 1
CENTRE = 0.1  # how strongly the constant of each type is drawn to its first value
UNSURE = 1 / 3  # probability of the likeliest type below which an edge is unknown
BLOCK = 20_000  # edges that are predicted at a time


class Learner(NamedTuple):
    """A classifier of edges.

    Attributes:
        weight: In the sum of all learners, before any prediction is compared with a type.
        place: Whether it sees where in the graph an edge lies.
        types: Whether it sees what other shown types say.
        make: Makes it from a seed.
    """

    weight: float
    place: bool
    types: bool
    make: Callable[[int], Any]


def _regression(strength: float) -> Callable[[int], Any]:
    from sklearn.linear_model import LogisticRegression

    return lambda seed: LogisticRegression(C=strength, max_iter=200)


def _trees(**options: Any) -> Callable[[int], Any]:
    from sklearn.ensemble import ExtraTreesClassifier

    threads = torch.get_num_threads()
    return lambda seed: ExtraTreesClassifier(TREES, n_jobs=threads, random_state=seed, **options)


def _learners() -> dict[str, Learner]:
    return {
        "place": Learner(1, True, False, _regression(0.01)),
        "local": Learner(1, False, True, _regression(0.1)),
        "trees": Learner(3, True, True, _trees()),
        "local trees": Learner(1, False, True, _trees(min_samples_leaf=2, max_features=0.3)),
    }


@dataclass(frozen=True)
class TypeModel:
    """Types of all edges.

    Attributes:
        probability: Of each type at each edge, shown or not; rows sum to 1 ``[E, T]``.
        usual: Share of each type among the shown ones, with half a pseudo-count ``[T]``.
        log_loss: Cross-validated at the shown edges, None where they are too few.
        weights: How much each learner counts.
    """

    probability: Array
    usual: Array
    log_loss: float | None
    weights: dict[str, float]

    @property
    def unknown(self) -> Array:
        """Where a guess would be wrong two times of three ``[E]``."""
        return np.asarray(self.probability.max(1) < UNSURE)


def fit_types(structure: Structure, types: Array, seed: int = 0) -> TypeModel:
    """Learn types from the shown edges and predict all.

    Regressions and trees learn from what the graph says and what the types of other edges say; a
    sum of all evidence has one weight for each kind of it; a walk to the nearest shown types needs
    no learning. Their log probabilities are added, with weights and a constant for each type that
    are fitted to predictions out of fold: so the sum is calibrated, and types have their shares.

    Args:
        structure: What the graph says.
        types: Share of each type in each edge, a row of zeros where it is not shown ``[E, T]``.
        seed: Of the folds and trees.
    """
    shown = np.flatnonzero(types.sum(1))
    usual = usual_shares(types)
    if np.count_nonzero(types.sum(0)) < 2:
        return TypeModel(np.tile(usual, (len(types), 1)), usual, None, {})
    if len(shown) > MOST:
        shown = np.sort(np.random.default_rng(seed).permutation(shown)[:MOST])
    few, target = len(shown) < MANY, types[shown]
    evidence = Evidence(structure.edges, structure.cover)
    learners = _learners()
    with long_work("learning the types of edges", "steps") as advance:
        fold = fold_of_each(target, EVIDENCE_FOLDS if few else 2, seed)
        known = evidence.out_of_fold(types, shown, fold)
        by_types = evidence.columns(types)
        inputs = _Inputs(structure, shown, known, by_types)
        advance(1, 1 / (2 + len(learners)))
        fold = fold_of_each(target, FOLDS if few else 2, seed + 1)
        names, found = ["evidence", "walk"], [_sum_evidence(inputs, target, fold, usual)]
        found.append((_walk(by_types, usual), _walk(known, usual)))
        weights = [1.0, 3.0]
        for name, learner in learners.items():
            advance(len(names), len(names) / (2 + len(learners)))
            found.append(_fit_learner(inputs, learner, target, fold, usual, seed))
            names.append(name)
            weights.append(learner.weight)
    everywhere, out_of_fold = (np.log(np.stack(part, 1)) for part in zip(*found, strict=True))
    judged = (target * target.sum(0)).max(1) > 1  # a type that is shown once is in no other fold
    prior = np.array(weights) / sum(weights)
    weight, constant = _fit_sum(out_of_fold[judged], target[judged], prior, np.zeros(len(usual)))
    loss = None
    if judged.any():
        logs = np.log(_sum(out_of_fold[judged], weight, constant))
        loss = float(-(target[judged] * logs).sum() / judged.sum())
    named = dict(zip(names, weight.tolist(), strict=True))
    return TypeModel(_sum(everywhere, weight, constant), usual, loss, named)


@dataclass(frozen=True)
class _Inputs:
    """What learners see of the edges.

    Attributes:
        structure: What the graph says.
        shown: The edges whose types are shown ``[S]``.
        known: What the types of other folds say of them ``[S, K, T]``.
        by_types: What all shown types say of all edges ``[E, K, T]``.
    """

    structure: Structure
    shown: Array
    known: Array
    by_types: Array

    def of_shown(self, learner: Learner) -> Array:
        """Columns of the shown edges ``[S, F]``."""
        return self._columns(learner, self.shown, self.known)

    def of_all(self, learner: Learner) -> Iterator[Array]:
        """Columns of all edges, a block at a time ``[<= BLOCK, F]``."""
        for start in range(0, len(self.by_types), BLOCK):
            rows = slice(start, start + BLOCK)
            yield self._columns(learner, rows, self.by_types[rows])

    def _columns(self, learner: Learner, rows: Any, evidence: Array) -> Array:
        parts = [self.structure.local[rows]]
        if learner.place:
            parts.append(self.structure.place[rows])
        if learner.types:
            scaled = (evidence - self.known.mean(0)) / (self.known.std(0) + 1e-3)
            parts.append(scaled.reshape(len(scaled), -1))
        return np.concatenate(parts, 1)


def _fit_learner(
    inputs: _Inputs, learner: Learner, target: Array, fold: Array, usual: Array, seed: int
) -> tuple[Array, Array]:
    """Probabilities at all edges ``[E, T]`` and, out of fold, at the shown ones ``[S, T]``."""
    columns = inputs.of_shown(learner)
    out_of_fold = np.tile(usual, (len(target), 1))
    for out in (fold == one for one in np.unique(fold)):
        predict = _fit(learner.make(seed), columns[~out], target[~out], usual)
        out_of_fold[out] = predict(columns[out])
    predict = _fit(learner.make(seed), columns, target, usual)
    return np.concatenate([predict(block) for block in inputs.of_all(learner)]), out_of_fold


def _fit(model: Any, columns: Array, target: Array, usual: Array) -> Callable[[Array], Array]:
    """Fit a classifier; an edge with several types is a row for each, with its share as weight."""
    row, kind = np.nonzero(target)
    single = len(np.unique(kind)) < 2
    if not single:
        model.fit(columns[row], kind, sample_weight=target[row, kind])

    def predict(wanted: Array) -> Array:
        found = np.zeros((len(wanted), len(usual)))
        if single:
            found[:, kind] = 1
        else:
            found[:, model.classes_] = model.predict_proba(wanted)
        found /= found.sum(1, keepdims=True)
        return (1 - SMOOTHING) * found + SMOOTHING * usual

    return predict


def _sum_evidence(inputs: _Inputs, target: Array, fold: Array, usual: Array) -> tuple[Array, Array]:
    """The sum of all kinds of evidence, as :func:`_fit_learner` gives it."""
    kinds = inputs.known.shape[1]
    prior, start = np.full(kinds, 1 / kinds), np.log(usual)
    out_of_fold = np.empty_like(target)
    for out in (fold == one for one in np.unique(fold)):
        fitted = _fit_sum(inputs.known[~out], target[~out], prior, start)
        out_of_fold[out] = _sum(inputs.known[out], *fitted)
    return _sum(inputs.by_types, *_fit_sum(inputs.known, target, prior, start)), out_of_fold


def _walk(evidence: Array, usual: Array) -> Array:
    """What the longest walk says by itself ``[n, T]``."""
    return _softmax(evidence[:, -1] + np.log(usual))


def _sum(logs: Array, weights: Array, constant: Array) -> Array:
    """Probabilities of a weighted sum of log probabilities ``[n, K, T] -> [n, T]``."""
    return _softmax(np.einsum("nkt,k->nt", logs, weights) + constant)


def _fit_sum(logs: Array, target: Array, prior: Array, start: Array) -> tuple[Array, Array]:
    """Weights ≥ 0 and constants with the least log loss, near those given if few types are shown.

    Args:
        logs: What each of K says of each type ``[n, K, T]``.
        target: Shares of the true types ``[n, T]``.
        prior: Weights to start from ``[K]``.
        start: Constants to start from ``[T]``.
    """
    from scipy.optimize import minimize

    def loss(found: Array) -> tuple[float, Array]:
        weights, constant = np.split(found, [len(prior)])
        probability = _sum(logs, weights, constant)
        moved, shifted = weights - prior, constant - start
        uneven = moved - moved.mean()
        value = -(target * np.log(probability + 1e-12)).sum() + SAME * uneven @ uneven
        value += SCALE * moved.sum() ** 2 + CENTRE * shifted @ shifted
        wrong = probability * target.sum(1, keepdims=True) - target
        slope = np.einsum("nkt,nt->k", logs, wrong) + 2 * SAME * uneven + 2 * SCALE * moved.sum()
        return float(value), np.r_[slope, wrong.sum(0) + 2 * CENTRE * shifted]

    bounds = [(0, 3)] * len(prior) + [(None, None)] * len(start)
    found = minimize(loss, np.r_[prior, start], jac=True, bounds=bounds).x
    return found[: len(prior)], found[len(prior) :]


def _softmax(logits: Array) -> Array:
    found = np.exp(logits - logits.max(1, keepdims=True))
    result: Array = found / found.sum(1, keepdims=True)
    return result
