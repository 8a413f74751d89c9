"""The small graphs and runs that wrong calls and shapes begin with, each made once a process.

A home is a folder: its graph lies in ``graph`` or ``graph.lgd``, its run in ``run``.
"""

import csv
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import chdir, contextmanager
from functools import cache
from itertools import combinations
from pathlib import Path
from unittest import mock

import torch

from cli.runner import call
from lgdgcn.reasons import typed
from lgdgcn.search import winner
from lgdgcn.train.trainer import Trainer

__all__ = ["SYNTHETIC", "copy", "home", "plain_machine", "signal_in_epoch"]

SYNTHETIC = "synthetic:nodes=60,classes=3,factors=2,average_degree=8"
SMALL = [
    "--model",
    "lgdgcn",
    "--reasons",
    "factors",
    "--set",
    "hidden_channels=8",
    "--set",
    "factors=2",
]
TINY = [*SMALL, "--budget", "none", "--epochs", 20]
ODD = ["=1+1", 'a, "b"']  # ids that a spreadsheet would run, and that need quotes
CLASSES = ["plain", "größe", "-x"]
SPACE = "[space]\nlr = {low = 0.01, high = 0.3}\n[settings]\nepochs = 2\nhidden_channels = 8\n"

_FOLDER = tempfile.TemporaryDirectory(prefix="golden-")  # removed when the process ends


@cache
def home(name: str) -> Path:
    """The folder of a home; not to be changed."""
    folder = Path(os.path.realpath(_FOLDER.name), name)
    folder.mkdir()
    quick = mock.patch("lgdgcn.plots.tsne_map", lambda points, seed: points[:, :2])
    with chdir(folder), plain_machine(), quick:  # t-SNE takes seconds and is not what is recorded
        HOMES[name](folder)
    return folder


def copy(name: str, target: Path) -> None:
    """Copy a home into a folder that is there; its run knows the copy of the graph."""
    source = home(name)
    shutil.copytree(source, target, dirs_exist_ok=True)
    for config in target.rglob("config.toml"):
        text = config.read_text(encoding="utf-8").replace(str(source), str(target))
        config.write_text(text, encoding="utf-8")


@contextmanager
def plain_machine():
    """As on a machine of one core without a GPU, whose user has asked for no tracebacks."""
    threads = torch.get_num_threads()
    with (
        mock.patch.object(torch.cuda, "is_available", return_value=False),
        mock.patch.object(torch.cuda, "device_count", return_value=0),
        mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}),
    ):
        os.environ.pop("LGDGCN_DEBUG", None)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def signal_in_epoch(count: int, number: signal.Signals):
    """Send this process a signal in the n-th epoch that it trains."""
    real, seen = Trainer.epoch, []

    def epoch(self, *args, **options):
        seen.append(self)
        if len(seen) == count:
            signal.raise_signal(number)
        return real(self, *args, **options)

    with mock.patch.object(Trainer, "epoch", epoch):
        yield


def _write(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _graph(folder: Path, *, more: bool = False) -> None:
    """24 nodes of three classes in a ring, every edge in both directions as both are meant."""
    rows = [["id", "f1", "f2", "f3", "label", "split", *(["country", "note"] if more else [])]]
    for i in range(24):
        name, split = ODD[i] if i < 2 else f"n{i}", ("train", "val", "test")[i // 3 % 3]
        x = [round(0.31 * (7 * i % (11 + j)) + (i % 3 == j), 2) for j in range(3)]
        told = [["DE", "FR"][i % 2], f"a note on node number {i}"] if more else []
        rows.append([name, *x, CLASSES[i % 3], split, *told])
    _write(folder / "graph/nodes.csv", rows)
    names = [row[0] for row in rows[1:]]
    edges = [(i, (i + 3) % 24) for i in range(24)] + [(0, 1), (4, 5), (8, 9)]
    ends = [[names[a], names[b]] for a, b in edges + [(b, a) for a, b in edges]]
    _write(folder / "graph/edges.csv", [["source", "target"], *ends])


def _edges(folder: Path, typed: bool) -> None:
    """Two groups of nine nodes that all know each other, and one edge between the groups."""
    names = [*ODD, *(f"n{i}" for i in range(2, 18))]
    rows = [["source", "target", *(["type"] if typed else [])]]
    for number, (a, b) in enumerate(combinations(range(18), 2)):
        if (a < 9) == (b < 9) or (a, b) == (0, 17):
            known = ("=low" if a < 9 else 'high, "so"') if number % 5 else ""
            rows.append([names[a], names[b], *([known] if typed else [])])
    _write(folder / "graph/edges.csv", rows)


def _done(*args: object, code: int = 0) -> None:
    outcome = call(*args)
    assert outcome.code == code, outcome


def _run(folder: Path) -> None:
    _graph(folder)
    _done("train", "graph", *TINY, "--out", "run")


def _identity(folder: Path) -> None:
    _graph(folder)
    _done("train", "graph", "--features", "identity", *TINY, "--out", "run")


def _chosen(folder: Path) -> None:
    _graph(folder)
    _done("train", "graph", *SMALL, "--epochs", 2, "--budget", 2, "--out", "run")
    (folder / "run/result.json").unlink()


def _two_seeds(folder: Path) -> None:
    _done("train", SYNTHETIC, *TINY, "--seeds", 2, "--compare", "gcn", "--out", "run")


def _stopped(folder: Path) -> None:
    _graph(folder)
    often = ["--set", "checkpoint_every=1", "--epochs", 9, "--out", "run"]
    with signal_in_epoch(2, signal.SIGINT):
        _done("train", "graph", *SMALL, "--budget", "none", *often, code=130)


def _types(folder: Path) -> None:
    _edges(folder, typed=True)
    with mock.patch.object(typed, "TREES", 10):
        _done("train", "graph", "--out", "run")


def _reasons(folder: Path) -> None:
    _edges(folder, typed=False)
    _done("train", "graph", "--factors", 2, "--seeds", 2, "--out", "run")


def _both(folder: Path) -> None:
    """Labels of nodes by a model without factors, and reasons of edges."""
    _graph(folder)
    _done("train", "graph", "--model", "gcn", "--budget", "none", "--epochs", 9, "--out", "run")


def _packed(folder: Path, *how: object, model: str = "lgdgcn") -> None:
    """A graph with a category and a text, the same packed, and a run on that."""
    _graph(folder, more=True)
    _done("data", "pack", "graph", "--out", "graph.lgd", "--memory", "8GB")
    _done("train", "graph.lgd", "--model", model, *TINY[2:], *how, "--out", "run")


def _batches(folder: Path) -> None:
    _packed(folder, "--set", "batch_size=10", "--set", "structure=none")


def _all_nodes(folder: Path) -> None:
    _packed(folder, model="lgdgcn-paper")


def _study(folder: Path) -> None:
    (folder / "space.toml").write_text(SPACE)
    how = ["--model", "mlp", "--trials", 1, "--space", "space.toml", "--out", "out"]
    with mock.patch.multiple(winner, FINALISTS=1, FRESH_SEEDS=2):
        _done("tune", SYNTHETIC, *how)


HOMES: dict[str, Callable[[Path], None]] = {
    "graph": _graph,
    "run": _run,
    "chosen": _chosen,
    "identity": _identity,
    "two-seeds": _two_seeds,
    "stopped": _stopped,
    "types": _types,
    "reasons": _reasons,
    "both": _both,
    "batches": _batches,
    "all-nodes": _all_nodes,
    "study": _study,
}
