"""What became of one case of a claim, and of all its cases together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from lgdgcn.reproduce.contrast import Difference
from lgdgcn.reproduce.results import Results

__all__ = ["Check", "Finding", "Outcome", "combine", "judge", "together"]


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


def together(*checks: Check) -> Check:
    """All cases of several checks."""

    def check(exhibit: Any, results: Results) -> list[Finding]:
        return [finding for one in checks for finding in one(exhibit, results)]

    return check


def judge(difference: Difference, picked: int = 1, rivals: int = 1) -> Outcome:
    """A claim that a difference is positive.

    Picking by the scores that are tested helps one side by luck; this side needs better evidence.

    Args:
        difference: Of ours and another.
        picked: Ours is the best of so many: one may be ahead by luck.
        rivals: The other is the best of so many: one may be ahead of ours by luck.
    """
    holds = difference.value > 0
    if not difference.is_sure(picked if holds else rivals):
        return Outcome.UNDECIDED
    return Outcome.HOLDS if holds else Outcome.FAILS


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """A claim holds where all its cases do, and in part where no more fail than hold."""
    known = [outcome for outcome in outcomes if outcome is not Outcome.MISSING]
    holding, failing = known.count(Outcome.HOLDS), known.count(Outcome.FAILS)
    if not known:
        return Outcome.MISSING
    if holding == len(known):
        return Outcome.HOLDS
    if failing > holding:
        return Outcome.FAILS
    return Outcome.PARTLY if holding else Outcome.UNDECIDED
