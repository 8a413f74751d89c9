"""The paper's correlation figure as numbers: do channels of one factor go together?"""

from dataclasses import dataclass

import numpy as np

from lgdgcn.metrics.arrays import Array

__all__ = ["Blocks", "block_correlation", "channel_correlation", "factor_correlation"]


@dataclass(frozen=True)
class Blocks:
    """Mean |correlation| of two channels of the same factor, and of different factors."""

    inside: float
    between: float

    @property
    def ratio(self) -> float:
        """How block-wise the pattern is: 1 is not at all."""
        return self.inside / self.between if self.between else float("inf")


def block_correlation(units: Array, counts: Array | None = None) -> Blocks:
    """Average the correlations of the channels that vary, each with the others.

    Args:
        units: Units of a layer. Shape ``[N, M, d]``.
        counts: How often each node counts, ``[N]``; once by default.
    """
    total, pairs = _pairs(units, counts)
    inside, inside_pairs = np.trace(total), np.trace(pairs)
    return Blocks(
        _share(inside, inside_pairs), _share(total.sum() - inside, pairs.sum() - inside_pairs)
    )


def factor_correlation(units: Array) -> Array:
    """Mean |correlation| of two channels that vary, by their factors; NaN where there are none.

    Args:
        units: Units of a layer. Shape ``[N, M, d]``.

    Returns:
        Symmetric ``[M, M]``.
    """
    total, pairs = _pairs(units)
    return np.where(pairs > 0, total / np.maximum(pairs, 1), np.nan)


def channel_correlation(values: Array, counts: Array | None = None) -> Array:
    """Absolute correlation of the columns; 0 where a column is constant.

    Args:
        values: One row per node. Shape ``[N, C]``.
        counts: How often each row counts, ``[N]``; once by default.
    """
    if counts is None:
        centred = values - values.mean(0)
    else:
        centred = (values - counts @ values / counts.sum()) * np.sqrt(counts)[:, None]
    norm = np.linalg.norm(centred, axis=0)
    safe = np.where(norm > 0, norm, 1)
    correlation: Array = np.abs((centred / safe).T @ (centred / safe))
    return correlation


def _pairs(units: Array, counts: Array | None = None) -> tuple[Array, Array]:
    """Sum of |correlation| and number of the pairs of different channels that vary, ``[M, M]``."""
    nodes, factors, channels = units.shape
    values = units.reshape(nodes, -1).astype(np.float64, copy=False)
    seen = values if counts is None else values[counts > 0]
    alive = np.ptp(seen, axis=0) > 0
    pairs = np.outer(alive, alive) & ~np.eye(len(alive), dtype=bool)
    total = np.where(pairs, channel_correlation(values, counts), 0)
    shape = factors, channels, factors, channels
    return total.reshape(shape).sum((1, 3)), pairs.reshape(shape).sum((1, 3))


def _share(total: float, pairs: float) -> float:
    return float(total / pairs) if pairs else 0.0
