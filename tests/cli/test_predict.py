"""``lgdgcn predict``: rows and columns, names mapped back, other graphs."""

import csv
import json

import numpy as np
import pytest
import torch

from cli.conftest import CLASSES, write_graph
from cli.runner import call, train
from lgdgcn.data.label_sets import joined
from lgdgcn.runs.finished import open_run


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def unguarded(cell):
    return cell.removeprefix("'")


KNOWN = ["true_label", "split"]


def check_nodes(rows, count, known=KNOWN):
    assert len(rows) == count
    assert list(rows[0]) == ["node", "label", "probability", "factor", *known]
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)
    assert {row["factor"] for row in rows} <= {"1", "2"}


def test_nodes_and_edges(finished, tmp_path):
    folder, _ = finished
    outcome = call("predict", folder, "--out", tmp_path / "p.csv", "--proba")
    assert (outcome.code, outcome.err) == (0, "")
    nodes = rows_of(tmp_path / "p.csv")
    check_nodes(nodes, 120, [*KNOWN, *(f"p:{label}" for label in range(6))])
    assert [row["node"] for row in nodes] == [str(i) for i in range(120)]
    for row in nodes:  # each node has one class of three in each of two factors
        assert len({int(label) for label in row["label"].split("|")} & set(range(6))) == 2

    edges = rows_of(tmp_path / "p-edges.csv")
    best = ["reason", "probability", "second", "second_probability"]
    named = ["p:factor 1", "p:factor 2"]
    assert list(edges[0]) == ["source", "target", *best, "unknown", "known", *named]
    assert f"{len(edges)} edges" in outcome.out
    pairs = {(int(row["source"]), int(row["target"])) for row in edges}
    assert len(pairs) == len(edges) > 500
    assert all(source < target for source, target in pairs)
    for row in edges:
        share = [float(row[name]) for name in named]
        assert sum(share) == pytest.approx(1, abs=2e-6)
        assert float(row["probability"]) == float(row[f"p:{row['reason']}"]) == max(share)
        assert (row["unknown"], row["known"]) == ("0", "")


def test_names_come_back_and_formulas_are_guarded(mine, tmp_path):
    graph, run, outcome = mine
    assert (outcome.code, outcome.err) == (0, "")
    assert call("predict", run, "--out", tmp_path / "p.csv").code == 0
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
    outcome = call("predict", run, "--graph", other, "--out", tmp_path / "p.csv")
    assert (outcome.code, outcome.err) == (0, "")
    check_nodes(rows_of(tmp_path / "p.csv"), 15, known=[])
    assert {unguarded(row["label"]) for row in rows_of(tmp_path / "p.csv")} <= set(CLASSES)


# In the run folder, and beside what is known


def test_without_a_name_it_lies_in_the_run_folder(tmp_path):
    graph, run = write_graph(tmp_path / "graph"), tmp_path / "run"
    assert train(run, graph=graph, epochs=2).code == 0
    for _ in range(2):
        outcome = call("predict", run)
        assert outcome.code == 0, outcome
    assert f"24 nodes: {run / 'predictions.csv'}" in outcome.out
    check_nodes(rows_of(run / "predictions.csv"), 24)
    assert (run / "predictions-edges.csv").is_file()


def test_the_true_label_and_the_split_stand_beside_the_prediction(tmp_path):
    graph, run = write_graph(tmp_path / "graph"), tmp_path / "run"
    given = rows_of(graph / "nodes.csv")
    given[3]["label"] = ""
    with (graph / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, given[0])
        writer.writeheader()
        writer.writerows(given)
    assert train(run, graph=graph, epochs=2).code == 0
    assert call("predict", run).code == 0
    rows = rows_of(run / "predictions.csv")
    assert [unguarded(row["true_label"]) for row in rows] == [row["label"] for row in given]
    data = canonical_of(run)
    for split in ("train", "val", "test"):
        mask = [row["split"] == split for row in rows]
        assert mask == data[f"{split}_mask"].tolist()
    assert rows[3]["split"] == ""
    _, text = predictions(run, graph, tmp_path / "p.csv")  # the same graph by its name
    assert [row["true_label"] for row in csv.DictReader(text.splitlines())] == [
        row["true_label"] for row in rows
    ]
    write_graph(tmp_path / "new", labels=False)  # labels that are gone do not stop a prediction
    (graph / "nodes.csv").write_bytes((tmp_path / "new/nodes.csv").read_bytes())
    assert call("predict", run).code == 0
    check_nodes(rows_of(run / "predictions.csv"), 24, known=[])


