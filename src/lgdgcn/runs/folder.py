"""The folder of one run: who may write to it, and what lies where.

``config.toml``, ``metrics.jsonl`` (one line per epoch), ``result.json``, ``model.safetensors``,
``units.png`` and ``checkpoints/``, where the models of several seeds stay; once asked for,
``predictions.csv``, ``predictions-edges.csv`` (``.parquet`` of large graphs), ``measure.json`` and
``explore.html``; below ``compared/`` a folder of the same kind for every model beside it. A run of
``--task edges`` has ``edge_reasons.safetensors``, ``edge_reasons.json`` and ``reasons.png`` instead
of a model and its units. A run owns the files of these names, once ``config.toml`` says that it is
a run, and nothing else.
Everything that can be refused is refused before training.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lgdgcn import storage
from lgdgcn.errors import InputError
from lgdgcn.runs.files import read_config
from lgdgcn.runs.lock import RunLock

__all__ = ["RunFolder"]

_CHECKPOINT = re.compile(r"seed-[0-9]+-([0-9]{6,12}|model)\.safetensors(\.sha256)?")


class RunFolder:
    """The output folder of one run, held by one process at a time.

    A context manager: on entry the folder is checked, made, locked and cleared (unless resuming);
    on exit the lock is given back.

    Args:
        path: The folder; parents are made.
        resume: Go on with the run that is there.
        overwrite: Replace the run that is there.
        outer: The run that this one is compared with, whose folder this one is in. Resuming, the
            compared run may not have begun.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        resume: bool = False,
        overwrite: bool = False,
        outer: "RunFolder | None" = None,
    ) -> None:
        self.path = Path(path)
        self.resume = resume
        self.overwrite = overwrite
        self.outer = outer
        self.config = self.path / "config.toml"
        self.metrics = self.path / "metrics.jsonl"
        self.result = self.path / "result.json"
        self.model = self.path / "model.safetensors"
        self.figure = self.path / "units.png"
        self.predictions = self.path / "predictions.csv"
        self.edge_predictions = self.path / "predictions-edges.csv"
        self.measures = self.path / "measure.json"
        self.page = self.path / "explore.html"
        self.reasons = self.path / "edge_reasons.safetensors"
        self.reasons_figure = self.path / "reasons.png"
        self.checkpoints = self.path / "checkpoints"
        self._lock = RunLock(self.path)
        self.lock = self._lock.file

    def checkpoint(self, seed: int) -> Path:
        """Folder and name of one seed's checkpoint, as :mod:`lgdgcn.train.checkpoint` wants it."""
        return self.checkpoints / f"seed-{seed}"

    def seed_model(self, seed: int) -> Path:
        """The model of one of several seeds, which stays when its checkpoints are removed."""
        return self.checkpoints / f"seed-{seed}-model.safetensors"

    def compared(self, model: str) -> "RunFolder":
        """The folder of a model that is trained beside this run's own."""
        path = self.path / "compared" / model
        return RunFolder(path, resume=self.resume, overwrite=self.overwrite, outer=self)

    def owns(self, file: Path) -> bool:
        """Whether a path has the place and the name of a file that a run makes here."""
        if os.path.realpath(file.parent) == os.path.realpath(self.checkpoints):
            return _CHECKPOINT.fullmatch(file.name) is not None
        names = {own.name for own in (*self._names(), self.lock)}
        return os.path.realpath(file.parent) == os.path.realpath(self.path) and file.name in names

    def files(self) -> list[Path]:
        """The files under a run's names that are there, ``config.toml`` last.

        Raises:
            InputError: A link or a folder stands where a file of the run goes.
        """
        for folder in (self.checkpoints, *((self.path.parent, self.path) if self.outer else ())):
            if folder.is_symlink():
                storage.plain_file(folder)
        try:
            entries = sorted(os.listdir(self.checkpoints))
        except FileNotFoundError:
            entries = []
        except OSError as error:
            raise storage.cannot_write(self.checkpoints, error) from error
        saved = [self.checkpoints / name for name in entries if _CHECKPOINT.fullmatch(name)]
        return [file for file in (*saved, *self._names()) if storage.plain_file(file)]

    def _names(self) -> list[Path]:
        sealed = [self.model, self.reasons]
        sealed += [file.with_name(file.name + ".sha256") for file in sealed]
        written = [self.result, *sealed, self.figure, self.measures, self.page]
        of_edges = [self.reasons.with_suffix(".json"), self.reasons_figure]
        predicted = [self.predictions, self.edge_predictions]
        predicted += [file.with_suffix(".parquet") for file in predicted]
        return [*written, *of_edges, *predicted, self.metrics, self.config]

    # Entry

    def check(self) -> None:
        """Refuse a folder that cannot be used, before any work and before anything is touched.

        Raises:
            InputError: The folder cannot be written to; it holds files under a run's names and is
                no run; a run is there that is to be kept, or none that could be resumed.
        """
        try:
            for folder in (self.path, self.checkpoints):
                storage.probe_folder(folder)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"cannot use run folder {self.path}: {reason}; choose another --out"
            ) from error
        locked = self._lock.check()
        files = self.files()
        if files and self.config not in files:
            raise InputError(
                f"{files[0]} is not known to be of a run of lgdgcn, without a config.toml that "
                "says so: move it away or choose another --out"
            )
        if files:
            read_config(self.config)
        if self.resume:
            if not (locked or self.outer or self._has_begun(files)):
                raise InputError(
                    f"there is no run in {self.path} to go on with: leave out --resume, or name "
                    "the folder of a run with --out"
                )
        elif self._lock.held or not locked:  # else it may be in use, which is to be said
            self._refuse_to_replace(files)

    def _refuse_to_replace(self, files: list[Path]) -> None:
        if not self.overwrite and self._is_worth_keeping(files):
            finished = self.result in files
            what = "a finished" if finished else "an unfinished"
            aim = "print its results again" if finished else "go on with it"
            raise InputError(
                f"{self.path} already holds {what} run: add --resume to {aim}, --overwrite to "
                "replace it, or choose another --out"
            )

    def _has_begun(self, files: list[Path]) -> bool:
        """Whether a run was ended here, perhaps before it had written anything."""
        if files:  # a configuration alone is somebody's copy
            return self.result in files or self.checkpoints.is_dir()
        return self.path.is_dir() and os.listdir(self.path) == [self.checkpoints.name]

    def _is_worth_keeping(self, files: list[Path]) -> bool:
        """Whether there is more than the beginning of a run that failed before its first epoch."""
        more = {*files} - {self.config, self.metrics}
        return bool(more) or (bool(files) and not self._has_begun(files))

    def __enter__(self) -> Self:
        self.check()
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage.cannot_write(self.checkpoints, error) from error
        self._lock.__enter__()
        try:
            self.check()  # another process may have been here before we had the lock
            if not self.resume:
                self._clear()
            for folder in (self.path, self.checkpoints):
                storage.remove_leftovers(folder)
            self.truncate_metrics(lambda record: True)  # drops a line a kill has torn
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.__exit__(kind, error, trace)

    def _clear(self) -> None:
        """Remove what an earlier run has made, ``config.toml`` last: it says that all is ours.

        What stood beside that run goes with it: a run that is resumed takes it for its own.
        """
        beside = self._compared_runs() if self.overwrite else []
        for file in [file for run in (*beside, self) for file in run.files()]:
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise storage.cannot_write(file, error) from error
        for folder in (folder for run in beside for folder in (run.checkpoints, run.path)):
            with suppress(OSError):  # somebody's files are in it
                folder.rmdir()

    def _compared_runs(self) -> "list[RunFolder]":
        """The runs below ``compared/``; what is not known to be one is none."""
        found = []
        for path in sorted((self.path / "compared").glob("*")):
            run = self.compared(path.name)
            with suppress(InputError):
                read_config(run.config)
                found.append(run)
        return found

    # Content

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add one line to ``metrics.jsonl``; all of it or, when the disk is full, none of it."""
        line = json.dumps(storage.to_json(record), allow_nan=False).encode() + b"\n"
        storage.plain_file(self.metrics)
        try:
            with open(self.metrics, "ab", buffering=0, opener=_open_no_link) as file:
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
        self._rewrite_metrics(lambda lines: [line for line in lines if keep(line[0])])

    def sort_metrics(self, key: Callable[[dict[str, Any]], Any]) -> None:
        """Bring the lines of the log into order; equal ones stay as they are.

        Args:
            key: Given a line's record, what to sort by.
        """
        self._rewrite_metrics(lambda lines: sorted(lines, key=lambda line: key(line[0])))

    def _rewrite_metrics(
        self,
        change: Callable[[list[tuple[dict[str, Any], bytes]]], list[tuple[dict[str, Any], bytes]]],
    ) -> None:
        if storage.plain_file(self.metrics):
            old = self.metrics.read_bytes()
            lines = [(record, line) for line in old.splitlines() if (record := _record(line))]
            new = b"".join(line + b"\n" for _, line in change(lines))
            if new != old or self.metrics.stat().st_nlink > 1:  # a hard link may be a backup
                storage.atomic_write(self.metrics, new)

    def write_config(self, text: str) -> None:
        """Write ``config.toml``."""
        storage.plain_file(self.config)
        storage.write_text(self.config, text)

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write ``result.json``; a metric that does not exist is ``null``, never NaN."""
        storage.plain_file(self.result)
        storage.write_json(self.result, result)


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
