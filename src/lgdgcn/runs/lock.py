"""The lock of a folder in which one process at a time may train."""

import fcntl
import json
import os
import socket
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lgdgcn import storage
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["RunLock"]

_START = b'{"pid":'  # of every lock this package writes


class RunLock:
    """``run.lock`` of a folder; a context manager.

    The system takes the lock back when its owner dies; the file then still names that owner.

    Args:
        folder: The folder; it exists when the lock is taken.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "run.lock"
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether it is this process that has the lock."""
        return self._descriptor is not None

    def check(self) -> bool:
        """Whether there is such a file; one that is not a lock is refused. Nothing is touched."""
        if not storage.plain_file(self.file):
            return False
        try:
            with self.file.open("rb") as file:
                self._refuse_foreign(file.read(4096))
        except FileNotFoundError:  # given back at this moment
            return False
        except OSError as error:
            raise storage.cannot_write(self.file, error) from error
        return True

    def __enter__(self) -> Self:
        self._descriptor = self._take()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is None:
            return
        if self._is_current(self._descriptor):
            with suppress(OSError):
                self.file.unlink()  # while still held, so that it is ours
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # forked workers may share it
        os.close(self._descriptor)
        self._descriptor = None

    def _take(self) -> int:
        while True:
            storage.plain_file(self.file)
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
                descriptor = os.open(self.file, flags, 0o666)
            except OSError as error:
                raise storage.cannot_write(self.file, error) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(descriptor):
                    self._sign(descriptor)
                    return descriptor
            except BlockingIOError as error:
                owner = _owner(descriptor)
                os.close(descriptor)
                raise InputError(
                    f"{self.folder} is in use by {owner}: wait for it or choose another --out"
                ) from error
            except OSError as error:
                os.close(descriptor)
                raise InputError(
                    f"cannot lock {self.file}: {error.strerror or error}; choose another --out"
                ) from error
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its owner removed it between our open and our lock: again

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.lstat(self.file))
        except FileNotFoundError:
            return False

    def _sign(self, descriptor: int) -> None:
        self._refuse_foreign(os.pread(descriptor, 4096, 0))
        if os.fstat(descriptor).st_size:
            warnings.warn(
                f"taking over {self.folder} from {_owner(descriptor)}, which ended without "
                "giving back its lock",
                LGDWarning,
                stacklevel=5,  # whoever enters the folder
            )
        start = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "start": start}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner).encode() + b"\n", 0)

    def _refuse_foreign(self, content: bytes) -> None:
        """Refuse a file that somebody else made; a lock that a kill has torn is empty or cut."""
        written = content.rstrip(b"\0")
        if written[: len(_START)] != _START[: len(written)]:
            raise InputError(
                f"{self.file} is not a lock of lgdgcn: move it away or choose another --out"
            )


def _owner(descriptor: int) -> str:
    record: Any = None
    with suppress(ValueError, RecursionError):
        record = json.loads(os.pread(descriptor, 4096, 0))
    if not isinstance(record, dict):
        record = {}
    return f"process {record.get('pid', 'unknown')} on {record.get('host', 'unknown host')}"
