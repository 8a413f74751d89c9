"""A training that is stopped, terminated or killed goes on as if nothing had happened."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
import torch

from commands.conftest import write_graph
from commands.runner import GRAPH, SMALL, call, content, result_of
from lgdgcn import tensor_file
from lgdgcn.config import Settings
from lgdgcn.runs.fit import _align, _saved_state
from lgdgcn.runs.folder import Run
from lgdgcn.train.jobs import Job
from lgdgcn.train.population import Member

ARGS = ["train", GRAPH, *SMALL, "--seeds", 2, "--set", "epochs=30", "--set", "patience=30"]
ARGS += ["--set", "dropout=0.5"]
RARELY = [*ARGS, "--set", "checkpoint_every=1000"]
ARGS += ["--set", "checkpoint_every=2"]
LINES = 60  # two seeds of 30 epochs


def count(folder: Path) -> int:
    file = folder / "metrics.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def send_at(pid: int, folder: Path, number: signal.Signals, lines: int, delay: float = 0) -> None:
    """Send a signal once the log has so many lines."""
    deadline = time.monotonic() + 60
    while count(folder) < lines:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(pid, number)


def same_run(folder: Path, other: Path) -> bool:
    tensors, meta = tensor_file.load(folder / "model.safetensors", "model")
    expected, expected_meta = tensor_file.load(other / "model.safetensors", "model")
    assert meta == expected_meta
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)
    assert (folder / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    assert result_of(folder) == result_of(other)
    return content(folder).keys() == content(other).keys()


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
def test_a_signal_saves_and_the_run_goes_on_bitwise(server, whole, tmp_path, number, code, lines):
    pid = server.start(*RARELY, "--out", tmp_path / "run")
    send_at(pid, tmp_path / "run", number, lines)
    stopped = server.wait()
    assert stopped.refused("stopped after epoch", f"--resume --out {tmp_path / 'run'}", code=code)
    assert stopped.out == ""
    done = count(tmp_path / "run")
    assert lines <= done < LINES
    assert not (tmp_path / "run/result.json").exists()
    assert not (tmp_path / "run/run.lock").exists()

    server.start(*RARELY, "--out", tmp_path / "run", "--resume")
    outcome = server.wait()
    assert (outcome.code, outcome.err) == (0, "")
    log = (tmp_path / "run/metrics.jsonl").read_bytes()
    assert log == (whole / "metrics.jsonl").read_bytes()
    tensors, expected = (
        tensor_file.load(f / "model.safetensors", "model")[0] for f in (tmp_path / "run", whole)
    )
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)


def test_a_signal_while_a_compared_model_trains(server, tmp_path):
    args = ["train", GRAPH, "--model", "mlp", "--epochs", 300, "--compare", "gcn"]
    args += ["--out", tmp_path / "run"]
    pid = server.start(*args)
    send_at(pid, tmp_path / "run/compared/gcn", signal.SIGINT, 2)
    server.wait().refused(f"--resume --out {tmp_path / 'run'} ", code=130)
    main = json.loads((tmp_path / "run/result.json").read_text())
    server.start(*args, "--resume")
    assert server.wait().code == 0
    found = json.loads((tmp_path / "run/result.json").read_text())
    assert found.pop("verdict")  # which waits for the other model
    assert found == main
    assert (tmp_path / "run/compared/gcn/result.json").exists()


def epochs(folder: Path, seed: int) -> list[int]:
    """Of the generations of a seed, newest first."""
    files = sorted(folder.glob(f"checkpoints/seed-{seed}-*.safetensors"), reverse=True)
    return [
        checkpoint._read(file, checkpoint._CHECKPOINT)[1]["progress"]["epoch"] for file in files
    ]


@pytest.mark.parametrize("behind", [0, 1])
def test_killed_when_one_seed_was_saved_and_the_other_not(server, whole, tmp_path, behind):
    """All go on from the epoch that all have, or the last epochs of one would be its alone."""
    folder = tmp_path / "run"
    for resume in ([], ["--resume"]):
        pid = server.start(*ARGS, "--out", folder, *resume)
        send_at(pid, folder, signal.SIGKILL, count(folder) + 12)
        server.wait()
        while len(set(epochs(folder, 0)) & set(epochs(folder, 1))) > 1:
            newest = max(folder.glob(f"checkpoints/seed-{behind}-*.safetensors"))
            for file in folder.glob(f"checkpoints/{newest.stem}.*"):
                file.unlink()
        if max(epochs(folder, behind)) > max(epochs(folder, 1 - behind)):
            behind = 1 - behind  # the kill itself came between the two checkpoints
        assert max(epochs(folder, behind)) < max(epochs(folder, 1 - behind))
    jobs = [Job("lgdgcn", Member(Settings(), seed), None) for seed in (0, 1)]
    for job in jobs:
        tensors, meta = checkpoint.load(Run.open(folder).checkpoint(job.member.seed))
        job.state = _saved_state(meta, tensors, folder)
    _align(jobs, Run.open(folder))
    assert jobs[0].state.epoch == jobs[1].state.epoch == max(epochs(folder, behind))
    assert epochs(folder, 0)[0] == epochs(folder, 1)[0]
    server.start(*ARGS, "--out", folder, "--resume")
    assert server.wait().code == 0
    assert same_run(folder, whole)


def test_killed_again_and_again(server, whole, tmp_path):
    chance = random.Random(0)
    folder = tmp_path / "run"
    for kill in range(7):
        lines = count(folder) + chance.randint(1, 4)  # at most 4 of these are lost again
        pid = server.start(*ARGS, "--out", folder, *(["--resume"] if kill else []))
        send_at(pid, folder, signal.SIGKILL, lines, chance.uniform(0, 0.02))
        outcome = server.wait()
        assert outcome.code == -signal.SIGKILL, outcome
        assert outcome.err.count("taking over") == min(kill, 1)
    server.start(*ARGS, "--out", folder, "--resume")
    assert server.wait().code == 0
    assert same_run(folder, whole)
    seen = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    pairs = [(line["seed"], line["epoch"]) for line in seen]
    assert len(set(pairs)) == len(pairs) == LINES


@pytest.fixture
def unfinished(server, tmp_path):
    """The graph and the folder of a run that was stopped."""
    graph = write_graph(tmp_path / "graph")
    args = ["train", graph, *SMALL, "--set", "epochs=1000000", "--out", tmp_path / "run"]
    pid = server.start(*args)
    send_at(pid, tmp_path / "run", signal.SIGINT, 2)
    assert server.wait().code == 130
    return args, graph, tmp_path / "run"


def test_damaged_checkpoints_are_named(unfinished):
    args, _, folder = unfinished
    files = sorted((folder / "checkpoints").glob("*.safetensors"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:-1])
    call(*args, "--resume").refused("no usable checkpoint", *(file.name for file in files))
