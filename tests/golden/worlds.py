"""What is there, and what is broken, when a recorded call is made: a folder and its preparations.

A preparation is a line such as ``cut run/model.safetensors 7``: a function below and its words.
"""

import codecs
import errno
import os
import pickle
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, chdir
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import torch
import typer
from safetensors import safe_open
from safetensors.torch import save

from cli.runner import call
from faults.hostile import sealed
from golden import homes
from lgdgcn.data import download
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import available_memory

__all__ = ["World"]

MEMORY = 8 << 30  # bytes that every machine seems to have
CHANGING = {  # from machine to machine and from version to version, and what stands for it
    r"process \d+ on [\w.-]+": "process {...}",
    r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}(?=\.\.\.)|\b[0-9a-f]{8}(?=…)": "{...}",
}
PROGRESS = re.compile(r"\d+ %: ")

_command = cache(typer.main.get_command)

PREPARATIONS: dict[str, Callable[..., None]] = {}


class World:
    """A working folder with what the preparations make of it; close it when it is no longer used.

    Args:
        preparations: Lines of a name and words.
    """

    def __init__(self, preparations: list[str]) -> None:
        self._stack = ExitStack()
        self.changing = dict(CHANGING)
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self.here = Path(os.path.realpath(folder))
        self.enter(chdir(self.here))
        self.enter(homes.plain_machine())
        self.enter(mock.patch.dict(os.environ, {"LGDGCN_DATA": str(self.here)}))
        self.enter(mock.patch.object(download, "cache_dir", return_value=self.here / "cache"))
        for fetch in ("_retrieve", "_download_wheel"):
            self.enter(mock.patch.object(download, fetch, side_effect=ConnectionError))
        self.enter(mock.patch.object(typer.main, "get_command", _command))  # which takes 10 ms
        memory(self, str(MEMORY))
        try:
            for line in preparations:
                name, *words = _words(line)
                PREPARATIONS[name](self, *words)
        except BaseException:
            self.close()
            raise
        self._content = _content(self.here)

    def enter(self, manager: AbstractContextManager[object]) -> None:
        """Enter a context until this world is closed."""
        self._stack.enter_context(manager)

    def later(self, function: Callable[..., object], *args: object) -> None:
        """Call a function when this world is closed."""
        self._stack.callback(function, *args)

    def close(self) -> None:
        self._stack.close()

    @property
    def is_changed(self) -> bool:
        """Whether anything is no longer as it was prepared."""
        return _content(self.here) != self._content

    def call(self, line: str) -> list[str]:
        """What a command line prints to standard error, its exit code, and what files become."""
        program, *words = _words(line)
        assert program == "lgdgcn", line
        outcome = call(*words)
        said = [self._plain(text) for text in outcome.err.splitlines() if not PROGRESS.match(text)]
        *above, last = said or [""]
        before, after = self._content, _content(self.here)
        files = [f"+ {name}" for name in after if name not in before]
        files += [f"- {name}" for name in before if name not in after]
        files += [f"~ {name}" for name in after if name in before and after[name] != before[name]]
        return [*above, f"[{outcome.code}] {last}".rstrip(), *files]

    def _plain(self, text: str) -> str:
        text = text.replace(str(self.here), "{here}")
        for pattern, words in self.changing.items():
            text = re.sub(pattern, words, text)
        return text


def _words(line: str) -> list[str]:
    """The words of a line as a shell takes them apart.

    ``{x*500}`` is 500 times x, ``{synthetic}`` the graph of homes.py.
    """

    def repeated(found: re.Match[str]) -> str:
        return codecs.decode(found[1], "unicode_escape") * int(found[2])

    line = line.replace("{synthetic}", homes.SYNTHETIC)
    return [re.sub(r"\{([^{}]+)\*(\d+)\}", repeated, word) for word in shlex.split(line)]


