"""``lgdgcn predict``: rows and columns, names mapped back, other graphs."""

import csv

import pytest

from commands.conftest import CLASSES, write_graph
from commands.runner import call, content, train


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def unguarded(cell):
    return cell.removeprefix("'")


def check_nodes(rows, count):
    assert len(rows) == count
    assert list(rows[0]) == ["node", "label", "probability", "factor"]
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)
    assert {row["factor"] for row in rows} <= {"1", "2"}


def test_nodes_and_edges(finished, tmp_path):
    folder, _ = finished
    outcome = call("predict", folder, "--out", tmp_path / "p.csv", "--edges")
    assert (outcome.code, outcome.err) == (0, "")
    nodes = rows_of(tmp_path / "p.csv")
    check_nodes(nodes, 120)
    assert [row["node"] for row in nodes] == [str(i) for i in range(120)]
    for row in nodes:  # each node has one class of three in each of two factors
        assert len({int(label) for label in row["label"].split("|")} & set(range(6))) == 2

    edges = rows_of(tmp_path / "p-edges.csv")
    assert list(edges[0]) == ["source", "target", "factor", "p1", "p2"]
    assert f"{len(edges)} edges" in outcome.out
    pairs = {(int(row["source"]), int(row["target"])) for row in edges}
    assert len(pairs) == len(edges) > 500
    assert all(source < target for source, target in pairs)
    for row in edges:
        share = [float(row["p1"]), float(row["p2"])]
        assert sum(share) == pytest.approx(1, abs=2e-6)
        assert share[int(row["factor"]) - 1] == max(share)


def test_names_come_back_and_formulas_are_guarded(mine, tmp_path):
    graph, run, outcome = mine
    assert (outcome.code, outcome.err) == (0, "")
    assert call("predict", run, "--out", tmp_path / "p.csv", "--edges").code == 0
    rows = rows_of(tmp_path / "p.csv")
    check_nodes(rows, 24)
    given = rows_of(graph / "nodes.csv")
    assert [unguarded(row["node"]) for row in rows] == [row["id"] for row in given]
    assert {unguarded(row["label"]) for row in rows} == set(CLASSES)
    right = [unguarded(a["label"]) == b["label"] for a, b in zip(rows, given, strict=True)]
    assert sum(right) > 16  # of 24: labels are not permuted on the way
    edges = rows_of(tmp_path / "p-edges.csv")
    pairs = {frozenset(unguarded(row[end]) for end in ("source", "target")) for row in edges}
    assert pairs == {frozenset(row.values()) for row in rows_of(graph / "edges.csv")}
    cells = [cell for row in rows + edges for cell in row.values()]
    assert {"'=1+1", "'=cmd|' /C calc'!A0", "naïve, “quoted”"} <= set(cells)
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_another_graph_without_labels(mine, tmp_path):
    _, run, _ = mine
    other = write_graph(tmp_path / "new", labels=False, nodes=15)
    outcome = call("predict", run, "--graph", other, "--out", tmp_path / "p.csv", "--edges")
    assert (outcome.code, outcome.err) == (0, "")
    check_nodes(rows_of(tmp_path / "p.csv"), 15)
    assert {unguarded(row["label"]) for row in rows_of(tmp_path / "p.csv")} <= set(CLASSES)


def test_another_number_of_features(mine, tmp_path):
    _, run, _ = mine
    graph = write_graph(tmp_path / "new", labels=False)
    lines = (graph / "nodes.csv").read_text().splitlines()
    wider = [f"{line},{'f4' if i == 0 else i}" for i, line in enumerate(lines)]
    (graph / "nodes.csv").write_text("\n".join(wider) + "\n")
    outcome = call("predict", run, "--graph", graph, "--out", tmp_path / "p.csv")
    outcome.refused("4 features", "trained with 3")
    assert not (tmp_path / "p.csv").exists()


def test_models_without_factors(finished, tmp_path):
    folder = finished[0] / "compared/gcn"
    assert call("predict", folder, "--out", tmp_path / "p.csv").code == 0
    assert list(rows_of(tmp_path / "p.csv")[0]) == ["node", "label", "probability"]
    call("predict", folder, "--edges", "--out", tmp_path / "q.csv").refused("--edges")
    assert not (tmp_path / "q.csv").exists()


def test_no_edges_at_all(tmp_path):
    graph = write_graph(tmp_path / "graph")
    (graph / "edges.csv").write_text("source,target\n")
    assert train(tmp_path / "run", graph=graph, epochs=2).code == 0
    assert call("predict", tmp_path / "run", "--edges", "--out", tmp_path / "p.csv").code == 0
    assert rows_of(tmp_path / "p-edges.csv") == []
    check_nodes(rows_of(tmp_path / "p.csv"), 24)


def test_no_run_there(tmp_path):
    call("predict", tmp_path / "x", "--out", tmp_path / "p.csv").refused("holds no finished run")
    assert content(tmp_path) == {}


def test_a_damaged_model_or_configuration(finished, tmp_path):
    source, _ = finished
    for name in ("model.safetensors", "model.safetensors.sha256", "config.toml"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    target = tmp_path / "p.csv"
    assert call("predict", tmp_path, "--out", target).code == 0
    for text in ("", "run = 3", "[run]\ndataset = 3\nsplit = 'standard'", "\0"):
        (tmp_path / "config.toml").write_text(text)
        call("predict", tmp_path, "--out", target).refused("config.toml")
    (tmp_path / "config.toml").write_bytes((source / "config.toml").read_bytes())
    model = bytearray((tmp_path / "model.safetensors").read_bytes())
    model[-1] ^= 1
    (tmp_path / "model.safetensors").write_bytes(model)
    call("predict", tmp_path, "--out", target).refused("model.safetensors", "damaged")


@pytest.mark.parametrize("where", [".", "absent/p.csv", "file/p.csv"])
def test_a_place_that_cannot_be_written(finished, tmp_path, where):
    (tmp_path / "file").write_text("mine")
    call("predict", finished[0], "--out", tmp_path / where).refused("cannot write")


def test_from_another_working_folder(tmp_path, monkeypatch):
    graph = write_graph(tmp_path / "graph")
    monkeypatch.chdir(tmp_path)
    assert train(tmp_path / "run", graph="graph", epochs=2).code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert call("predict", tmp_path / "run", "--out", "p.csv").code == 0
    assert graph.is_dir()
    assert len(rows_of(tmp_path / "elsewhere/p.csv")) == 24
