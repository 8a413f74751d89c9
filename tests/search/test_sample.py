"""The part of a large graph that settings are tried on."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.config import preset, resolve
from lgdgcn.kernels.graph import edge_weights
from lgdgcn.search import sample as module
from lgdgcn.search.sample import is_for_graph, repeated_splits, search_sample


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
    graph = ring(1000)
    sample = search_sample(graph, seed)
    assert sample.num_nodes == 200
    node = sample.x.squeeze(1).long()
    # the labels of test nodes have no part in it, others keep theirs
    seen = (graph.train_mask | graph.val_mask)[node]
    assert torch.equal(sample.y, torch.where(seen, graph.y[node], -1))
    assert not seen.all()
    assert not sample.test_mask.any()
    assert torch.equal(sample.train_mask, graph.train_mask[node])
    assert sample.train_mask.sum() >= 50
    assert sample.val_mask.sum() >= 50
    ends = node[sample.edge_index]
    both = set(map(tuple, graph.edge_index.T.tolist()))
    inside = {pair for pair in both if set(pair) <= set(node.tolist())}
    assert len(inside) > 50
    assert set(map(tuple, ends.T.tolist())) == inside
    # the weights are those of the edges, of mean 1 over the whole graph
    weight = edge_weights(graph.edge_index)
    assert weight is not None
    expected = (ends.sum(0) + 1) * (weight[0] / graph.edge_weight[0])
    torch.testing.assert_close(sample.edge_weight, expected)
    assert torch.equal(search_sample(graph, seed).x, sample.x)


def test_label_sets_of_test_nodes_are_unknown(monkeypatch):
    monkeypatch.setattr(module, "MOST_NODES", 200)
    graph = ring(1000)
    graph.y = torch.nn.functional.one_hot(graph.y).float()
    sample = search_sample(graph)
    known = sample.train_mask | sample.val_mask
    assert torch.equal(sample.y.isnan().any(1), ~known)
    assert torch.equal(sample.y.isnan().all(1), ~known)


@pytest.mark.parametrize("scarce", ["train_mask", "val_mask"])
def test_all_labelled_nodes_are_in_it_where_they_are_few(scarce, monkeypatch):
    monkeypatch.setattr(module, "MOST_NODES", 100)
    graph = ring(1000)
    graph[scarce] &= torch.arange(1000) < 30
    sample = search_sample(graph)
    assert sample[scarce].sum() == graph[scarce].sum() > 0
    other = "val_mask" if scarce == "train_mask" else "train_mask"
    assert sample[other].sum() >= 25


OURS = resolve(preset("", "lgdgcn"), {"variant": "ours", "hops": 2})
CPU = torch.device("cpu")


def test_what_is_not_for_the_whole_graph(monkeypatch):
    graph = ring(1000)

    def is_for(**changes):
        return is_for_graph(graph, replace(OURS, **changes), "lgdgcn", CPU)

    assert is_for(structure="both")
    monkeypatch.setattr(module, "_NEIGHBOURS", 999)
    assert not is_for(structure="both")
    assert is_for(structure="local")
    # batch norm in batches needs a table of hops
    assert is_for(batch_norm=True, batch_size=100)
    assert not is_for(batch_norm=True, batch_size=100, hop_table="never")
    assert is_for(batch_size=100, hop_table="never")
    assert is_for(batch_norm=True, batch_size=100, hop_table="never", hops=0)
    # memory
    monkeypatch.setattr("lgdgcn.runtime.available_memory", lambda device=None: 10**5)
    assert not is_for()
    assert is_for(batch_size=100)


# Several splits


def split_graph(train, val, classes=3, nodes=200):
    order = torch.arange(nodes)
    masks = {"train_mask": order < train, "val_mask": (order >= train) & (order < train + val)}
    masks["test_mask"] = order >= train + val
    return Data(x=torch.zeros(nodes, 1), y=order % classes, num_nodes=nodes, **masks)


@pytest.mark.parametrize(("val", "count"), [(100, 3), (59, 5), (60, 5), (10, 5), (1, 5)])
def test_few_validation_nodes_are_made_more_by_other_splits(val, count):
    graph = split_graph(40, val)
    found = repeated_splits(graph, 7)
    assert len(found) == count
    assert found[0] is graph
    both = graph.train_mask | graph.val_mask
    for one in found[1:]:
        assert torch.equal(one.train_mask | one.val_mask, both)
        assert not (one.train_mask & one.val_mask).any()
        assert torch.equal(one.test_mask, graph.test_mask)
        for label in range(3):  # as many of every class
            of = graph.y == label
            assert (one.train_mask & of).sum() == (graph.train_mask & of).sum()
    masks = {tuple(one.train_mask.tolist()) for one in found}
    assert len(masks) == count or val == 1
    again = repeated_splits(graph, 7)
    assert all(torch.equal(a.val_mask, b.val_mask) for a, b in zip(found, again, strict=True))


def test_many_validation_nodes_or_a_large_graph_have_one_split(monkeypatch):
    assert len(repeated_splits(split_graph(300, 300, nodes=700))) == 1
    monkeypatch.setattr("lgdgcn.search.sample.WHOLE", 450)
    assert len(repeated_splits(split_graph(40, 10))) == 2


def test_label_sets_are_split_by_their_number():
    graph = split_graph(40, 30)
    graph.y = torch.nn.functional.one_hot(graph.y).float()
    for one in repeated_splits(graph):
        assert (int(one.train_mask.sum()), int(one.val_mask.sum())) == (40, 30)
