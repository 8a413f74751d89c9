r"""Reasons as activities: a link is likely where both ends are active in the same factor.

The number of reasons of a pair is Poisson, and there is a link if there is at least one:

.. math::
    p(i \sim j) = 1 - \exp(-\sum_m r_{ijm}), \qquad r_{ijm} = θ_{im} θ_{jm} B[c_i, c_j].

:math:`θ_{im} ≥ 0` says how active node i is in factor m (is the airport served by this carrier, is
it a hub of it) and B how the classes of nodes mix (1 without classes). All factors have the same
B: with one each, a factor could be two reasons that join different classes.
1 - exp is the noisy-or of the factors, so a link can have several reasons, and a dense factor is
not punished for pairs that cannot be linked twice, as a plain Poisson model does (Zhou, 2015).

An activity is what was found at the node's links plus a little of the usual mix of factors,
proportional to the degree. The part of a link that rests on the usual mix is the background: the
degrees of its ends explain it, no factor does.
"""

from dataclasses import dataclass

import numpy as np

from lgdgcn.reasons.edges import Array, Edges

__all__ = ["SHRINKAGE", "Activity", "fit_activity"]

SHRINKAGE = 0.1  # chosen by held-out likelihood: without it factors predict no better than degrees
ITERATIONS = 60
TINY = 1e-9


@dataclass(frozen=True)
class Activity:
    """A fitted model.

    Attributes:
        theta: Activity of each node in each factor ``[N, M]``.
        block: How classes mix ``[C, C]``.
        classes: Class of each node ``[N]``.
        usual: Reasons that the usual mix adds at each node ``[N, M]``.
    """

    theta: Array
    block: Array
    classes: Array
    usual: Array

    def rates(self, ends: Array) -> Array:
        """Rate of each factor at pairs of nodes ``[P, M]``."""
        first, second = ends
        mix = self.block[self.classes[first], self.classes[second]]  # [P]
        result: Array = self.theta[first] * self.theta[second] * mix[:, None]
        return result

    def shares(self, ends: Array) -> Array:
        """Share of each factor in pairs that are linked ``[P, M]``."""
        rates = self.rates(ends)
        result: Array = rates / np.maximum(rates.sum(1, keepdims=True), 1e-300)
        return result

    def presence(self, ends: Array) -> Array:
        """Probability that a linked pair has this reason, alone or with others ``[P, M]``."""
        rates = self.rates(ends)
        result: Array = np.expm1(-rates) / np.expm1(
            -np.maximum(rates.sum(1, keepdims=True), 1e-300)
        )
        return result

    def background(self, pairs: Edges) -> Array:
        """Part of each link that rests on no other link of its factor at its two ends ``[P]``."""
        counts = _reasons(self.rates(pairs.ends))
        found = pairs.incidence @ counts
        known = self.shares(pairs.ends)
        for end in pairs.ends:
            others = np.maximum(found[end] - counts, 0)
            known = known * others / np.maximum(others + self.usual[end], TINY)
        result: Array = 1 - known.sum(1)
        return result

    def log_likelihood(self, pairs: Edges) -> float:
        """Log probability of the graph: its links and its non-links, without a loop over N²."""
        linked = np.maximum(self.rates(pairs.ends).sum(1), 1e-300)
        sums = _class_sums(self.theta, self.classes, len(self.block))  # [M, C]
        squares = (self.theta**2).sum(1) @ self.block[self.classes, self.classes]
        everywhere = (np.einsum("mc,cd,md->", sums, self.block, sums) - squares) / 2
        return float(np.log(-np.expm1(-linked)).sum() - (everywhere - linked.sum()))


def fit_activity(
    pairs: Edges,
    start: Array,
    *,
    classes: Array | None = None,
    known: Array | None = None,
    shrinkage: float = SHRINKAGE,
    iterations: int = ITERATIONS,
) -> Activity:
    """EM from a first share of each factor in each pair.

    Args:
        pairs: The graph.
        start: Shares that sum to 1 ``[P, M]``.
        classes: Class of each node 0..C-1, or None ``[N]``.
        known: Shares that stay as they are, a row of zeros where nothing is known ``[P, M]``.
        shrinkage: Reasons of the usual mix that every link of a node adds to those found: a node
            with few links is pulled to what is usual.
        iterations: EM steps.
    """
    classes = np.zeros(pairs.num_nodes, dtype=int) if classes is None else classes
    count = int(classes.max(initial=0)) + 1
    fixed = np.zeros(len(pairs), dtype=bool) if known is None else known.any(1)
    counts = start  # expected number of reasons [P, M]
    theta: Array | None = None
    block = np.ones((count, count))
    for _ in range(iterations):
        found = pairs.incidence @ counts  # [N, M]
        usual = shrinkage * np.outer(pairs.degree, found.sum(0) / max(found.sum(), TINY))
        ends = found + usual
        if theta is None:
            theta = ends / np.sqrt(np.maximum(ends.sum(0), TINY))
        theta = _solve_theta(theta, ends, block, classes)
        if count > 1:
            block = _fit_block(counts, theta, classes, pairs.ends, count)
        model = Activity(theta, block, classes, usual)
        counts = _reasons(model.rates(pairs.ends))
        if known is not None:
            counts[fixed] = known[fixed] * counts[fixed].sum(1, keepdims=True)
    return model


def _reasons(rates: Array) -> Array:
    """Expected reasons of links: r / (1 - exp(-r)) in all, shared out by the rates ``[P, M]``."""
    result: Array = rates / -np.expm1(-np.maximum(rates.sum(1, keepdims=True), 1e-300))
    return result


def _class_sums(theta: Array, classes: Array, count: int) -> Array:
    """Sum of the activities of each class ``[M, C]``."""
    return np.stack([np.bincount(classes, column, minlength=count) for column in theta.T])


def _solve_theta(theta: Array, ends: Array, block: Array, classes: Array) -> Array:
    """θ with θ_im · (what the other nodes offer i in m) = expected number of reasons at i."""
    own = block[classes, classes][:, None]  # [N, 1]
    for _ in range(3):
        sums = _class_sums(theta, classes, len(block))
        offered = (block @ sums.T)[classes] - theta * own
        theta = np.sqrt(theta * ends / np.maximum(offered, 1e-6))  # the mean in logs is stable
    return theta


def _fit_block(counts: Array, theta: Array, classes: Array, ends: Array, count: int) -> Array:
    """Reasons found over those expected from the activities alone, for each pair of classes."""
    code = classes[ends[0]] * count + classes[ends[1]]
    have = np.bincount(code, counts.sum(1), minlength=count**2).reshape(count, count)
    sums = _class_sums(theta, classes, count)
    would = sums.T @ sums - np.diag(np.bincount(classes, (theta**2).sum(1), minlength=count))
    result: Array = (have + have.T + 1) / (would + 1)  # 1 where there is nothing to learn from
    return result
