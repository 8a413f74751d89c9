r"""A mixture of reasons, each of which raises what random pairs agree in.

.. math::
    p_r(i, j) = p_0(i, j) \exp\Big(\sum_f u_{rf}[\ell_{rf}(i, j)]\Big) / Z_r

with :math:`\ell_{rf}` the level of agreement in feature f and reason 0 chance itself. p_0 is not
modelled: it is the sample of random pairs together with the edges themselves, each weighted by how
much less likely chance is to draw it. That is the profile likelihood of an exponential tilt mixture
(Qin, 1999; Zou, Fine and Yandell, 2002). So features that go together by chance, as age and income
do, are counted once, and no reason rests on a level that the sample happens to miss.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from lgdgcn.reasons.agreement_columns import BLANK, LEVELS
from lgdgcn.reasons.edges import Array

__all__ = ["Mixture", "information", "start_mixture"]

SHRINKAGE = 20.0  # edges' worth of "this feature says nothing" in every reason
LARGEST = 12.0  # of a tilt, in nats
LEAST_CHANCE = 0.05  # share: where nothing is left for chance, reasons take in what is alike by it


@dataclass
class Mixture:
    """What reasons raise; it changes while it is fitted.

    Attributes:
        share: Of chance and of each reason among the edges ``[1 + R]``.
        tilt: In nats, 0 for features that a reason does not use ``[R, F, LEVELS]``.
        constant: log Z of each reason ``[R]``.
    """

    share: Array
    tilt: Array
    constant: Array

    def expect(self, levels: Array) -> tuple[Array, Array]:
        """Probability of each reason ``[n, 1 + R]`` and log likelihood ratio to chance ``[n]``.

        Args:
            levels: Of each reason's features ``[R, F, n]``.
        """
        scores = np.zeros((levels.shape[2], len(self.share)))
        for r, tilt in enumerate(self.tilt):
            scores[:, r + 1] = _sum_tilts(levels[r], tilt) - self.constant[r]
        scores += np.log(np.maximum(self.share, 1e-12))
        top = scores.max(1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(1, keepdims=True)
        return weights / total, (top + np.log(total))[:, 0]

    def step(self, levels: Array, learning: Array, edges: int, used: Array) -> Array:
        """One step of EM; returns the probabilities it rested on ``[edges, 1 + R]``.

        Args:
            levels: Of the edges first, then of random pairs ``[R, F, edges + B]``.
            learning: The same with blanks where a level is not to be learnt from.
            edges: How many of them are edges.
            used: Which features a reason may use ``[R, F]``.
        """
        probability, ratio = self.expect(levels)
        base = 1 / (levels.shape[2] - edges + edges * np.exp(np.minimum(ratio, 50)))
        self._maximise(levels, learning, base, probability[:edges], used)
        return probability[:edges]

    def _maximise(
        self, levels: Array, learning: Array, base: Array, probability: Array, used: Array
    ) -> None:
        self.share = probability.mean(0)
        self.share[0] = max(self.share[0], LEAST_CHANCE)
        self.share /= self.share.sum()
        penalty = np.log(len(probability)) / 2  # of each level, as in the BIC
        for r in range(len(self.tilt)):
            weight = probability[:, r + 1].copy()
            _fit_tilts(learning[r], self.tilt[r], base, weight, used[r], penalty)
            raised = _sum_tilts(levels[r], self.tilt[r])
            self.constant[r] = np.log(base @ np.exp(raised - raised.max()) / base.sum())
            self.constant[r] += raised.max()


def start_mixture(levels: Array, learning: Array, probability: Array, used: Array) -> Mixture:
    """The mixture that fits first probabilities of the edges ``[edges, 1 + R]``."""
    reasons, features, count = levels.shape
    edges = len(probability)
    mixture = Mixture(probability.mean(0), np.zeros((reasons, features, LEVELS)), np.zeros(reasons))
    base = np.full(count, 1e-12)  # of the edges: no ratio is known yet
    base[edges:] = 1 / (count - edges)
    for _ in range(2):
        mixture._maximise(levels, learning, base, probability, used)
    return mixture


def information(levels: Array, edges: int, weight: Array) -> tuple[Array, Array]:
    """What features say of edges beyond random pairs, and the excess at every level.

    Args:
        levels: Of the edges first, then of random pairs ``[F, edges + B]``.
        edges: How many of them are edges.
        weight: Of each edge ``[edges]``.

    Returns:
        Nats less a penalty for the number of levels ``[F]``; share of the edges at each level that
        are more than chance would make ``[F, LEVELS]``.
    """
    gain, excess = np.zeros(len(levels)), np.zeros((len(levels), LEVELS))
    for f, level in enumerate(levels):
        chance = np.bincount(level[edges:], minlength=LEVELS)[:BLANK] + 0.5
        chance /= chance.sum()
        have = np.bincount(level[:edges], weight, minlength=LEVELS)[:BLANK]
        found = (have + SHRINKAGE * chance) / (have.sum() + SHRINKAGE)
        gain[f] = have @ np.log(found / chance) - np.log(edges) / 2 * BLANK
        excess[f, :BLANK] = np.maximum(0, 1 - chance / found)
    return gain, excess


@njit(cache=True, nogil=True)
def _sum_tilts(levels: Array, tilt: Array) -> Array:
    result = np.zeros(levels.shape[1])
    for f in range(levels.shape[0]):
        if np.any(tilt[f] != 0):
            for i in range(levels.shape[1]):
                result[i] += tilt[f, levels[f, i]]
    return result


@njit(cache=True, nogil=True)
def _fit_tilts(
    levels: Array, tilt: Array, base: Array, weight: Array, used: Array, penalty: float
) -> None:
    """Fit the tilts of one reason in place, feature after feature."""
    count, edges, mass = levels.shape[1], len(weight), weight.sum()
    raised = _sum_tilts(levels, tilt)
    chance = base * np.exp(raised - raised.max())
    for f in range(levels.shape[0]):
        if not used[f]:
            continue
        now, have = np.zeros(LEVELS), np.zeros(LEVELS)
        for i in range(count):
            now[levels[f, i]] += chance[i]
        for i in range(edges):
            have[levels[f, i]] += weight[i]
        without = now * np.exp(-tilt[f])  # were this feature to say nothing
        without /= without.sum()
        known, filled, gain = 1 - without[BLANK], mass - have[BLANK], 0.0
        new = np.zeros(LEVELS)  # a blank is as likely as by chance: its tilt is 0
        for level in range(BLANK):
            if without[level] > 1e-12 and known > 1e-12:
                usual = without[level] / known
                wanted = (have[level] + SHRINKAGE * usual) / (filled + SHRINKAGE)
                new[level] = min(max(np.log(wanted / usual), -LARGEST), LARGEST)
                gain += have[level] * new[level] - penalty
        if gain < 0:
            new[:] = 0.0
        for i in range(count):
            chance[i] *= np.exp(new[levels[f, i]] - tilt[f, levels[f, i]])
        tilt[f] = new
