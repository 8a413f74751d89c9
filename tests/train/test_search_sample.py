"""The part of a large graph that settings are tried on."""

import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.kernels.graph import edge_weights
from lgdgcn.train import search_sample as module
from lgdgcn.train.search_sample import search_sample


def ring(nodes: int) -> Data:
    """A ring whose node i has the feature i, an edge's weight the sum of its ends."""
    node = torch.arange(nodes)
    edges = torch.cat([torch.stack([node, (node + 1) % nodes])] * 2, 1)
    edges[:, nodes:] = edges[:, nodes:].flip(0)
    edges = edges[:, (edges[0] * nodes + edges[1]).argsort()]
    split = torch.arange(nodes) % 10
    masks = {"train_mask": split < 4, "val_mask": split == 4, "test_mask": split > 7}
    graph = Data(
        x=node.float().unsqueeze(1), edge_index=edges, y=node % 3, classes=["a", "b", "c"], **masks
    )
    graph.edge_weight = edges.sum(0).float() + 1
    return graph


def test_a_small_graph_is_its_own_sample():
    graph = ring(50)
    assert search_sample(graph) is graph


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sample_is_a_part_of_the_graph(seed, monkeypatch):
    monkeypatch.setattr(module, "MOST_NODES", 200)
    monkeypatch.setattr(module, "_LABELLED", 50)
    graph = ring(1000)
    sample = search_sample(graph, seed)
    assert sample.num_nodes == 200
    node = sample.x.squeeze(1).long()
    assert torch.equal(sample.y, graph.y[node])
    # labels of test nodes have no part in it, others keep theirs
    assert not sample.test_mask.any()
    assert torch.equal(sample.train_mask, graph.train_mask[node])
    # train to validation nodes are four to one, and neighbours are there
    assert sample.train_mask.sum() >= 40
    assert sample.val_mask.sum() >= 10
    ends = node[sample.edge_index]
    difference = (ends[0] - ends[1]) % 1000
    assert ((difference == 1) | (difference == 999)).all()
    both = set(map(tuple, graph.edge_index.T.tolist()))
    inside = {pair for pair in both if set(pair) <= set(node.tolist())}
    assert set(map(tuple, ends.T.tolist())) == inside
    # the weights are those of the edges, of mean 1 over the whole graph
    weight = edge_weights(graph.edge_index)
    assert weight is not None
    expected = (ends.sum(0) + 1) * (weight[0] / graph.edge_weight[0])
    torch.testing.assert_close(sample.edge_weight, expected)
    assert torch.equal(search_sample(graph, seed).x, sample.x)


def test_all_labelled_nodes_are_in_it_where_they_are_few(monkeypatch):
    monkeypatch.setattr(module, "MOST_NODES", 100)
    graph = ring(1000)
    graph.train_mask &= torch.arange(1000) < 30
    graph.val_mask &= torch.arange(1000) >= 900
    sample = search_sample(graph)
    assert sample.train_mask.sum() == graph.train_mask.sum()
    assert sample.val_mask.sum() == graph.val_mask.sum()
