"""Writes a packed graph beside its target, and moves it there when it is whole.

Everything goes to a hidden folder first, ``.graph.lgd.packing``. What is finished is noted there in
``stages.json``: a writer that finds these notes, made from the same inputs, goes on behind them.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from lgdgcn import __version__
from lgdgcn.data.packed.manifest import (
    MANIFEST,
    FileEntry,
    Manifest,
    hash_file,
    is_packed,
    new_hash,
)
from lgdgcn.data.packed.text import arrow
from lgdgcn.errors import InputError
from lgdgcn.storage import cannot_write, make_folder, write_json

__all__ = ["UNKNOWN", "ArrayWriter", "PackedWriter", "TableWriter", "index_type"]

UNKNOWN = 255  # in a row of `y` that is a label set
STAGES, LOCK = "stages.json", "lock"


def index_type(count: int) -> type[np.signedinteger[Any]]:
    """The smallest type that numbers so many things."""
    return np.int32 if count <= 2**31 - 1 else np.int64


class ArrayWriter:
    """Appends rows to the file of an array."""

    def __init__(self, path: Path, dtype: Any, row_shape: tuple[int, ...]) -> None:
        self.path, self.dtype = path, np.dtype(dtype).newbyteorder("<")
        self.row_shape, self.rows, self.bytes = row_shape, 0, 0
        self._hash = new_hash()
        self._file = open(path, "wb")  # noqa: SIM115 (closed by the caller)

    def append(self, rows: Any) -> None:
        """Write some more rows ``[n, ...]``, which are cast to the type of the array."""
        rows = np.ascontiguousarray(rows, self.dtype)
        if rows.shape[1:] != self.row_shape:
            raise ValueError(f"rows of {self.path.name} have shape {rows.shape[1:]}")
        data = rows.reshape(-1).view(np.uint8).data
        self._file.write(data)
        self._hash.update(data)
        self.rows += len(rows)
        self.bytes += len(data)

    def close(self) -> FileEntry:
        """Flush the file to the disk; returns what it must be from now on."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        shape = (self.rows, *self.row_shape)
        digest = self._hash.hexdigest()
        return FileEntry(self.path.name, self.bytes, digest, self.dtype.str, shape)

    def abandon(self) -> None:
        """Close the file, which is not finished."""
        with suppress(OSError):
            self._file.close()


class TableWriter:
    """Appends rows to an Arrow file of text."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.rows = path, 0
        # 64-bit offsets: a batch may hold more than 2 GB of text
        self._schema = arrow().schema([(name, arrow().large_string()) for name in columns])
        self._file = open(path, "wb")  # noqa: SIM115 (closed by the caller)
        self._writer = arrow().ipc.new_file(self._file, self._schema)

    def append(self, columns: Sequence[Any]) -> None:
        """Write some more rows: the cells of each column, lists of text or Arrow arrays."""
        pyarrow = arrow()
        kind = pyarrow.large_string()
        arrays = [
            c.cast(kind) if isinstance(c, pyarrow.Array) else pyarrow.array(c, kind)
            for c in columns
        ]
        batch = pyarrow.record_batch(arrays, schema=self._schema)
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> FileEntry:
        """Flush the file to the disk; returns what it must be from now on."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        size = self.path.stat().st_size
        return FileEntry(self.path.name, size, hash_file(self.path), "", (self.rows,))

    def abandon(self) -> None:
        """Close the file, which is not finished."""
        with suppress(Exception):  # the end of a table does not fit on a full disk, either
            self._writer.close()
        with suppress(OSError):
            self._file.close()


