"""What commands write never replaces what they do not own, and is refused before the work."""

import os

import pytest

from commands.conftest import write_graph
from commands.runner import GRAPH, SMALL, call, content, train
from lgdgcn.data.source import GraphSource

OWN = ["model.safetensors", "config.toml", "metrics.jsonl"]
OWN += ["result.json", "units.png", "measure.json", "explore.html"]
OWN += ["checkpoint.safetensors", "compared/gcn/model.safetensors"]


# Files of others


@pytest.mark.parametrize("how", [[], ["--overwrite"], ["--resume"]], ids=str)
@pytest.mark.parametrize("name", OWN)
def test_files_of_others_are_kept(tmp_path, name, how):
    file = tmp_path / "mine" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine = 1")
    outcome = train(tmp_path / "mine", "--model", "mlp", "--compare", "gcn", *how)
    assert outcome.refused(str(tmp_path / "mine"))
    assert "there is no run" in outcome.err or name in outcome.err
    assert content(tmp_path) == {f"mine/{name}": b"mine = 1"}
    assert not os.path.lexists(tmp_path / "mine/run.lock")


def test_nothing_of_a_run_is_touched_for_a_comparison_that_cannot_be(tmp_path):
    assert train(tmp_path / "run", "--model", "mlp", epochs=2).code == 0
    (tmp_path / "run/compared/gcn").mkdir(parents=True)
    (tmp_path / "run/compared/gcn/result.json").write_text("mine")
    before = content(tmp_path)
    args = ["--model", "mlp", "--compare", "gcn", "--overwrite"]
    train(tmp_path / "run", *args, epochs=2).refused("compared/gcn/result.json")
    assert content(tmp_path) == before


@pytest.mark.parametrize("how", [[], ["--overwrite"]], ids=str)
@pytest.mark.parametrize("text", ["lr = 0.02\n", None], ids=["flat", "of a run"])
def test_the_configuration_that_is_read_is_not_replaced(finished, tmp_path, text, how):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "run.lock").touch()
    (mine / "config.toml").write_text(text or (finished[0] / "config.toml").read_text())
    (tmp_path / "link.toml").symlink_to(mine / "config.toml")
    before = content(tmp_path)
    for config in (mine / "config.toml", tmp_path / "link.toml"):
        train(mine, "--config", config, *how).refused("--config", "would be replaced")
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", [*OWN[:-2], "run.lock", "compared"])
def test_links_in_a_run_are_not_followed(tmp_path, name):
    args = ["--model", "mlp", "--compare", "gcn"]
    run, other = tmp_path / "run", tmp_path / "other"
    assert train(run, *args, epochs=1).code == 0
    other.mkdir()
    (other / "thesis.txt").write_text("years")
    if (run / name).exists():
        (run / name).rename(tmp_path / "before")
    (run / name).symlink_to(other if name == "compared" else other / "thesis.txt")
    for how in ("--resume", "--overwrite"):
        train(run, *args, how, epochs=1).refused(f"{run / name} is a link")
    train(run, *args, epochs=1).refused(str(run))
    assert content(other) == {"thesis.txt": b"years"}


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.toml", "compared/gcn/result.json", "run.lock"]
)
@pytest.mark.parametrize("verb", ["predict", "measure", "explore"])
def test_no_file_of_a_run_is_an_output(finished, tmp_path, verb, name):
    run, _ = finished
    before = content(run)
    (tmp_path / "link").symlink_to(run / name)
    for out in (run / name, tmp_path / "link"):
        call(verb, run, "--out", out).refused(f"--out {out} is a file of a run")
    assert content(run) == before


