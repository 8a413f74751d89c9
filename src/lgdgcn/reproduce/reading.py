"""The frank reading: each claim of the paper beside what came out here."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lgdgcn.reproduce.claims import CLAIMS, Claim
from lgdgcn.reproduce.exhibits import Exhibit
from lgdgcn.reproduce.finding import Finding, Outcome, combine
from lgdgcn.reproduce.results import Results

__all__ = ["Verdict", "read_claims", "summary"]


@dataclass(frozen=True)
class Verdict:
    """A claim and what became of it."""

    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def outcome(self) -> Outcome:
        """All cases together."""
        return combine([finding.outcome for finding in self.findings])


def read_claims(
    exhibits: Sequence[Exhibit], results: Results, claims: Sequence[Claim] = CLAIMS
) -> list[Verdict]:
    """Check every claim about the exhibits; claims about others are left out."""
    known = {exhibit.name: exhibit for exhibit in exhibits}
    return [
        Verdict(claim, tuple(claim.check(known[claim.exhibit], results)))
        for claim in claims
        if claim.exhibit in known
    ]


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many claims stand, in one sentence for those about the paper and one for ours."""
    papers = [verdict for verdict in verdicts if not verdict.claim.is_ours]
    ours = [verdict for verdict in verdicts if verdict.claim.is_ours]
    kinds = ((papers, "claims about the paper"), (ours, "claims about the sharp variant, ours,"))
    said = [_sentence(some, kind) for some, kind in kinds if some]
    return " ".join(said) or "No claim was checked."


def _sentence(verdicts: Sequence[Verdict], kind: str) -> str:
    counts = Counter(verdict.outcome for verdict in verdicts)
    words = {
        Outcome.HOLDS: "hold",
        Outcome.PARTLY: "hold in part",
        Outcome.FAILS: "do not hold",
        Outcome.UNDECIDED: "are undecided within noise",
        Outcome.MISSING: "are not measured",
    }
    parts = [f"{counts[outcome]} {words[outcome]}" for outcome in Outcome if counts[outcome]]
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + "".join(parts[-1:])
    return f"Of {len(verdicts)} {kind} {listed}."
