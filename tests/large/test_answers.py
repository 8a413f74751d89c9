"""Runs on packed graphs that are not read whole answer as if they were."""

import csv
import json
import shutil
import sys

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from cli.conftest import write_graph
from cli.runner import call, page_of, train
from large.graphs import chain_graph, packed_from
from lgdgcn.cli import explore, measure, opened, predict
from lgdgcn.data.packed import PackedGraph, reader
from lgdgcn.data.validate import canonical
from lgdgcn.large import view
from lgdgcn.metrics import sampled

pytest.importorskip("duckdb", reason="packing needs the extra [scale]")
parquet = pytest.importorskip("pyarrow.parquet")

SMALL = [
    f"--set={one}" for one in ("batch_size=10", "iterations=1", "hops=2", "encoder_channels=6")
]
STRUCTURES = {
    "plain": ["--set", "structure=none"],
    "structure": [
        f"--set={one}" for one in ("structure=both", "structure_neighbours=4", "refresh_every=2")
    ],
}
MEASURES = [{"name": "mig", "title": "Block MIG", "value": 0.5}]


def ok(*args):
    outcome = call(*args)
    assert outcome.code == 0, outcome.err
    return outcome


def noted_graph(folder, nodes):
    """A user's graph with names, categories and notes of its nodes."""
    write_graph(folder, nodes=nodes)
    head, *rows = (folder / "nodes.csv").read_text().splitlines()
    notes = (f"{r},{['DE', 'FR'][i % 2]},note on node number {i}" for i, r in enumerate(rows))
    (folder / "nodes.csv").write_text("\n".join([f"{head},country,note", *notes]))
    return folder


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    place = tmp_path_factory.mktemp("large")
    ok(
        "data",
        "pack",
        noted_graph(place / "graph", 90),
        "--out",
        place / "g.lgd",
        "--memory",
        "8GB",
    )
    return place / "g.lgd"


@pytest.fixture(scope="module")
def runs(packed, tmp_path_factory):
    """Runs without and with a structure that the network propagates along."""
    folder = tmp_path_factory.mktemp("large-runs")
    for name, options in STRUCTURES.items():
        outcome = train(folder / name, *SMALL, *options, graph=packed, epochs=5)
        assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture
def run(runs):
    return runs / "plain"


@pytest.fixture
def whole(monkeypatch):
    """A way to have the same run looked at in memory."""

    def in_memory(*args):
        with monkeypatch.context() as patch:
            patch.setattr(opened, "large_graph", lambda *args: None)
            return ok(*args)

    return in_memory


def rows_of(path):
    """The rows of a table, probabilities as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows
    return [{k: float(v) if is_number(k) else v for k, v in row.items()} for row in rows]


def is_number(column):
    return column.startswith(("p", "second_p"))


def alike(found, expected, tolerance):
    """Whether two answers are the same, numbers up to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        found, expected = [*found.values()], [*expected.values()]
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            alike(one, other, tolerance)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=tolerance)
    else:
        assert found == expected


# What a run answers, by a question and how far rounding may go


def predictions(ask, run, path):
    ask("predict", run, "--out", path / "p.csv", "--edges", "--proba")
    return [rows_of(path / "p.csv"), rows_of(path / "p-edges.csv")]


def explanations(ask, run, path):
    questions = (["--node", "n5"], ["--edge", "n5", "n8"], [])
    return [json.loads(ask("explain", run, *one, "--json").out) for one in questions]


def page(*options):
    def shown(ask, run, path):
        ask("explore", run, "--out", path / "e.html", *options)
        page = page_of(path / "e.html")
        keys = (
            "ids",
            "texts",
            "classes",
            "truth",
            "part",
            "predicted",
            "dominant",
            "edges",
            "nodes",
        )
        without = {key: page["without"][key] for key in ("predicted", "kept")}
        return {key: page[key] for key in keys} | without

    return shown


def measures(ask, run, path):
    ask("measure", run, "--out", path / "m.json")
    rows = json.loads((path / "m.json").read_text())
    return [[row[key] for key in ("name", "value", "untrained", "low", "high")] for row in rows]


