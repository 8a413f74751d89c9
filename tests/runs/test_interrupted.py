"""A training that is stopped or killed goes on as if nothing had happened."""

import json
import os
import pickle
import random
import resource
import signal
import time
from pathlib import Path

import pytest
import torch

from cli.conftest import write_graph
from cli.runner import GRAPH, SMALL, call, content, result_of
from faults.graphs import replaced
from faults.hostile import Payload
from lgdgcn import tensor_file
from lgdgcn.runs.checkpoint import Checkpoint
from lgdgcn.runs.folder import Run

ARGS = ["train", GRAPH, *SMALL, "--seeds", 2, "--set", "epochs=30", "--set", "patience=30"]
ARGS += ["--set", "dropout=0.5"]
RARELY = [*ARGS, "--set", "checkpoint_every=1000"]
ARGS += ["--set", "checkpoint_every=2"]
LINES = 60  # two seeds of 30 epochs
ENDLESS = ["train", GRAPH, *SMALL, "--set", "epochs=1000000", "--set", "patience=1000000"]


def count(folder: Path) -> int:
    file = folder / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def send_at(pid: int, folder: Path, number: signal.Signals, lines: int) -> None:
    """Send a signal once the log has so many lines."""
    wait_for(lambda: count(folder) >= lines)
    os.kill(pid, number)


def saved_epochs(folder: Path) -> dict[int, int]:
    states, _ = Checkpoint(Run.open(folder).checkpoint).load()
    return {seed: state.epoch for seed, state in states.items()}


