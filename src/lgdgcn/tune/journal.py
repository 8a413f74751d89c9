"""A study in one local file: safe to share between processes, and after any of them was killed."""

import fcntl
import json
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.storages.journal import JournalFileBackend, JournalStorage

from lgdgcn import storage
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["JournalLock", "open_journal", "repair"]

_START = b'{"op_code":'  # of every record Optuna writes
_BLOCK = 4096


def open_journal(path: Path) -> Any:
    """Open the journal, or start one; parent folders are made.

    Raises:
        InputError: The path cannot be used, or the file is no journal or damaged.
    """
    _make(path)
    repair(path)
    place = os.path.realpath(path)  # also valid after a change of folder
    try:
        return JournalStorage(_Journal(place, lock_obj=JournalLock(place)))
    except Exception as error:  # records of a foreign or newer kind fail in many ways
        raise InputError(
            f"cannot read study journal {path}: {error!r}; choose another --storage"
        ) from error


def _make(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a device or pipe"
            raise InputError(f"--storage {path} is {what}: name a file")
        with open(path, "ab"):
            pass
    except OSError as error:
        raise storage.cannot_write(path, error) from error


class _Journal(JournalFileBackend):
    """Optuna's journal, with our line for a disk that is full."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        try:
            super().append_logs(logs)
        except OSError as error:
            raise storage.cannot_write(self._file_path, error) from error


class JournalLock:
    """Keeps other writers of a journal out while a record is appended.

    The lock is on the file itself and the system takes it back when its owner dies, so none is ever
    stale; Optuna's own lock is a file that a killed worker leaves behind for all others to wait at.
    Whoever gets the lock first drops the torn line such a worker may also have left, so that no
    record is ever appended to half of another.

    Args:
        path: The journal.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self._held: int | None = None

    def acquire(self) -> bool:
        """Wait for the lock."""
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if (end := _end_of_last_line(descriptor, size)) < size:
                os.ftruncate(descriptor, end)
                _warn_of_torn_line(self.path, size - end)
        except BaseException:
            os.close(descriptor)
            raise
        self._held = descriptor
        return True

    def release(self) -> None:
        """Let the next one write."""
        if self._held is not None:
            descriptor, self._held = self._held, None
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a forked process may hold a copy open
            os.close(descriptor)


def _end_of_last_line(descriptor: int, size: int) -> int:
    """Bytes up to and with the last line break; one read unless a line was torn."""
    end = size
    while end:
        start = max(0, end - _BLOCK) if end < size else end - 1
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def repair(path: Path) -> None:
    """Check every record of a journal and drop a torn last one, which nobody has relied on.

    Other workers may be appending meanwhile: they wait.

    Raises:
        InputError: The file is no journal, or is damaged before its last line; it is unchanged.
    """
    try:
        with _exclusive(path) as file:
            good, number, line = 0, 0, b""
            for number, line in enumerate(file, start=1):  # noqa: B007
                if not _is_record(line):
                    break
                good += len(line)
            else:
                return
            _refuse_if_not_torn(path, number, line, is_last=not file.read(1))
            file.truncate(good)
            os.fsync(file.fileno())
    except OSError as error:
        raise storage.cannot_write(path, error) from error
    _warn_of_torn_line(path, len(line))


@contextmanager
def _exclusive(path: Path) -> Iterator[Any]:
    with open(path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield file
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def _is_record(line: bytes) -> bool:
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and isinstance(record.get("op_code"), int)


def _refuse_if_not_torn(path: Path, number: int, line: bytes, *, is_last: bool) -> None:
    if number == 1 and line[: len(_START)] != _START[: len(line)]:
        hint = f"name it sqlite:///{path}" if line.startswith(b"SQLite") else "choose another file"
        raise InputError(f"--storage {path} is not a study journal: {hint}")
    if not is_last:
        raise InputError(
            f"study journal {path} is damaged in line {number}: restore it from a copy, "
            "or choose another --storage"
        )


def _warn_of_torn_line(path: str | Path, size: int) -> None:
    warnings.warn(
        f"dropped a torn last line of {size} bytes from study journal {path}: "
        "a worker was killed while writing it",
        LGDWarning,
        stacklevel=3,
    )
