"""What a case of the attack can come to."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["FAILURES", "Finding", "Verdict", "one_line_error"]


class Verdict(Enum):
    CLEAN = "clean errors"  # refused in one line that names cause and fix
    SUCCESS = "successes"  # done, and the result is right
    REFUSED = "refused though valid"
    INTERNAL = "internal errors"  # another exception, a crash, a hang, too much memory
    WRONG = "silently wrong"  # done without complaint, but the result is not right
    LOST = "data lost"  # a file that was not ours to change, or work that cannot be resumed


FAILURES = (Verdict.REFUSED, Verdict.INTERNAL, Verdict.WRONG, Verdict.LOST)


@dataclass(frozen=True)
class Finding:
    """A verdict and, for a failure, what was seen.

    Attributes:
        verdict: What the case came to.
        reason: What was seen.
        kills: How many processes were killed on the way.
    """

    verdict: Verdict
    reason: str = ""
    kills: int = 0

    @property
    def failed(self) -> bool:
        return self.verdict in FAILURES


LONGEST_MESSAGE = 600  # characters on a screen; more is no message that anyone reads


def one_line_error(text: str, longest: float = LONGEST_MESSAGE) -> Finding:
    """Judge the message of an error that is meant for a user."""
    if "\n" in text.strip("\n") or not text.strip():
        return Finding(Verdict.INTERNAL, f"not one line: {text[:200]!r}")
    if len(text) > longest:
        return Finding(Verdict.INTERNAL, f"{len(text)} characters in one message: {text[:100]!r}…")
    return Finding(Verdict.CLEAN)