def assert_same_run(folder: Path, other: Path) -> None:
    tensors, meta = tensor_file.load(folder / "model.safetensors", "model")
    expected, expected_meta = tensor_file.load(other / "model.safetensors", "model")
    assert meta == expected_meta
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)
    assert (folder / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    assert result_of(folder) == result_of(other)
    assert content(folder).keys() == content(other).keys()


@pytest.fixture(scope="module")
def whole(server, tmp_path_factory):
    """The run that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    server.start(*ARGS, "--out", folder)
    assert server.wait().code == 0
    return folder


@pytest.mark.parametrize(
    ("number", "code", "lines"), [(signal.SIGINT, 130, 3), (signal.SIGTERM, 143, 35)]
)
def test_fault_25_a_signal_saves_and_the_run_goes_on(server, whole, tmp_path, number, code, lines):
    """Ctrl-C finishes the epoch, saves and exits with 130, SIGTERM with 143."""
    folder = tmp_path / "run"
    send_at(server.start(*RARELY, "--out", folder), folder, number, lines)
    stopped = server.wait()
    assert stopped.refused("stopped after epoch", f"--resume --out {folder}", code=code)
    assert "%" not in stopped.out  # no result
    assert lines <= count(folder) == sum(saved_epochs(folder).values()) < LINES
    assert not (folder / "result.json").exists()
    server.start(*RARELY, "--out", folder, "--resume")
    outcome = server.wait()
    assert (outcome.code, outcome.err) == (0, "")
    assert (folder / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
    tensors, expected = (
        tensor_file.load(file / "model.safetensors", "model")[0] for file in (folder, whole)
    )
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)


def test_fault_25_a_second_signal_ends_at_once(server, tmp_path):
    """Ctrl-C twice exits with 130 in the middle of the step and saves nothing."""
    large = "synthetic:nodes=6000,classes=3,factors=2,average_degree=12"
    args = ["--set", "checkpoint_every=1000000", "--set", "iterations=100", "--out", tmp_path]
    pid = server.start("train", large, *SMALL, *args)
    send_at(pid, tmp_path, signal.SIGINT, 2)
    time.sleep(0.02)
    os.kill(pid, signal.SIGINT)
    outcome = server.wait()
    assert (outcome.code, outcome.err) == (130, "")
    assert saved_epochs(tmp_path) == {0: 1}  # the only one that was due


def test_a_signal_while_a_compared_model_trains(server, tmp_path):
    args = ["train", GRAPH, "--model", "mlp", "--epochs", 300, "--compare", "gcn"]
    args += ["--out", tmp_path / "run"]
    send_at(server.start(*args), tmp_path / "run/compared/gcn", signal.SIGINT, 2)
    server.wait().refused(f"--resume --out {tmp_path / 'run'} ", code=130)
    main = json.loads((tmp_path / "run/result.json").read_text())
    server.start(*args, "--resume")
    assert server.wait().code == 0
    found = json.loads((tmp_path / "run/result.json").read_text())
    assert found.pop("verdict")  # which waits for the other model
    assert found == main
    assert (tmp_path / "run/compared/gcn/result.json").exists()


def test_fault_24_killed_thirty_times_the_run_ends_bitwise_the_same(server, tmp_path):
    """30 kills, every third inside the write of a checkpoint; each loses one interval at most.

    A checkpoint holds model, optimizer, the statistics of every layer, epoch, best score and
    weights, configuration, data hash and versions. Random states need not be saved: what is drawn
    depends on seed and epoch alone.
    """
    args = ["train", GRAPH, *SMALL, "--seeds", 2, "--epochs", 160, "--set", "patience=160"]
    args += ["--set", "dropout=0.5", "--set", "checkpoint_every=2"]
    args += ["--model", "lgdgcn-paper"]  # whose layers have statistics
    server.start(*args, "--out", tmp_path / "whole")
    assert server.wait().code == 0
    chance, folder = random.Random(0), tmp_path / "run"
    for kill in range(30):
        lines = count(folder) + chance.randint(1, 6)
        pid = server.start(*args, "--out", folder, *(["--resume"] if kill else []))
        wait_for(lambda lines=lines: count(folder) >= lines)
        if kill % 3:
            time.sleep(chance.uniform(0, 0.01))
        else:
            wait_for(lambda: any(name.endswith(".tmp") for name in os.listdir(folder)))
        os.kill(pid, signal.SIGKILL)
        outcome = server.wait()
        assert (outcome.code, outcome.err) == (-signal.SIGKILL, "")
        epochs = saved_epochs(folder)
        assert len(set(epochs.values())) == 1  # all seeds stand at one moment
        assert count(folder) - sum(epochs.values()) <= 2 * 2  # seeds x checkpoint_every
    states, about = Checkpoint(Run.open(folder).checkpoint).load()
    groups = {name.partition(".")[0] for name in states[1].tensors}
    assert groups == {"model", "best", "mean", "square"}
    statistics = {f"model.layers.0.latent_space.{name}" for name in ("mean", "cov", "updates")}
    assert statistics < states[1].tensors.keys()
    assert about.keys() == {"config", "data", "versions"}
    server.start(*args, "--out", folder, "--resume")
    assert server.wait().code == 0
    assert_same_run(folder, tmp_path / "whole")


def test_fault_26_a_full_disk_leaves_the_old_checkpoint(server, whole, tmp_path):
    """A disk that is full amid a checkpoint is named, and the run goes on bitwise later."""
    folder = tmp_path / "run"
    pid = server.start(*ARGS, "--out", folder)
    wait_for(lambda: count(folder) >= 4)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (15_000, 15_000))  # the log fits
    server.wait().refused("cannot write", ".safetensors: File too large", "ulimit -f")
    assert not any(name.endswith(".tmp") for name in content(folder))
    server.start(*ARGS, "--out", folder, "--resume")
    assert server.wait().code == 0
    assert_same_run(folder, whole)


def test_fault_27_a_damaged_checkpoint_is_named_and_the_one_before_used(server, whole, tmp_path):
    """A damaged or foreign checkpoint is named and the one before used; no payload runs.

    In part: a file whose digest fits but whose tensors are of another shape is refused by name,
    and the one before it is not used. Every kind of damage: ``tests/runs/test_checkpoint.py``.
    """
    folder = tmp_path / "run"
    send_at(server.start(*ARGS, "--out", folder), folder, signal.SIGTERM, 12)
    assert server.wait().code == 143
    file = folder / "checkpoint.safetensors"
    file.write_bytes(pickle.dumps(Payload(tmp_path / "marker")))
    server.start(*ARGS, "--out", folder, "--resume")
    outcome = server.wait()
    assert not (tmp_path / "marker").exists()
    assert (outcome.code, outcome.err.count("going on from the one before")) == (0, 1)
    assert file.name in outcome.err
    assert_same_run(folder, whole)


def test_fault_29_one_run_per_folder(server, tmp_path):
    """A second run in a folder is refused; the system gives back the lock of a dead owner."""
    pid = server.start(*ENDLESS, "--out", tmp_path)
    wait_for(lambda: count(tmp_path) >= 2)
    for how in ([], ["--resume"], ["--overwrite"]):
        call(*ENDLESS, "--out", tmp_path, *how).refused("in use by another process")
    os.kill(pid, signal.SIGINT)
    assert server.wait().code == 130


def test_fault_30_another_run_is_not_resumed(server, tmp_path):
    """Resuming with other settings or data is refused with all that differs; nothing changes."""
    graph, folder = write_graph(tmp_path / "graph"), tmp_path / "run"
    args = ["train", graph, *SMALL, "--set", "epochs=1000000", "--out", folder]
    send_at(server.start(*args), folder, signal.SIGINT, 2)
    assert server.wait().code == 130
    before = content(folder)
    call(*args).refused("already holds an unfinished run", "--resume")
    call(*args, "--resume", "--set", "lr=0.5", "--set", "dropout=0.125").refused(
        "settings.lr: ", "-> 0.5;", "settings.dropout: ", "-> 0.125;"
    )
    call(*args, "--resume", "--model", "disengcn").refused('model: "lgdgcn" -> "disengcn"')
    other = write_graph(tmp_path / "other", nodes=27)
    call("train", other, *args[2:], "--resume").refused("dataset", str(other))
    replaced(graph / "nodes.csv", ",train", ",test", count=1)
    call(*args, "--resume").refused("data.0: ")
    assert content(folder) == before
