"""Trainings that are killed again and again must end, bit by bit, as if nothing had happened."""

import shutil
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from random import Random

from attack.children import run
from attack.sabotage import WHEN, at_function_call, at_system_call
from attack.verdict import Finding, Verdict
from cli.conftest import write_graph
from cli.runner import SMALL, Outcome, content, result_of

__all__ = ["FOREIGN", "difference", "killed"]

MOST_KILLS = 5  # of one training
OPTIONS = [
    ["--seeds", 2, "--set", "checkpoint_every=2"],
    ["--seeds", 1, "--set", "checkpoint_every=1", "--set", "dropout=0.5"],
    ["--seeds", 3, "--set", "checkpoint_every=3", "--model", "gcn"],
    ["--seeds", 2, "--model", "mlp", "--compare", "gcn", "--set", "checkpoint_every=2"],
]
FOREIGN = ("notes.txt", "data.csv", "checkpoints/mine.safetensors", "model-old.safetensors")
LENGTH = ["--set", "epochs=6", "--set", "patience=6"]


def killed(random: Random, folder: Path, shared: Path) -> Finding:
    """Kill a training up to five times, each time at another moment, and compare its end."""
    number = random.randrange(len(OPTIONS))
    whole = _undisturbed(number, shared)
    args = [*_training(number, shared), "--out", folder / "run"]
    kills = 0
    for _ in range(random.randint(1, MOST_KILLS)):
        outcome = _go_on(args, folder / "run", _sabotage(random))
        if outcome.code >= 0:
            break
        kills += 1
    if outcome.code:
        outcome = _go_on(args, folder / "run")
    if outcome.code:
        return Finding(Verdict.LOST, f"after {kills} kills: {outcome.err[:300]}", kills)
    found = difference(folder / "run", whole)
    return Finding(Verdict.WRONG if found else Verdict.SUCCESS, found or "", kills)


def _sabotage(random: Random) -> Callable[[], None]:
    if random.random() < 0.25:
        return partial(at_function_call, int(10 ** random.uniform(2, 5)))
    return partial(at_system_call, random.randint(1, 60), random.choice(WHEN))


def _go_on(args: list[object], folder: Path, before: Callable[[], None] = lambda: None) -> Outcome:
    """Resume and, where there is nothing to resume yet, start."""
    if folder.exists():
        outcome = run(*args, "--resume", before=before)
        if outcome.code != 2:
            return outcome
    started = run(*args, before=before)
    if started.code == 2 and folder.exists():
        return Outcome(2, "", f"neither --resume ({outcome.err}) nor a start ({started.err}) works")
    return started


def _training(number: int, shared: Path) -> list[object]:
    graph = shared / "kill-graph"
    if not graph.exists():
        write_graph(graph)
    own = [] if "--model" in OPTIONS[number] else SMALL
    return ["train", graph, *own, *LENGTH, *OPTIONS[number]]


def _undisturbed(number: int, shared: Path) -> Path:
    """The folder of the same training, never killed."""
    folder = shared / f"kill-whole-{number}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        outcome = run(*_training(number, shared), "--out", folder / "run")
        assert outcome.code == 0, outcome
        (folder / "done").touch()
    return folder / "run"


def difference(folder: Path, whole: Path, ignore: Collection[str] = ()) -> str | None:
    """The first thing in which two runs differ: files, weights, log or result."""
    found, expected = content(folder), content(whole)
    missing = [name for name in expected if name not in found]
    added = [name for name in found if name not in expected and name not in FOREIGN]
    if missing or added:
        return f"files: {missing} missing, {added} added"
    for name in expected.keys() - set(ignore):
        same = found[name] == expected[name]
        if name.endswith("result.json"):
            same = result_of((folder / name).parent) == result_of((whole / name).parent)
        if name.endswith("metrics.jsonl"):  # seeds take turns, or have been trained one by one
            same = sorted(found[name].splitlines()) == sorted(expected[name].splitlines())
        if not same:
            return f"{name} differs from that of the undisturbed run"
    return None
