"""What happens inside a child process: a signal at its n-th system call or function call.

The functions that change files are wrapped by a counter. At the chosen call the process sends
itself a signal: before the call, after it or, for a write, in the middle of it.
"""

import builtins
import fcntl
import io
import os
import resource
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = [
    "WHEN",
    "at_function_call",
    "at_system_call",
    "closed_pipe",
    "full_disk",
    "full_output",
]

WHEN = ("before", "torn", "after")
WRAPPED = [
    (os, "replace"), (os, "rename"), (os, "fsync"), (os, "unlink"), (os, "remove"), (os, "rmdir"),
    (os, "mkdir"), (os, "open"), (os, "pwrite"), (os, "ftruncate"), (os, "truncate"),
    (fcntl, "flock"),
]  # fmt: skip


class _Countdown:
    """Sends the signal when it has been called so many times."""

    def __init__(self, number: int, when: str, sent: int) -> None:
        self.left, self.when, self.signal = number, when, sent

    def around(self, call: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        """Make a call, or die around it."""
        self.left -= 1
        if self.left:
            return call()
        if self.when == "before":
            os.kill(os.getpid(), self.signal)
        elif self.when == "torn" and half is not None and self.signal == signal.SIGKILL:
            half()
            os.kill(os.getpid(), self.signal)
        result = call()
        if self.when != "before":
            os.kill(os.getpid(), self.signal)
        return result


def at_system_call(number: int, when: str, sent: int = signal.SIGKILL) -> None:
    """Send this process a signal at its n-th call that changes a file.

    Args:
        number: Which call, from 1.
        when: ``before``, ``torn`` (half of a write is done) or ``after`` the call.
        sent: The signal.
    """
    countdown = _Countdown(number, when, sent)
    for module, name in WRAPPED:
        setattr(module, name, _wrapped(getattr(module, name), countdown))
    real = io.open

    class Counted(io.FileIO):
        def write(self, data: Any) -> int:
            half = bytes(data)[: len(data) // 2]
            return countdown.around(
                lambda: io.FileIO.write(self, data), lambda: io.FileIO.write(self, half)
            )

        def truncate(self, size: int | None = None) -> int:
            return countdown.around(lambda: io.FileIO.truncate(self, size))

    def opened(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **more: Any) -> Any:
        plain = "b" in mode and "+" not in mode and set(mode) & set("wax")
        if not plain or isinstance(file, int):
            return real(file, mode, buffering, *args, **more)
        raw = countdown.around(lambda: Counted(os.fspath(file), mode.replace("b", "")))
        return raw if buffering == 0 else io.BufferedWriter(raw)

    builtins.open = io.open = opened  # type: ignore[assignment]


def _wrapped(function: Callable[..., Any], countdown: _Countdown) -> Callable[..., Any]:
    def call(*args: Any, **more: Any) -> Any:
        return countdown.around(lambda: function(*args, **more))

    return call


def at_function_call(number: int, sent: int = signal.SIGKILL) -> None:
    """Send this process a signal at its n-th call of a Python function: any moment at all."""
    left = number

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        left -= event == "call"
        if left <= 0:
            sys.setprofile(None)
            os.kill(os.getpid(), sent)

    sys.setprofile(count)


def closed_pipe() -> None:
    """Standard output is a pipe that nobody reads, as after ``| head``."""
    read, write = os.pipe()
    os.dup2(write, 1)
    os.close(read)
    os.close(write)


def full_output() -> None:
    """Standard output is a file on a full disk."""
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def full_disk(size: int) -> None:
    """No file may grow beyond this size; what is printed is not meant."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
