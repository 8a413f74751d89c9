"""The sound runs that are then damaged, and the right answers that commands give on them."""

import signal
from functools import partial
from pathlib import Path

from attack.children import run
from attack.sabotage import at_system_call
from cli.conftest import write_graph
from cli.runner import SMALL, Outcome, call

__all__ = ["Base"]

LENGTH = ["--set", "epochs=6", "--set", "patience=6", "--set", "checkpoint_every=2"]
LENGTH += ["--budget", "none"]  # a search ends by the clock


class Base:
    """A graph with a finished run, the same run stopped halfway, and another run.

    Args:
        shared: Folder that is kept for all cases; what is there already is used again.
    """

    def __init__(self, shared: Path) -> None:
        self.graph = shared / "base" / "graph"
        self.finished = shared / "base" / "finished"
        self.stopped = shared / "base" / "stopped"
        self.other = shared / "base" / "other"
        self.answers = shared / "base" / "answers"
        if not self.answers.exists():
            self._make()

    def training(self, folder: Path, *more: object) -> list[object]:
        """The command line that made the finished run, for another folder."""
        return ["train", self.graph, *SMALL, *LENGTH, "--seeds", 2, "--out", folder, *more]

    def answer(self, verb: str, run: Path) -> bytes:
        """What predict, measure or explore writes about a sound run."""
        file = self.answers / f"{verb}-{run.name}"
        if not file.exists():
            _sound(call(verb, run, "--out", file))
        return file.read_bytes()

    def _make(self) -> None:
        write_graph(self.graph)
        _sound(call(*self.training(self.finished)))
        _sound(call(*self.training(self.other, "--set", "lr=0.05", "--set", "weight_decay=0")))
        stop = partial(at_system_call, 30, "after", signal.SIGINT)
        outcome = run(*self.training(self.stopped), before=stop)
        assert outcome.code == 130, outcome
        self.answers.mkdir()


def _sound(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome
