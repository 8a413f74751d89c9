"""Workers that share one study: nobody's trial is lost, and the budget is met exactly."""

import hashlib
import math
import os
import re
import secrets
import socket
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from lgdgcn.errors import LGDWarning

__all__ = ["Worker", "counts"]

_ENDED = "ended"  # in place of the heart beat of a worker that has left
_MOST_DEATHS = 3  # workers a trial may take with it (out of memory, say) before it is given up
_ID = re.compile(r"(.+):(\d+):[0-9a-f]+")
_TAKEN_AWAY = (ValueError, UpdateFinishedTrialError)  # what Optuna raises for a finished trial


def counts(trial: Any) -> bool:
    """Whether a trial uses up budget: it runs, or has ended by itself, were it by failing."""
    if trial.state == TrialState.FAIL:
        return not trial.user_attrs.get("lost", False)
    return bool(trial.state != TrialState.WAITING)


class Worker:
    """One of the processes, here or elsewhere, that work on the trials of a study.

    A context manager. Inside it a thread writes a heart beat into the study, so that others know
    when this worker was killed; they then fail its trials and queue their parameters again. On
    leaving it, trials not told yet are handed back the same way.

    Args:
        study: The study, opened by this process.
        trials: Budget of the study, over all workers: see :func:`counts`.
        beat_seconds: Time between heart beats.
        patience_seconds: How long a silent worker is waited for. Clocks of different machines are
            not compared: the silence is what this worker has seen itself. Workers of this machine
            whose process is gone are not waited for.
    """

    def __init__(
        self,
        study: optuna.Study,
        trials: int,
        *,
        beat_seconds: float = 15.0,
        patience_seconds: float = 60.0,
    ) -> None:
        self.id = f"{_machine()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.study = study
        self.trials = trials
        self.beat_seconds = beat_seconds
        self.patience_seconds = patience_seconds
        self._stop = threading.Event()
        self._beating = threading.Thread(target=self._keep_beating, name="heart beat", daemon=True)
        self._seen: dict[str, tuple[object, float]] = {}  # last news of others, and since when

    def __enter__(self) -> Self:
        self._beat(time.time())
        self._beating.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._beating.join(timeout=self.beat_seconds)
        try:
            for trial in self._running():
                if trial.user_attrs.get("worker") == self.id:
                    self._give_up(trial)
            self._beat(_ENDED)
        except Exception as fault:  # the storage is gone; why we leave matters more
            warnings.warn(
                f"could not hand back unfinished trials ({type(fault).__name__}): other workers "
                f"take them over after {self.patience_seconds:g} seconds",
                LGDWarning,
                stacklevel=2,
            )

    # Heart beat

    def _beat(self, news: object) -> None:
        self.study.set_user_attr(f"worker:{self.id}", news)

    def _keep_beating(self) -> None:
        while not self._stop.wait(self.beat_seconds):
            with suppress(Exception):  # a storage out of reach may be back at the next beat
                self._beat(time.time())

    # Trials of this worker

    def ask(self, count: int) -> list[Any]:
        """Take up to ``count`` trials: queued ones first, then new ones, within the budget.

        Returns:
            The trials, whose parameters are to be suggested; none when the budget is used up. While
            :attr:`others_running`, trials may still come back: ask again later.
        """
        self.reclaim()
        mine: list[Any] = []
        while (room := min(count - len(mine), self._room())) > 0:
            mine += self._within_budget([self._take() for _ in range(room)])
        return mine

    def report(self, trial: Any, value: float, step: int) -> bool:
        """Report a score halfway.

        Returns:
            Whether the trial was still this worker's: others take over from one that was silent
            for too long (a computer that slept), and Optuna refuses what comes after.
        """
        try:
            trial.report(value, step)
        except _TAKEN_AWAY:
            return False
        return True

    def tell(
        self,
        trial: Any,
        value: float | None = None,
        *,
        pruned: bool = False,
        notes: Mapping[str, Any] | None = None,
    ) -> bool:
        """Finish a trial.

        Args:
            trial: The trial.
            value: Its objective; a missing or non-finite one fails the trial, and only it.
            pruned: It was given up halfway: its last report is its value.
            notes: User attributes to keep with it.

        Returns:
            Whether the trial was still this worker's.
        """
        state, result = TrialState.FAIL, None
        if pruned:
            state = TrialState.PRUNED
        elif value is not None and math.isfinite(value):
            state, result = TrialState.COMPLETE, float(value)
        try:
            for key, note in (notes or {}).items():
                trial.set_user_attr(key, note)
            self.study.tell(trial, result, state)
        except _TAKEN_AWAY:
            return False
        return True

    def _room(self) -> int:
        return self.trials - sum(map(counts, self.study.get_trials(deepcopy=False)))

    def _take(self) -> Any:
        trial = self.study.ask()
        trial.set_user_attr("worker", self.id)
        return trial

    def _within_budget(self, asked: list[Any]) -> list[Any]:
        """Withdraw those of the trials that too many workers took at once.

        The first trials by number stay, and queued ones keep their place. Trials before one's own
        only ever drop out of that order, so every worker decides alike, whenever it looks.
        """
        order = [
            trial.number
            for trial in self.study.get_trials(deepcopy=False)
            if counts(trial) or trial.state == TrialState.WAITING
        ]
        allowed = set(sorted(order)[: self.trials])
        for trial in asked:
            if trial.number not in allowed:
                trial.set_user_attr("lost", True)
                self.study.tell(trial, state=TrialState.FAIL)
        return [trial for trial in asked if trial.number in allowed]

    # Trials of other workers

    @property
    def others_running(self) -> bool:
        """Whether other workers have trials that may still come back."""
        return any(trial.user_attrs.get("worker") != self.id for trial in self._running())

    def _running(self) -> list[Any]:
        trials: list[Any] = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return trials

    def reclaim(self) -> None:
        """Fail the running trials of dead workers and queue their parameters again."""
        running = self._running()
        beats = self.study.user_attrs
        for trial in running:
            if self._is_lost(trial, beats):
                self._give_up(trial, died=True)

    def _is_lost(self, trial: Any, beats: Mapping[str, Any]) -> bool:
        worker = trial.user_attrs.get("worker")
        if worker == self.id:
            return False
        news = beats.get(f"worker:{worker}")
        if news == _ENDED or (worker and _died_here(worker)):
            return True
        who = worker or f"trial {trial.number}"  # killed before it could sign the trial
        now = time.monotonic()
        last, since = self._seen.get(who, (None, now))
        self._seen[who] = (news, since if news == last else now)
        return news == last and now - since > self.patience_seconds

    def _give_up(self, trial: Any, *, died: bool = False) -> None:
        """Fail a running trial and queue it again, unless it was told or given up meanwhile."""
        deaths = trial.user_attrs.get("deaths", 0) + died
        try:
            if deaths < _MOST_DEATHS:
                self.study._storage.set_trial_user_attr(trial._trial_id, "lost", True)
            self.study.tell(trial.number, state=TrialState.FAIL)
        except _TAKEN_AWAY:
            return
        if deaths >= _MOST_DEATHS:
            warnings.warn(
                f"trial {trial.number} is given up: {deaths} workers died with these parameters",
                LGDWarning,
                stacklevel=2,
            )
        elif params := trial.system_attrs.get("fixed_params", {}) | trial.params:
            self.study.enqueue_trial(
                params, user_attrs={"replaces": trial.number, "deaths": deaths}
            )


def _machine() -> str:
    """Name of the machine, made unique by what tells apart restarts and containers on it."""
    marks = ""
    with suppress(OSError):
        marks += Path("/proc/sys/kernel/random/boot_id").read_text()
        marks += os.readlink("/proc/self/ns/pid")  # process ids of other containers are not ours
    return f"{socket.gethostname()}-{hashlib.sha256(marks.encode()).hexdigest()[:8]}"


def _died_here(worker: str) -> bool:
    """Whether a worker ran on this machine and its process is gone."""
    match = _ID.fullmatch(worker)
    if not match or match[1] != _machine():
        return False
    try:
        os.kill(int(match[2]), 0)
        state = Path(f"/proc/{match[2]}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # somebody else's process, or no /proc: it exists
        return False
    return state in "ZX"  # killed, but its parent has not looked yet
