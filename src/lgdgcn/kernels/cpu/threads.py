"""Threads for the compiled loops, and how their work is divided.

Plain Python threads rather than numba's own, which is possible because the loops release the
interpreter lock. numba's OpenMP threads and torch's take turns, and while one team works the other
spins, which costs more than it gains on few cores.
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

__all__ = ["Array", "edges_before", "even_cuts", "in_parallel", "row_cuts", "to_numpy"]

Array = np.ndarray[Any, Any]

_RANGES_PER_THREAD = 4  # more ranges than threads even out the load
_GRAIN = 1000  # edges and nodes that are worth a range of their own

_Job = Callable[[], None]


class _ThreadPool:
    """Threads that wait for jobs; the caller works too and never waits for one to wake up."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.size = 0

    def submit(self, job: _Job, threads: int) -> None:
        """Let so many threads run the job, starting those that are missing."""
        while self.size < threads:
            self.size += 1
            Thread(target=self._work, name=f"lgdgcn-{self.size}", daemon=True).start()
        for _ in range(threads):
            self.jobs.put(job)

    def _work(self) -> None:
        while True:
            self.jobs.get()()


_pool = _ThreadPool()


def in_parallel(work: Callable[..., None], cuts: Sequence[int], *arguments: Any) -> None:
    """Call ``work(low, high, *arguments)`` on every range between neighbouring cuts.

    Args:
        work: Writes the results of one range; ranges do not overlap. Releases the lock.
        cuts: Ascending boundaries; more ranges than threads even out the load.
        *arguments: Passed to every call.
    """
    count, ranges = torch.get_num_threads(), [(a, b) for a, b in pairwise(cuts) if a < b]
    if count == 1 or len(ranges) <= 1:
        work(cuts[0], cuts[-1], *arguments)
        return
    ranges_left: Iterator[tuple[int, int]] = iter(ranges)  # shared: whoever is free takes the next
    done: SimpleQueue[BaseException | None] = SimpleQueue()

    def take() -> None:
        for low, high in ranges_left:
            try:
                work(low, high, *arguments)
                done.put(None)
            except BaseException as error:
                done.put(error)

    _pool.submit(take, min(count, len(ranges)) - 1)
    take()
    errors = [done.get() for _ in ranges]
    for error in errors:
        if error is not None:
            raise error


def even_cuts(size: int, grain: int) -> list[int]:
    """Boundaries of about equal ranges of 0 to size, each with at least `grain`."""
    count = _range_count(size, grain)
    return [size * i // count for i in range(count + 1)]


def row_cuts(row_ptr: Array, start: int, stop: int) -> Sequence[int]:
    """Boundaries of ranges of the nodes start to stop with about equally many edges.

    Nodes of all members are numbered consecutively: node t of member r is r*N + t.

    Args:
        row_ptr: `[N+1]` row boundaries, the same for every member.
        start: First node.
        stop: Node after the last one.
    """
    nodes = len(row_ptr) - 1
    low, high = (edges_before(row_ptr, v) + v for v in (start, stop))  # a node costs an edge
    count = _range_count(high - low, _GRAIN)
    if count == 1:
        return start, stop
    work = row_ptr + np.arange(nodes + 1)
    goals = low + (high - low) * np.arange(1, count) // count
    members, rests = np.divmod(goals, work[-1])
    inner = members * nodes + np.searchsorted(work, rests)
    return [start, *inner.tolist(), stop]


def _range_count(work: int, grain: int) -> int:
    """Number of ranges worth making of some work: each has at least `grain` of it."""
    threads = torch.get_num_threads()
    return min(threads * _RANGES_PER_THREAD, max(1, work // grain)) if threads > 1 else 1


def edges_before(row_ptr: Array, v: int) -> int:
    """In-edges of all nodes below v; node t of member r is r*N + t."""
    member, t = divmod(v, max(1, len(row_ptr) - 1))
    return int(member * row_ptr[-1] + row_ptr[t])


def to_numpy(x: Tensor) -> Array:
    """A C-contiguous array of a tensor's numbers, copied only if the tensor is not contiguous."""
    array: Array = x.detach().contiguous().numpy()
    return array


def _replace_pool() -> None:
    global _pool
    _pool = _ThreadPool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_pool)  # threads do not survive a fork
