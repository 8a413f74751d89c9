"""The machine: what it is, and how fast it copies and multiplies."""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

__all__ = ["copy_rate", "describe", "matrix_rate"]

REPETITIONS = 12


def describe(device: torch.device) -> dict[str, Any]:
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
