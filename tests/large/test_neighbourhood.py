"""Parts of a graph are what a loop over its edges finds."""

import pytest
import torch

from large.graphs import NODES, graph_of
from lgdgcn.large.neighbourhood import (
    around,
    drawn_edges,
    induced_edges,
    linked_sample,
    some_of,
)
from lgdgcn.large.rows import GraphRows


def rows_of(edge_index):
    count = torch.bincount(edge_index[0], minlength=NODES)
    row_ptr = torch.cat([torch.zeros(1, dtype=torch.long), count.cumsum(0)])
    return GraphRows(row_ptr, edge_index[1].int(), None, None, 0, torch.float32)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("hops", range(4))
def test_around_is_a_literal_walk(seed, hops):
    edges = graph_of(seed).edge_index
    seeds = torch.tensor([seed + 3, 30])
    reached = set(seeds.tolist())
    for _ in range(hops):
        reached |= {b for a, b in edges.t().tolist() if a in reached}
    rows = rows_of(edges)
    assert around(rows, seeds, hops).tolist() == sorted(reached)
    few = around(rows, seeds, hops, most=6)
    assert len(few) == min(6, len(reached))
    assert set(seeds.tolist()) <= set(few.tolist()) <= reached


@pytest.mark.parametrize("seed", range(4))
def test_induced_edges_are_a_literal_filter(seed):
    edges = graph_of(seed).edge_index
    rows = rows_of(edges)
    for nodes in (torch.arange(NODES), some_of(torch.arange(NODES), 17, seed), torch.arange(0)):
        found, entry = induced_edges(rows, nodes)
        number = {node: i for i, node in enumerate(nodes.tolist())}
        kept = [i for i, (a, b) in enumerate(edges.t().tolist()) if a in number and b in number]
        assert entry.tolist() == kept
        expected = [[number[a], number[b]] for a, b in edges[:, kept].t().tolist()]
        assert found.t().tolist() == expected


def test_samples_have_their_size_and_edges():
    edges = graph_of(0).edge_index
    rows = rows_of(edges)
    assert linked_sample(rows, NODES).tolist() == list(range(NODES))
    found = linked_sample(rows, 12, seed=1)
    assert len(found) == 12 == len(set(found.tolist()))
    assert found.tolist() == sorted(found.tolist())
    assert induced_edges(rows, found)[0].size(1) > 0
    assert some_of(found, 3).tolist() == sorted(set(some_of(found, 3).tolist()) & {*found.tolist()})
    assert not torch.equal(found, linked_sample(rows, 12, seed=2))


def test_drawn_edges_are_edges_each_as_probable():
    edges = graph_of(1).edge_index
    rows = rows_of(edges)
    nodes, found = drawn_edges(rows, 10_000)
    assert torch.equal(nodes[found], edges)
    count = torch.zeros(NODES, NODES)
    for seed in range(400):
        nodes, found = drawn_edges(rows, 12, seed)
        assert torch.equal(found, found[:, (found[0] * len(nodes) + found[1]).argsort()])
        count[tuple(nodes[found])] += 1
    assert torch.equal(count, count.t())
    drawn = count[tuple(edges)]
    assert count.sum() == drawn.sum()  # no other pair
    assert 0.8 * 2 * 12 * 400 < int(count.sum()) <= 2 * 12 * 400
    mean = float(drawn.mean())
    assert float((drawn - mean).abs().max()) < 5 * mean**0.5
