"""``graph.toml``: what it may say, and what else gets a line that names it."""

import tomllib

import pytest

from cli.runner import call
from lgdgcn.data.graph_file import GraphFile, proposal, read_graph_file
from lgdgcn.data.source import GraphSource

NODES = "id,label,age,bio\n" + "".join(
    f"n{i},{'xy'[i % 2]},{i},a text of some words {i}\n" for i in range(30)
)


@pytest.fixture
def graph(tmp_path):
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text("".join(f"n{i},n{i + 1}\n" for i in range(29)))
    return folder


def test_a_folder_without_the_file(tmp_path):
    assert read_graph_file(tmp_path) == GraphFile()


def test_the_proposal_says_what_is_read_without_it(graph):
    source = GraphSource(f"{graph}/")
    text = proposal(source.columns())
    assert tomllib.loads(text)["columns"] == {
        "id": "id",
        "label": "label",
        "age": "number",
        "bio": "text",
    }
    before = source.load()
    (graph / "graph.toml").write_text(text)
    after = source.load()
    assert before.feature_names == after.feature_names
    assert before.x.tolist() == after.x.tolist()


def test_odd_names_survive_the_proposal(graph):
    odd = 'a "b" = [c]\u007f'
    (graph / "nodes.csv").write_text(NODES.replace("age", '"' + odd.replace('"', '""') + '"', 1))
    text = proposal(GraphSource(f"{graph}/").columns())
    assert tomllib.loads(text)["columns"][odd] == "number"


def test_an_option_wins_and_the_column_it_replaces_is_no_feature(graph):
    (graph / "graph.toml").write_text('[columns]\nlabel = "label"\nbio = "ignore"\n')
    data = GraphSource(f"{graph}/", label="age").load(require_labels=False)
    assert data.classes[:3] == [0, 1, 2]
    assert data.feature_names[0] == "spectral 1"  # neither label nor bio is left


def test_check_prints_a_table_and_the_proposal(graph, monkeypatch):
    outcome = call("data", "check", f"{graph}/")
    assert outcome.code == 0
    for words in ("bio", "text", "a text of some words 0", "[columns]", "listed in one direction"):
        assert words in outcome.out
    assert max(map(len, outcome.out.splitlines()[:12])) <= 80
    assert not (graph / "graph.toml").exists()


def test_check_writes_once(graph):
    outcome = call("data", "check", f"{graph}/", "--write", "--ignore", "bio")
    assert "written" in outcome.out
    written = (graph / "graph.toml").read_text()
    assert tomllib.loads(written)["columns"]["bio"] == "ignore"
    call("data", "check", f"{graph}/", "--write").refused("graph.toml is there already")
    assert (graph / "graph.toml").read_text() == written
    assert "roles are those of" in call("data", "check", f"{graph}/").out
