"""Several processes on one machine that work on one study."""

import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

import optuna
import torch

from lgdgcn.errors import LGDError, LGDWarning, StoppedError, one_line
from lgdgcn.runtime import keep_freed_memory, set_threads, stop_on_signals
from lgdgcn.search.database import database_faults, study_lock
from lgdgcn.search.study import open_study
from lgdgcn.search.tuning import LowerThirdPruner, SearchProblem, sampler, search
from lgdgcn.search.workers import Worker

__all__ = ["SearchJob", "configure_worker", "share_threads", "spawn_workers"]


@dataclass(frozen=True)
class SearchJob:
    """What every worker process is told."""

    problem: SearchProblem
    study: str
    storage: str
    trials: int
    repeatable: bool  # a resumed search, or one on many machines, must not draw the same again

    def open(self, *, resume: bool, worker: int = 0) -> "optuna.Study":
        """Open the study, or make it."""
        return open_study(
            self.study,
            self.storage,
            space=self.problem.describe(),
            resume=resume,
            sampler=sampler(worker if self.repeatable else None),
            pruner=LowerThirdPruner(),
        )

    def worker(self, study: "optuna.Study") -> Worker:
        """This process as a worker on the study."""
        return Worker(study, self.trials, study_lock(self.storage, self.study))


def configure_worker() -> None:
    """Make this process ready to train; that some trials go wrong is what they are for."""
    set_threads()
    keep_freed_memory()
    warnings.filterwarnings("ignore", "all nodes have the same unit", LGDWarning)


def share_threads(workers: int) -> None:
    """Give every worker its share of the cores; the others read it in the environment."""
    if workers > 1 and "OMP_NUM_THREADS" not in os.environ:
        threads = max(1, torch.get_num_threads() // workers)
        torch.set_num_threads(threads)
        os.environ["OMP_NUM_THREADS"] = str(threads)


@contextmanager
def spawn_workers(job: SearchJob, count: int) -> Iterator[None]:
    """Let further processes work on the same study; none is left when the context ends."""
    context = multiprocessing.get_context("spawn")
    processes: list[BaseProcess] = [
        context.Process(target=_run_worker, args=(job, number + 1)) for number in range(count)
    ]
    try:
        with _ignore_interrupts():  # a terminal's Ctrl-C is ours to pass on
            for process in processes:
                process.start()
        yield
        for process in processes:
            process.join()
    finally:
        failed = [process.exitcode for process in processes if process.exitcode]
        for process in processes:
            if process.pid is not None:  # it was started
                process.terminate()
                process.join()
        for code in failed:
            warnings.warn(
                f"a worker ended early with exit code {code}; the others take over its trials",
                LGDWarning,
                stacklevel=2,
            )


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C, as do the processes that are started meanwhile."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _run_worker(job: SearchJob, number: int) -> None:
    """The life of a further worker; what it leaves undone the others take over."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("default", LGDWarning)
    configure_worker()
    try:
        with database_faults(job.storage):
            study = job.open(resume=True, worker=number)
            with stop_on_signals() as stop, job.worker(study) as worker:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first worker hears it, ends us
                search(job.problem, study, worker, stop=stop)
    except LGDError as error:
        if not isinstance(error, StoppedError):  # which the first worker says for all
            print(f"lgdgcn: worker {number + 1}: {one_line(error)}", file=sys.stderr)  # noqa: T201
        raise SystemExit(error.exit_code) from None
