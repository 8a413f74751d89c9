"""Faults 24 to 35: processes that are stopped or killed, disks that are full or damaged."""

import json
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from commands.conftest import write_graph
from commands.runner import GRAPH, SMALL, call, content, train
from commands.test_interrupted import ARGS, count, same_run, send_at
from faults.graphs import fitted, replaced
from faults.hostile import Payload, sealed
from lgdgcn.errors import InputError
from lgdgcn.kernels import nearest
from lgdgcn.search.study import open_study
from lgdgcn.train import checkpoint
from lgdgcn.train.memory import out_of_memory
from models.toy import toy_graph
from tune.processes import SPACE, finish, kill_amid_trials, opened, start_workers, worker_of

ENDLESS = ["train", GRAPH, *SMALL, "--set", "epochs=1000000", "--set", "patience=1000000"]


@pytest.fixture(scope="module")
def whole(server, tmp_path_factory):
    """The run of two seeds that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    server.start(*ARGS, "--out", folder)
    assert server.wait().code == 0
    return folder


@pytest.fixture(scope="module")
def stopped(server, tmp_path_factory):
    """The same run, stopped after a few epochs: two generations of checkpoints for each seed."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    pid = server.start(*ARGS, "--out", folder)
    send_at(pid, folder, signal.SIGTERM, 12)
    assert server.wait().code == 143
    return folder


def resumed(server, folder: Path):
    server.start(*ARGS, "--out", folder, "--resume")
    return server.wait()


def wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


# Stopped and killed


def test_fault_24_killed_thirty_times_the_run_ends_bitwise_the_same(server, tmp_path):
    """After 30 kills, every third inside a checkpoint write, the final weights are the same.

    At most one checkpoint interval is lost each time. A checkpoint holds model, optimizer, the
    statistics of every layer, epoch, best score and weights, configuration, data hash and
    versions. Random states need not be saved: what is drawn depends on seed and epoch alone.
    Kills before every single system call of a write: ``tests/train/test_checkpoint.py``.
    """
    args = ["train", GRAPH, *SMALL, "--epochs", 250, "--set", "patience=250"]
    args += ["--set", "dropout=0.5", "--set", "checkpoint_every=2"]
    args += ["--variant", "paper"]  # whose layers have statistics
    server.start(*args, "--out", tmp_path / "whole")
    assert server.wait().code == 0
    chance, folder = random.Random(0), tmp_path / "run"
    saves = folder / "checkpoints"
    for kill in range(30):
        lines = count(folder) + chance.randint(1, 3)
        pid = server.start(*args, "--out", folder, *(["--resume"] if kill else []))
        wait_for(lambda lines=lines: count(folder) >= lines)
        if kill % 3:
            time.sleep(chance.uniform(0, 0.01))
        else:
            wait_for(lambda: any(name.endswith(".tmp") for name in os.listdir(saves)))
        os.kill(pid, signal.SIGKILL)
        outcome = server.wait()
        assert outcome.code == -signal.SIGKILL, outcome
        assert outcome.err.count("taking over") == min(kill, 1)
        tensors, meta = checkpoint.load(saves / "seed-0")
        assert count(folder) - meta["progress"]["epoch"] <= 2  # checkpoint_every
    assert {name.partition(".")[0] for name in tensors} == {"model", "best", "mean", "square"}
    statistics = {f"model.layers.0.latent_space.{name}" for name in ("mean", "cov", "updates")}
    assert statistics < tensors.keys()
    assert meta.keys() == {"config", "data", "versions", "progress"}
    assert {"epoch", "best_epoch", "best_score"} < meta["progress"].keys()
    server.start(*args, "--out", folder, "--resume")
    assert server.wait().code == 0
    assert same_run(folder, tmp_path / "whole")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_fault_25_a_signal_saves_and_says_how_to_go_on(server, tmp_path, number, code):
    """Ctrl-C finishes the step, saves and exits with 130, SIGTERM with 143."""
    pid = server.start(*ENDLESS, "--set", "checkpoint_every=1000000", "--out", tmp_path)
    send_at(pid, tmp_path, number, 5)
    server.wait().refused("stopped after epoch", f"--resume --out {tmp_path}", code=code)
    _, meta = checkpoint.load(tmp_path / "checkpoints/seed-0")
    assert meta["progress"]["epoch"] == count(tmp_path) >= 5