ANSWERS = {
    "predictions": (predictions, 2e-5),
    "explanations": (explanations, 1e-4),
    "page": (page(), 0),
    "page of a node": (page("--node", "n40", "--hops", 1), 0),
    "page of a class": (page("--class", "plain"), 0),
    "measures": (measures, 2e-3),
}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("name", ANSWERS)
def test_answers_are_those_of_the_whole_graph(name, structure, runs, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "_measures", lambda *args: MEASURES)
    monkeypatch.setattr(predict, "BLOCK", 7)
    answer, tolerance = ANSWERS[name]
    found = answer(ok, runs / structure, tmp_path)
    alike(found, answer(whole, runs / structure, tmp_path), tolerance)


# Parts that are shown, described or measured, and how it is said


@pytest.mark.parametrize(
    ("options", "words", "count"),
    [
        ([], None, 90),
        (["--node", "n40", "--hops", 1], "within 1 hop of n40", 3),
        (["--class", "plain"], "with the label plain", 30),
    ],
)
def test_a_page_of_a_part_says_so(options, words, count, run, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "_measures", lambda *args: MEASURES)
    outcome = ok("explore", run, "--out", tmp_path / "e.html", *options)
    shown = page_of(tmp_path / "e.html")
    assert len(shown["ids"]) == count
    for said in (outcome.out, "".join(shown["warnings"][:1])):
        assert (f"{count} of 90 nodes are shown" in said) == (words is not None)
        assert words is None or words in said


def test_a_page_of_more_nodes_than_it_holds_is_a_sample(run, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "_measures", lambda *args: MEASURES)
    monkeypatch.setattr("lgdgcn.explorer.part.MOST_NODES", 40)
    assert "40 of 90 nodes are shown: a sample" in ok("explore", run, "--out", tmp_path / "e").out
    assert page()(ok, run, tmp_path) == page()(whole, run, tmp_path)
    monkeypatch.setattr("lgdgcn.explorer.part.MOST_EDGES", 10)
    said = ok("explore", run, "--out", tmp_path / "f.html").out
    assert any(f"{few} of 90 nodes" in said for few in (20, 10, 5))


def test_explanations_of_a_part_say_so(run, whole, monkeypatch):
    monkeypatch.setattr(view, "_LINKED", 20)
    said = "of 90 nodes; all else is that of the whole graph"
    assert said in ok("explain", run, "--node", "n5").out
    found, expected = (
        json.loads(ask("explain", run, "--node", "n5", "--json").out) for ask in (ok, whole)
    )
    assert said in found.pop("note")
    for answer in (found, expected):
        for factor in answer["reasons"]:
            for key in ("name", "about", "edges"):  # told by the sample
                del factor[key]
    alike(found, expected, 1e-4)
    call("explain", run, "--node", "nobody").refused("nobody")


