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
from numba import njit

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
    fixed = np.zeros((0, start.shape[1])) if known is None else known
    found, total = pairs.incidence @ start, start.sum(1)  # expected reasons [N, M], [P]
    block = np.ones((count, count))
    theta, usual = np.zeros(0), np.zeros(0)
    for step in range(iterations):
        usual = shrinkage * np.outer(pairs.degree, found.sum(0) / max(found.sum(), TINY))
        ends = found + usual
        if not step:
            theta = ends / np.sqrt(np.maximum(ends.sum(0), TINY))
        _solve_theta(theta, ends, block, classes)
        if count > 1:
            block = _fit_block(total, theta, classes, pairs.ends, count)
        found, total = _expected_reasons(*pairs.ends, theta, block, classes, fixed)
    return Activity(theta, block, classes, usual)


@njit(cache=True, nogil=True)
def _expected_reasons(
    first: Array, second: Array, theta: Array, block: Array, classes: Array, known: Array
) -> tuple[Array, Array]:
    """What :func:`_reasons` gives, summed at nodes ``[N, M]`` and over factors ``[P]``."""
    found, total = np.zeros_like(theta), np.empty(len(first))
    shares = np.empty(theta.shape[1])
    for pair in range(len(first)):
        i, j = first[pair], second[pair]
        rate = 0.0
        for m in range(len(shares)):
            shares[m] = theta[i, m] * theta[j, m] * block[classes[i], classes[j]]
            rate += shares[m]
        rate = max(rate, 1e-300)
        total[pair] = rate / -np.expm1(-rate)
        if len(known) and known[pair].any():
            shares[:] = known[pair]
        else:
            shares /= rate
        for m in range(len(shares)):
            found[i, m] += total[pair] * shares[m]
            found[j, m] += total[pair] * shares[m]
    return found, total


def _reasons(rates: Array) -> Array:
    """Expected reasons of links: r / (1 - exp(-r)) in all, shared out by the rates ``[P, M]``."""
    result: Array = rates / -np.expm1(-np.maximum(rates.sum(1, keepdims=True), 1e-300))
    return result


def _class_sums(theta: Array, classes: Array, count: int) -> Array:
    """Sum of the activities of each class ``[M, C]``."""
    return np.stack([np.bincount(classes, column, minlength=count) for column in theta.T])


@njit(cache=True, nogil=True)
def _solve_theta(theta: Array, ends: Array, block: Array, classes: Array) -> None:
    """θ with θ_im · (what the other nodes offer i in m) = expected number of reasons at i."""
    nodes, factors = theta.shape
    for _ in range(3):
        sums = np.zeros((len(block), factors))
        for i in range(nodes):
            for m in range(factors):
                sums[classes[i], m] += theta[i, m]
        offers = block @ sums
        for i in range(nodes):
            c = classes[i]
            for m in range(factors):
                offered = max(offers[c, m] - theta[i, m] * block[c, c], 1e-6)
                # the mean in logs is stable
                theta[i, m] = np.sqrt(theta[i, m] * ends[i, m] / offered)


def _fit_block(total: Array, theta: Array, classes: Array, ends: Array, count: int) -> Array:
    """Reasons found over those expected from the activities alone, for each pair of classes."""
    code = classes[ends[0]] * count + classes[ends[1]]
    have = np.bincount(code, total, minlength=count**2).reshape(count, count)
    sums = _class_sums(theta, classes, count)
    would = sums.T @ sums - np.diag(np.bincount(classes, (theta**2).sum(1), minlength=count))
    result: Array = (have + have.T + 1) / (would + 1)  # 1 where there is nothing to learn from
    return result
