"""A search in a second process, on the cores that the first one leaves to it."""

import multiprocessing
import pickle
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import torch
from torch_geometric.data import Data

from lgdgcn.errors import LGDError
from lgdgcn.runtime import StopRequest, keep_freed_memory
from lgdgcn.search.portfolio import Candidate, Choice, choose_settings

__all__ = ["SecondSearch", "can_share", "half_of_the_threads"]

MOST_NODES = 20_000  # a step on larger graphs keeps all cores busy, and both processes hold them
_WAIT = 0.2  # seconds between two looks at signals


def can_share(data: Data, device: torch.device) -> bool:
    """Whether a second process pays: it needs cores of its own and a graph of moderate size."""
    return (
        device.type == "cpu"
        and torch.get_num_threads() > 1
        and int(data.num_nodes or 0) <= MOST_NODES
    )


@contextmanager
def half_of_the_threads() -> Iterator[None]:
    """Leave half of the cores to another process while the context lasts."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads // 2))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class SecondSearch:
    """:func:`~lgdgcn.search.portfolio.choose_settings` in a process of its own.

    Used as a context: none is left when it ends. All that passes between the two is pickled, so
    neither depends on shared memory, which containers often have little of.

    Args:
        candidates: What is tried.
        data: The canonical graph, on the CPU.
        seconds: Time limit.
    """

    def __init__(self, candidates: Sequence[Candidate], data: Data, seconds: float) -> None:
        threads = max(1, torch.get_num_threads() // 2)
        self._task = pickle.dumps((candidates, data, seconds, threads))
        self._process: BaseProcess | None = None

    def __enter__(self) -> "SecondSearch":
        context = multiprocessing.get_context("spawn")
        self._answer, answers = context.Pipe(duplex=False)
        process = context.Process(target=_search, args=(self._task, answers), daemon=True)
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is ours to pass on
        try:
            process.start()
        finally:
            signal.signal(signal.SIGINT, handler)
        self._process = process
        answers.close()  # so that we notice if the process dies
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.join()
        self._answer.close()

    def result(self, stop: StopRequest | None = None) -> Choice | None:
        """Wait for the choice; ``None`` if the process has failed, so that one can try again."""
        try:
            while not self._answer.poll(_WAIT):
                if stop:
                    stop.check("stopped while trying settings of baselines")
            choice: Choice | None = pickle.loads(self._answer.recv_bytes())
        except (EOFError, OSError):
            return None
        return choice


def _search(task: bytes, answers: Connection) -> None:
    """The life of the second process. What it may warn of, the training of the best says again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    candidates, data, seconds, threads = pickle.loads(task)
    torch.set_num_threads(threads)
    keep_freed_memory()
    choice = None
    with suppress(LGDError):  # the first process tries again, and says what is wrong
        choice = choose_settings(candidates, data, torch.device("cpu"), seconds=seconds)
    answers.send_bytes(pickle.dumps(choice))
    answers.close()
