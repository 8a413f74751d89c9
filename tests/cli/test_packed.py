"""Every verb takes a packed graph where it takes a folder, and does the same with it."""

import json
import re

import pytest

from cli.conftest import write_graph
from cli.runner import call, rows, train
from lgdgcn.data.packed import PackedGraph

pytest.importorskip("duckdb", reason="packing needs the extra [scale]")


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """A folder and the same packed, under one name in two places."""
    place = tmp_path_factory.mktemp("verbs")
    folder = write_graph(place / "tables" / "graph")
    with open(folder / "nodes.csv") as file:
        head, *given = file.read().splitlines()
    lines = [f"{head},country,note", *(f"{r},{['DE', 'FR'][i % 2]},a note on node number {i}"
                                       for i, r in enumerate(given))]  # fmt: skip
    (folder / "nodes.csv").write_text("\n".join(lines))
    (place / "packed").mkdir()
    packed = place / "packed" / "graph.lgd"
    outcome = call("data", "pack", folder, "--out", packed, "--memory", "8GB")
    assert outcome.code == 0, outcome.err
    assert re.fullmatch(rf"24 nodes, 27 edges, 5 features, .* MB: {packed}\n", outcome.out)
    return folder, packed


@pytest.fixture(scope="module")
def runs(graphs, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    done = [train(place / f"{i}", graph=graph) for i, graph in enumerate(graphs)]
    assert [outcome.code for outcome in done] == [0, 0], done
    return place / "0", place / "1"


def plain(outcome, *paths):
    """What was printed, without the names of files and the time."""
    text = outcome.out
    for path in sorted(map(str, paths), key=len, reverse=True):
        text = text.replace(path, "PLACE")
    return outcome.code, re.sub(r"\d+(\.\d+)? ?(s|min)\b", "TIME", text)


def test_training_gives_the_same_model(runs):
    models = [(run / "model.safetensors").read_bytes() for run in runs]
    assert models[0] == models[1]
    results = [json.loads((run / "result.json").read_text()) for run in runs]
    scores = [[one["test"] for one in result["runs"]] for result in results]
    assert scores[0] == scores[1]


def test_predictions_measures_and_explanations_are_the_same(graphs, runs, tmp_path):
    for verb, file, *options in (
        ("predict", "p.csv", "--proba"),
        ("measure", "m.json"),
        ("explore", "e.html"),
    ):
        written = []
        for i, run in enumerate(runs):
            out = tmp_path / f"{i}-{file}"
            outcome = call(verb, run, "--out", out, *options)
            assert outcome.code == 0, outcome.err
            written.append(out.read_bytes())
        assert written[0] == written[1], verb
    for question in (["--node", "n5"], ["--edge", "n5", "n2"]):
        said = [call("explain", run, *question, "--json") for run in runs]
        assert said[0].code == 0, said[0].err
        assert plain(said[0], runs[0]) == plain(said[1], runs[1])


def test_another_graph_is_predicted_alike(graphs, runs, tmp_path):
    """Trained on tables, predicted on a packed graph that was encoded for itself, and by --like."""
    other = write_graph(tmp_path / "other", labels=False, nodes=30)
    with open(other / "nodes.csv") as file:
        head, *given = file.read().splitlines()
    lines = [
        f"{head},country,note",
        *(f"{row},{'FR' if i else ''},x" for i, row in enumerate(given)),
    ]
    (other / "nodes.csv").write_text("\n".join(lines))
    targets = [other, tmp_path / "own.lgd", tmp_path / "like.lgd"]
    assert call("data", "pack", other, "--out", targets[1], "--memory", "8GB").code == 0
    like = ["--like", runs[0], "--memory", "8GB"]
    outcome = call("data", "pack", other, "--out", targets[2], *like)
    assert outcome.code == 0, outcome.err
    written = []
    for graph in targets:
        outcome = call("predict", runs[0], "--graph", graph, "--out", tmp_path / "p.csv")
        assert outcome.code == 0, outcome.err
        written.append((tmp_path / "p.csv").read_text())
    assert written[0] == written[1] == written[2]
    inside = targets[1] / "p.csv"
    call("predict", runs[0], "--graph", targets[1], "--out", inside).refused("file of the graph")


def test_data_check(graphs):
    _, packed = graphs
    nodes = [rows(call("data", "check", graph).out) for graph in graphs]
    names = ("nodes", "edges", "average degree", "isolated nodes", "features", "classes")
    assert [nodes[0][name] for name in names] == [nodes[1][name] for name in names]
    outcome = call("data", "check", packed)
    assert outcome.code == 0, outcome.err
    assert "files are what was packed" in outcome.out


def test_why_edges_are_there(graphs, tmp_path):
    written = []
    for i, graph in enumerate(graphs):
        run = tmp_path / f"{i}"
        outcome = call("train", graph, "--factors", 2, "--out", run)
        assert outcome.code == 0, outcome.err
        outcome = call("predict", run, "--out", tmp_path / f"{i}.csv")
        assert outcome.code == 0, outcome.err
        written.append((tmp_path / f"{i}.csv").read_bytes())
    assert written[0] == written[1]


def test_roles_are_given_when_packing(graphs, tmp_path):
    folder, _ = graphs
    options = ["--label", "country", "--ignore", "note", "--memory", "8GB"]
    target = tmp_path / "graph.lgd"
    assert call("data", "pack", folder, "--out", target, *options).code == 0
    assert PackedGraph.open(target).classes == ["DE", "FR"]
    assert train(tmp_path / "r", "--label", "country", graph=target).code == 0  # the same role
