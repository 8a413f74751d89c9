"""The folder of one run: who may write to it, and what lies where.

``config.toml``, ``metrics.jsonl`` (one line per epoch), ``result.json``, ``model.safetensors``,
``units.png`` and ``checkpoints/``; once asked for, ``measure.json`` and ``explore.html``.
Everything that can be refused is refused before training.
"""

import fcntl
import json
import os
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lgdgcn import storage
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["RunFolder"]


class RunFolder:
    """The output folder of one run, held by one process at a time.

    A context manager: on entry the folder is made, tried, locked and cleared (unless resuming); on
    exit the lock is given back.

    Args:
        path: The folder; parents are made.
        resume: Go on with the run that is there, if any.
        overwrite: Replace the run that is there.
    """

    def __init__(self, path: str | Path, *, resume: bool = False, overwrite: bool = False) -> None:
        self.path = Path(path)
        self.resume = resume
        self.overwrite = overwrite
        self.config = self.path / "config.toml"
        self.metrics = self.path / "metrics.jsonl"
        self.result = self.path / "result.json"
        self.model = self.path / "model.safetensors"
        self.figure = self.path / "units.png"
        self.measures = self.path / "measure.json"
        self.page = self.path / "explore.html"
        self.checkpoints = self.path / "checkpoints"
        self.lock = self.path / "run.lock"
        self._descriptor: int | None = None

    def checkpoint(self, seed: int) -> Path:
        """Folder and name of one seed's checkpoint, as :mod:`lgdgcn.train.checkpoint` wants it."""
        return self.checkpoints / f"seed-{seed}"

    def __enter__(self) -> Self:
        self._create()
        self._descriptor = self._take_lock()
        try:
            if not self.resume:
                self._refuse_or_clear()
            for folder in (self.path, self.checkpoints):
                storage.remove_leftovers(folder)
            self.truncate_metrics(lambda record: True)  # drops a line a kill has torn
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _create(self) -> None:
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            for folder in (self.path, self.checkpoints):
                with tempfile.TemporaryFile(dir=folder) as probe:
                    probe.write(b"probe")
        except OSError as error:
            for part in (self.checkpoints, *self.checkpoints.parents):
                if os.path.lexists(part) and not os.path.isdir(part):
                    raise InputError(
                        f"cannot use {self.path} as run folder: {part} is a file, not a folder; "
                        "choose another --out"
                    ) from error
            reason = error.strerror or error
            raise InputError(
                f"cannot write to run folder {self.path}: {reason}; choose another --out"
            ) from error

    def _refuse_or_clear(self) -> None:
        """Keep a run that is there unless told otherwise; clear what a failed start has left."""
        saved = sorted(self.checkpoints.glob("*.safetensors"))
        if not self.overwrite and (self.result.exists() or saved):
            what = "a finished" if self.result.exists() else "an unfinished"
            raise InputError(
                f"{self.path} already holds {what} run: add --resume to go on with it, "
                "or choose another --out"
            )
        seal = self.model.with_name(self.model.name + ".sha256")
        written = (self.result, self.model, seal, self.figure, self.measures, self.page)
        files = (*written, self.metrics, self.config)
        try:
            for file in (*files, *saved, *self.checkpoints.glob("*.safetensors.sha256")):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise storage.cannot_write(file, error) from error

    # Lock

    def _take_lock(self) -> int:
        while True:
            try:
                descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise storage.cannot_write(self.lock, error) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(descriptor):
                    self._sign(descriptor)
                    return descriptor
            except BlockingIOError as error:
                owner = _owner(descriptor)
                os.close(descriptor)
                raise InputError(
                    f"{self.path} is in use by {owner}: wait for it or choose another --out"
                ) from error
            except OSError as error:
                os.close(descriptor)
                raise InputError(
                    f"cannot lock {self.lock}: {error.strerror or error}; choose another --out"
                ) from error
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # its owner removed it between our open and our lock: again

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.lock))
        except FileNotFoundError:
            return False

    def _sign(self, descriptor: int) -> None:
        if os.fstat(descriptor).st_size:
            warnings.warn(
                f"taking over {self.path} from {_owner(descriptor)}, which ended without "
                "giving back its lock",
                LGDWarning,
                stacklevel=4,
            )
        start = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "start": start}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(owner).encode() + b"\n", 0)

    def _release(self) -> None:
        if self._descriptor is None:
            return
        if self._is_current(self._descriptor):
            with suppress(OSError):
                self.lock.unlink()  # while still held, so that it is ours
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # forked workers may share it
        os.close(self._descriptor)
        self._descriptor = None

    # Content

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add one line to ``metrics.jsonl``; all of it or, when the disk is full, none of it."""
        line = json.dumps(storage.to_json(record), allow_nan=False).encode() + b"\n"
        try:
            with self.metrics.open("ab", buffering=0) as file:
                size = file.tell()
                try:
                    written = 0
                    while written < len(line):
                        written += file.write(line[written:])
                except BaseException:
                    with suppress(OSError):
                        file.truncate(size)
                    raise
        except OSError as error:
            raise storage.cannot_write(self.metrics, error) from error

    def truncate_metrics(self, keep: Callable[[dict[str, Any]], bool]) -> None:
        """Keep the lines of the log that are whole and that ``keep`` wants.

        Args:
            keep: Given a line's record, whether it belongs to the state that is resumed.
        """
        if self.metrics.is_file():
            lines = self.metrics.read_bytes().splitlines()
            kept = [line + b"\n" for line in lines if (record := _record(line)) and keep(record)]
            storage.atomic_write(self.metrics, b"".join(kept))

    def write_config(self, text: str) -> None:
        """Write ``config.toml``."""
        storage.write_text(self.config, text)

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write ``result.json``; a metric that does not exist is ``null``, never NaN."""
        storage.write_json(self.result, result)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _owner(descriptor: int) -> str:
    record = _record(os.pread(descriptor, 4096, 0)) or {}
    return f"process {record.get('pid', 'unknown')} on {record.get('host', 'unknown host')}"
