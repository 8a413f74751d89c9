"""Means over seeds, how sure their differences are, and our numbers beside the paper's."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy import stats

from lgdgcn.metrics.catalogue import MEASURES, Better
from lgdgcn.reproduce.cells import Cell
from lgdgcn.reproduce.exhibits import Entry
from lgdgcn.reproduce.results import Results

__all__ = [
    "Difference",
    "Mean",
    "Score",
    "compare",
    "contrast",
    "difference",
    "score",
    "seed_scores",
    "signed",
    "with_deviation",
]

PAPER_RUNS = 10  # runs behind a mean of the paper
LEVEL = 0.05  # of significance, two-sided


@dataclass(frozen=True)
class Mean:
    """Mean and sample standard deviation of a score over ``count`` seeds, shares in per cent."""

    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, scores: Iterable[float], scale: float = 100) -> "Mean":
        """Summarise shares between 0 and 1, or with a scale of 1 other numbers."""
        values = [scale * one for one in scores]
        std = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.fmean(values), std, len(values))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.std / math.sqrt(self.count)


@dataclass(frozen=True)
class Score:
    """Our number for an entry, from the runs that are finished, and the paper's.

    Attributes:
        ours: Mean over the finished seeds; ``None`` without any.
        paper: Mean and standard deviation in the paper.
        wanted: Number of seeds asked for.
        diverged: Number of seeds that diverged; others may still be missing.
        better: Whether higher or lower is better.
    """

    ours: Mean | None
    paper: tuple[float, float | None] | None
    wanted: int
    diverged: int = 0
    better: Better = "higher"

    @property
    def count(self) -> int:
        """Number of seeds in the mean."""
        return self.ours.count if self.ours else 0

    @property
    def gap(self) -> str:
        """A remark about missing seeds; empty if there are none."""
        if self.count == self.wanted:
            return ""
        lost = f", {self.diverged} diverged" if self.diverged else ""
        return f"{self.count} of {self.wanted} seeds{lost}"

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, in points."""
        return self.ours.mean - self.paper[0] if self.ours and self.paper else None

    @property
    def differs(self) -> bool | None:
        """Whether the difference is above two standard errors.

        If one side has no standard deviation (a single seed, or none printed), that of the other
        side is used for both; ``None`` if neither side has one.
        """
        if self.ours is None or self.paper is None:
            return None
        ours = self.ours.std if self.ours.count > 1 else None
        deviations = [std for std in (ours, self.paper[1]) if std is not None]
        if not deviations:
            return None
        error = math.hypot(deviations[0] / self.ours.count**0.5, deviations[-1] / PAPER_RUNS**0.5)
        return abs(self.ours.mean - self.paper[0]) > 2 * error

    @property
    def direction(self) -> str:
        """``up`` or ``down`` if the difference is above two standard errors, else ``noise``."""
        return "noise" if not self.differs else "up" if (self.difference or 0) > 0 else "down"

    @property
    def ours_text(self) -> str:
        """Our mean and standard deviation, such as ``84.1 ± 0.6``."""
        if self.ours is None:
            return "–"
        return with_deviation(self.ours.mean, self.ours.std if self.count > 1 else None)

    @property
    def paper_text(self) -> str:
        """The mean and standard deviation in the paper."""
        return with_deviation(*self.paper) if self.paper else ""

    @property
    def difference_text(self) -> str:
        """The difference, such as ``▼ −0.8``; the arrow is hollow within two standard errors."""
        if self.difference is None:
            return ""
        text = signed(self.difference)
        if text == "0.0":
            return text
        return f"{('▼▽', '▲△')[self.difference > 0][not self.differs]} {text}"


def score(entry: Entry, results: Results, split: str = "test") -> Score:
    """Summarise the finished runs of an entry.

    Runs of an earlier version may lack a measure of disentanglement; they are not waited for.
    """
    found = seed_scores(entry, results, split)
    runs = results.finished(entry.cell)
    diverged = sum(bool(run.diverged) for run in runs)
    measure = MEASURES.get(entry.metric)
    lacking = len(runs) - diverged - len(found) if measure else 0
    mean = Mean.of(found.values(), _scale(entry)) if found else None
    better = measure.better if measure else "higher"
    return Score(mean, entry.paper, len(entry.cell.seeds) - lacking, diverged, better)


