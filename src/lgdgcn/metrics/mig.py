"""Mutual information gap of blocks of channels."""

import numpy as np
from scipy.sparse import csr_array

from lgdgcn.metrics.arrays import Array, entropy, mutual_information
from lgdgcn.metrics.dci import BlockProbes

__all__ = ["gap", "information_draws"]


def gap(information: Array) -> Array:
    """Mean over the factors of the lead of the best unit over the next.

    Args:
        information: Share of each factor's entropy that each unit tells. Shape ``[*, M, F]``.
    """
    ordered = np.sort(information, axis=-2)
    lead: Array = (ordered[..., -1, :] - ordered[..., -2, :]).mean(-1)
    return lead


def information_draws(blocks: BlockProbes, counts: Array) -> Array:
    """What every unit tells of every factor, as a share of the factor's entropy, ``[B, M, F]``.

    Between the probe's prediction and the truth: what a linear probe finds of the mutual
    information. What independent predictions of these classes have by chance is taken off.

    Args:
        blocks: Predictions.
        counts: How often each node counts in every draw, all once first. Shape ``[B, N]``.
    """
    from sklearn.metrics.cluster import expected_mutual_information

    units, factors, nodes = blocks.predicted.shape
    shares = np.zeros((len(counts), units, factors))
    for factor in range(factors):
        truth = blocks.truth[factor]
        classes = int(truth.max()) + 1
        for unit in range(units):
            cells = truth * classes + blocks.predicted[unit, factor]
            one_hot = csr_array((np.ones(nodes), cells, np.arange(nodes + 1)), (nodes, classes**2))
            tables = (one_hot.T @ counts.T).T.reshape(-1, classes, classes)
            by_chance = expected_mutual_information(_whole(tables[0]), nodes)
            room = entropy(tables.sum(-1)) - by_chance
            found = np.maximum(mutual_information(tables) - by_chance, 0)
            shares[:, unit, factor] = np.where(room > 0, found / np.where(room > 0, room, 1), 0)
    return shares


def _whole(table: Array) -> Array:
    """The table without empty rows and columns, as whole numbers."""
    return table[np.ix_(table.sum(1) > 0, table.sum(0) > 0)].astype(np.int64)
