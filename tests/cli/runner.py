"""The command line for tests: in this process, or in a forked one that can be signalled."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from lgdgcn.cli import main

GRAPH = "synthetic:nodes=120,classes=3,factors=2,average_degree=12"
SMALL = ["--set", "hidden_channels=8", "--set", "factors=2"]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    def refused(self, *words: str, code: int = 2) -> bool:
        """Whether this is an error of one line that says all these words."""
        lines = self.err.splitlines()
        one = len(lines) == 1 and lines[0].startswith("lgdgcn: ")
        assert (self.code, one) == (code, True), self
        assert all(word in self.err for word in words), self.err
        return True

    def refused_last(self, *words: str, code: int = 2) -> None:
        """Whether the last line is an error that says all these words; notes may be above it."""
        *_, last = self.err.splitlines()
        assert (self.code, last.startswith("lgdgcn: ")) == (code, True), self
        assert all(word in last for word in words), self.err


def rows(text: str) -> dict[str, list[str]]:
    """The rows of a printed table, whatever its lines: the other cells by the first."""
    lines = [re.split(r"\s{2,}|\s*[│┃]\s*", line.strip(" │┃")) for line in text.splitlines()]
    return {first: [cell.strip() for cell in others] for first, *others in lines}


def widest_table(text: str) -> int:
    """The width of the widest table that was printed, by the line below its headings."""
    return max(len(line.rstrip()) for line in text.splitlines() if set(line.strip()) == {"─"})


def words_of(args: tuple[object, ...]) -> list[str]:
    """The command line; a training tries no portfolio of settings unless a test asks for it."""
    words = [*map(str, args)]
    if words[:1] == ["train"] and not {"--budget", "--time-limit"} & {*words}:
        words += ["--budget", "none"]
    return words


def call(*args: object) -> Outcome:
    """Run ``lgdgcn ARGS`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
        mock.patch.object(sys, "argv", ["lgdgcn", *words_of(args)]),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return Outcome(code, out.getvalue(), err.getvalue())


def small(*args: object, epochs: int = 8) -> list[str]:
    """Settings of something small, but for what a command says itself or its model has not."""
    words = [*map(str, args)]
    usual = [f"epochs={epochs}"]
    if "--model" not in words or words[words.index("--model") + 1].startswith(
        ("lgdgcn", "disengcn")
    ):
        usual += SMALL[1::2]
    said = {word.removeprefix("--").partition("=")[0] for word in words}
    return [word for one in usual if one.partition("=")[0] not in said for word in ("--set", one)]


def train(folder: Path, *args: object, graph: str = GRAPH, epochs: int = 8) -> Outcome:
    """Train something small in a folder; factors are the reasons of edges if nothing else is."""
    reasons = [] if "--reasons" in args else ["--reasons", "factors"]
    return call("train", graph, *small(*args, epochs=epochs), *reasons, "--out", folder, *args)


def result_of(folder: Path) -> dict:
    """A run's ``result.json`` without the one thing that is never the same."""
    result = json.loads((folder / "result.json").read_text())
    for run in result["runs"]:
        del run["seconds"]
    return result


def page_of(path: Path) -> dict:
    """What a page of `explore` shows."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


SERVER = """
import contextlib, io, json, os, sys, tempfile
import lgdgcn.plots, lgdgcn.cli.opened, lgdgcn.cli.train_nodes, lgdgcn.kernels.cpu
from lgdgcn.cli import main

lgdgcn.plots.tsne_map = lambda points, seed: points[:, :2]  # t-SNE is not what is tested

with tempfile.TemporaryDirectory() as folder:  # load what is compiled once, not in every fork
    sys.argv = ["lgdgcn", "train", "synthetic:nodes=60,classes=3,factors=2"]
    sys.argv += ["--set", "epochs=1", "--seeds", "2", "--out", folder + "/run"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()

for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        for number, file in ((0, os.devnull), (1, job["out"]), (2, job["err"])):
            os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666), number)
        sys.argv = ["lgdgcn", *job["args"]]
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        except KeyboardInterrupt:
            code = 99  # must have been handled
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    os.write(1, f"{pid}\\n".encode())
    os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\\n".encode())
"""


class ForkServer:
    """A process that has everything loaded and runs each command line in a fork of its own."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        self.running: int | None = None

    def start(self, *args: object) -> int:
        """Start ``lgdgcn ARGS`` and return its process id.

        What a failed test left running is killed first.
        """
        if self.running is not None:
            os.kill(self.running, signal.SIGKILL)
            self.wait()
        files = {name: str(Path(self.folder.name) / name) for name in ("out", "err")}
        self.process.stdin.write(json.dumps({"args": words_of(args), **files}) + "\n")
        self.process.stdin.flush()
        self.running = int(self.process.stdout.readline())
        return self.running

    def wait(self) -> Outcome:
        """Wait for its end; the code is negative where a signal ended it."""
        code, self.running = int(self.process.stdout.readline()), None
        out, err = (Path(self.folder.name, name).read_text() for name in ("out", "err"))
        return Outcome(code, out, err)

    def close(self) -> None:
        if self.running is not None:
            os.kill(self.running, signal.SIGKILL)
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
        self.folder.cleanup()