def test_fault_25_a_second_signal_ends_at_once(server, tmp_path):
    """Ctrl-C twice exits with 130 in the middle of the step and saves nothing."""
    large = "synthetic:nodes=6000,classes=3,factors=2,average_degree=12"
    args = ["--set", "checkpoint_every=1000000", "--set", "iterations=100", "--out", tmp_path]
    pid = server.start("train", large, *SMALL, *args)
    send_at(pid, tmp_path, signal.SIGINT, 2)
    time.sleep(0.02)
    os.kill(pid, signal.SIGINT)
    outcome = server.wait()
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "")
    _, meta = checkpoint.load(tmp_path / "checkpoints/seed-0")
    assert meta["progress"]["epoch"] == 1  # the only one that was due


def test_fault_25_a_reader_that_has_gone_is_no_error():
    """A closed pipe (``| head``) ends a command quietly."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "lgdgcn", "settings"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=120)
    os.close(write)
    assert done.stderr == b""


# The disk


def test_fault_26_a_full_disk_leaves_the_old_checkpoint(server, whole, tmp_path):
    """A disk that is full amid a checkpoint is named, and the run goes on bitwise later."""
    folder = tmp_path / "run"
    pid = server.start(*ARGS, "--out", folder)
    wait_for(lambda: count(folder) >= 4)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (15_000, 15_000))  # the log fits
    server.wait().refused("cannot write", ".safetensors: File too large", "ulimit -f")
    assert not any(name.endswith(".tmp") for name in content(folder))
    assert resumed(server, folder).code == 0
    assert same_run(folder, whole)


def test_fault_26_a_full_disk_leaves_a_whole_log(server, tmp_path):
    """A disk that is full amid a line of the log is named, and the log ends with a whole line."""
    pid = server.start(*ENDLESS, "--set", "checkpoint_every=1000000", "--out", tmp_path)
    wait_for(lambda: count(tmp_path) >= 2)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (5_000, 5_000))
    server.wait().refused("metrics.jsonl: File too large", "ulimit -f")
    text = (tmp_path / "metrics.jsonl").read_text()
    assert text.endswith("}\n")
    epochs = [json.loads(line)["epoch"] for line in text.splitlines()]
    assert epochs == [*range(1, len(epochs) + 1)]


def test_fault_26_a_full_disk_leaves_the_old_report(mine, tmp_path):
    """A disk that is full amid a table or page is named, and the old file stays."""
    for verb, name in (("predict", "p.csv"), ("explore", "page.html")):
        call(verb, mine[1], "--out", "/dev/full").refused("/dev/full: No space left on device")
        file = tmp_path / name
        file.write_text("old")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            outcome = call(verb, mine[1], "--out", file)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        outcome.refused(f"cannot write {file}: File too large")
        assert content(tmp_path) == {name: b"old"}
        file.unlink()


def rewritten(file: Path, change) -> bytes:
    """The same checkpoint with other tensors and another description."""
    with safe_open(file, "pt") as old:
        tensors = {name: old.get_tensor(name) for name in old.keys()}  # noqa: SIM118
        head = json.loads(old.metadata()["lgdgcn"])
    tensors, head = change(tensors, head)
    save_file(tensors, file, metadata={"lgdgcn": json.dumps(head)})
    return file.read_bytes()


DAMAGES = {
    "empty": "is empty",
    "cut": "damaged, cut short or altered",
    "flipped bit": "damaged, cut short or altered",
    "type": "cannot be read",
    "newer": "schema 99",
    "pickle": "a pickle or torch.save file, which is never loaded",
}


@pytest.mark.parametrize("kind", [*DAMAGES, "other shape", "no tensors"])
def test_fault_27_a_damaged_checkpoint_is_named_and_the_one_before_used(
    server, whole, stopped, tmp_path, kind
):
    """A damaged, foreign or newer checkpoint is named and the one before used; no payload runs.

    In part: a file whose seal fits but whose tensors are of another shape is refused by name, and
    the one before it is not used.
    """
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    file = max((folder / "checkpoints").glob("seed-0-*.safetensors"))
    good, marker = file.read_bytes(), tmp_path / "marker"
    if kind == "empty":
        file.write_bytes(b"")
    elif kind == "cut":
        file.write_bytes(good[:-7])
    elif kind == "flipped bit":
        file.write_bytes(good[:-3] + bytes([good[-3] ^ 4]) + good[-2:])
    elif kind == "type":
        sealed(file, good.replace(b'"F32"', b'"F64"', 1))
    elif kind == "newer":
        sealed(file, rewritten(file, lambda tensors, head: (tensors, head | {"schema": 99})))
    elif kind == "pickle":
        sealed(file, pickle.dumps(Payload(marker)))
    else:
        change = {
            "other shape": lambda ts, head: ({k: t.flatten() for k, t in ts.items()}, head),
            "no tensors": lambda ts, head: ({}, head),
        }
        sealed(file, rewritten(file, change[kind]))
    outcome = resumed(server, folder)
    assert not marker.exists()
    if kind in DAMAGES:
        assert outcome.code == 0
        assert outcome.err.count("going on from the one before") == 1
        assert file.name in outcome.err
        assert DAMAGES[kind] in outcome.err
        assert same_run(folder, whole)
    else:
        outcome.refused("weights of another model")
        assert not (folder / "result.json").exists()


def unusable(folder: Path) -> list[Path]:
    """Places that no file can be written to, also for root."""
    (folder / "file").write_text("mine")
    return [folder / "file/below", folder / "file/far/below", Path("/proc/lgdgcn/below")]


@pytest.mark.parametrize(
    ("verb", "work"),
    [
        ("train", "lgdgcn.commands.train.fit"),
        ("measure", "lgdgcn.commands.measure.measure"),
        ("explore", "lgdgcn.commands.explore.payload"),
        ("predict", "lgdgcn.train.trained.TrainedModel.__call__"),
        ("tune", "lgdgcn.commands.tune.search"),
        ("reproduce", "lgdgcn.reproduce.runs.train_cells"),
    ],
    ids=["train", "measure", "explore", "predict", "tune", "reproduce"],
)
def test_fault_28_a_place_that_cannot_be_written_is_found_at_the_start(
    mine, tmp_path, monkeypatch, verb, work
):
    """An unusable --out is refused before the work, for every verb that has one."""
    monkeypatch.setattr(work, None)  # to begin the work would be an internal error
    about = {"train": [GRAPH], "tune": [GRAPH, "--model", "mlp"]}
    about["reproduce"] = ["table1", "--quick"]
    for place in unusable(tmp_path):
        outcome = call(verb, *about.get(verb, [mine[1]]), "--out", place)
        outcome.refused("cannot ", str(place.parent))
    assert content(tmp_path) == {"file": b"mine"}


def test_fault_28_folders_with_blanks_and_any_letters_are_made(tmp_path):
    """A run folder may have any name, and its parents are made."""
    folder = tmp_path / "ein Ordner" / "名 ünï" / "run"
    assert train(folder, "--model", "mlp", epochs=1).code == 0
    assert (folder / "result.json").is_file()


def test_fault_29_one_run_per_folder(server, tmp_path):
    """A second run in a folder is refused; a dead owner's lock is taken over with a warning."""
    pid = server.start(*ENDLESS, "--out", tmp_path)
    wait_for(lambda: count(tmp_path) >= 2)
    for how in ([], ["--resume"], ["--overwrite"]):
        train(tmp_path, *how).refused(f"in use by process {pid}")
    os.kill(pid, signal.SIGKILL)
    server.wait()
    lines = count(tmp_path)
    pid = server.start(*ENDLESS, "--out", tmp_path, "--resume")
    send_at(pid, tmp_path, signal.SIGINT, lines + 2)
    outcome = server.wait()
    assert outcome.code == 130
    assert outcome.err.count("warning: taking over") == 1


