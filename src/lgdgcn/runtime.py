"""Where and how a run executes: seeds, device, threads, and the wish to stop."""

import ctypes
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import numpy as np
import torch

from lgdgcn.errors import InputError, StoppedError

__all__ = [
    "StopRequest",
    "keep_freed_memory",
    "select_device",
    "set_seed",
    "set_threads",
    "stop_on_signals",
]


def set_seed(seed: int) -> None:
    """Seed every random generator a run may use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def select_device(name: str = "auto") -> torch.device:
    """Turn ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` into a device that is there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InputError(f"device is {name!r}; use auto, cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device is {name!r}; use auto, cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise InputError(f"device is {name!r}, but torch sees {count} GPUs; use auto or cpu")
    return device


def set_threads() -> None:
    """Use the cores this process may run on, unless the environment says how many."""
    if "OMP_NUM_THREADS" not in os.environ and hasattr(os, "sched_getaffinity"):
        torch.set_num_threads(len(os.sched_getaffinity(0)))


def keep_freed_memory() -> None:
    """Let the C library reuse large blocks instead of returning each to the system.

    A training step allocates the same few large arrays again and again; asking the system for
    fresh, zeroed pages every time took two thirds of a GCN's step. Does nothing outside glibc.
    """
    threshold, trim, limit = -3, -1, 1 << 30  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, bytes
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(threshold, limit)
        library.mallopt(trim, limit)
    except (OSError, AttributeError):
        pass


class StopRequest:
    """Remembers that a signal asked the run to stop; true once it did."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """128 plus the signal's number."""
        return 128 + int(self.signal or 0)

    def check(self, message: str) -> None:
        """Raise where a signal has come."""
        if self:
            raise StoppedError(message, self.exit_code)


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first Ctrl-C or SIGTERM into a request, the second into an exit at once."""
    request = StopRequest()

    def handle(number: int, frame: FrameType | None) -> None:
        if request:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
        request.signal = signal.Signals(number)

    old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
