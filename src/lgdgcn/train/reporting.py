"""What the host makes of members and their numbers: reports, divergence, warnings."""

import math
import warnings
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from lgdgcn.errors import LGDWarning
from lgdgcn.models import NodeModel
from lgdgcn.train.member import Member, MemberState, Progress, Report

__all__ = ["Reading", "report_epoch", "warn_of_concerns"]

T = TypeVar("T")


class Reading(NamedTuple, Generic[T]):
    """The numbers of an epoch: a column for all members, or one member's row of them."""

    losses: dict[str, T]  # the terms by name
    val_loss: T
    val_score: T
    logit_sum: T  # not finite where a score is not; 0 where the validation loss says as much
    validated: T  # whether there are validation nodes
    active: T  # whether the epoch counts
    epoch: T
    best_epoch: T
    best_score: T
    best_loss: T

    def flat(self) -> list[T]:
        """All numbers in a row."""
        return [*self.losses.values(), *self[1:]]

    @staticmethod
    def of(terms: Sequence[str], row: Sequence[float]) -> "Reading[float]":
        """Read a row again; ``terms`` are the names of the losses."""
        count = len(terms)
        return Reading(dict(zip(terms, row[:count], strict=True)), *row[count:])


def report_epoch(
    place: int,
    member: Member,
    state: MemberState,
    reading: Reading[float],
    metric: str,
    seconds: float,
) -> Report:
    """Report a member's epoch and move its state on; a diverged one stays where it was."""
    epoch, validated = int(reading.epoch), bool(reading.validated)
    error = _divergence(reading)
    state.diverged = error is not None
    if error is None:
        state.progress = Progress(
            epoch,
            int(reading.best_epoch),
            reading.best_score,
            reading.best_loss,
            state.progress.seconds + seconds,
        )
    metrics = {
        "epoch": epoch,
        **reading.losses,
        "val_loss": reading.val_loss if validated else None,
        f"val_{metric}": reading.val_score if validated else None,
    }
    return Report(place, metrics, state.progress, state.finished(member.settings), error)


def _divergence(reading: Reading[float]) -> str | None:
    """Name the first loss that is no number, if any."""
    seen = (
        {"validation": reading.val_loss} if reading.validated else {"evaluation": reading.logit_sum}
    )
    for name, value in (reading.losses | seen).items():
        if not math.isfinite(value):
            return f"training diverged: the {name} loss is {value} in epoch {int(reading.epoch)}"
    return None


def warn_of_concerns(network: NodeModel, known: set[str]) -> None:
    """Warn the caller's caller of what a user should know of the network, once of each."""
    for concern in network.concerns():
        if concern not in known:
            known.add(concern)
            warnings.warn(concern, LGDWarning, stacklevel=3)
