"""Columns of the shape against loops over sets of neighbours, and against networkx."""

import math

import numpy as np
import pytest
import torch

from lgdgcn.reasons import shape
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.shape import SHAPE_COLUMNS, core_numbers, shape_columns, triangles
from reasons.graphs import random_graph


def literal_columns(edge_index, nodes):
    around = [set() for _ in range(nodes)]
    for a, b in zip(*edge_index.tolist(), strict=True):
        around[a].add(b)
    degree = [len(near) for near in around]
    joined = [sum(b in around[a] for a in near for b in near) for near in around]
    clustering = [
        joined[i] / (degree[i] * (degree[i] - 1)) if degree[i] > 1 else 0 for i in range(nodes)
    ]
    core = literal_cores(around)
    rows = []
    for a, b in Edges.of(edge_index).ends.T:
        both = around[a] & around[b]
        row = [
            len(both),
            len(both) / len(around[a] | around[b]),
            sum(1 / math.log(degree[c]) for c in both),
            sum(1 / degree[c] for c in both),
        ]
        for values in (degree, clustering, core):
            row += sorted((values[a], values[b]))
        rows.append(row)
    return np.array(rows)


def literal_cores(around):
    core = []
    for node in range(len(around)):
        k = 0
        while True:
            left = set(range(len(around)))
            while weak := {i for i in left if len(around[i] & left) < k + 1}:
                left -= weak
            if node not in left:
                break
            k += 1
        core.append(k)
    return core


@pytest.mark.parametrize("wedges", [1, 7, 2**21])
@pytest.mark.parametrize("edges", [40, 200])
def test_columns_are_those_of_a_loop(edges, wedges, monkeypatch):
    monkeypatch.setattr(shape, "WEDGES", wedges)
    data = random_graph(edges, nodes=25, edges=edges)
    found = shape_columns(data.edge_index, 25)
    assert found.shape[1] == len(SHAPE_COLUMNS)
    np.testing.assert_allclose(found, literal_columns(data.edge_index, 25), atol=1e-12)


def test_every_triangle_is_found_once():
    networkx = pytest.importorskip("networkx")
    data = random_graph(3, nodes=40, edges=200)
    pairs = Edges.of_graph(data).ends
    found = [np.sort(corners, axis=0) for _, corners in triangles(pairs, 40)]
    listed = sorted(map(tuple, np.concatenate(found, axis=1).T))
    graph = networkx.Graph(list(pairs.T))
    cliques = networkx.enumerate_all_cliques(graph)
    assert listed == sorted(tuple(sorted(one)) for one in cliques if len(one) == 3)


def test_core_numbers_are_those_of_networkx():
    networkx = pytest.importorskip("networkx")
    pairs = Edges.of(random_graph(4, nodes=60, edges=300).edge_index).ends
    graph = networkx.Graph(list(pairs.T))
    graph.add_nodes_from(range(60))
    expected = networkx.core_number(graph)
    assert core_numbers(pairs, 60).tolist() == [expected[i] for i in range(60)]


def test_a_large_hub_costs_no_more_than_its_triangles():
    """A star of 200,000 leaves has 2e10 paths of two edges, none of which is looked at."""
    leaves = np.arange(1, 200_001)
    ends = np.stack([np.zeros_like(leaves), leaves])
    edge_index = torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))
    columns = shape_columns(edge_index, 200_001)
    assert columns[:, :4].sum() == 0
    assert columns[:, 5].max() == 200_000


def test_no_edges():
    assert shape_columns(torch.zeros(2, 0, dtype=torch.int64), 3).shape == (0, len(SHAPE_COLUMNS))


def test_pairs_and_back():
    data = random_graph(5)
    edges = Edges.of_graph(data)
    pairs, number = edges.ends, edges.number
    low = torch.stack(data.edge_index.aminmax(dim=0)).numpy()
    assert (pairs[:, number] == low).all()
    assert (edges.both(edges.once(data.edge_type)) == data.edge_type.numpy()).all()
