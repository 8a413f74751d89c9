"""``lgdgcn train --resume``: a finished run is what it was, or is refused in one line."""

import shutil

import pytest

from cli.runner import GRAPH, call, content, train
from lgdgcn.runs.checkpoint import Checkpoint
from lgdgcn.runs.folder import Run


@pytest.fixture
def own(mine, tmp_path):
    """A graph and its run, free to be changed; the arguments that resume it."""
    source, run, _ = mine
    graph = tmp_path / source.name
    shutil.copytree(source, graph)
    config = run / "config.toml"
    shutil.copytree(run, tmp_path / "run")
    text = config.read_text().replace(str(source), str(graph))
    (tmp_path / "run/config.toml").write_text(text)
    return graph, tmp_path / "run"


def resume(graph, run, *more):
    return train(run, "--resume", *more, graph=graph, epochs=40)


def test_other_data_are_said_where_the_model_is_looked_at(own, tmp_path, monkeypatch):
    graph, run = own
    monkeypatch.setattr("lgdgcn.metrics.controls.measure", lambda trained, data: [])
    assert call("measure", run, "--out", tmp_path / "m.json").err == ""
    nodes = graph / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(",train", ",test", 1))
    outcome = call("measure", run, "--out", tmp_path / "m.json")
    assert outcome.code == 0
    assert "warning: the data have changed since the run in" in outcome.err


def test_a_log_that_is_gone_or_damaged(own):
    graph, run = own
    lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (run / "metrics.jsonl").write_bytes(b"".join(lines[:3]) + b"\xff\n" + b"".join(lines[4:]))
    outcome = resume(graph, run)
    assert outcome.code == 0
    assert f"metrics.jsonl has {len(lines) - 1} of {len(lines)} epochs" in outcome.err
    (run / "metrics.jsonl").unlink()
    assert f"metrics.jsonl has 0 of {len(lines)} epochs" in resume(graph, run).err


def test_a_resumed_configuration_stays_as_it_is_written(own):
    graph, run = own
    with (run / "config.toml").open("a") as file:
        file.write("# my notes\n")
    before = content(run)
    assert resume(graph, run, "--config", run / "config.toml").code == 0
    assert content(run) == before


def test_checkpoints_left_behind_are_removed(tmp_path, monkeypatch):
    """The kill came after the result was written."""
    monkeypatch.chdir(tmp_path)
    args = ["train", GRAPH, "--model", "mlp", "--epochs", 2, "--seeds", 2]
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "remove", lambda self: None)
        first = call(*args)
    run = Run.open("runs/synthetic-mlp")
    assert run.checkpoint.is_file()
    again = call(*args, "--resume")
    assert (again.code, again.out) == (0, first.out)
    assert not list(run.path.glob("checkpoint*"))
    call(*args, "--resume").refused("no unfinished run")


def test_a_kill_before_a_compared_model_began(tmp_path):
    args = ["--model", "mlp", "--compare", "gcn"]
    assert train(tmp_path / "run", *args, epochs=2).code == 0
    shutil.rmtree(tmp_path / "run/compared")
    assert train(tmp_path / "run", *args, "--resume", epochs=2).code == 0
    assert (tmp_path / "run/compared/gcn/result.json").exists()


def test_a_run_folder_named_like_a_data_set(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args = ["train", "synthetic", "--epochs", 1, "--model", "mlp"]
    assert call(*args, "--out", "synthetic").code == 0
    assert call("predict", "synthetic", "--out", "p.csv").code == 0
    assert call(*args, "--out", "synthetic", "--resume").code == 0
    assert call(*args, "--out", "again").code == 0