def seed_scores(entry: Entry, results: Results, split: str = "test") -> dict[int, float]:
    """The shares behind an entry's mean by seed, without seeds that are missing or diverged.

    Measures of disentanglement are of the whole graph, whatever the split.
    """
    found = {}
    for run in results.finished(entry.cell):
        scores = run.local_scores if entry.local else run.scores
        known = run.factors if entry.metric in MEASURES else scores.get(split, {})
        share = known.get(entry.metric)
        if share is not None:
            found[run.seed] = share
    return found


@dataclass(frozen=True)
class Difference:
    """A weighted sum of means in points, for a t-test of whether it is zero.

    Attributes:
        value: The sum.
        error: Its standard error; ``None`` if one of the means has a single seed.
        freedom: Degrees of freedom.
    """

    value: float
    error: float | None
    freedom: float

    @classmethod
    def of(cls, mean: Mean) -> "Difference":
        """A single mean as a term of a sum."""
        return cls(mean.mean, mean.error if mean.count > 1 else None, mean.count - 1)

    def is_significant(self, tests: int = 1) -> bool:
        """Whether the t-test rejects zero, with Bonferroni's correction for several tests."""
        if self.error is None:
            return False
        if self.error == 0:
            return self.value != 0
        p_value = 2 * stats.t.sf(abs(self.value) / self.error, self.freedom)
        return bool(p_value < LEVEL / tests)

    def __str__(self) -> str:
        return signed(self.value) + (f" ± {self.error:.1f}" if self.error is not None else "")


def compare(ours: Entry, other: Entry, results: Results) -> Difference:
    """How far one entry lies above another; both need finished runs.

    The t-test is paired if a seed means the same to both (the same trained model, or the same
    random split), and Welch's otherwise.
    """
    first, second = seed_scores(ours, results), seed_scores(other, results)
    if _is_paired(ours.cell, other.cell):
        apart = [first[seed] - second[seed] for seed in first if seed in second]
        if apart:
            return Difference.of(Mean.of(apart, _scale(ours)))
    return difference(*(Mean.of(one.values(), _scale(ours)) for one in (first, second)))


def _scale(entry: Entry) -> float:
    """Shares are shown in per cent, numbers such as that of the factors in use as they are."""
    measure = MEASURES.get(entry.metric)
    return 100 if measure is None or measure.is_share else 1


def _is_paired(ours: Cell, other: Cell) -> bool:
    same_split = ours.split == other.split == "random" and ours.graph == other.graph
    return ours.seeds == other.seeds and (ours.key == other.key or same_split)


def difference(ours: Mean, other: Mean) -> Difference:
    """How far one mean lies above another, independent one (Welch's test)."""
    return contrast([(1, Difference.of(ours)), (-1, Difference.of(other))])


def contrast(terms: Sequence[tuple[float, Difference]]) -> Difference:
    """Add independent terms with weights; degrees of freedom after Welch and Satterthwaite.

    For two means this is :func:`scipy.stats.ttest_ind` with ``equal_var=False``; scipy has no test
    for more of them.

    Example:
        >>> ours, other = Mean(84.0, 0.6, 10), Mean(82.5, 0.8, 10)
        >>> str(contrast([(1, Difference.of(ours)), (-1, Difference.of(other))]))
        '+1.5 ± 0.3'
    """
    value = sum(weight * term.value for weight, term in terms)
    variances = [
        ((weight * term.error) ** 2, term.freedom)
        for weight, term in terms
        if term.error is not None
    ]
    if len(variances) < len(terms):
        return Difference(value, None, 0)
    total = sum(variance for variance, _ in variances)
    spread = sum(variance**2 / freedom for variance, freedom in variances)
    return Difference(value, total**0.5, total**2 / spread if spread else 1)


def with_deviation(mean: float, std: float | None) -> str:
    """Write a mean and its standard deviation.

    Example:
        >>> with_deviation(84.13, 0.6), with_deviation(83.7, None)
        ('84.1 ± 0.6', '83.7')
    """
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def signed(value: float) -> str:
    """Write a difference with its sign, a real minus.

    Example:
        >>> signed(0.84), signed(-0.84), signed(0.01)
        ('+0.8', '−0.8', '0.0')
    """
    text = f"{value:+.1f}"
    return text.replace("-", "−") if float(text) else text[1:]
