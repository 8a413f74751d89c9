"""The folder of one run: who may write to it, and what lies where.

``config.toml``, ``metrics.jsonl`` (one line per epoch), ``result.json``, ``model.safetensors``,
``units.png`` and, of several seeds, ``model-seed-0.safetensors`` and so on; while it trains
``checkpoint.safetensors`` with ``checkpoint.previous.safetensors``; once asked for,
``predictions.csv``, ``predictions-edges.csv`` (``.parquet`` of large graphs), ``measure.json`` and
``explore.html``; below ``compared/`` a folder of the same kind for every model beside it. Reasons
of the edges are ``reasons.safetensors`` and ``reasons.png``; without labels there is no model.
A run owns the files of these names, once ``config.toml`` says that it is a run, and nothing else.
``run.lock`` is empty and stays.
Everything that can be refused is refused before training.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from lgdgcn import storage
from lgdgcn.data.packed import is_packed
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.runs.files import read_config

__all__ = ["Run", "only_process"]

_LOCK = "run.lock"
_MORE_NAMES = re.compile(
    r"model-seed-[0-9]+\.safetensors|predictions(-edges)?\.parquet"
    r"|checkpoint\.previous\.safetensors"
)


class Run:
    """A run folder: to read, or to be written by one process at a time.

    To write it is a context manager: on entry the folder is checked, made, locked and cleared
    (unless resuming); on exit the lock is given back.
    """

    def __init__(
        self, path: str | Path, resume: bool = False, overwrite: bool = False, inner: bool = False
    ) -> None:
        self.path = Path(path)
        self.resume, self.overwrite, self.inner = resume, overwrite, inner
        self.config = self.path / "config.toml"
        self.metrics = self.path / "metrics.jsonl"
        self.result = self.path / "result.json"
        self.model = self.path / "model.safetensors"
        self.figure = self.path / "units.png"
        self.predictions = self.path / "predictions.csv"
        self.edge_predictions = self.path / "predictions-edges.csv"
        self.measures = self.path / "measure.json"
        self.page = self.path / "explore.html"
        self.reasons = self.path / "reasons.safetensors"
        self.reasons_figure = self.path / "reasons.png"
        self.checkpoint = self.path / "checkpoint.safetensors"
        self.lock = self.path / _LOCK
        files = {value for value in vars(self).values() if isinstance(value, Path)}
        self._names = {file.name for file in files - {self.path}}
        self._held: ExitStack | None = None

    @classmethod
    def create(cls, path: str | Path, resume: bool = False, overwrite: bool = False) -> Self:
        """A run to write; nothing is touched before it is entered.

        Args:
            path: The folder; parents are made.
            resume: Go on with the run that is there.
            overwrite: Replace the run that is there.
        """
        return cls(path, resume, overwrite)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """A run to read."""
        return cls(path)

    def compared(self, model: str) -> "Run":
        """The folder of a model that is trained beside this run's; it may not have begun."""
        return Run(self.path / "compared" / model, self.resume, self.overwrite, inner=True)

    def seed_model(self, seed: int) -> Path:
        """The model of one of several seeds."""
        return self.path / f"model-seed-{seed}.safetensors"

    def owns(self, file: Path) -> bool:
        """Whether a path has the place and the name of a file that a run makes here."""
        here = os.path.realpath(file.parent) == os.path.realpath(self.path)
        return here and self._is_ours(file.name)

    def _is_ours(self, name: str) -> bool:
        return name in self._names or _MORE_NAMES.fullmatch(name) is not None

    def files(self) -> list[Path]:
        """The files under a run's names that are there but the lock, ``config.toml`` last.

        Raises:
            InputError: A link or a folder stands where a file of the run goes.
        """
        for folder in (self.path.parent, self.path) if self.inner else ():
            if folder.is_symlink():
                storage.plain_file(folder)  # refuses it
        try:
            names = sorted(filter(self._is_ours, os.listdir(self.path)))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage.cannot_write(self.path, error) from error
        there = [self.path / name for name in names if storage.plain_file(self.path / name)]
        return sorted((file for file in there if file != self.lock), key=self.config.__eq__)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do, not even a checkpoint to remove."""
        return self.result.exists() and not self.checkpoint.exists()

    @property
    def source(self) -> GraphSource:
        """The graph that ``config.toml`` names."""
        run = read_config(self.config)["run"]
        options = {key: run.get(key) for key in ("root", "features", "label", "id")}
        ignore = tuple(run.get("ignore", []))
        return GraphSource(run["dataset"], split=run["split"], ignore=ignore, **options)

    def target(self, out: Path | None, usual: Path, graph: GraphSource | None = None) -> Path:
        """Return the file that a command on this run writes, once it is known to be none of ours.

        Args:
            out: What a user names, if anything.
            usual: The file of this run that the command makes, and may replace.
            graph: The graph that is read; by default that of the run.
        """
        out, graph = out or usual, graph or self.source
        for file in (out, Path(os.path.realpath(out))):
            if file.name == usual.name and self.owns(file):
                storage.plain_file(file)
            elif _is_of_a_run(file):
                raise InputError(f"--out {out} is a file of a run; choose another name")
            if graph.is_folder and _is_of_a_graph(file, Path(graph.dataset)):
                raise InputError(f"--out {out} is a file of the graph; choose another name")
        return storage.check_target(out)

    # Entry

    def check(self) -> None:
        """Refuse a folder that cannot be used, before any work and before anything is touched.

        Raises:
            InputError: The folder cannot be written to; it holds files under a run's names and is
                no run; a run is there that is to be kept, or none that could be resumed.
        """
        try:
            storage.probe_folder(self.path)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"cannot use run folder {self.path}: {reason}; choose another --out"
            ) from error
        files = self.files()
        if self._held is None and storage.plain_file(self.lock):
            with only_process(self.path):  # that it is in use is said first
                pass
        if files and self.config not in files:
            raise InputError(
                f"{files[0]} is not known to be of a run of lgdgcn, without a config.toml that "
                "says so: move it away or choose another --out"
            )
        if files:
            read_config(self.config)
        # a configuration alone is somebody's copy; with a lock it is a run that failed at once
        begun = self.lock.exists() or self.result in files or self.checkpoint in files
        more = {*files} - {self.config, self.metrics}
        if self.resume and not (self.inner or begun):
            raise InputError(
                f"there is no run in {self.path} to go on with: leave out --resume, or name "
                "the folder of a run with --out"
            )
        if not (self.resume or self.overwrite) and (more or (files and not begun)):
            finished = self.result in files
            what = "a finished" if finished else "an unfinished"
            aim = f"see it with lgdgcn show {self.path}" if finished else "add --resume to go on"
            raise InputError(
                f"{self.path} already holds {what} run: {aim}, add --overwrite to replace it, "
                "or choose another --out"
            )

    def __enter__(self) -> Self:
        self.check()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage.cannot_write(self.path, error) from error
        with ExitStack() as held:
            held.enter_context(only_process(self.path))
            self._held = held
            self.check()  # another process may have been here before we had the lock
            if not self.resume:
                self._clear()
            storage.remove_leftovers(self.path)
            self.cut_metrics(lambda record: True)  # drops a line a kill has torn
            self._held = held.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._held is not None:
            self._held.close()
        self._held = None

    def _clear(self) -> None:
        """Remove what an earlier run has made, ``config.toml`` last: it says that all is ours.

        What stood beside that run goes with it: a run that is resumed takes it for its own.
        """
        beside = []
        for path in sorted((self.path / "compared").glob("*")) if self.overwrite else ():
            with suppress(InputError):  # what is not known to be a run is none
                read_config(path / self.config.name)
                beside.append(self.compared(path.name))
        files = [file for run in beside for file in (*run.files(), run.lock)]
        for file in (*files, *self.files()):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise storage.cannot_write(file, error) from error
        for run in beside:
            with suppress(OSError):  # somebody's files are in it
                run.path.rmdir()

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

    def cut_metrics(
        self,
        keep: Callable[[dict[str, Any]], bool],
        order: Callable[[dict[str, Any]], Any] = lambda record: 0,
    ) -> None:
        """Keep the lines of the log that are whole and that ``keep`` wants, in this order."""
        if storage.plain_file(self.metrics):
            old = self.metrics.read_bytes()
            every = ((_record(line), line + b"\n") for line in old.splitlines())
            kept = [(one, line) for one, line in every if one and keep(one)]
            new = b"".join(line for _, line in sorted(kept, key=lambda pair: order(pair[0])))
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


def _is_of_a_run(file: Path) -> bool:
    run = Run.open(file.parent)
    try:
        return run.owns(file) and bool(read_config(run.config))
    except InputError:  # not a run
        return False


def _is_of_a_graph(file: Path, folder: Path) -> bool:
    table = file.name.partition(".")[0] in ("nodes", "edges") or is_packed(folder)
    return table and os.path.realpath(file.parent) == os.path.realpath(folder)


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder; the system takes back the lock of a dead one.

    Raises:
        InputError: Another process is in it, or it cannot be locked.
    """
    file = folder / _LOCK
    if storage.plain_file(file) and file.stat().st_size:
        raise InputError(f"{file} is not a lock of lgdgcn: move it away or choose another --out")
    lock = FileLock(file)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise InputError(
            f"{folder} is in use by another process: wait for it or choose another --out"
        ) from None
    except OSError as error:
        raise storage.cannot_write(file, error) from error
    try:
        yield
    finally:
        lock.release()


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
