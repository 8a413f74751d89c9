"""Time and peak memory of a repeated step."""

import ctypes
import gc
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

__all__ = ["MemoryMeter", "time_steps"]

Step = Callable[[], int]  # trains for some steps and says how many

WARM_UP = 3
FEWEST_BLOCKS = 3
BLOCK_SECONDS = 0.05  # of calls queued on a GPU between two looks at the clock


def time_steps(
    step: Step, device: torch.device, seconds: float, pretrain: int = 0
) -> dict[str, Any]:
    """Time a step after warm-up.

    The clock is read after every call on a CPU. A GPU is waited for only after a block of calls:
    a training loop does not wait either.

    Args:
        step: The work; called again and again.
        device: Where it runs.
        seconds: Time to spend on measured steps; up to three times as long where steps are slow.
        pretrain: Calls before the warm-up; they end early after ``2 * seconds``.

    Returns:
        ``median_ms`` and ``min_ms`` per step, and the number of measured ``steps``.
    """
    _settle(step, device, pretrain, 2 * seconds)
    one = _settle(step, device, WARM_UP, seconds / 4)
    block = max(1, round(BLOCK_SECONDS / one)) if device.type == "cuda" else 1
    times: list[float] = []
    steps, spent = 0, 0.0
    while spent < seconds or (len(times) < FEWEST_BLOCKS and spent < FEWEST_BLOCKS * seconds):
        elapsed, done = _timed(step, device, block)
        times.append(elapsed / done)
        steps, spent = steps + done, spent + elapsed
    return {
        "median_ms": 1e3 * statistics.median(times),
        "min_ms": 1e3 * min(times),
        "steps": steps,
    }


def _settle(step: Step, device: torch.device, calls: int, seconds: float) -> float:
    """Call up to this often for about this long; returns the last call's time."""
    start, last = time.perf_counter(), 0.0
    for _ in range(calls):
        last, _ = _timed(step, device, 1)
        if time.perf_counter() - start > seconds:
            break
    return last


def _timed(step: Step, device: torch.device, block: int) -> tuple[float, int]:
    """Seconds of a block of calls, and the steps done in it."""
    start = time.perf_counter()
    done = sum(step() for _ in range(block))
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start, done


class MemoryMeter:
    """Peak memory from its creation on, in bytes.

    On a GPU: the largest amount allocated by torch, the graph included. On a CPU: the largest
    resident set of this process less what is resident at the start, so interpreter, libraries and
    the graph do not count.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        else:
            with suppress(OSError, AttributeError):
                ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory must not hide new needs
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
            self.start = _resident("VmRSS")

    def peak(self) -> int:
        """The peak so far."""
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self.device))
        return _resident("VmHWM") - self.start


def _resident(field: str) -> int:
    """A size from the system's description of this process; without one, its peak."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(text.split(f"{field}:")[1].split()[0]) * 1024
