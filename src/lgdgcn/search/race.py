"""A race of settings: all are trained for a few epochs, and those that do well go on for longer.

Successive halving (Jamieson & Talwalkar, 2016). A candidate is trained on several splits and seeds
at once, members of one population, and judged by the mean of their validation scores. How long is
counted in epochs, so the outcome depends on the graph and the seeds alone; a time limit can only
end a race early. :func:`lgdgcn.search.choose.choose` decides what takes part and what is chosen.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import NamedTuple

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.progress import long_work
from lgdgcn.runtime import StopRequest
from lgdgcn.search.families import Candidate
from lgdgcn.train.population import TrainState
from lgdgcn.training import Epoch, OnEpoch, Training, run

__all__ = ["Metrics", "Outcome", "Split", "Standing", "followed", "race"]

Metrics = dict[str, float | None]


class Split(NamedTuple):
    """A canonical graph with one of its splits, and the seed of the training on it."""

    graph: Data
    seed: int


@dataclass(eq=False)
class Standing:
    """Where a candidate stands in a race.

    Attributes:
        candidate: Whose trainings these are.
        trainings: One for each split.
        logs: The metrics of every epoch of each.
        rungs: How often it was judged.
        epochs: How long it had been trained when it was last judged.
        scores: Then the best validation score of each training; none before it was judged.
        losses: The validation losses of these epochs.
        failure: Why it cannot be trained here, if so.
    """

    candidate: Candidate
    trainings: list[Training] = field(repr=False)
    logs: list[list[Metrics]] = field(repr=False)
    rungs: int = 0
    epochs: int = 0
    scores: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    failure: str = ""

    @property
    def score(self) -> float | None:
        """Mean validation score; ``None`` if it was not judged or cannot be trained."""
        return fmean(self.scores) if self.scores and not self.failure else None

    @property
    def loss(self) -> float:
        """Mean validation loss of the epochs that scored best."""
        return fmean(self.losses) if self.losses else math.inf

    def is_finished(self, settings: Settings) -> bool:
        """Whether all trainings have come to the end that these settings have."""
        states = [training.state for training in self.trainings]
        return all(state is not None and state.is_finished(settings) for state in states)

    @property
    def state(self) -> TrainState | None:
        """Where the training on the first split stands, to go on with."""
        return self.trainings[0].state

    @property
    def log(self) -> list[Metrics]:
        """The metrics of the epochs of :attr:`state`."""
        return self.logs[0][: self.state.epoch] if self.state else []


class Outcome(NamedTuple):
    """How a race has ended.

    Attributes:
        standings: Of all candidates, in their order.
        early: Whether time was over before the last rung.
    """

    standings: list[Standing]
    early: bool


# Who goes on, of those that could be trained and judged after so many epochs.
Keep = Callable[[Sequence[Standing], int], Iterable[Standing]]


def race(
    candidates: Sequence[Candidate],
    splits: Sequence[Split],
    rungs: Sequence[int],
    keep: Keep,
    device: torch.device,
    *,
    on_epoch: OnEpoch = lambda epochs: None,
    seconds: float | None = None,
) -> Outcome:
    """Train candidates up to each rung, those of one architecture in one pass.

    Args:
        candidates: What takes part.
        splits: Each candidate is trained on all of them; they may differ in the masks only.
        rungs: Epochs after which all are judged, rising; a candidate's own setting ``epochs`` and
            early stopping may end its trainings before.
        keep: Is asked after every rung but the last, who goes on.
        device: Where to train.
        on_epoch: Sees all epochs of a pass, see :data:`lgdgcn.training.OnEpoch`; it may raise.
        seconds: Time limit. It ends a race once any candidate has been judged: in the first rung
            those count that had reached it by then, later the rungs that all have reached.
    """
    end = math.inf if seconds is None else time.monotonic() + seconds
    standings = [
        Standing(
            candidate,
            [Training(candidate.model, candidate.settings, split.seed, split.graph)
             for split in splits],
            [[] for _ in splits],
        )
        for candidate in candidates
    ]  # fmt: skip
    going, is_over = standings, False
    for number, rung in enumerate(rungs):
        is_over = _train(going, rung, device, on_epoch, end, first=number == 0)
        if is_over and number > 0:
            return Outcome(standings, True)
        for one in going:
            _judge(one)
        going = [one for one in going if one.score is not None]
        if rung != rungs[-1] and going:
            if is_over or time.monotonic() > end:
                return Outcome(standings, True)
            going = list(keep(going, rung))
    return Outcome(standings, is_over)


@contextmanager
def followed(what: str, planned: int, stop: StopRequest | None) -> Iterator[OnEpoch]:
    """Show how many of the planned epochs are trained, and stop where a signal asks for it."""
    done = 0
    with long_work(what, "epochs") as advance:

        def follow(epochs: Sequence[Epoch]) -> None:
            nonlocal done
            done += len(epochs)
            advance(done, min(1.0, done / planned))
            if stop:
                stop.check(f"stopped while {what}")

        yield follow


def _train(
    going: Sequence[Standing],
    rung: int,
    device: torch.device,
    on_epoch: OnEpoch,
    end: float,
    *,
    first: bool,
) -> bool:
    """Train up to a rung; returns whether time was over before."""
    owners: dict[Training, tuple[Standing, int]] = {}
    for one in going:
        settings = one.candidate.settings
        for number, training in enumerate(one.trainings):
            training.settings = replace(settings, epochs=min(rung, settings.epochs))
            owners[training] = (one, number)

    def may_end() -> bool:
        return not first or any(map(_has_reached, going))

    def follow(epochs: Sequence[Epoch]) -> list[Training]:
        failed: list[Training] = []
        for epoch in epochs:
            one, number = owners[epoch.training]
            if epoch.state.diverged is None:
                one.logs[number][epoch.state.epoch - 1 :] = [epoch.metrics]
            else:  # the candidate's other trainings need not go on
                one.failure = epoch.state.diverged
                failed += one.trainings
        given_up = list(on_epoch(epochs) or ())
        if time.monotonic() > end and may_end():
            raise _TimeIsOver
        return given_up + failed

    try:
        for result in run(list(owners), device, follow):
            if result.error is not None:
                owners[result.training][0].failure = str(result.error)
            elif result.state is not None:
                result.training.state = _on_host(result.state)
    except _TimeIsOver:
        return True
    return False


class _TimeIsOver(Exception):  # noqa: N818 (no error, only an end)
    pass


def _has_reached(one: Standing) -> bool:
    """Whether all trainings of a candidate have come to the rung, or to their own end before."""
    # the epochs of its trainings end at the rung
    return not one.failure and one.is_finished(one.trainings[0].settings)


def _judge(one: Standing) -> None:
    if _has_reached(one):
        states = [training.state for training in one.trainings if training.state is not None]
        one.rungs += 1
        one.epochs = max(state.epoch for state in states)
        one.scores = tuple(state.best_score for state in states)
        one.losses = tuple(state.best_loss for state in states)


def _on_host(state: TrainState) -> TrainState:
    """Keep a GPU's memory for what is trained."""
    return replace(state, tensors={name: tensor.cpu() for name, tensor in state.tensors.items()})
