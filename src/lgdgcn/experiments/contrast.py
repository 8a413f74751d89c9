"""Differences of means with their errors: Welch's test, also of sums of several means."""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from lgdgcn.experiments.results import Mean
from lgdgcn.experiments.score import signed

__all__ = ["Difference", "contrast", "difference"]

LEVEL = 0.05  # two-sided


@dataclass(frozen=True)
class Difference:
    """A weighted sum of means in points, its standard error and degrees of freedom.

    ``error`` is ``None`` where a mean has a single seed: then nobody knows.
    """

    value: float
    error: float | None
    freedom: float

    def is_sure(self, tests: int = 1) -> bool:
        """Whether it is no chance at the five per cent level, as one of several such tests."""
        if self.error is None:
            return False
        if self.error == 0:
            return self.value != 0
        limit = float(stdtrit(self.freedom, 1 - LEVEL / 2 / tests))
        return abs(self.value) > limit * self.error

    def __str__(self) -> str:
        return signed(self.value) + (f" ± {self.error:.1f}" if self.error is not None else "")


def contrast(terms: Sequence[tuple[float, Mean]]) -> Difference:
    """Add means with weights; the degrees of freedom are Welch and Satterthwaite's.

    Example:
        >>> str(contrast([(1, Mean(84.0, 0.6, 10)), (-1, Mean(82.5, 0.8, 10))]))
        '+1.5 ± 0.3'
    """
    value = sum(weight * mean.mean for weight, mean in terms)
    if any(mean.count < 2 for _, mean in terms):
        return Difference(value, None, 0)
    parts = [((weight * mean.error) ** 2, mean.count - 1) for weight, mean in terms]
    variance = sum(part for part, _ in parts)
    spread = sum(part**2 / freedom for part, freedom in parts)
    return Difference(value, variance**0.5, variance**2 / spread if spread else 1)


def difference(ours: Mean, other: Mean) -> Difference:
    """How far one mean lies above another."""
    return contrast([(1, ours), (-1, other)])
