"""What became of one case of a claim, and of all its cases together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lgdgcn.experiments.contrast import Difference
from lgdgcn.experiments.results import Results

__all__ = ["Check", "Finding", "Outcome", "combine", "judge"]


class Outcome(Enum):
    """Whether a claim stands."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    UNDECIDED = "undecided within noise"
    MISSING = "not measured"


@dataclass(frozen=True)
class Finding:
    """One case: a graph or a part of a curve, and the numbers."""

    case: str
    outcome: Outcome
    evidence: str


Check = Callable[[Any, Results], list[Finding]]  # of the exhibit that the claim is about


def judge(difference: Difference, tests: int = 1) -> Outcome:
    """A claim that a difference is positive, the best of ``tests`` such differences."""
    if not difference.is_sure(tests):
        return Outcome.UNDECIDED
    return Outcome.HOLDS if difference.value > 0 else Outcome.FAILS


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """A claim holds where all its cases do; one that holds nowhere is as bad as its worst case."""
    known = {outcome for outcome in outcomes if outcome is not Outcome.MISSING}
    if not known:
        return Outcome.MISSING
    if known == {Outcome.HOLDS}:
        return Outcome.HOLDS
    if Outcome.HOLDS in known:
        return Outcome.PARTLY
    return Outcome.FAILS if Outcome.FAILS in known else Outcome.UNDECIDED
