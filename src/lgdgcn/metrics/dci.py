"""Disentanglement, completeness and informativeness of blocks of channels, and leakage."""

from typing import NamedTuple

import numpy as np

from lgdgcn.metrics.arrays import Array, entropy
from lgdgcn.metrics.probes import Probes

__all__ = [
    "BlockProbes",
    "above_chance",
    "completeness",
    "disentanglement_of",
    "probe_blocks",
    "rest_hits",
]


class BlockProbes(NamedTuple):
    """Held-out predictions of every factor from every unit, and what chance would give.

    Attributes:
        predicted: Classes. Shape ``[M, F, N]``.
        truth: True classes. Shape ``[F, N]``.
        majority: Share of the commonest class of each factor. Shape ``[F]``.
        noise: Accuracies up to which a probe knows nothing. Shape ``[F]``.
    """

    predicted: Array
    truth: Array
    majority: Array
    noise: Array

    def relevance(self, counts: Array) -> Array:
        """Accuracy above chance as a share of what chance leaves, ``[M, F]``.

        Args:
            counts: How often each node counts. Shape ``[N]``.
        """
        accuracy = (self.predicted == self.truth) @ counts / counts.sum()
        known = above_chance(accuracy, self.majority)
        return np.where(accuracy > self.noise, known, 0)


def probe_blocks(probes: Probes, factors: int) -> BlockProbes:
    """Probe every label from every unit: the channels in ``factors`` equal blocks."""
    blocks = np.split(np.arange(probes.values.shape[1]), factors)
    labels = range(probes.labels.shape[1])
    return BlockProbes(
        np.array([[probes.predict(block, label) for label in labels] for block in blocks]),
        probes.labels.T,
        np.array([probes.majority(label) for label in labels]),
        np.array([probes.noise(label) for label in labels]),
    )


def above_chance(accuracy: Array, majority: Array) -> Array:
    """0 at the majority rate or below, 1 where always right; 0 for a factor of one class."""
    room = 1 - majority
    share: Array = np.clip((accuracy - majority) / np.where(room > 0, room, 1), 0, 1)
    return share


def disentanglement_of(relevance: Array) -> float:
    """Whether each unit is relevant to one factor: 1, or to all alike: 0.

    Units are weighted by their relevance; where none has any, nothing is disentangled.

    Args:
        relevance: Non-negative. Shape ``[M, F]``, F at least 2.

    Example:
        >>> disentanglement_of(np.array([[1.0, 0.0], [1.0, 1.0]])).__round__(4)
        0.3333
    """
    total = relevance.sum()
    if total == 0:
        return 0.0
    purity = 1 - entropy(relevance) / np.log(relevance.shape[1])
    return float(relevance.sum(1) @ purity / total)


def completeness(relevance: Array) -> float:
    """Whether each factor is found in one unit: 1, or in all alike: 0."""
    return disentanglement_of(relevance.T)


def rest_hits(probes: Probes, blocks: BlockProbes) -> tuple[Array, Array]:
    """Whether each factor is predicted from the units that are not its own.

    Units and factors are matched one to one so that their relevance is highest.

    Returns:
        The factors that have a unit ``[m]``, and whether each node is right ``[m, N]``.
    """
    from scipy.optimize import linear_sum_assignment

    relevance = blocks.relevance(np.ones(len(probes.labels)))
    units, factors = linear_sum_assignment(relevance, maximize=True)
    all_blocks = np.arange(probes.values.shape[1]).reshape(len(relevance), -1)
    hits = [
        probes.predict(np.delete(all_blocks, unit, axis=0).ravel(), factor) == blocks.truth[factor]
        for unit, factor in zip(units, factors, strict=True)
    ]
    return factors, np.array(hits)