def test_measures_of_a_sample_say_so(run, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(sampled, "MOST_NODES", 50)
    monkeypatch.setattr(sampled, "MOST_EDGES", 30)
    said = ok("measure", run, "--out", tmp_path / "large.json").out
    assert "measured on 50 of 90 nodes and 30 of 93 edges" in said
    monkeypatch.setattr(measure, "MOST_WHOLE", 50)
    whole("measure", run, "--out", tmp_path / "whole.json")  # in memory, and the same sample
    found, same = (
        {row["name"]: row for row in json.loads((tmp_path / f"{name}.json").read_text())}
        for name in ("large", "whole")
    )
    entropy = found["routing_entropy"]
    assert entropy["low"] <= entropy["value"] <= entropy["high"]
    assert same["routing_entropy"]["value"] == pytest.approx(entropy["value"], abs=1e-4)


# Files


def test_parquet_has_the_cells_of_csv(run, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "MANY", 90)
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for _ in range(2):  # Parquet is what many nodes are written to, and may be replaced
        ok("predict", copy, "--edges", "--proba")
    ok("predict", run, "--out", tmp_path / "predictions.csv", "--edges", "--proba")
    for file in ("predictions", "predictions-edges"):
        expected = rows_of(tmp_path / f"{file}.csv")
        for row in expected:  # a spreadsheet's formulas need no guard in Parquet
            row.update({k: v.removeprefix("'") for k, v in row.items() if isinstance(v, str)})
        found = parquet.read_table(copy / f"{file}.parquet").to_pylist()
        found = [
            {k: v if is_number(k) else "" if v is None else str(v) for k, v in row.items()}
            for row in found
        ]
        alike(found, expected, 2e-5)


def test_without_pyarrow_csv_is_written_or_it_is_said_before_the_work(run, tmp_path, monkeypatch):
    packed_from(chain_graph(0, weighted=False), tmp_path / "g.lgd")  # without ids
    numbered = tmp_path / "run"
    assert train(numbered, *SMALL, *STRUCTURES["plain"], graph=tmp_path / "g.lgd").code == 0
    monkeypatch.setattr(predict, "MANY", 90)
    for module in ("pyarrow", "pyarrow.compute", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    ok("predict", numbered, "--edges")
    assert len(rows_of(numbered / "predictions.csv")) == 200
    assert (numbered / "predictions-edges.csv").is_file()

    def work(*arguments):
        raise AssertionError("it is said too late")

    monkeypatch.setattr(PackedGraph, "check_hashes", work)
    outcome = call("predict", numbered, "--out", tmp_path / "p.parquet")
    outcome.refused("Parquet files need pyarrow", "lgdgcn[parquet]")
    for verb in ("predict", "measure", "explore", "explain"):
        call(verb, run).refused("ids and text of a packed graph need pyarrow", "lgdgcn[scale]")


# Graphs that do not fit, have changed, or have no edges


def test_another_graph_that_does_not_fit(run, tmp_path, monkeypatch):
    other = noted_graph(tmp_path / "other", 40)
    like, own = tmp_path / "like.lgd", tmp_path / "own.lgd"
    ok("data", "pack", other, "--out", like, "--like", run, "--memory", "8GB")
    ok("data", "pack", other, "--out", own, "--memory", "8GB")
    ok("predict", run, "--graph", other, "--out", tmp_path / "a.csv")
    monkeypatch.setattr(opened, "available_memory", lambda: 0)
    ok("predict", run, "--graph", like, "--out", tmp_path / "b.csv")
    alike(rows_of(tmp_path / "b.csv"), rows_of(tmp_path / "a.csv"), 2e-5)
    refused = call("predict", run, "--graph", own, "--out", tmp_path / "c.csv")
    refused.refused("pack it with --like")


@pytest.mark.parametrize("name", ["column", "y"])
def test_a_changed_array_of_any_size_is_refused(name, packed, run, tmp_path, monkeypatch):
    """Large files are not hashed when they are opened, but before all of them is used."""
    monkeypatch.setattr(reader, "CHEAP", -1)
    changed = tmp_path / "changed.lgd"
    shutil.copytree(packed, changed)
    array = np.memmap(changed / f"{name}.bin", np.int32, "r+")
    array[len(array) // 4 * 2] = 1 << 30
    array.flush()
    for size in (0, 10):
        outcome = train(tmp_path / "run", "--batch-size", size, graph=changed)
        outcome.refused(f"{name}.bin was changed after it was packed")
    outcome = call("predict", run, "--graph", changed, "--out", tmp_path / "p.csv")
    outcome.refused(f"{name}.bin was changed")


def test_a_graph_without_edges(tmp_path):
    data = Data(x=torch.eye(12), edge_index=torch.zeros(2, 0, dtype=torch.long))
    data.y = torch.arange(12) % 2
    for start, name in enumerate(("train", "val", "test")):
        data[f"{name}_mask"] = torch.arange(12) // 4 == start
    packed_from(canonical(data), tmp_path / "g.lgd")
    run = tmp_path / "run"
    assert train(run, *SMALL, *STRUCTURES["plain"], graph=tmp_path / "g.lgd").code == 0
    for verb, file in (("predict", "p.csv"), ("measure", "m.json"), ("explore", "e.html")):
        ok(verb, run, "--out", tmp_path / file)
