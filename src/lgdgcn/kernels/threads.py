"""Threads for compiled loops that release the interpreter lock.

Plain Python threads rather than numba's own: its OpenMP threads and torch's take turns, and
while one team works the other spins, which costs more than it gains on few cores.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch

__all__ = ["in_parallel", "threads"]

_pools: dict[int, ThreadPoolExecutor] = {}


def threads() -> int:
    """As many as torch uses."""
    return torch.get_num_threads()


def in_parallel(work: Callable[..., None], cuts: np.ndarray[Any, Any], *arguments: Any) -> None:
    """Call ``work(low, high, *arguments)`` on every range between neighbouring cuts.

    Args:
        work: Writes the results of one range; ranges do not overlap. Releases the lock.
        cuts: Ascending boundaries; more ranges than threads even out the load.
        *arguments: Handed on.
    """
    count, bounds = threads(), cuts.tolist()
    if count == 1 or len(bounds) <= 2:
        work(bounds[0], bounds[-1], *arguments)
        return
    if count not in _pools:
        _pools[count] = ThreadPoolExecutor(count, thread_name_prefix="lgdgcn")
    ranges = [(low, high) for low, high in pairwise(bounds) if low < high]
    for _ in _pools[count].map(lambda part: work(*part, *arguments), ranges):
        pass  # raises what the range raised


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork
