"""What is timed: training steps, epochs of large graphs, and what users wait for."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .graphs import write_graph
from .trees import Tree

__all__ = ["Measured", "Timing", "user_timings", "work_timings"]

Measured = Mapping[str, float] | str  # by quantity, or why there is nothing

LONGEST = 1800.0  # seconds
BATCH = 8192
# what a measurement prints, what it is called here, and in which unit
QUANTITIES = {
    "median_ms": ("ms", 1.0),
    "min_ms": ("fastest ms", 1.0),
    "prepare_seconds": ("s once", 1.0),
    "seconds": ("s", 1.0),
    "peak_bytes": ("MB", 1e-6),
    "anonymous_bytes": ("MB without files", 1e-6),
    "device_bytes": ("MB of the GPU", 1e-6),
}
STEPS = {  # row, and what is measured; of the targets, without the other methods beside them
    "cpu": {
        "Cora, 4 layers": ("row of released", {"size": "cora", "layers": 4}),
        "Cora, 1 layer": ("row of released", {"size": "cora", "layers": 1}),
        "Pubmed, 1 layer": ("row of released", {"size": "pubmed", "layers": 1}),
        "Cora, ours": ("row of ours", {"size": "cora", "layers": 1}),
        "Pubmed, ours": ("row of ours", {"size": "pubmed", "layers": 1}),
        "20,000 nodes": ("row of released", {"size": "20000", "layers": 1, "pretrain": 20}),
        "200,000 nodes": ("row of released", {"size": "200000", "layers": 1, "pretrain": 20}),
    },
    "cuda": {
        "Cora, 4 layers": ("row of released", {"size": "cora", "layers": 4}),
        "Cora, 4 layers, 64 models": ("row of 64 of released", {"size": "cora", "layers": 4}),
        "Pubmed, 1 layer": ("row of released", {"size": "pubmed", "layers": 1}),
        "Cora, ours": ("row of ours", {"size": "cora", "layers": 1}),
        "Cora, ours, 64 models": ("row of 64 of ours", {"size": "cora", "layers": 1}),
        "Pubmed, ours": ("row of ours", {"size": "pubmed", "layers": 1}),
        "1M nodes, 10M edges": (
            "row of released",
            {
                "size": "1000000",
                "layers": 1,
                "degree": 10,
                "settings": {"k": 8, "factors": 4, "hidden_channels": 64},
                "seconds": 10.0,
            },
        ),
    },
}
SCALES = {"1M edges": (100_000, 1_000_000), "10M edges": (1_000_000, 10_000_000)}
SCALE_ROWS = ("epoch", "predict", "full")


@dataclass(frozen=True)
class Timing:
    """Something to measure.

    Attributes:
        name: What it is called.
        measure: Measures it for a tree, which may write to a folder.
        is_long: Whether it takes more than some seconds.
    """

    name: str
    measure: Callable[[Tree, Path], Measured]
    is_long: bool = False


def work_timings(device: str, graphs: Path) -> list[Timing]:
    """Training steps, and epochs and predictions of large graphs."""
    steps = [
        Timing(name, _step(row, {**about, "device": device}), "000" in name or "Pubmed" in name)
        for name, (row, about) in STEPS[device.partition(":")[0]].items()
    ]
    scales = [
        Timing(f"{name}, {row}", _scale(row, size, device, graphs), True)
        for name, size in SCALES.items()
        for row in SCALE_ROWS
    ]
    return [*steps, *scales]


def user_timings(graphs: Path) -> list[Timing]:
    """What users wait for."""

    def train(tree: Tree, own: Path) -> Measured:
        graph = write_graph(graphs, "cora-sized")
        return _spent(tree, "train as users do", graph=graph, run=own / "as-users-do")

    def predict(tree: Tree, own: Path) -> Measured:
        run = own / "little"
        if not run.is_dir():
            graph = write_graph(graphs, "single-label")
            trained = _spent(tree, "train a little", graph=graph, run=run)
            if isinstance(trained, str):
                return trained
        return _spent(tree, "predict a run", run=run, file=own / "predicted.csv")

    return [
        Timing("import lgdgcn", lambda tree, own: _spent(tree, "import")),
        Timing("lgdgcn --help", lambda tree, own: _spent(tree, "help")),
        Timing("lgdgcn predict", predict),
        Timing("lgdgcn train, folder of Cora's size", train, True),
    ]


def _step(row: str, about: Mapping[str, Any]) -> Callable[[Tree, Path], Measured]:
    def measure(tree: Tree, own: Path) -> Measured:
        return _printed(tree, "a step", {"row": tree.spelling.words[row], **about})

    return measure


def _scale(
    row: str, size: tuple[int, int], device: str, graphs: Path
) -> Callable[[Tree, Path], Measured]:
    nodes, edges = size

    def measure(tree: Tree, own: Path) -> Measured:
        # generated once, for all trees that read the same format
        graph = graphs / f"{nodes}-{edges}-{tree.spelling.words['packed format']}.lgd"
        about = {"graph": str(graph)}
        if not graph.is_dir():
            graphs.mkdir(parents=True, exist_ok=True)
            drawn = {"row": "generate", **about, "nodes": nodes, "edges": edges}
            made = _printed(tree, "a scale row", drawn)
            if isinstance(made, str):
                return made
        about["device"] = device
        if row != "full":
            about["model"] = str(own / f"{edges}.model")
        batches = {"batch_size": BATCH} if row == "epoch" else {}
        return _printed(tree, "a scale row", {"row": row, **about, **batches})

    return measure


def _printed(tree: Tree, name: str, about: Mapping[str, Any]) -> Measured:
    """What a measurement of the tree's own prints as JSON, by quantity."""
    words = tree.spelling.command(name, json=json.dumps(about))
    done = _process(tree, words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = done.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        done.kill()
        done.communicate()
        return f"not done after {LONGEST:.0f} s"
    if done.returncode:
        return (err.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    renamed = tree.spelling.renamed
    found = {
        renamed.get(key, key): value for key, value in json.loads(out.splitlines()[-1]).items()
    }
    if "left_out" in found:
        return str(found["left_out"])
    return {title: found[key] * unit for key, (title, unit) in QUANTITIES.items() if key in found}


def _spent(tree: Tree, name: str, **values: object) -> Measured:
    """Seconds of a command, of these until its first line, and its memory."""
    words = tree.spelling.command(name, **values)
    start = time.perf_counter()
    process = _process(tree, words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    first = time.perf_counter() - start
    lines += process.stdout.readlines()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        return lines[-1].strip() or f"exit code {process.returncode}"
    found = {"s": seconds}
    if used.ru_maxrss > 2 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        found["MB"] = used.ru_maxrss / 1e3  # of less, it is the memory of this process at the fork
    return {"s to the first line": first, **found} if lines[0] else found


def _process(tree: Tree, words: list[str], **pipes: Any) -> "subprocess.Popen[str]":
    environment = tree.environment(threads=len(os.sched_getaffinity(0)), gpu=True)
    folder = tree.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, *words]
    return subprocess.Popen(command, text=True, env=environment, cwd=folder, **pipes)
