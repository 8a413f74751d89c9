"""One training: what it is, where it stands, and what an epoch says of it."""

import math
from dataclasses import dataclass, field

from torch import Tensor

from lgdgcn.config import Settings

__all__ = ["EpochReport", "Member", "TrainState"]


@dataclass(frozen=True)
class Member:
    """One training of a population: its settings and the seed of its weights and dropout."""

    settings: Settings
    seed: int = 0


@dataclass
class TrainState:
    """Where a training stands, enough to go on with it.

    Attributes:
        epoch: Epochs trained.
        best_epoch: The epoch whose weights are kept.
        best_score: Its validation score.
        best_loss: Its validation loss.
        seconds: Time taken.
        lowest_score: The lowest validation score of all epochs; this and the two losses are
            ``None`` if a file of an earlier version does not say.
        first_loss: Classification loss of the first epoch.
        last_loss: Classification loss of the last epoch.
        tensors: ``model.*`` and ``best.*`` (weights), ``mean.*`` and ``square.*`` (of Adam), with
            the setting ``weight_average`` also ``average.*``.
        diverged: Whether a loss was not finite.
        retired: Whether it was given up, see :meth:`lgdgcn.train.trainer.Trainer.retire`.
    """

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    best_loss: float = math.inf
    seconds: float = 0.0
    lowest_score: float | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    tensors: dict[str, Tensor] = field(default_factory=dict, repr=False)
    diverged: bool = False
    retired: bool = False

    def is_finished(self, settings: Settings) -> bool:
        """Whether there is nothing left to train: epochs or patience used up, or given up."""
        waited = self.epoch - self.best_epoch
        done = self.epoch >= settings.epochs or waited >= settings.patience
        return self.diverged or self.retired or done

    def weights(self, name: str) -> dict[str, Tensor]:
        """The tensors of a group such as ``"model"`` under their own names; none if new."""
        prefix = f"{name}."
        return {k.removeprefix(prefix): t for k, t in self.tensors.items() if k.startswith(prefix)}

    def progress(self) -> dict[str, float | None]:
        """All numbers, as checkpoints save them."""
        skipped = ("tensors", "diverged", "retired")
        return {key: value for key, value in vars(self).items() if key not in skipped}


@dataclass(frozen=True)
class EpochReport:
    """One epoch of one member.

    Attributes:
        index: Of the member in the trainer's list.
        metrics: Epoch, losses and validation scores by name.
        state: Where the member stands now, without tensors.
        finished: Whether this was its last epoch.
        diverged: The first non-finite loss as a sentence, if any.
    """

    index: int
    metrics: dict[str, float | None]
    state: TrainState
    finished: bool
    diverged: str | None = None
