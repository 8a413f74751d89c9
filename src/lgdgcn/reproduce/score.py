"""A number of ours beside the paper's: mean, spread, seeds, and whether they really differ."""

import math
from dataclasses import dataclass

from lgdgcn.metrics.catalogue import MEASURES, Better
from lgdgcn.reproduce.cell import Cell
from lgdgcn.reproduce.exhibits import Entry
from lgdgcn.reproduce.results import Mean, Results, Run

__all__ = ["Score", "own_runs", "score", "seed_scores", "signed", "spread"]

PAPER_RUNS = 10  # the paper's numbers are means of so many


@dataclass(frozen=True)
class Score:
    """What came out of an entry so far.

    Attributes:
        ours: Mean over the seeds that are there; ``None`` without any.
        paper: The paper's mean and standard deviation.
        wanted: How many seeds were asked for.
        diverged: How many of them have failed; others may be still to come.
        better: Which way is better.
    """

    ours: Mean | None
    paper: tuple[float, float | None] | None
    wanted: int
    diverged: int = 0
    better: Better = "higher"

    @property
    def count(self) -> int:
        """How many seeds there are."""
        return self.ours.count if self.ours else 0

    @property
    def gap(self) -> str:
        """What to say of seeds that are not there; nothing where all are."""
        if self.count == self.wanted:
            return ""
        lost = f", {self.diverged} diverged" if self.diverged else ""
        return f"{self.count} of {self.wanted} seeds{lost}"

    @property
    def arrow(self) -> str:
        """Which way the difference goes: filled where it is above noise, else hollow."""
        if self.difference is None or signed(self.difference) == "0.0":
            return ""
        return ("▼▽", "▲△")[self.difference > 0][not self.differs]

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, in points."""
        return self.ours.mean - self.paper[0] if self.ours and self.paper else None

    @property
    def differs(self) -> bool | None:
        """Whether the difference is above two standard errors; ``None`` where nobody can know.

        Where one side has no spread (a single seed, or none printed) the other's stands for it.
        """
        if self.ours is None or self.paper is None:
            return None
        ours = self.ours.std if self.ours.count > 1 else None
        spreads = [std for std in (ours, self.paper[1]) if std is not None]
        if not spreads:
            return None
        error = math.hypot(spreads[0] / self.ours.count**0.5, spreads[-1] / PAPER_RUNS**0.5)
        return abs(self.ours.mean - self.paper[0]) > 2 * error


def score(entry: Entry, results: Results, part: str = "test") -> Score:
    """Read an entry off the runs that are there, be they complete or not.

    Runs of an earlier version may lack a measure of disentanglement; nobody waits for theirs.
    """
    found = seed_scores(entry, results, part)
    runs = own_runs(entry.cell, results)
    diverged = sum(bool(run.diverged) for run in runs)
    measure = MEASURES.get(entry.metric)
    lacking = len(runs) - diverged - len(found) if measure else 0
    mean = Mean.of(found.values()) if found else None
    better = measure.better if measure else "higher"
    return Score(mean, entry.paper, len(entry.cell.seeds) - lacking, diverged, better)


def seed_scores(entry: Entry, results: Results, part: str = "test") -> dict[int, float]:
    """The shares behind an entry's mean by seed; seeds that are missing or diverged have none.

    Measures of disentanglement are of the whole graph, whatever the part.
    """
    found = {}
    for run in own_runs(entry.cell, results):
        scores = run.local_scores if entry.local else run.scores
        known = run.factors if entry.metric in MEASURES else scores.get(part, {})
        share = known.get(entry.metric)
        if share is not None:
            found[run.seed] = share
    return found


def own_runs(cell: Cell, results: Results) -> list[Run]:
    """The finished runs of the seeds a cell asks for; more may be kept under its name."""
    known = results.runs(cell)
    return [known[seed] for seed in cell.seeds if seed in known]


def spread(mean: float, std: float | None) -> str:
    """Write a mean and its standard deviation.

    Example:
        >>> spread(84.13, 0.6), spread(83.7, None)
        ('84.1 ± 0.6', '83.7')
    """
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"


def signed(value: float, digits: int = 1) -> str:
    """Write a difference with its sign, a real minus.

    Example:
        >>> signed(0.84), signed(-0.84), signed(0.01)
        ('+0.8', '−0.8', '0.0')
    """
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]
