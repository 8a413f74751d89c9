"""Faults 24 to 35: processes that are stopped or killed, disks that are full or damaged."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cli.conftest import write_graph
from cli.runner import GRAPH, call, content, train
from faults.graphs import fitted
from lgdgcn.kernels import nearest
from lgdgcn.train.memory import out_of_memory
from models.toy import toy_graph

# Pipes and the disk


def test_fault_25_a_reader_that_has_gone_is_no_error():
    """A closed pipe (``| head``) ends a command quietly."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "lgdgcn", "settings"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=120)
    os.close(write)
    assert done.stderr == b""


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


def unusable(folder: Path) -> list[Path]:
    """Places that no file can be written to, also for root."""
    (folder / "file").write_text("mine")
    return [folder / "file/below", folder / "file/far/below", Path("/proc/lgdgcn/below")]


@pytest.mark.parametrize(
    ("verb", "work"),
    [
        ("train", "lgdgcn.cli.train_nodes.fit"),
        ("measure", "lgdgcn.metrics.controls.measure"),
        ("explore", "lgdgcn.explorer.payload.payload"),
        ("predict", "lgdgcn.train.trained.TrainedModel.__call__"),
        ("tune", "lgdgcn.search.tuning.search"),
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