def test_what_belongs_to_a_run_is_replaced_by_its_own_command_only(finished, tmp_path, monkeypatch):
    run, _ = finished
    monkeypatch.setattr("lgdgcn.metrics.controls.measure", lambda trained, data: [])
    try:
        assert call("measure", run, "--out", run / "measure.json").code == 0
        assert call("measure", run).code == 0
        call("explore", run, "--out", run / "measure.json").refused("is a file of a run")
        (run / "measure.json").unlink()
        (tmp_path / "thesis.txt").write_text("years")
        (run / "measure.json").symlink_to(tmp_path / "thesis.txt")
        call("measure", run).refused("measure.json is a link")
        call("measure", run, "--out", run / "measure.json").refused("measure.json is a link")
        assert (tmp_path / "thesis.txt").read_text() == "years"
    finally:
        (run / "measure.json").unlink(missing_ok=True)


def test_no_file_of_the_graph_is_an_output(mine, tmp_path):
    _, run, _ = mine
    graph = write_graph(tmp_path / "graph")
    before = content(graph)
    (tmp_path / "link.csv").symlink_to(graph / "nodes.csv")
    for out in (graph / "nodes.csv", graph / "edges.csv", tmp_path / "link.csv"):
        call("predict", run, "--graph", graph, "--out", out).refused("is a file of the graph")
    assert content(graph) == before
    assert call("predict", run, "--graph", graph, "--out", graph / "predicted.csv").code == 0


def test_reports_and_tables_of_others_are_kept(tmp_path):
    for name in ("report.md", "report.html"):
        (tmp_path / name).write_text("mine")
        call("reproduce", "table1", "--quick", "--out", tmp_path).refused(name, "--out")
        assert content(tmp_path) == {name: b"mine"}
        (tmp_path / name).unlink()
    for name in ("trials.csv", "history.png", "importance.svg"):
        (tmp_path / name).write_text("mine")
        call("tune", GRAPH, "--trials", 1, "--out", tmp_path).refused(name, "--out")
        assert content(tmp_path) == {name: b"mine"}
        (tmp_path / name).unlink()


# Before the work


@pytest.mark.parametrize("where", ["file", "file/x", "absent/file.csv"])
@pytest.mark.parametrize("verb", ["predict", "measure", "explore"])
def test_a_file_that_cannot_be_written(finished, tmp_path, monkeypatch, verb, where):
    (tmp_path / "file").write_text("mine")
    out = tmp_path if where == "file" else tmp_path / where
    monkeypatch.setattr(GraphSource, "load", lambda *args, **more: pytest.fail("the work began"))
    call(verb, finished[0], "--out", out).refused("cannot write")
    assert content(tmp_path) == {"file": b"mine"}


def test_the_second_file_of_predict(finished, tmp_path, monkeypatch):
    (tmp_path / "p-edges.csv").mkdir()
    monkeypatch.setattr(GraphSource, "load", lambda *args, **more: pytest.fail("the work began"))
    call("predict", finished[0], "--edges", "--out", tmp_path / "p.csv").refused("p-edges.csv")


@pytest.mark.parametrize("where", ["file", "file/run", "link/run"])
@pytest.mark.parametrize("verb", ["train", "tune", "reproduce"])
def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, verb, where):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(GraphSource, "load", lambda *args, **more: pytest.fail("the work began"))
    args = {"train": [GRAPH, *SMALL], "tune": [GRAPH], "reproduce": ["table1"]}
    call(verb, *args[verb], "--out", tmp_path / where).refused("file")
    assert content(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        ("train", "result.json"),
        ("train", "compared/gcn/model.safetensors"),
        ("reproduce", "report.html"),
        ("tune", "trials.csv"),
    ],
)
def test_a_folder_where_a_file_will_go(tmp_path, verb, name):
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cells").mkdir()
    (tmp_path / "study.db").touch()
    args = {"train": [GRAPH, *SMALL, "--compare", "gcn"], "tune": [GRAPH, "--trials", 1]}
    args |= {"reproduce": ["table1", "--quick"]}
    call(verb, *args[verb], "--out", tmp_path).refused(name)
    assert content(tmp_path).keys() <= {"study.db"}