def canonical_of(run):
    return open_run(run, "cpu").data


def test_the_split_is_that_of_the_seed_whose_model_was_kept(tmp_path):
    run = tmp_path / "run"
    assert train(run, "--seeds", 2, "--split", "random", epochs=2).code == 0
    assert call("predict", run).code == 0
    rows = rows_of(run / "predictions.csv")
    assert [row["split"] == "test" for row in rows] == canonical_of(run).test_mask.tolist()
    sets = [set(row["true_label"].split("|")) for row in rows]
    assert all(len(one) == 2 for one in sets)
    result = json.loads((run / "result.json").read_text())
    for best in (0, 1):
        for one in result["runs"]:
            one["val"] = 0.9 if one["seed"] == best else 0.1
        (run / "result.json").write_text(json.dumps(result))
        finished = open_run(run, "cpu")
        assert finished.best_run["seed"] == best
        own, other = finished.data, finished.source.load(1 - best)
        assert torch.equal(own.test_mask, finished.source.load(best).test_mask)
        assert not torch.equal(own.test_mask, other.test_mask)


def test_the_probability_of_every_class(mine, finished, tmp_path):
    assert call("predict", mine[1], "--proba", "--out", tmp_path / "p.csv").code == 0
    rows = rows_of(tmp_path / "p.csv")
    names = list(rows[0])[-len(CLASSES) :]
    assert names == [f"p:{name}" for name in sorted(CLASSES)]
    for row in rows:
        share = {name.removeprefix("p:"): float(row[name]) for name in names}
        assert sum(share.values()) == pytest.approx(1, abs=1e-5)
        assert max(share, key=share.get) == unguarded(row["label"])
        assert max(share.values()) == float(row["probability"])
    assert call("predict", finished[0], "--proba", "--out", tmp_path / "q.csv").code == 0
    assert list(rows_of(tmp_path / "q.csv")[0])[-6:] == [f"p:{label}" for label in range(6)]