class PackedWriter:
    """Writes the arrays of a graph in pieces.

    Example::

        with PackedWriter("graph.lgd") as writer:
            with writer.array("column", np.int32) as column:
                column.append([1, 0])
            ...
            writer.finish(Manifest("graph", nodes=2, edges=2))

    Where the block is left without :meth:`finish` the target is as it was. The work so far is kept
    after a kill, a full disk or Ctrl-C, and removed after any other error.

    Args:
        target: Folder to make.
        inputs: What identifies the inputs, as plain values: stages that were finished with the
            same inputs are not done again.
        overwrite: Whether a packed graph at the target is replaced.
    """

    def __init__(self, target: str | Path, inputs: Any = None, overwrite: bool = False) -> None:
        self.target = Path(os.path.abspath(target))
        self.work = self.target.with_name(f".{self.target.name}.packing")
        self.overwrite = overwrite
        self._inputs = json.loads(json.dumps([inputs, __version__]))
        self._stages: dict[str, Any] = {}
        self._files: dict[str, FileEntry] = {}
        self._finished = False

    def __enter__(self) -> "PackedWriter":
        self._check_target()
        make_folder(self.work)
        self._lock = FileLock(self.work / LOCK)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise InputError(f"{self.target} is being packed by another process") from None
        self._stages = self._saved_stages()
        if not self._stages:
            self._clear()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()
        if self._finished:
            return
        full = error is not None and isinstance(error.__cause__ or error, OSError)
        if not self._stages or not (full or kind is KeyboardInterrupt):
            shutil.rmtree(self.work, ignore_errors=True)

    def facts(self, stage: str) -> Any:
        """What a finished stage has noted; ``None`` if it has to be done."""
        return self._stages.get(stage, {}).get("facts")

    def complete(self, stage: str, facts: Any = True) -> Any:
        """Note that a stage and all files so far are finished.

        Args:
            stage: Its name.
            facts: Plain values, which later stages ask for with :meth:`facts`.
        """
        files = {name: asdict(entry) for name, entry in self._files.items()}
        self._stages[stage] = {"facts": facts, "files": files}
        write_json(self.work / STAGES, {"inputs": self._inputs, "stages": self._stages})
        return facts

    @contextmanager
    def array(self, name: str, dtype: Any, *row_shape: int) -> Iterator[ArrayWriter]:
        """Write an array ``[rows, *row_shape]`` piece by piece."""
        with self.refusals():
            file = ArrayWriter(self.work / f"{name}.bin", dtype, row_shape)
            try:
                yield file
                self._files[name] = file.close()
            finally:
                file.abandon()

    @contextmanager
    def table(self, name: str, columns: Sequence[str]) -> Iterator[TableWriter]:
        """Write columns of text piece by piece."""
        with self.refusals():
            file = TableWriter(self.work / f"{name}.arrow", columns)
            try:
                yield file
                self._files[name] = file.close()
            finally:
                file.abandon()

    def finish(self, about: Manifest) -> Path:
        """Write the manifest and move the folder to its place.

        Args:
            about: What is in it; its files and version are filled in here.
        """
        about = replace(about, files=dict(self._files), package=__version__)
        with self.refusals():
            _remove(self.work / STAGES)  # first: what the stages rely on goes now
            kept = {entry.file for entry in self._files.values()}
            for entry in os.listdir(self.work):
                if entry not in kept and entry != LOCK:
                    _remove(self.work / entry)
            write_json(self.work / MANIFEST, about.as_json())
            self._lock.release()
            _remove(self.work / LOCK)
            self._check_target()
            old = self.work.with_name(f".{self.target.name}.{secrets.token_hex(8)}.old")
            if os.path.lexists(self.target):
                os.rename(self.target, old)
            os.rename(self.work, self.target)
            self._finished = True
            shutil.rmtree(old, ignore_errors=True)
        return self.target

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Name the target where the system refuses to write."""
        try:
            yield
        except OSError as error:
            if isinstance(error, InputError):
                raise
            raise cannot_write(self.target, error) from error

    def _check_target(self) -> None:
        if not os.path.lexists(self.target):
            return
        if not is_packed(self.target):
            raise InputError(f"{self.target} is there already and no packed graph; choose another")
        if not self.overwrite:
            raise InputError(f"{self.target} is there already; use --overwrite or another name")

    def _saved_stages(self) -> dict[str, Any]:
        """Stages that were finished with the same inputs and whose files are still there."""
        try:
            saved = json.loads((self.work / STAGES).read_text(encoding="utf-8"))
            stages: Mapping[str, Any] = saved["stages"] if saved["inputs"] == self._inputs else {}
            for stage in stages.values():
                for name, entry in stage["files"].items():
                    made = FileEntry(**{**entry, "shape": tuple(entry["shape"])})
                    if (self.work / made.file).stat().st_size != made.bytes:
                        return {}
                    self._files[name] = made
            return dict(stages)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._files = {}
            return {}

    def _clear(self) -> None:
        """Remove what another attempt has left."""
        for entry in os.listdir(self.work):
            if entry != LOCK:
                _remove(self.work / entry)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
