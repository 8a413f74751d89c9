"""What all measurements share: a process for each, a meter of memory, tables and a picture.

A script that measures calls :func:`answer` for ``--row JSON``, which is how it measures one row in
a process of its own (:class:`FreshProcess`), so that compiled kernels and peak memory are its own.
"""

import ctypes
import gc
import json
import os
import re
import resource
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lgdgcn.errors import LGDError

Row = dict[str, Any]

ROOT = Path(__file__).parents[1]
STATUS = re.compile(r"(VmHWM|VmRSS|RssAnon):\s+(\d+) kB")


class FreshProcess:
    """A process that imports the libraries of a script at once, and measures one row when asked.

    On a machine with a GPU the import takes longer than many rows, so several can import together.
    """

    def __init__(self, script: str | Path) -> None:
        path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, str(script), "--row", "-"], stdin=pipe, stdout=pipe, stderr=pipe,
            text=True, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip

    def wait(self) -> None:
        """Wait until the libraries are imported."""
        self._process.stdout.readline()

    def measure(self, work: Row, longest: float | None = None) -> Row:
        """Measure a row; if that fails, or takes more seconds, ``left_out`` says why."""
        try:
            said, errors = self._process.communicate(json.dumps(work), longest)
        except subprocess.TimeoutExpired:
            self.close()
            return {"left_out": f"not done after {longest:.0f} s"}
        if self._process.returncode != 0:
            lines = errors.strip().splitlines()
            reason = f"signal {-self._process.returncode}, often a lack of memory"
            return {"left_out": lines[-1] if lines else reason}
        return json.loads(said.splitlines()[-1])

    def close(self) -> None:
        """End a process that is not needed."""
        self._process.kill()
        self._process.communicate()


def answer(measure: Callable[..., Row], work: str) -> None:
    """Measure a row given as JSON, with ``-`` on standard input, and print the result as JSON."""
    warnings.simplefilter("ignore")
    if work == "-":
        print("imported", flush=True)
        work = sys.stdin.read()
    try:
        found = measure(**json.loads(work))
    except (LGDError, ImportError, torch.OutOfMemoryError) as error:
        found = {"left_out": " ".join(str(error).split())}
    print(f"\n{json.dumps(found)}")


class Memory:
    """The memory of this process and of a GPU, from now on.

    Attributes:
        before: Resident bytes at the start: interpreter, libraries, and what is loaded already.
        anonymous: Most resident bytes that were not of a mapped file, seen every 20 ms while this
            is a context.
    """

    def __init__(self, device: str | torch.device = "cpu") -> None:
        self.device = torch.device(device)
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)  # freed memory must not hide new needs
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        now = _status()
        self.before, self.anonymous = now.get("VmRSS", 0), now.get("RssAnon", 0)

    def __enter__(self) -> "Memory":
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.anonymous = max(self.anonymous, _status().get("RssAnon", 0))

    @property
    def peak(self) -> int:
        """Most resident bytes since the start, pages of mapped files and ``before`` among them."""
        known = _status().get("VmHWM")  # getrusage also knows what forked this process
        return known or 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @property
    def on_gpu(self) -> int | None:
        """Most bytes that tensors had on the GPU."""
        if self.device.type == "cpu":
            return None
        return torch.cuda.max_memory_allocated(self.device)


def _status() -> dict[str, int]:
    """What Linux knows of this process, in bytes; nothing elsewhere."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return {}
    return {name: 1024 * int(number) for name, number in STATUS.findall(text)}


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float | None:
    """Slope of the least-squares line through log(time) against log(size)."""
    if len(sizes) < 2:
        return None
    slope, _ = np.polyfit(np.log(sizes), np.log(np.maximum(times, 1e-9)), 1)
    return round(float(slope), 6) + 0.0  # never -0


def number(value: float | None) -> str:
    """Three digits without an exponent, a dash for ``None``: ``0.123``, ``12,346``, ``–``."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns, the first one left and the others right."""
    lines = [header, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    print(f"\n{title}\n")
    for line in [header, ["─" * width for width in widths], *rows]:
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join([line[0].ljust(widths[0]), *cells[1:]]).rstrip())
    print()


def plot_growth(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], over: str, what: str, path: Path
) -> None:
    """Draw lines (label, sizes, values) on logarithmic axes, and write a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 5.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel=over, ylabel=what)
    for place, (label, (x, y)) in enumerate(lines.items()):
        axes.plot(x, y, marker="osD^v"[place % 5], label=label)
    axes.grid(True, color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside lower center")
    figure.savefig(path, dpi=200)