def test_fault_30_another_run_is_not_resumed(server, tmp_path):
    """Resuming with other settings or data is refused with all that differs; nothing changes."""
    graph = write_graph(tmp_path / "graph")
    args = ["train", graph, *SMALL, "--set", "epochs=1000000", "--out", tmp_path / "run"]
    pid = server.start(*args)
    send_at(pid, tmp_path / "run", signal.SIGINT, 2)
    assert server.wait().code == 130
    before = content(tmp_path / "run")
    call(*args).refused("already holds an unfinished run", "--resume")
    call(*args, "--resume", "--set", "lr=0.5", "--set", "dropout=0.125").refused(
        "settings.lr: ", "-> 0.5;", "settings.dropout: ", "-> 0.125;"
    )
    call(*args, "--resume", "--model", "disengcn").refused('model: "lgdgcn" -> "disengcn"')
    other = write_graph(tmp_path / "other", nodes=27)
    call("train", other, *args[2:], "--resume").refused("dataset", str(other))
    replaced(graph / "nodes.csv", ",train", ",test", count=1)
    call(*args, "--resume").refused("data: ")
    assert content(tmp_path / "run") == before


# Settings and surroundings


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("lamda_space", "1", "unknown key lamda_space: did you mean lambda_space?"),
        ("lr", '"fast"', "lr is 'fast'; it must be a number"),
        ("epochs", "1.5", "epochs is 1.5; it must be a whole number"),
        ("dropout", "1.0", "dropout is 1.0; it must be below 1"),
        ("lambda_div", "nan", "lambda_div is nan"),
        ("k", "0", "k is 0; it must be at least 1"),
    ],
)
def test_fault_31_wrong_settings_are_refused_with_a_hint(tmp_path, key, value, words):
    """A misspelt key is refused with the right one; wrong types, ranges and NaN are refused."""
    file = tmp_path / "mine.toml"
    file.write_text(f"{key} = {value}\n")
    for args in (["--config", file], ["--set", f"{key}={value}"]):
        call("train", GRAPH, *args, "--out", tmp_path / "run").refused(words)
    assert not (tmp_path / "run").exists()