def _content(folder: Path) -> dict[str, object]:
    """Every path below a folder, with what a file holds or where a link leads."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[f"{name}/"] = None
        else:
            found[name] = path.read_bytes() if path.is_file() else "a pipe"
    return found


def preparation(function: Callable[..., None]) -> Callable[..., None]:
    PREPARATIONS[function.__name__.replace("_", "-")] = function
    return function


def _text(words: str) -> str:
    r"""Words in which ``\n`` ends a line."""
    return words.replace("\\n", "\n")


# What is there


@preparation
def home(world: World, name: str) -> None:
    """A small graph or run: see homes.py."""
    homes.copy(name, world.here)


@preparation
def lgdgcn(world: World, *words: str) -> None:
    """A command that goes well."""
    outcome = call(*words)
    assert outcome.code == 0, outcome


@preparation
def arrays(world: World, *changes: str) -> None:
    """A graph of 12 nodes as npz files, with changes to its arrays such as ``y = y[:-1]``."""
    index = np.arange(12)
    ring = np.stack([index, (index + 3) % 12])
    content: dict[str, object] = {"x": np.eye(12, 4, dtype=np.float32), "y": index % 3}
    content["edge_index"] = np.concatenate([ring, ring[::-1]], axis=1)
    for number, name in enumerate(("train", "val", "test")):
        content[f"{name}_mask"] = index // 3 % 3 == number
    for change in changes:
        exec(change, {"np": np, "nan": np.nan, "inf": np.inf, "objects": _objects}, content)
    Path("graph").mkdir()
    np.savez("graph/edges.npz", edge_index=content.pop("edge_index"))
    np.savez("graph/nodes.npz", **content)


@preparation
def write(world: World, file: str, text: str) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(_text(text), encoding="utf-8")


@preparation
def folder(world: World, name: str) -> None:
    remove(world, name)
    Path(name).mkdir(parents=True)


@preparation
def link(world: World, name: str, target: str) -> None:
    remove(world, name)
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).symlink_to(target)


@preparation
def pipe(world: World, name: str) -> None:
    remove(world, name)
    os.mkfifo(name)


# What is broken


@preparation
def remove(world: World, name: str) -> None:
    path = Path(name)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@preparation
def move(world: World, old: str, new: str) -> None:
    shutil.move(old, new)


@preparation
def replace(world: World, file: str, old: str, new: str, count: str = "-1") -> None:
    text = Path(file).read_text(encoding="utf-8")
    assert _text(old) in text, (file, old)
    Path(file).write_text(text.replace(_text(old), _text(new), int(count)), encoding="utf-8")


@preparation
def append(world: World, file: str, text: str) -> None:
    with open(file, "a", encoding="utf-8") as opened:
        opened.write(_text(text))


@preparation
def flip(world: World, file: str, place: str) -> None:
    """Another bit in one byte."""
    content = bytearray(Path(file).read_bytes())
    content[int(place)] ^= 4
    Path(file).write_bytes(content)


@preparation
def cut(world: World, file: str, count: str) -> None:
    """Without the last bytes."""
    Path(file).write_bytes(Path(file).read_bytes()[: -int(count)])


@preparation
def spoil(world: World, file: str, escaped: str) -> None:
    """Bytes in place of whatever a file holds."""
    Path(file).write_bytes(codecs.decode(escaped, "unicode_escape").encode("latin-1"))


@preparation
def model_of(world: World, name: str) -> None:
    """The model of another home's run in place of the run's own."""
    shutil.copy(homes.home(name) / "run/model.safetensors", "run/model.safetensors")


class Payload:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return open, ("marker", "w")


def _objects(count: int) -> np.ndarray:
    return np.array([Payload()] * count, dtype=object)


@preparation
def pickled(world: World, file: str) -> None:
    """A pickle that would run."""
    Path(file).write_bytes(pickle.dumps(Payload(), 2))


@preparation
def flatten(world: World, file: str) -> None:
    """Weights of another shape."""
    with safe_open(file, "pt") as old:
        about, names = old.metadata(), list(old.keys())
        tensors = {name: old.get_tensor(name).flatten() for name in names}
    sealed(Path(file), save(tensors, metadata=about))


# What happens


@preparation
def memory(world: World, size: str) -> None:
    """Bytes that the machine seems to have, whoever has imported the function that says so."""
    world.later(setattr, available_memory, "__code__", available_memory.__code__)
    available_memory.__code__ = eval(f"lambda device=None: {int(size)}").__code__


@preparation
def limit(world: World, name: str, value: str) -> None:
    """Another value of a constant."""
    world.enter(mock.patch(name, int(value)))


@preparation
def without(world: World, module: str) -> None:
    """A package that is not installed."""
    world.enter(mock.patch.dict(sys.modules, {module: None}))


@preparation
def largest_file(world: World, size: str) -> None:
    """No file can be written beyond this size, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), limits[1]))
    world.later(resource.setrlimit, resource.RLIMIT_FSIZE, limits)


@preparation
def in_use(world: World, run: str) -> None:
    """A run folder that a process is writing to."""
    world.enter(Run.create(run, resume=Path(run).exists()))


@preparation
def signal_in_epoch(world: World, count: str, name: str) -> None:
    """A signal while a run is trained."""
    world.enter(homes.signal_in_epoch(int(count), signal.Signals[name]))


FAILURES: dict[str, BaseException] = {
    "internal": RuntimeError("two\nlines"),
    "memory": torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 20 GiB"),
    "disk": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "Ctrl-C": KeyboardInterrupt(),
}


@preparation
def failure(world: World, what: str) -> None:
    """What ``lgdgcn data list`` runs into."""
    listing = mock.Mock(side_effect=FAILURES[what])
    world.enter(mock.patch("lgdgcn.cli.data.available", listing))


@preparation
def hide(world: World, pattern: str) -> None:
    """Words of a message that depend on the machine, or that a library chooses."""
    world.changing[pattern] = "{...}"
