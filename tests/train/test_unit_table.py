"""Units found step by step for all nodes are those of the network on the whole graph."""

import os
import subprocess
import sys

import pytest
import torch
from graphs import write_scale_graph
from torch.testing import assert_close

from lgdgcn.config import Settings
from lgdgcn.data.features import sparse_features
from lgdgcn.large import hops, inference
from lgdgcn.large.rows import GraphRows
from lgdgcn.models import build
from train.test_batch_trainer import BATCH_NORM, ENCODER, VOTES
from train.test_batches import graph_of


def changed(settings, **values):
    return Settings(**{**settings.as_dict(), **values})


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
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_as_on_the_whole_graph(name, weighted, monkeypatch):
    monkeypatch.setattr(hops, "_ENTRIES", 64)  # several ranges of rows
    settings, data = CASES[name], graph_of(1, weighted=weighted)
    nodes, edges = data.x.size(0), data.edge_index
    torch.manual_seed(5)
    model = build("lgdgcn", settings.as_dict(), data.x.size(1), 3, multi_label=False)
    model = model.double().eval()
    for tensor in model.state_dict().values():  # batch norms and shares that are not 0 and 1
        if tensor.is_floating_point():
            tensor.add_(0.1 * torch.rand(tensor.shape, dtype=tensor.dtype))
    with torch.no_grad():
        whole = model.disentangle(data.x, edges)
    found = inference.unit_table(GraphRows.of(data), model)
    everyone = torch.arange(nodes)
    assert_close(found.rows(everyone), whole.layers[-1].units)
    assert_close(found.logits(found.rows(everyone)), whole.logits)
    assert_close(found.edge_factors(*edges), whole.layers[-1].edge_factors)


def test_sparse_features_and_tables_in_files(monkeypatch, tmp_path):
    data = graph_of(2)
    dense = data.x * (data.x > 0.5)
    monkeypatch.setattr(hops, "_IN_MEMORY", 0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    model = build("lgdgcn", ENCODER.as_dict(), dense.size(1), 3, multi_label=False).double().eval()
    with torch.no_grad():
        whole = model.disentangle(dense, data.edge_index)
    data.x = sparse_features(dense.numpy())
    found = inference.unit_table(GraphRows.of(data), model)
    assert_close(found.rows(torch.arange(dense.size(0))), whole.layers[-1].units)


CHILD = """
import sys
from measuring import Memory
from lgdgcn.config import Settings
from lgdgcn.data.packed import PackedGraph
from lgdgcn.models import build
from lgdgcn.large import hops, inference
from lgdgcn.large.rows import mapped_data

hops._ENTRIES = 1 << 16  # far below the sizes of both graphs
hops._IN_MEMORY = 0
settings = Settings(variant="ours", space=False, diversity=False, latent_graph=False,
                    hidden_channels=128, iterations=1, encoder_channels=128, hops=1)
for folder in sys.argv[1:]:
    packed = PackedGraph.open(folder)
    model = build("lgdgcn", settings.as_dict(), packed.num_features, 16, multi_label=False)
    with Memory() as memory:
        inference.unit_table(mapped_data(packed, make_split=False).rows, model)
    print(memory.anonymous)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells memory without files apart")
def test_memory_does_not_grow_with_the_graph_but_for_mapped_files(tmp_path):
    folders = []
    for nodes in (16_000, 80_000):
        folders.append(str(tmp_path / f"{nodes}"))
        write_scale_graph(folders[-1], nodes, 2 * nodes, features=8)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *folders],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    small, large = map(int, done.stdout.split())
    table = (80_000 - 16_000) * 128 * 4  # of which several are held
    assert large - small < table, (small, large)
