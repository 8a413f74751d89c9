"""One measurement in a process of its own, so that its peak memory is its own.

``python -m lgdgcn.benchmark.worker '{"row": "fast", "size": "cora", "layers": 4}'`` prints one
JSON object; see :class:`~lgdgcn.benchmark.workload.Workload` for the keys. The row ``machine``
measures the machine and describes the workload instead.
"""

import ctypes
import dataclasses
import gc
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from lgdgcn.benchmark.rows import forced_backend, is_ours, members_of, training_step
from lgdgcn.benchmark.workload import (
    Workload,
    clustered_graph,
    read_graph,
    settings_of,
    shape_of,
    sharp_settings,
    sharp_shape_of,
)
from lgdgcn.errors import LGDError
from lgdgcn.runtime import keep_freed_memory, select_device, set_seed, set_threads

__all__ = ["MemoryMeter", "measure", "measure_machine", "time_steps"]

WARM_UP = 3  # calls
FEWEST_BLOCKS = 3
BLOCK_SECONDS = 0.05  # of calls queued on a GPU between two readings of the clock
REPETITIONS = 12  # of a copy or a product

Step = Callable[[], int]  # trains for some steps and returns how many
Result = dict[str, Any]


def measure(work: Workload) -> Result:
    """Measure the training step of one row."""
    device = select_device(work.device)
    settings = settings_of(work)
    set_seed(0)
    set_threads()
    with forced_backend(work.row, device):
        # a rehearsal on a small graph compiles or loads all that a step needs
        rehearsal = training_step(work.row, clustered_graph(200), settings, device)
        rehearsal()
        del rehearsal
        data = read_graph(work)
        memory = MemoryMeter(device)
        if is_ours(work.row):  # as training does; the others run as a plain script would
            keep_freed_memory()
        step = training_step(work.row, data, settings, device)
        timing = time_steps(step, device, work.seconds, work.pretrain)
    members = members_of(work.row)
    return {
        "row": work.row,
        "members": members,
        **timing,
        "member_ms": timing["median_ms"] / members,
        "peak_bytes": memory.peak(),
    }


def measure_machine(work: Workload) -> Result:
    """Describe and measure the machine, and say how large the workload is."""
    device = select_device(work.device)
    set_threads()
    settings, data = settings_of(work), read_graph(work)
    return {
        "shape": dataclasses.asdict(shape_of(data, settings)),
        "sharp_shape": dataclasses.asdict(sharp_shape_of(data, sharp_settings(work))),
        "settings": settings.as_dict(),
        "machine": {
            **describe_machine(device),
            "copy_bytes_per_s": copy_rate(device),
            "matrix_flops_per_s": matrix_rate(device),
        },
    }


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
    _call_repeatedly(step, device, pretrain, 2 * seconds)
    one = _call_repeatedly(step, device, WARM_UP, seconds / 4)
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


def _call_repeatedly(step: Step, device: torch.device, calls: int, seconds: float) -> float:
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
    _wait(device)
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


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Name processor, threads, accelerator and versions."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def copy_rate(device: torch.device) -> float:
    """Bytes per second, read plus written, of copying an array far larger than any cache."""
    numbers = (1 << 30 if device.type == "cuda" else 1 << 28) // 4
    source = torch.ones(numbers, device=device)
    target = torch.empty_like(source)
    return 2 * 4 * numbers / _fastest(lambda: target.copy_(source), device)


def matrix_rate(device: torch.device) -> float:
    """FLOPs per second of a product of large square float32 matrices, full precision."""
    size = 8192 if device.type == "cuda" else 1536
    a = torch.ones(size, size, device=device)
    out = torch.empty_like(a)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        return 2 * size**3 / _fastest(lambda: torch.mm(a, a, out=out), device)
    finally:
        torch.set_float32_matmul_precision(before)


def _fastest(work: Callable[[], Any], device: torch.device) -> float:
    times = []
    for _ in range(REPETITIONS):
        _wait(device)
        start = time.perf_counter()
        work()
        _wait(device)
        times.append(time.perf_counter() - start)
    return min(times)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main() -> None:
    """Measure the workload given as JSON; if that fails, ``left_out`` says why."""
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
    try:
        work = Workload(**json.loads(sys.argv[1]))
        result = measure_machine(work) if work.row == "machine" else measure(work)
    except (LGDError, ImportError, torch.OutOfMemoryError) as error:
        result = {"left_out": " ".join(str(error).split())}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
