"""Scores of a training in batches are those of the predictions, whatever it has drawn."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn import metrics
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from cli.runner import call, train
from lgdgcn.data.packed import PackedWriter
from lgdgcn.data.packed.whole import write_arrays
from lgdgcn.data.validate import canonical
from train.test_ranks import environment, free_port

parquet = pytest.importorskip("pyarrow.parquet")

# one neighbour is drawn in a step and eight in an evaluation, of about thirty
BATCHES = ["--batch-size", "50", "--set", "fan_out=1", "--set", "hop_table=never"]
CPU = ["--device", "cpu"]
LABELS = 4


def graph_of(kind, nodes=150):
    """A graph with many edges, and its labels by kind."""
    edges = to_undirected(torch.randint(0, nodes, (2, 15 * nodes)))
    data = Data(x=torch.rand(nodes, 6), edge_index=edges[:, edges[0] != edges[1]])
    if kind == "classes":
        data.y = torch.randint(0, 3, (nodes,))
    elif kind == "two classes":
        data.y = torch.randint(0, 2, (nodes,))
    else:
        least, most = {"sets of two": (2, 2), "sets": (1, 3)}[kind]
        data.y = torch.zeros(nodes, LABELS)
        for row in data.y:
            size = int(torch.randint(least, most + 1, ()))
            row[torch.randperm(LABELS)[:size]] = 1
    for number, name in enumerate(("train", "val", "test")):
        data[f"{name}_mask"] = torch.arange(nodes) % 3 == number
    return canonical(data)


def packed(kind, folder):
    with PackedWriter(folder) as writer:
        writer.finish(write_arrays(graph_of(kind), writer))
    return folder


def scores_anew(rows, names, probability):
    """All scores that ``result.json`` has, of some rows of ``predictions.csv``."""
    if "|" not in "".join(row["true_label"] for row in rows):
        true, predicted = ([row[key] for row in rows] for key in ("true_label", "label"))
        found = {
            "accuracy": metrics.accuracy_score(true, predicted),
            "balanced_accuracy": metrics.balanced_accuracy_score(true, predicted),
            "macro_f1": metrics.f1_score(true, predicted, average="macro"),
        }
        if len(names) == 2:
            found["roc_auc"] = metrics.roc_auc_score(np.array(true) == "1", probability[:, 1])
        return found
    true, predicted = (
        np.array([[name in row[key].split("|") for name in names] for row in rows])
        for key in ("true_label", "label")
    )
    rank = (-probability).argsort(1, kind="stable").argsort(1, kind="stable")
    kinds = {"": predicted, "_at_0.5": probability > 0.5}
    if len(set(true.sum(1))) > 1:
        kinds["_with_true_set_size"] = rank < true.sum(1, keepdims=True)
    found = {
        f"{average}_f1{kind}": metrics.f1_score(true, chosen, average=average, zero_division=0)
        for kind, chosen in kinds.items()
        for average in ("micro", "macro")
    }
    if "_with_true_set_size" in kinds:
        found["roc_auc"] = metrics.roc_auc_score(true, probability)
        flat = true.ravel(), probability.ravel()
        found["average_precision"] = metrics.average_precision_score(*flat)
    return found


def same_scores(run):
    """Compare what a run says with its predictions."""
    exact = run.parent / "exact.parquet"  # with all digits of the probabilities
    for options in ([], ["--proba", "--out", exact]):
        outcome = call("predict", run, *options, *CPU)
        assert outcome.code == 0, outcome.err
    with (run / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = parquet.read_table(exact).to_pydict()
    names = [name for name in columns if name.startswith("p:")]
    probability = np.array([columns[name] for name in names]).T
    names = [name.removeprefix("p:") for name in names]
    result = json.loads((run / "result.json").read_text())
    best = max(result["runs"], key=lambda one: one["val"])
    for split, expected in best["scores"].items():
        chosen = [number for number, row in enumerate(rows) if row["split"] == split]
        found = scores_anew([rows[number] for number in chosen], names, probability[chosen])
        assert found == pytest.approx(expected, abs=1e-6)
    assert best["val"] == best["scores"]["val"][result["metric"]]
    assert best["test"] == best["scores"]["test"][result["metric"]]


STRUCTURE = ["--set", "structure=both", "--set", "refresh_every=2"]


@pytest.mark.parametrize(
    ("kind", "more"),
    [("classes", STRUCTURE), ("two classes", []), ("sets of two", []), ("sets", STRUCTURE)],
)
def test_scores_are_those_of_the_predictions(kind, more, tmp_path):
    graph = packed(kind, tmp_path / "graph.lgd")
    outcome = train(tmp_path / "run", *BATCHES, *CPU, *more, graph=graph, epochs=5)
    assert outcome.code == 0, outcome.err
    same_scores(tmp_path / "run")


def test_scores_of_two_ranks_are_those_of_the_predictions(tmp_path):
    graph, run = packed("sets", tmp_path / "graph.lgd"), tmp_path / "run"
    command = [sys.executable, "-m", "lgdgcn", "train", str(graph), "--epochs", "3", "--seeds", "2"]
    command += [*BATCHES, *CPU, "--budget", "none", "--out", str(run)]
    meet = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    ranks = [subprocess.Popen(command, env=environment(**meet, RANK=str(i))) for i in range(2)]
    assert [rank.wait(timeout=250) for rank in ranks] == [0, 0]
    same_scores(run)
