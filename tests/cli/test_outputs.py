"""An output that cannot be written is refused before the work; more in golden/records."""

import pytest

from cli.conftest import write_graph
from cli.runner import GRAPH, SMALL, call, content
from lgdgcn.data.source import GraphSource


def test_a_table_may_lie_beside_those_of_the_graph(mine, tmp_path):
    _, run, _ = mine
    graph = write_graph(tmp_path / "graph")
    assert call("predict", run, "--graph", graph, "--out", graph / "predicted.csv").code == 0


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
