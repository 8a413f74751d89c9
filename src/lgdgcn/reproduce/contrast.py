"""Differences of means with their errors: the paired t-test, Welch's, and sums of several means."""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from lgdgcn.reproduce.exhibits import Entry
from lgdgcn.reproduce.results import Mean, Results
from lgdgcn.reproduce.score import score, seed_scores, signed

__all__ = ["Difference", "compare", "contrast", "difference"]

LEVEL = 0.05  # two-sided


@dataclass(frozen=True)
class Difference:
    """A weighted sum of means in points, its standard error and degrees of freedom.

    ``error`` is ``None`` where a mean has a single seed: then nobody knows.
    """

    value: float
    error: float | None
    freedom: float

    @classmethod
    def of(cls, mean: Mean) -> "Difference":
        """A single mean, as a part of a sum."""
        return cls(mean.mean, mean.error if mean.count > 1 else None, mean.count - 1)

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


def compare(ours: Entry, other: Entry, results: Results) -> Difference | None:
    """How far one entry lies above another; ``None`` where one of them has no runs.

    Where a seed means the same for both (the same trained model, or the same random split) its
    two scores go together, and the mean of the seeds' differences is tested; elsewhere the two
    means are independent.
    """
    means = [score(entry, results).ours for entry in (ours, other)]
    if means[0] is None or means[1] is None:
        return None
    if _is_paired(ours, other):
        first, second = seed_scores(ours, results), seed_scores(other, results)
        apart = [first[seed] - second[seed] for seed in first if seed in second]
        if apart:
            return Difference.of(Mean.of(apart))
    return difference(means[0], means[1])


def _is_paired(ours: Entry, other: Entry) -> bool:
    one, two = ours.cell, other.cell
    same_split = one.split == two.split == "random" and one.graph == two.graph
    return one.seeds == two.seeds and (one.key == two.key or same_split)


def contrast(terms: Sequence[tuple[float, Difference]]) -> Difference:
    """Add independent numbers with weights; Welch and Satterthwaite's degrees of freedom.

    Example:
        >>> ours, other = Mean(84.0, 0.6, 10), Mean(82.5, 0.8, 10)
        >>> str(contrast([(1, Difference.of(ours)), (-1, Difference.of(other))]))
        '+1.5 ± 0.3'
    """
    value = sum(weight * term.value for weight, term in terms)
    parts = [
        ((weight * term.error) ** 2, term.freedom)
        for weight, term in terms
        if term.error is not None
    ]
    if len(parts) < len(terms):
        return Difference(value, None, 0)
    variance = sum(part for part, _ in parts)
    spread = sum(part**2 / freedom for part, freedom in parts)
    return Difference(value, variance**0.5, variance**2 / spread if spread else 1)


def difference(ours: Mean, other: Mean) -> Difference:
    """How far one mean lies above another, independent one: Welch's test."""
    return contrast([(1, Difference.of(ours)), (-1, Difference.of(other))])
