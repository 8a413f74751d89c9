"""What the host makes of members and their numbers: reports, divergence, warnings."""

import math
import warnings
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from torch import nn

from lgdgcn.errors import LGDWarning
from lgdgcn.models import LGDGCN
from lgdgcn.nn import LabelHead
from lgdgcn.train.member import Member, MemberState, Progress, Report

__all__ = ["Reading", "report_epoch", "warn_of_too_few_classes"]

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
        before, loss = state.progress, reading.losses["classification"]
        lowest = reading.val_score if epoch == 1 else before.lowest_score
        state.progress = Progress(
            epoch,
            int(reading.best_epoch),
            reading.best_score,
            reading.best_loss,
            before.seconds + seconds,
            lowest_score=None if lowest is None else min(lowest, reading.val_score),
            first_loss=loss if epoch == 1 else before.first_loss,
            last_loss=loss,
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


def warn_of_too_few_classes(network: nn.Module) -> None:
    """Warn the caller's caller where labels that exclude each other have no class each."""
    if not isinstance(network, LGDGCN) or not isinstance(network.classifier, LabelHead):
        return
    start, factors = network.classifier.start, network.layers[-1].factors
    begun = start.view(*start.shape[:-1], factors, -1) > 0  # [*, C, M, d]
    wanted = max(2, int(begun.any(-1).sum(-2).max()))  # a factor's only class is always certain
    if begun.size(-1) < wanted:
        warnings.warn(
            f"a factor has {begun.size(-1)} of the {wanted} classes that its labels need; "
            f"use hidden_channels={factors * wanted} or more",
            LGDWarning,
            stacklevel=3,
        )