def test_fault_32_no_device_and_a_full_one(tmp_path, monkeypatch):
    """A missing GPU is refused, auto takes the CPU; a full device names its peak and a way out.

    The search for neighbours tries smaller tiles first.
    """
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    train(tmp_path / "run", "--device", "cuda").refused(
        "'cuda', but torch sees 0 GPUs", "auto or cpu"
    )
    assert next(fitted(toy_graph(), device="auto").trained_.model.parameters()).is_cpu

    points = torch.rand(1, 200, 3)
    monkeypatch.setenv("LGDGCN_BACKEND", "torch")
    wanted, new_zeros, tried = nearest(points, 4), torch.Tensor.new_zeros, []

    def cramped(self, rows, *more, **options):
        tried.append(rows)
        if rows > 30:
            raise torch.OutOfMemoryError
        return new_zeros(self, rows, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr(torch.Tensor, "new_zeros", cramped)
        found = nearest(points, 4)
    assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))
    assert tried[0] > 30 >= tried[-1]

    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 3 * 2**30)
    assert "a peak of 3.0 GiB; use --device cpu" in str(out_of_memory(torch.device("cuda")))

    def full(*args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")

    for place in ("trainer.Trainer.epoch", "trained.TrainedModel.run"):
        with monkeypatch.context() as patch:
            patch.setattr(f"lgdgcn.train.{place}", full)
            outcome = train(tmp_path / place, epochs=1)
        outcome.refused("ran out of memory", "lower hidden_channels")


def test_fault_33_a_missing_extra_is_named(tmp_path, monkeypatch):
    """A file or address that needs an optional package names the extra to install."""
    for module in ("pyarrow", "psycopg"):
        monkeypatch.setitem(sys.modules, module, None)
    graph = write_graph(tmp_path / "graph")
    (graph / "nodes.csv").rename(graph / "nodes.parquet")
    train(tmp_path / "run", graph=graph).refused("pip install 'lgdgcn[parquet]'")
    study = ["--model", "mlp", "--storage", "postgresql://host/base", "--out", tmp_path / "tune"]
    call("tune", GRAPH, *study).refused("lgdgcn[postgres]")


# Several processes


def test_fault_34_workers_of_a_study_lose_nothing(tmp_path):
    """A killed worker's trials are run again.

    4 workers with 80 trials complete exactly 80, each once; an objective of NaN fails its trial
    only; a study of another search space is refused. Kills at other moments and the same on a
    PostgreSQL server: ``tests/tune/``.
    """
    storage = str(tmp_path / "study.db")
    study = opened(storage, resume=False, seed=0)
    with worker_of(storage, 81, study) as worker:
        (diverged,) = worker.ask(1)
        assert worker.tell(diverged, float("nan"))
    kill_amid_trials(storage, trials=81, batch=4)
    lost = {trial.params["x"] for trial in study.trials[1:]}
    finish(start_workers(4, storage, 81))
    states = [trial.state.name for trial in study.trials]
    done = [trial.params["x"] for trial in study.trials if trial.state.name == "COMPLETE"]
    assert len(done) == len(set(done)) == 80
    assert lost < set(done)
    assert states[0] == "FAIL"
    with pytest.raises(InputError, match="other search"):
        open_study("study", storage, space={**SPACE, "model": "mlp"}, resume=True)


def test_fault_35_two_processes_never_write_to_one_folder(server, tmp_path):
    """Of several processes, one writes and the others refuse.

    In part: that torchrun restarts a killed rank, which resumes, and that of several ranks only
    the first writes, is tested in ``tests/train/test_ranks.py``.
    """
    pid = server.start(*ENDLESS, "--out", tmp_path)
    wait_for(lambda: count(tmp_path) >= 1)
    call(*ENDLESS, "--out", tmp_path).refused(f"in use by process {pid}")
    os.kill(pid, signal.SIGINT)
    assert server.wait().code == 130
