"""Real worker processes with an objective that costs nothing."""

import multiprocessing
import signal
import time
from multiprocessing.process import BaseProcess
from typing import Any

import optuna

from lgdgcn.tune.storage import open_study
from lgdgcn.tune.workers import Worker

SPACE = {"model": "gcn", "space": {"x": [0, 1]}}
_fork = multiprocessing.get_context("fork")  # nothing to import again


def opened(storage: str, *, resume: bool = True, seed: int | None = None) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=seed)
    return open_study("study", storage, space=SPACE, resume=resume, sampler=sampler)


def work(
    storage: str, trials: int, batch: int = 1, seconds: float = 0.0, **patience: float
) -> None:
    """A worker from its first trial to the last of the study; a trial takes ``seconds``."""
    with Worker(opened(storage), trials, **patience) as worker:
        while True:
            asked = worker.ask(batch)
            for trial in asked:
                value = trial.suggest_float("x", 0, 1)
                time.sleep(seconds)
                assert worker.tell(trial, value)  # nobody else had it
            if not asked:
                if not worker.others_running:
                    return
                time.sleep(0.2)


def _hang(storage: str, trials: int, batch: int, sign: bool) -> None:
    study = opened(storage)
    with Worker(study, trials, beat_seconds=0.05) as worker:
        asked = worker.ask(batch) if sign else [study.ask() for _ in range(batch)]
        for trial in asked:
            trial.suggest_float("x", 0, 1)
        study.set_user_attr("hangs", True)
        signal.pause()


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


def kill_amid_trials(storage: str, trials: int, batch: int, *, sign: bool = True) -> None:
    """Let a worker take trials and kill it before it tells them."""
    study = opened(storage)
    study.set_user_attr("hangs", False)
    process = _fork.Process(target=_hang, args=(storage, trials, batch, sign))
    process.start()
    give_up = time.monotonic() + 30
    while not study.user_attrs["hangs"] and time.monotonic() < give_up:
        time.sleep(0.02)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
