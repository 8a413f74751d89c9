"""Runs on packed graphs that are not read whole answer as if they were."""

import csv
import json
import re
import shutil
import sys

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch_geometric.data import Data

from commands.conftest import write_graph
from commands.runner import call, train
from lgdgcn.cli import explore, measure, opened, predict
from lgdgcn.config import Settings
from lgdgcn.data.packed import PackedGraph, PackedWriter, reader
from lgdgcn.data.packed.whole import write_arrays
from lgdgcn.data.validate import canonical
from lgdgcn.edges import large_explain
from lgdgcn.edges.explain import Explainer
from lgdgcn.large.inference import depth_of
from lgdgcn.large.view import GraphView
from lgdgcn.metrics import sampled
from lgdgcn.models import build
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel

pytest.importorskip("duckdb", reason="packing needs the extra [scale]")
parquet = pytest.importorskip("pyarrow.parquet")

BATCHES = ["--set", "batch_size=10", "--set", "structure=none"]
ENCODER = ["--set", "iterations=1", "--set", "hops=2", "--set", "encoder_channels=6"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A packed graph with names, categories and notes of its nodes."""
    place = tmp_path_factory.mktemp("large")
    folder = write_graph(place / "graph", nodes=90)
    head, *rows = (folder / "nodes.csv").read_text().splitlines()
    notes = (f"{r},{['DE', 'FR'][i % 2]},note on node number {i}" for i, r in enumerate(rows))
    (folder / "nodes.csv").write_text("\n".join([f"{head},country,note", *notes]))
    graph = place / "graph.lgd"
    assert call("data", "pack", folder, "--out", graph, "--memory", "8GB").code == 0
    return graph


@pytest.fixture(scope="module")
def run(packed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("large-run") / "run"
    outcome = train(folder, *BATCHES, *ENCODER, graph=packed)
    assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture(scope="module")
def structured(packed, tmp_path_factory):
    """A run whose network propagates along a structure of its own."""
    folder = tmp_path_factory.mktemp("large-structured") / "run"
    own = ["--set", "batch_size=10", "--set", "structure=both", "--set", "structure_neighbours=4"]
    outcome = train(folder, *own, *ENCODER, "--set", "refresh_every=2", graph=packed, epochs=5)
    assert outcome.code == 0, outcome.err
    assert "left out" not in outcome.out
    return folder


@pytest.fixture
def whole(monkeypatch):
    """A way to have the same run looked at in memory."""

    def in_memory(*args):
        with monkeypatch.context() as patch:
            patch.setattr(opened, "large_graph", lambda *args: None)
            outcome = call(*args)
        assert outcome.code == 0, outcome.err
        return outcome

    return in_memory


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same_rows(found, expected, tolerance=2e-5):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        for name, cell in other.items():
            if name.startswith("p"):  # a probability
                assert float(one[name]) == pytest.approx(float(cell), abs=tolerance)
            else:
                assert one[name] == cell


def test_predictions_are_those_of_the_whole_graph(run, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "BLOCK", 7)
    options = ["--edges", "--proba"]
    outcome = call("predict", run, "--out", tmp_path / "large.csv", *options)
    assert outcome.code == 0, outcome.err
    whole("predict", run, "--out", tmp_path / "whole.csv", *options)
    same_rows(rows_of(tmp_path / "large.csv"), rows_of(tmp_path / "whole.csv"))
    edges = rows_of(tmp_path / "large-edges.csv")
    same_rows(edges, rows_of(tmp_path / "whole-edges.csv"))
    assert f"{len(edges)} edges" in outcome.out


def test_a_structure_is_that_of_the_whole_graph(structured, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "_measures", lambda *args: MEASURES)
    answers = []
    for name, ask in (("large", call), ("whole", whole)):
        table, page = tmp_path / f"{name}.csv", tmp_path / f"{name}.html"
        assert ask("predict", structured, "--out", table, "--edges", "--proba").code == 0
        assert ask("explore", structured, "--out", page, "--node", "n40").code == 0
        assert ask("measure", structured, "--out", tmp_path / f"{name}.json").code == 0
        told = [
            json.loads(ask("explain", structured, *question, "--json").out)
            for question in (["--node", "n5"], ["--edge", "n5", "n8"], [])
        ]
        answers.append((rows_of(table), shared(page_of(page)), told))
    same_rows(answers[0][0], answers[1][0])
    assert answers[0][1] == answers[1][1]
    alike(answers[0][2], answers[1][2])


def test_parquet_has_the_cells_of_csv(run, whole, tmp_path):
    for name in ("a.csv", "a.parquet"):
        assert call("predict", run, "--out", tmp_path / name, "--edges", "--proba").code == 0
    whole("predict", run, "--out", tmp_path / "b.parquet", "--edges", "--proba")
    for file in ("a", "a-edges", "b"):
        table = parquet.read_table(tmp_path / f"{file}.parquet")
        found = [
            {k: "" if v is None else str(v) for k, v in row.items()} for row in table.to_pylist()
        ]
        expected = rows_of(tmp_path / f"{file.replace('b', 'a')}.csv")
        for row in expected:  # a spreadsheet's formulas need no guard in Parquet
            row.update({k: v.removeprefix("'") for k, v in row.items()})
        same_rows(found, expected)


def test_many_nodes_are_written_to_parquet_by_default(packed, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "MANY", 90)
    outcome = train(tmp_path / "run", *BATCHES, *ENCODER, graph=packed, epochs=1)
    assert outcome.code == 0, outcome.err
    for _ in range(2):  # its own file may be replaced
        outcome = call("predict", tmp_path / "run", "--edges")
        assert outcome.code == 0, outcome.err
    assert parquet.read_table(tmp_path / "run" / "predictions.parquet").num_rows == 90
    assert (tmp_path / "run" / "predictions-edges.parquet").is_file()


def test_without_pyarrow_csv_is_written_or_it_is_said_before_the_work(run, tmp_path, monkeypatch):
    graph, numbered = tmp_path / "graph.lgd", tmp_path / "run"
    with PackedWriter(graph) as writer:  # without ids
        writer.finish(write_arrays(chain_graph(0, weighted=False), writer))
    assert train(numbered, *BATCHES, *ENCODER, graph=graph, epochs=1).code == 0
    monkeypatch.setattr(predict, "MANY", 90)
    for module in ("pyarrow", "pyarrow.compute", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    outcome = call("predict", numbered, "--edges")
    assert outcome.code == 0, outcome.err
    assert len(rows_of(numbered / "predictions.csv")) == 200
    assert (numbered / "predictions-edges.csv").is_file()

    def work(*arguments):
        raise AssertionError("it is said too late")

    monkeypatch.setattr(PackedGraph, "check_hashes", work)
    outcome = call("predict", numbered, "--out", tmp_path / "p.parquet")
    outcome.refused("Parquet files need pyarrow", "lgdgcn[parquet]")
    for verb in ("predict", "measure", "explore", "explain"):
        call(verb, run).refused("ids and text of a packed graph need pyarrow", "lgdgcn[scale]")


def test_another_graph_that_does_not_fit(run, tmp_path, monkeypatch):
    other = write_graph(tmp_path / "other", nodes=40)
    head, *rows = (other / "nodes.csv").read_text().splitlines()
    lines = (f"{r},FR,a note on node number {i}" for i, r in enumerate(rows))
    (other / "nodes.csv").write_text("\n".join([f"{head},country,note", *lines]))
    like, own = tmp_path / "like.lgd", tmp_path / "own.lgd"
    assert call("data", "pack", other, "--out", like, "--like", run, "--memory", "8GB").code == 0
    assert call("data", "pack", other, "--out", own, "--memory", "8GB").code == 0
    assert call("predict", run, "--graph", other, "--out", tmp_path / "a.csv").code == 0
    monkeypatch.setattr(opened, "available_memory", lambda: 0)
    outcome = call("predict", run, "--graph", like, "--out", tmp_path / "b.csv")
    assert outcome.code == 0, outcome.err
    same_rows(rows_of(tmp_path / "b.csv"), rows_of(tmp_path / "a.csv"))
    refused = call("predict", run, "--graph", own, "--out", tmp_path / "c.csv")
    refused.refused("pack it with --like")


def test_a_model_that_needs_all_nodes_is_refused(packed, tmp_path, monkeypatch):
    assert train(tmp_path / "run", "--variant", "paper", graph=packed, epochs=1).code == 0
    monkeypatch.setattr(opened, "available_memory", lambda: 0)
    call("predict", tmp_path / "run").refused("does not fit", "--batch-size")


def alike(found, expected):
    """Whether two answers are the same, numbers up to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        found, expected = [*found.values()], [*expected.values()]
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            alike(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-4)
    else:
        assert found == expected


@pytest.mark.parametrize("question", [["--node", "n5"], ["--edge", "n5", "n8"]])
def test_explanations_are_those_of_the_whole_graph(run, whole, question):
    found = call("explain", run, *question, "--json")
    assert found.code == 0, found.err
    alike(json.loads(found.out), json.loads(whole("explain", run, *question, "--json").out))


def test_all_factors_are_told(run, whole):
    found = json.loads(call("explain", run, "--json").out)
    alike(found, json.loads(whole("explain", run, "--json").out))


def test_explanations_of_a_part_say_so(run, whole, monkeypatch):
    monkeypatch.setattr(large_explain, "_MOST", 20)
    outcome = call("explain", run, "--node", "n5")
    assert outcome.code == 0, outcome.err
    assert "of 90 nodes; all else is that of the whole graph" in outcome.out
    found = json.loads(call("explain", run, "--node", "n5", "--json").out)
    expected = json.loads(whole("explain", run, "--node", "n5", "--json").out)
    assert found.pop("note")
    for answer in (found, expected):  # told by the sample
        for factor in answer["factors"]:
            for key in ("name", "about", "edges"):
                del factor[key]
    alike(found, expected)
    call("explain", run, "--node", "nobody").refused("nobody")


def page_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def shared(page):
    """What pages of the same part say alike, without what rounding changes."""
    keys = ("ids", "texts", "classes", "truth", "part", "predicted", "dominant", "edges", "nodes")
    without = {key: page["without"][key] for key in ("predicted", "kept")}
    return {key: page[key] for key in keys} | without


MEASURES = [{"name": "mig", "title": "Block MIG", "value": 0.5}]
PARTS = {
    "all": ([], None, 90),
    "ego": (["--node", "n40", "--hops", 1], "within 1 hop of n40", 3),
    "class": (["--class", "plain"], "with the label plain", 30),
}


@pytest.mark.parametrize("name", PARTS)
def test_pages_show_a_chosen_part(name, run, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "_measures", lambda *args: MEASURES)
    options, words, count = PARTS[name]
    outcome = call("explore", run, "--out", tmp_path / "large.html", *options)
    assert outcome.code == 0, outcome.err
    whole("explore", run, "--out", tmp_path / "whole.html", *options)
    pages = [page_of(tmp_path / f"{name}.html") for name in ("large", "whole")]
    assert shared(pages[0]) == shared(pages[1])
    assert len(pages[0]["ids"]) == count
    for told in (outcome.out, *pages[0]["warnings"][:1]) if words else ():
        assert f"{count} of 90 nodes are shown" in told
        assert words in told
    if not words:
        assert "are shown" not in outcome.out + "".join(pages[0]["warnings"])


def test_a_page_of_more_nodes_than_it_holds_is_a_sample(run, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "_measures", lambda *args: MEASURES)
    monkeypatch.setattr("lgdgcn.explorer.part.MOST_NODES", 40)
    outcome = call("explore", run, "--out", tmp_path / "large.html")
    assert outcome.code == 0, outcome.err
    assert "40 of 90 nodes are shown: a sample" in outcome.out
    assert "40 of 90 nodes" in whole("explore", run, "--out", tmp_path / "whole.html").out
    pages = [page_of(tmp_path / f"{name}.html") for name in ("large", "whole")]
    assert shared(pages[0]) == shared(pages[1])
    monkeypatch.setattr("lgdgcn.explorer.part.MOST_EDGES", 10)
    assert re.search(r"\b(20|10|5) of 90", call("explore", run, "--out", tmp_path / "f.html").out)


@pytest.mark.parametrize("name", ["row_ptr", "column", "y"])
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


def test_parts_that_are_not_there(run, tmp_path):
    for options, words in (
        (["--node", "nobody"], ["nobody"]),
        (["--class", "nothing"], ["nothing", "plain"]),
        (["--class", "plain", "--node", "n5"], ["leave out one"]),
        (["--node", "n5", "--hops", 0], ["at least 1"]),
    ):
        call("explore", run, "--out", tmp_path / "p.html", *options).refused(*words)


def test_measures_of_all_nodes_are_those_of_the_whole_graph(run, whole, tmp_path):
    outcome = call("measure", run, "--out", tmp_path / "large.json")
    assert outcome.code == 0, outcome.err
    assert "measured on" not in outcome.out
    whole("measure", run, "--out", tmp_path / "whole.json")
    found, expected = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("large", "whole"))
    assert [row["name"] for row in found] == [row["name"] for row in expected]
    for one, other in zip(found, expected, strict=True):
        for key in ("value", "untrained", "low", "high"):
            assert one[key] == pytest.approx(other[key], abs=2e-3), one["name"]


