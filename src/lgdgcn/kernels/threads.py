"""Threads for compiled loops that release the interpreter lock.

Plain Python threads rather than numba's own: its OpenMP threads and torch's take turns, and
while one team works the other spins, which costs more than it gains on few cores.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch

__all__ = ["even_cuts", "in_parallel", "parts", "threads"]

_PER_THREAD = 4  # more ranges than threads even out the load

_Job = Callable[[], None]


class _Team:
    """Helpers that wait for jobs; the caller works too and never waits for one to wake up."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.size = 0

    def call(self, job: _Job, helpers: int) -> None:
        while self.size < helpers:
            self.size += 1
            Thread(target=self._help, name=f"lgdgcn-{self.size}", daemon=True).start()
        for _ in range(helpers):
            self.jobs.put(job)

    def _help(self) -> None:
        while True:
            self.jobs.get()()


_team = _Team()


def threads() -> int:
    """As many as torch uses."""
    return torch.get_num_threads()


def parts(work: int, grain: int) -> int:
    """Number of ranges worth making of some work: each has at least `grain` of it."""
    return min(threads() * _PER_THREAD, max(1, work // grain)) if threads() > 1 else 1


def even_cuts(size: int, grain: int) -> list[int]:
    """Boundaries of about equal ranges of 0 to size."""
    count = parts(size, grain)
    return [size * part // count for part in range(count + 1)]


def in_parallel(work: Callable[..., None], cuts: Sequence[int], *arguments: Any) -> None:
    """Call ``work(low, high, *arguments)`` on every range between neighbouring cuts.

    Args:
        work: Writes the results of one range; ranges do not overlap. Releases the lock.
        cuts: Ascending boundaries; more ranges than threads even out the load.
        *arguments: Handed on.
    """
    count, ranges = threads(), [(low, high) for low, high in pairwise(cuts) if low < high]
    if count == 1 or len(ranges) <= 1:
        work(cuts[0], cuts[-1], *arguments)
        return
    waiting: Iterator[tuple[int, int]] = iter(ranges)  # shared: whoever is free takes the next
    done: SimpleQueue[BaseException | None] = SimpleQueue()

    def take() -> None:
        for low, high in waiting:
            try:
                work(low, high, *arguments)
                done.put(None)
            except BaseException as error:
                done.put(error)

    _team.call(take, min(count, len(ranges)) - 1)
    take()
    errors = [done.get() for _ in ranges]
    for error in errors:
        if error is not None:
            raise error


def _forget() -> None:
    global _team
    _team = _Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # threads do not survive a fork
