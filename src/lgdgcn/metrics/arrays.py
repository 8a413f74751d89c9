"""What the measures share: channels without what is only rounding, entropy and information."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr

__all__ = ["Array", "centred", "entropy", "mutual_information"]

Array = npt.NDArray[Any]

DEAD = 1e-9  # spread of a channel, as a share of its largest value, that is rounding


def centred(values: Array) -> Array:
    """Channels ``[N, *]`` less their means over the nodes; exactly 0 where they do not vary.

    Example:
        >>> centred(np.array([[0.1, 1.0], [0.1, 3.0]])).tolist()
        [[0.0, -1.0], [0.0, 1.0]]
    """
    alive = values.std(0) > DEAD * np.abs(values).max(0)
    found: Array = np.where(alive, values - values.mean(0), 0)
    return found


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
