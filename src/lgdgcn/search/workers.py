"""Workers that share a study: every trial ends once, whoever is killed and when.

Optuna's storages keep the trials and their heartbeats, and fail a trial whose heartbeat has
stopped. By hand is only what that leaves open where any process may be killed at any moment:

- Optuna beats for one trial per thread of ``Study.optimize``. A population trains many trials at
  once: here one thread of a worker beats for all of them.
- It never misses the heartbeat of a trial that had none yet. Here trials are claimed under a lock
  and signed last, so whoever holds the lock knows that a running trial without a signature is lost.
- Its callback queues a lost trial again in a commit of its own; killed before that, the trial is
  gone. Here anyone can see later which lost trials have no successor, and queue them, once.
- Its workers run more trials than asked for when several ask at once. Here they count under the
  lock. Finishing a trial takes it too: SQLite does not see that another worker did so first.
"""

import math
import os
import secrets
import socket
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType
from typing import Any, Self

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from lgdgcn.errors import LGDWarning

__all__ = ["Worker", "counts"]

MAX_DEATHS = 3  # workers a trial may take with it (out of memory, say) before it is given up
_TAKEN_AWAY = (ValueError, UpdateFinishedTrialError)  # what Optuna raises for a finished trial


def counts(trial: Any) -> bool:
    """Whether a trial uses up budget: it runs, or has ended by itself, were it by failing."""
    if trial.state == TrialState.FAIL:
        return not _is_lost(trial) or _deaths(trial) >= MAX_DEATHS
    return bool(trial.state != TrialState.WAITING)


def _is_lost(trial: Any) -> bool:
    """Whether a trial failed because its worker died or left; its own failures have a reason."""
    return trial.state == TrialState.FAIL and "failure" not in trial.user_attrs


def _deaths(trial: Any) -> int:
    """How many workers have died with the settings of a lost trial."""
    attrs = trial.user_attrs
    return int(attrs.get("deaths", 0)) + (not attrs.get("handed_back", False))


class Worker:
    """One of the processes, here or elsewhere, that work on the trials of a study.

    A context manager. Inside it a thread records the heartbeats of the trials this worker has
    claimed. On leaving it, those not finished are handed back.

    Args:
        study: The study, opened by this process.
        trials: Budget of the study, over all workers: see :func:`counts`.
        lock: Makes a context that keeps the other workers from claiming and finishing trials, see
            :func:`lgdgcn.search.database.study_lock`; none is needed for a study in memory.

    Attributes:
        others_running: Whether other workers had trials running when this one last asked; they may
            still come back.
    """

    def __init__(
        self,
        study: optuna.Study,
        trials: int,
        lock: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self.study = study
        self.trials = trials
        self.lock = lock
        self.others_running = False
        self._claimed: dict[int, Any] = {}  # trials of this worker that are not finished
        self._heartbeat = getattr(study._storage, "record_heartbeat", None)  # none in memory
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=5)
        try:
            self._hand_back()
        except Exception as fault:  # the storage is gone; why we leave matters more
            warnings.warn(
                f"could not hand back unfinished trials ({type(fault).__name__}): "
                "other workers take them over when their heartbeat has stopped for a while",
                LGDWarning,
                stacklevel=2,
            )

    def _keep_beating(self) -> None:
        if not self._heartbeat:
            return
        while not self._stop.wait(self.study._storage.get_heartbeat_interval()):
            for trial in list(self._claimed.values()):
                with suppress(Exception):  # a storage out of reach may be back at the next beat
                    self._heartbeat(trial._trial_id)

    def ask(self, count: int) -> list[Any]:
        """Claim up to ``count`` trials: queued ones first, then new ones, within the budget.

        Returns:
            The trials, whose parameters are to be suggested; none when the budget is used up. While
            :attr:`others_running`, trials may still come back: ask again later.
        """
        with self.lock():
            trials = self._queue_lost()
            running = {t.number for t in trials if t.state == TrialState.RUNNING}
            self.others_running = bool(running - self._claimed.keys())
            room = self.trials - sum(map(counts, trials))
            return [self._claim() for _ in range(min(count, room))]

    def _claim(self) -> Any:
        trial = self.study.ask()
        if self._heartbeat:
            self._heartbeat(trial._trial_id)
        trial.set_user_attr("claimed_by", self.id)  # last: see _queue_lost
        self._claimed[trial.number] = trial
        return trial

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
        state, result, notes = TrialState.FAIL, None, dict(notes or {})
        if pruned:
            state = TrialState.PRUNED
        elif value is not None and math.isfinite(value):
            state, result = TrialState.COMPLETE, float(value)
        else:
            notes.setdefault("failure", f"its score is {value}")
        with self.lock():
            told = self._finish(trial, state, result, notes)
        del self._claimed[trial.number]
        return told

    def _finish(
        self, trial: Any, state: TrialState, value: float | None, notes: Mapping[str, Any]
    ) -> bool:
        try:
            for key, note in notes.items():
                trial.set_user_attr(key, note)
            self.study.tell(trial, value, state)
        except _TAKEN_AWAY:
            return False
        return True

    def _hand_back(self) -> None:
        """Fail what is not finished, as if lost; whoever asks next queues it again."""
        if self._claimed:
            with self.lock():
                for trial in self._claimed.values():
                    self._finish(trial, TrialState.FAIL, None, {"handed_back": True})

    def _queue_lost(self) -> list[Any]:
        """Fail the trials of dead workers, and queue all that were lost and have no successor.

        Returns:
            All trials but those queued now.
        """
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if "claimed_by" not in trial.user_attrs:  # killed before it could sign
                self.study.tell(trial.number, state=TrialState.FAIL)
        if self._heartbeat:
            optuna.storages.fail_stale_trials(self.study)
        trials: list[Any] = self.study.get_trials(deepcopy=False)
        replaced = {trial.user_attrs.get("replaces") for trial in trials}
        for trial in trials:
            if not _is_lost(trial) or trial.number in replaced:
                continue
            if (deaths := _deaths(trial)) >= MAX_DEATHS:
                warnings.warn(
                    f"trial {trial.number} is given up: {deaths} workers died with its settings",
                    LGDWarning,
                    stacklevel=2,
                )
            elif params := trial.system_attrs.get("fixed_params", {}) | trial.params:
                successor = {"replaces": trial.number, "deaths": deaths}
                self.study.enqueue_trial(params, user_attrs=successor)
        return trials
