"""Bootstrap: every measure is a function of how often each node or edge was drawn."""

from collections.abc import Iterator

import numpy as np

from lgdgcn.metrics.arrays import Array

__all__ = ["Resamples", "interval"]

COVERED = 0.95


class Resamples:
    """How often each of ``size`` things counts: first all once, then as drawn with replacement.

    Repeated iteration gives the same draws, so that measures of the same nodes are paired.

    Args:
        size: Number of nodes or edges.
        count: Number of draws after the plain one.
        seed: Seed of the draws.

    Example:
        >>> [int(counts.sum()) for counts in Resamples(5, 2, seed=0)]
        [5, 5, 5]
    """

    def __init__(self, size: int, count: int = 0, seed: int = 0) -> None:
        self.size = size
        self.count = count
        self.seed = seed

    def __iter__(self) -> Iterator[Array]:
        yield np.ones(self.size)
        rng = np.random.default_rng(self.seed)
        for _ in range(self.count):
            drawn = rng.integers(self.size, size=self.size)
            yield np.bincount(drawn, minlength=self.size).astype(np.float64)

    def means(self, values: Array) -> Array:
        """Weighted means ``[1 + count]`` of one value per thing, or ``[1 + count, M]`` of M."""
        return np.array([counts @ values for counts in self]) / self.size


def interval(draws: Array, low: float, high: float) -> tuple[float, float] | None:
    """The 95 % interval around the first value that the others give.

    Resampling repeats things, which by itself shifts measures of dependence upwards; only the
    spread of the draws is used, moved to the value itself.

    Args:
        draws: The value, then the resampled ones.
        low: Lowest value there is.
        high: Highest value there is.

    Example:
        >>> [round(end, 3) for end in interval(np.array([0.5, 0.8, 0.9, 1.0]), 0, 1)]
        [0.405, 0.595]
    """
    value, others = draws[0], draws[1:][np.isfinite(draws[1:])]
    if len(others) < 2:
        return None
    tail = (1 - COVERED) / 2
    ends = value + np.quantile(others - others.mean(), [tail, 1 - tail])
    first, last = np.clip(ends, low, high).tolist()
    return first, last
