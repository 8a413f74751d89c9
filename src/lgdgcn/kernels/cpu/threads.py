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

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "Array",
    "edges_before",
    "even_cuts",
    "in_parallel",
    "parts",
    "row_cuts",
    "threads",
    "to_numpy",
]

Array = np.ndarray[Any, Any]

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


_GRAIN = 1000  # edges and nodes that are worth a range of their own


def edges_before(row_ptr: Array, v: int) -> int:
    """In-edges of all nodes below v; node t of member r is r*N + t."""
    member, t = divmod(v, max(1, len(row_ptr) - 1))
    return int(member * row_ptr[-1] + row_ptr[t])


def row_cuts(row_ptr: Array, start: int, stop: int) -> Sequence[int]:
    """Boundaries of ranges of the nodes start to stop with about equal work."""
    nodes = len(row_ptr) - 1
    low, high = (edges_before(row_ptr, v) + v for v in (start, stop))  # a node costs an edge
    count = parts(high - low, _GRAIN)
    if count == 1:
        return start, stop
    work = row_ptr + np.arange(nodes + 1)
    goals = low + (high - low) * np.arange(1, count) // count
    members, rests = np.divmod(goals, work[-1])
    inner = members * nodes + np.searchsorted(work, rests)
    return [start, *inner.tolist(), stop]


def to_numpy(x: Tensor) -> Array:
    """The numbers of a tensor in one block, copied only where they are not."""
    array: Array = x.detach().contiguous().numpy()
    return array
