"""Where and how a run executes: seeds, device, threads, memory, and the wish to stop."""

import ctypes
import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from lgdgcn.errors import InputError, StoppedError

__all__ = [
    "StopRequest",
    "available_memory",
    "check_cpu",
    "gibibytes",
    "keep_freed_memory",
    "require_memory",
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


def check_cpu(name: str, what: str) -> None:
    """Refuse another device than the CPU for what is only computed there.

    Args:
        name: The device that is asked for.
        what: What is computed, as an error says it.
    """
    if name != "auto" and select_device(name).type != "cpu":
        raise InputError(f"device is {name!r}, but {what} on the CPU; leave --device out")


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
    arenas = -8  # M_ARENA_MAX: those of further threads give back memory whatever the limits say
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(arenas, 1)
        library.mallopt(threshold, limit)
        library.mallopt(trim, limit)
    except (OSError, AttributeError):
        pass


def available_memory(device: torch.device | None = None) -> int:
    """Bytes that this process can still get, on a GPU or (by default) in main memory.

    Main memory is what the system has to give, or less where a container (control group) or a
    limit of the process (``ulimit -v``) allows less; elsewhere than on Linux a guess of 4 GiB.
    """
    if device is not None and device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + cached
    known = []
    with suppress(OSError, ValueError, KeyError):
        known.append(1024 * _numbers(Path("/proc/meminfo"))["MemAvailable:"])
    with suppress(OSError, ValueError, KeyError):  # its limit is "max" where it has none
        group = Path("/sys/fs/cgroup")
        used = int((group / "memory.current").read_text())
        reclaimable = _numbers(group / "memory.stat")["inactive_file"]
        known.append(int((group / "memory.max").read_text()) - used + reclaimable)
    with suppress(OSError, ValueError, ImportError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            known.append(limit - pages * resource.getpagesize())
    return max(0, min(known)) if known else 4 * 2**30


def require_memory(
    size: float,
    what: str,
    way_out: str | Callable[[], str],
    device: torch.device | None = None,
    error: type[InputError] = InputError,
) -> None:
    """Refuse work that cannot fit, before it takes the memory.

    Args:
        size: Bytes it will need, at least.
        what: What needs them, the beginning of a sentence.
        way_out: What to do about it, or a function that finds out.
        device: Whose memory; main memory by default.
        error: What is raised.
    """
    free = available_memory(device)
    if size > free:
        needed = f"{what} would take about {gibibytes(size)} of memory"
        advice = way_out if isinstance(way_out, str) else way_out()
        raise error(f"{needed}, and {gibibytes(free)} are free; {advice}")


def _numbers(file: Path) -> dict[str, int]:
    """The first number of every line that the system reports, by its name."""
    return {line.split()[0]: int(line.split()[1]) for line in file.read_text().splitlines()}


def gibibytes(size: float) -> str:
    """A number of bytes for a message.

    Example:
        >>> gibibytes(3 * 2**29), gibibytes(2**20), gibibytes(2**70)
        ('1.5 GiB', '0.00098 GiB', '1.1e+12 GiB')
    """
    amount = size / 2**30
    return f"{amount:,.1f} GiB" if 1 <= amount < 1e6 else f"{amount:.2g} GiB"


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