def test_measures_of_a_sample_say_so(run, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(sampled, "MOST_NODES", 50)
    monkeypatch.setattr(sampled, "MOST_EDGES", 30)
    outcome = call("measure", run, "--out", tmp_path / "large.json")
    assert outcome.code == 0, outcome.err
    assert "measured on 50 of 90 nodes and 30 of 93 edges" in outcome.out
    rows = {row["name"]: row for row in json.loads((tmp_path / "large.json").read_text())}
    entropy = rows["routing_entropy"]
    assert entropy["low"] <= entropy["value"] <= entropy["high"]
    monkeypatch.setattr(measure, "MOST_WHOLE", 50)
    whole("measure", run, "--out", tmp_path / "whole.json")  # in memory, and the same sample
    same = {row["name"]: row for row in json.loads((tmp_path / "whole.json").read_text())}
    assert same["routing_entropy"]["value"] == pytest.approx(entropy["value"], abs=1e-4)


def test_a_graph_without_edges(tmp_path):
    data = Data(x=torch.eye(12), edge_index=torch.zeros(2, 0, dtype=torch.long))
    data.y = torch.arange(12) % 2
    for start, name in enumerate(("train", "val", "test")):
        data[f"{name}_mask"] = torch.arange(12) // 4 == start
    graph, run = tmp_path / "graph.lgd", tmp_path / "run"
    with PackedWriter(graph) as writer:
        writer.finish(write_arrays(canonical(data), writer))
    assert train(run, *BATCHES, *ENCODER, graph=graph).code == 0
    for verb, file in (("predict", "p.csv"), ("measure", "m.json"), ("explore", "e.html")):
        outcome = call(verb, run, "--out", tmp_path / file)
        assert outcome.code == 0, outcome.err


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_without_a_factor_on_a_part_of_a_long_chain(tmp_path, seed, weighted):
    """Where the neighbourhood is a small part, the scores are those of the whole graph."""
    data = chain_graph(seed, weighted)
    with PackedWriter(tmp_path / "g.lgd") as writer:
        writer.finish(write_arrays(data, writer))
    settings = Settings(
        variant="ours", space=False, diversity=False, latent_graph=False, hidden_channels=8,
        factors=2, iterations=1, encoder_channels=6, hops=2, batch_size=10,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = build("lgdgcn", settings.as_dict(), 5, 2, multi_label=False).eval()
    trained = TrainedModel("lgdgcn", model, settings, Task(2, False), ["a", "b"], 5)
    graph = GraphView.mapped(trained, PackedGraph.open(tmp_path / "g.lgd"))
    explainer, node = Explainer(trained, data), torch.tensor([100])
    assert depth_of(model) == 3
    changed = False
    for factor in range(2):
        expected = explainer.without(factor).logits[node]
        changed |= not torch.allclose(expected, explainer.output.logits[node], atol=1e-4)
        assert_close(graph.scores_without(node, factor), expected, rtol=1e-4, atol=1e-5)
    assert changed


def chain_graph(seed, weighted):
    nodes, generator = 200, torch.Generator().manual_seed(seed)
    first = torch.arange(nodes - 2)
    ends = torch.cat([torch.stack([first, first + 1]), torch.stack([first, first + 2])], 1)
    edges = torch.cat([ends, ends.flip(0)], 1)
    edges = edges[:, (edges[0] * nodes + edges[1]).argsort()]
    data = Data(
        x=torch.rand(nodes, 5, generator=generator), edge_index=edges, y=torch.arange(nodes) % 2
    )
    for number, name in enumerate(("train", "val", "test")):
        data[f"{name}_mask"] = torch.arange(nodes) // 2 % 3 == number
    if weighted:
        data.edge_weight = 0.5 + ((edges[0] * edges[1]) % 7) / 3.0
    return canonical(data)
