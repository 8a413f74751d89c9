"""More time than a portfolio takes: Optuna searches on from the settings that it chose."""

import time
from dataclasses import replace

import optuna
import torch
from torch_geometric.data import Data

from lgdgcn.config import resolve
from lgdgcn.runtime import StopRequest
from lgdgcn.search.portfolio import Candidate, Choice, choose_settings
from lgdgcn.search.space import default_space
from lgdgcn.search.tuning import sampler

__all__ = ["search_on"]

_BATCH = 8  # trials that are asked for at once


def search_on(
    choice: Choice, data: Data, device: torch.device, end: float, stop: StopRequest | None = None
) -> Choice:
    """Try settings near the chosen ones until time is over; return the best of all.

    Trials have the architecture of the chosen settings where the model's search space does not
    name it, and are judged as the portfolio is, by successive halving on validation.

    Args:
        choice: What was chosen so far.
        data: The canonical graph.
        device: Where to train.
        end: When to end, on the clock of ``time.monotonic``.
        stop: Becomes true when a signal asks to stop.
    """
    model, start = choice.best.model, choice.best.settings.as_dict()
    space = default_space(model, data.y.dim() == 2, choice.best.settings.variant)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=sampler(0))
    study.enqueue_trial(space.inside(start))
    tried = 0
    while time.monotonic() < end:
        trials = [study.ask(space.ranges) for _ in range(_BATCH)]
        batch = [
            Candidate(model, resolve(start, space.settings_of(trial.params).as_dict(), keep))
            for trial in trials
            for keep in [{k: v for k, v in start.items() if k not in trial.params}]
        ]
        left = end - time.monotonic()
        found = choose_settings(batch, data, device, seconds=left, stop=stop, at_least=False)
        for trial, score in zip(trials, found.scores, strict=True):
            failed = score is None
            study.tell(trial, score, optuna.trial.TrialState.FAIL if failed else None)
        tried += len(batch)
        if found.score > choice.score:
            choice = found
    return replace(choice, searched=tried)
