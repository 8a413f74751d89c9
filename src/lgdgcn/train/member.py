"""One training of a population: what it is, where it stands, and what an epoch tells of it."""

import math
from dataclasses import dataclass, field

from torch import Tensor

from lgdgcn.config import Settings

__all__ = ["OWN", "Member", "MemberState", "Progress", "Report"]

OWN = (  # settings in which members may differ
    "lr",
    "weight_decay",
    "dropout",
    "lambda_space",
    "lambda_div",
    "lambda_edge",
    "update_rate",
    "k",
    "tau",
    "epochs",
    "patience",
    "checkpoint_every",
)


@dataclass(frozen=True)
class Member:
    """One training: its settings and the seed of its weights and dropout."""

    settings: Settings
    seed: int = 0


@dataclass
class Progress:
    """How far a member is and the best it has seen.

    Attributes:
        epoch: Epochs trained.
        best_epoch: The epoch whose weights are kept.
        best_score: Its validation score.
        best_loss: Its validation loss.
        seconds: Time taken.
        lowest_score: Of all epochs on validation; the last three are ``None`` where a file of an
            earlier version does not say.
        first_loss: Classification loss of the first epoch.
        last_loss: Classification loss of the last epoch.
    """

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    best_loss: float = math.inf
    seconds: float = 0.0
    lowest_score: float | None = None
    first_loss: float | None = None
    last_loss: float | None = None

    def finished(self, settings: Settings) -> bool:
        """Whether the epochs or the patience are used up."""
        waited = self.epoch - self.best_epoch
        return self.epoch >= settings.epochs or waited >= settings.patience


@dataclass
class MemberState:
    """All there is to know of a member, enough to go on with it: tensors by name."""

    progress: Progress = field(default_factory=Progress)
    tensors: dict[str, Tensor] = field(default_factory=dict)  # model.*, best.*, mean.*, square.*
    diverged: bool = False
    retired: bool = False  # given up, see Population.retire

    def finished(self, settings: Settings) -> bool:
        """Whether there is nothing left to train."""
        return self.diverged or self.retired or self.progress.finished(settings)

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors of one part, without its name; none where the member is new."""
        prefix = f"{name}."
        return {k.removeprefix(prefix): t for k, t in self.tensors.items() if k.startswith(prefix)}


@dataclass(frozen=True)
class Report:
    """One epoch of one member."""

    place: int  # of the member in the population's list
    metrics: dict[str, float | None]
    progress: Progress
    finished: bool
    diverged: str | None = None  # which loss is no number