def with_columns(graph, order, names=None):
    """Write the features f1, f2, f3 of a graph in another order, or under other names."""
    rows = rows_of(graph / "nodes.csv")
    rest = [name for name in rows[0] if name not in ("f1", "f2", "f3")]
    with (graph / "nodes.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(names or order), *rest])
        writer.writerows([[row[name] for name in (*order, *rest)] for row in rows])
    return graph


def predictions(run, graph, path):
    outcome = call("predict", run, "--graph", graph, "--out", path)
    assert outcome.code == 0, outcome
    return outcome, path.read_text()


def test_feature_columns_are_matched_by_name(mine, tmp_path):
    _, run, _ = mine
    as_trained = write_graph(tmp_path / "a", labels=False)
    other = with_columns(write_graph(tmp_path / "b", labels=False), ["f3", "f1", "f2"])
    plain, want = predictions(run, as_trained, tmp_path / "a.csv")
    reordered, found = predictions(run, other, tmp_path / "b.csv")
    assert found == want
    assert plain.err == ""
    (line,) = reordered.err.splitlines()
    assert "feature columns are in another order" in line
    assert "matched by name" in line


def test_made_up_features_have_no_columns(tmp_path):
    graph = write_graph(tmp_path / "graph")
    assert train(tmp_path / "run", "--features", "degree", graph=graph).code == 0
    _, want = predictions(tmp_path / "run", graph, tmp_path / "a.csv")
    other = with_columns(write_graph(tmp_path / "b"), ["f1"], ["temperature"])
    outcome, found = predictions(tmp_path / "run", other, tmp_path / "b.csv")
    assert (outcome.err, found) == ("", want)


@pytest.mark.parametrize("kind", ["identity", "spectral"])
def test_features_of_single_nodes_are_for_the_same_nodes_only(tmp_path, kind):
    graph = write_graph(tmp_path / "graph")
    assert train(tmp_path / "run", "--features", kind, graph=graph).code == 0
    predictions(tmp_path / "run", write_graph(tmp_path / "a"), tmp_path / "a.csv")
    other = write_graph(tmp_path / "b")
    for name in ("nodes.csv", "edges.csv"):
        text = (other / name).read_text()
        (other / name).write_text(text.replace("n5", "another"))
    outcome = call("predict", tmp_path / "run", "--graph", other, "--out", tmp_path / "b.csv")
    outcome.refused("--graph", "made from its own structure", "another graph")


def test_arrays_have_no_names_and_are_matched_by_position(mine, tmp_path):
    _, run, _ = mine
    rows = rows_of(mine[0] / "nodes.csv")
    (tmp_path / "npz").mkdir()
    for columns in (3, 4):
        x = np.array([[float(row[f"f{i % 3 + 1}"]) for i in range(columns)] for row in rows])
        np.savez(tmp_path / "npz/nodes.npz", x=x.astype(np.float32))
        np.savez(tmp_path / "npz/edges.npz", edge_index=np.array([[0, 1], [1, 0]]))
        outcome = call("predict", run, "--graph", tmp_path / "npz", "--out", tmp_path / "p.csv")
        if columns == 3:
            assert (outcome.code, outcome.err) == (0, "")
        else:
            outcome.refused("4 features", "trained with 3")


# Sets of labels


def taken_apart(cell):
    """The names in a cell, as its help says: a backslash makes the next character plain."""
    names = [""]
    characters = iter(cell)
    for character in characters:
        if character == "\\":
            names[-1] += next(characters)
        elif character == "|":
            names.append("")
        else:
            names[-1] += character
    return names


@pytest.mark.parametrize(
    "names",
    [["a", "b"], ["a|b", "c"], ["a", "b|c"], ["a\\", "|b"], ["\\|", "\\"], ["=x", "'=x"]],
    ids=repr,
)
def test_what_joins_labels_can_be_taken_apart(names):
    assert taken_apart(joined(names)) == names


def test_names_of_labels_come_back_whatever_is_in_them(tmp_path):
    names = ["a|b", "c", "a", "b|c"]
    graph = tmp_path / "graph"
    graph.mkdir()
    lines = [",".join(["id", "f1", "f2", *(f"label:{name}" for name in names)])]
    lines += [f"n{i},{i % 2},{1 - i % 2}," + ("1,1,0,0" if i % 2 else "0,0,1,1") for i in range(30)]
    (graph / "nodes.csv").write_text("\n".join(lines) + "\n")
    edges = "".join(f"n{i},n{(i + 2) % 30}\nn{(i + 2) % 30},n{i}\n" for i in range(30))
    (graph / "edges.csv").write_text("source,target\n" + edges)
    settings = ["--model", "mlp", "--set", "lr=0.1", "--set", "dropout=0"]
    assert train(tmp_path / "run", *settings, graph=graph, epochs=40).code == 0
    assert call("predict", tmp_path / "run", "--out", tmp_path / "p.csv").code == 0
    found = [taken_apart(row["label"]) for row in rows_of(tmp_path / "p.csv")]
    assert found == [["a|b", "c"] if i % 2 else ["a", "b|c"] for i in range(30)]


def test_no_edges_at_all_and_another_working_folder(tmp_path, monkeypatch):
    graph = write_graph(tmp_path / "graph")
    (graph / "edges.csv").write_text("source,target\n")
    monkeypatch.chdir(tmp_path)
    assert train(tmp_path / "run", graph="graph", epochs=2).code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert call("predict", tmp_path / "run", "--out", "p.csv").code == 0
    check_nodes(rows_of(tmp_path / "elsewhere/p.csv"), 24)
    assert rows_of(tmp_path / "elsewhere/p-edges.csv") == []
