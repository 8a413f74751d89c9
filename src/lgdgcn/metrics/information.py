"""Entropy and mutual information of tables of counts; many tables at once."""

import numpy as np
from scipy.special import entr

from lgdgcn.metrics.arrays import Array

__all__ = ["entropy", "mutual_information", "normalized_information"]


def entropy(counts: Array) -> Array:
    """Entropy in nats of the shares of the last axis; 0 where nothing is counted."""
    total = counts.sum(-1, keepdims=True)
    shares: Array = entr(counts / np.where(total > 0, total, 1)).sum(-1)
    return shares


def mutual_information(tables: Array) -> Array:
    """Mutual information in nats of the rows and columns of tables ``[*, a, b]``.

    Example:
        >>> float(mutual_information(np.eye(4)) / np.log(4))
        1.0
    """
    rows, columns = entropy(tables.sum(-1)), entropy(tables.sum(-2))
    joint = entropy(tables.reshape(*tables.shape[:-2], -1))
    found: Array = np.maximum(rows + columns - joint, 0)
    return found


def normalized_information(tables: Array) -> Array:
    """Mutual information over the mean entropy of rows and columns; NaN where both are 0."""
    mean = (entropy(tables.sum(-1)) + entropy(tables.sum(-2))) / 2
    with np.errstate(invalid="ignore"):
        share: Array = mutual_information(tables) / np.where(mean > 0, mean, np.nan)
    return share
