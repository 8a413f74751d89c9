"""What is found step by step for all nodes is that of the network on the whole graph."""

import pytest
import torch
from torch.testing import assert_close

from large.graphs import (
    BATCH_NORM,
    ENCODER,
    NODES,
    STRUCTURE,
    VOTES,
    chain_graph,
    changed,
    graph_of,
    model_of,
    packed_from,
)  # fmt: skip
from lgdgcn.data.features import sparse_features
from lgdgcn.large import hops
from lgdgcn.large.inference import depth_of, unit_table
from lgdgcn.large.rows import GraphRows
from lgdgcn.large.structure import structure_rows
from lgdgcn.large.view import GraphView
from lgdgcn.models import build
from lgdgcn.reasons import Explanation
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel

CASES = {
    "votes": VOTES,
    "two layers": changed(VOTES, num_layers=2, iterations=1),
    "encoder": ENCODER,
    "encoder and votes": changed(ENCODER, iterations=2),
    "batch norm": BATCH_NORM,
    "features": changed(BATCH_NORM, propagate="features", hop_weights="mean"),
    "separate": changed(ENCODER, hop_weights="separate", encoder_layers=2),
    "signed": changed(ENCODER, hop_weights="signed"),
    "no hops": changed(ENCODER, hops=0),
    "local": changed(STRUCTURE, structure="local"),
    "global": changed(STRUCTURE, structure="global"),
    "both": STRUCTURE,
}


@pytest.fixture(params=["memory", "files"])
def _small_pieces(request, monkeypatch, tmp_path):
    """Every table and graph is made in many pieces, in memory or in mapped files."""
    monkeypatch.setattr(hops, "_ENTRIES", 64)
    monkeypatch.setattr("lgdgcn.large.structure._EDGES", 5)
    if request.param == "files":
        monkeypatch.setattr(hops, "_IN_MEMORY", 0)
        monkeypatch.setenv("TMPDIR", str(tmp_path))


def dense(rows):
    """The normalised matrix of rows, with the loop at every node."""
    row = torch.repeat_interleave(rows.row_ptr.diff())
    matrix = torch.eye(rows.num_nodes, dtype=torch.float64)
    weight = torch.ones(rows.num_edges) if rows.weight is None else rows.weight
    matrix.index_put_((row, rows.column.long()), weight.double(), accumulate=True)
    root = rows.degrees(torch.arange(rows.num_nodes)).double().rsqrt()
    return root[:, None] * matrix * root


ON_GRAPHS = [(name, "weighted") for name in CASES]
ON_GRAPHS += [(name, kind) for name in ("encoder and votes", "features", "both")
              for kind in ("plain", "sparse", "label sets")]  # fmt: skip


@pytest.mark.usefixtures("_small_pieces")
@pytest.mark.parametrize(("name", "graph"), ON_GRAPHS)
def test_as_on_the_whole_graph(name, graph):
    data = graph_of(1, weighted=graph == "weighted")
    model = model_of(CASES[name], multi_label=graph == "label sets")
    if graph == "sparse":
        data.x = data.x * (data.x > 0.5)
    with torch.no_grad():
        ready = model.adapted(data.x, data.edge_index)
        whole = ready.disentangle(data.x, data.edge_index)
    if graph == "sparse":
        data.x = sparse_features(data.x.numpy())
    rows, everyone = GraphRows.of(data), torch.arange(NODES)
    table = unit_table(rows, model)
    assert_close(table.rows(everyone), whole.layers[-1].units)
    assert_close(table.logits(table.rows(everyone)), whole.logits)
    assert_close(table.edge_factors(*data.edge_index), whole.layers[-1].edge_factors)
    if ready.propagation_graph is not None:
        row_ptr, column, value = ready.propagation_graph.matrix()
        expected = torch.zeros(NODES, NODES, dtype=torch.float64)
        row = torch.repeat_interleave(row_ptr.diff())
        expected.index_put_((row, column), value, accumulate=True)
        assert_close(dense(structure_rows(rows, model)), expected)


@pytest.mark.parametrize("structure", ["none", "both"])
@pytest.mark.parametrize(("weighted", "seed"), [(False, 0), (True, 1)])
def test_without_a_factor(tmp_path, seed, weighted, structure):
    """Also where the neighbourhood is a small part, the scores are those of the whole graph."""
    data = chain_graph(seed, weighted)
    own = {"factors": 2, "hidden_channels": 8, "iterations": 1, "structure": structure}
    settings = changed(ENCODER, structure_neighbours=3, **own)
    torch.manual_seed(seed)
    model = build("lgdgcn", settings.as_dict(), 5, 2, multi_label=False).eval()
    trained = TrainedModel("lgdgcn", model, settings, Task(2, False), ["a", "b"], 5)
    graph = GraphView.mapped(trained, packed_from(data, tmp_path / "g.lgd"))
    explained, node = Explanation.of_factors(trained, data), torch.tensor([100])
    assert depth_of(model) == 3
    is_changed = False
    for factor in range(2):
        expected = explained.without(factor)[0][node]
        is_changed |= not torch.allclose(expected, explained.outputs[0].logits[node], atol=1e-4)
        assert_close(graph.scores_without(node, factor), expected, rtol=1e-4, atol=1e-5)
    assert is_changed
