"""Real worker processes with an objective that costs nothing."""

import multiprocessing
import signal
import time
from multiprocessing.process import BaseProcess
from typing import Any

import optuna
from optuna.trial import TrialState

from lgdgcn.search.database import study_lock
from lgdgcn.search.study import open_study
from lgdgcn.search.workers import Worker
from tune.databases import execute

SPACE = {"model": "gcn", "space": {"x": [0, 1]}}
_fork = multiprocessing.get_context("fork")  # nothing to import again


def opened(storage: str, *, resume: bool = True, seed: int | None = None) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=seed)
    return open_study("study", storage, space=SPACE, resume=resume, sampler=sampler)


def worker_of(storage: str, trials: int, study: optuna.Study | None = None) -> Worker:
    return Worker(study or opened(storage), trials, study_lock(storage, "study"))


def work(storage: str, trials: int, batch: int = 1, seconds: float = 0.0) -> None:
    """A worker from its first trial to the last of the study; a trial takes ``seconds``."""
    with worker_of(storage, trials) as worker:
        while True:
            asked = worker.ask(batch)
            values = [trial.suggest_float("x", 0, 1) for trial in asked]
            for trial, value in zip(asked, values, strict=True):
                time.sleep(seconds)
                assert worker.tell(trial, value)  # nobody else had it
            if not asked:
                if not worker.others_running:
                    return
                time.sleep(0.2)


def start_workers(count: int, *args: Any, **named: Any) -> list[BaseProcess]:
    processes = [_fork.Process(target=work, args=args, kwargs=named) for _ in range(count)]
    for process in processes:
        process.start()
    return processes


def finish(processes: list[BaseProcess]) -> None:
    for process in processes:
        process.join(60)
        process.kill()
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def _hang(storage: str, trials: int, batch: int, step: str) -> None:
    study = opened(storage)

    def hang(*_: object) -> None:
        study.set_user_attr("hangs", True)
        signal.pause()

    worker = worker_of(storage, trials, study)
    if step == "beat":
        worker._heartbeat = hang  # right after it took the trial
    if step == "sign":
        worker._heartbeat = lambda _: setattr(optuna.Trial, "set_user_attr", hang)
    with worker:
        for trial in worker.ask(batch):
            trial.suggest_float("x", 0, 1)
        hang()


def kill_amid_trials(storage: str, trials: int, batch: int, *, step: str = "train") -> None:
    """Let a worker claim trials and kill it before it tells them; its last heartbeat is long past.

    Args:
        storage: Where the study is.
        trials: Budget of the study.
        batch: Trials to claim.
        step: Where it is killed: before its first ``beat``, before it can ``sign``, in training.
    """
    study = opened(storage)
    study.set_user_attr("hangs", False)
    process = _fork.Process(target=_hang, args=(storage, trials, batch, step))
    process.start()
    give_up = time.monotonic() + 30
    while not study.user_attrs["hangs"] and time.monotonic() < give_up:
        time.sleep(0.02)
    assert study.user_attrs["hangs"]
    kill(process)
    stop_hearts(storage)


def stop_hearts(storage: str) -> None:
    """Make the heartbeats of all trials until now old, as if their workers had long been silent."""
    execute(storage, "UPDATE trial_heartbeats SET heartbeat = '2020-01-01 00:00:00'")


def done(study: optuna.Study) -> list[float]:
    """The parameter of every complete trial, in order."""
    return sorted(t.params["x"] for t in study.trials if t.state == TrialState.COMPLETE)


def states(study: optuna.Study) -> list[str]:
    return [t.state.name for t in study.trials]
