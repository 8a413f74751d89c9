"""A tree of this project: where it is, its words, and a process that runs its commands."""

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Self

from .spellings import Spelling

__all__ = ["Tree", "checkout", "data_folder"]

ROOT = Path(__file__).parents[3]
LIBRARIES = ("torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "numba")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class Tree:
    """One of the two trees; as a context, its process of commands ends with it.

    Args:
        name: ``old`` or ``new``.
        path: Its root.
        folder: Where its process of commands may write.
    """

    def __init__(self, name: str, path: Path, folder: Path) -> None:
        self.name, self.path, self.folder = name, path.resolve(), folder
        self.spelling = Spelling.of(self.path)
        self.digest = _digest(self.path / "src")
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def environment(self, threads: int, *, gpu: bool) -> dict[str, str]:
        """Variables of a process that runs this tree's sources, on a GPU only if it may."""
        own = {"PYTHONPATH": str(self.path / "src"), **dict.fromkeys(THREADS, str(threads))}
        data = data_folder()
        own |= {"LGDGCN_DATA": str(data)} if data else {}
        return {**os.environ, **own, **({} if gpu else {"CUDA_VISIBLE_DEVICES": ""})}

    def call(self, **call: Any) -> dict[str, Any]:
        """Run a command line in a fork; see :mod:`side_by_side.forks`."""
        if self._process is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            script = Path(__file__).with_name("forks.py")
            self._process = subprocess.Popen(
                [sys.executable, str(script), str(self.folder.resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=self.environment(threads=1, gpu=False),
            )
            self._send(self._warm_up())
        self._send(call)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"failed": "it has ended"}
        if "failed" in answer:
            where = self.folder / "warm-up.err"
            raise SystemExit(f"{self.path}: {answer['failed']}; see {where}")
        return answer

    def _send(self, message: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _warm_up(self) -> list[list[str]]:
        """Command lines that load and compile what most calls need."""
        run = self.folder / f"warm-{os.getpid()}"
        graph = self.spelling.command("synthetic", nodes=60)[0]
        train = self.spelling.command("train", "ours", graph=graph, run=run, seeds=2, epochs=2)
        names = ("predict", "explain", "measure")
        return [train, *(self.spelling.command(name, run=run) for name in names)]


def checkout(old: str, folder: Path) -> Path:
    """The folder of a tree; of a commit, its files are written below ``folder``.

    Raises:
        SystemExit: There is no such folder or commit.
    """
    if Path(old).is_dir():
        if (Path(old) / "src" / "lgdgcn").is_dir():
            return Path(old)
        raise SystemExit(f"{old} is no checkout: it has no src/lgdgcn")
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run(
        [*git, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{old}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise SystemExit(f"{old} is neither a folder nor a commit")
    commit = found.stdout.strip()
    tree = folder / commit[:12]
    if not tree.is_dir():
        packed = subprocess.run([*git, "archive", commit], capture_output=True, check=True).stdout
        part = tree.with_name(f"{tree.name}.part")
        with tarfile.open(fileobj=io.BytesIO(packed)) as files:
            files.extractall(part, filter="data")
        part.rename(tree)
    return tree


def data_folder() -> Path | None:
    """The folder of the benchmark graphs, if there is one."""
    named = [Path(os.environ["LGDGCN_DATA"])] if "LGDGCN_DATA" in os.environ else []
    above = [parent / "shared" / "data" for parent in ROOT.parents]
    return next((one for one in [*named, *above] if (one / "cora.npz").is_file()), None)


def machine() -> str:
    """What rounding depends on: versions and the processor."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.is_file() else []
    models = sorted({line for line in lines if line.startswith(("model name", "flags"))})
    return "\n".join([platform.platform(), platform.python_version(), *versions, *models])


def _digest(sources: Path) -> str:
    """A hash of all sources, so that a changed file is another tree."""
    found = hashlib.sha256()
    for file in sorted(sources.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and ".egg-info" not in str(file):
            found.update(f"{file.relative_to(sources)}\n".encode())
            found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:12]
