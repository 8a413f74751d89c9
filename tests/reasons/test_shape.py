"""Columns of the shape against loops over sets of neighbours."""

import math

import numpy as np
import pytest

from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.shape import COMMON, common_neighbours, links_among_common, shape_columns
from reasons.graphs import random_graph


def neighbours(edges):
    around = [set() for _ in range(edges.num_nodes)]
    for a, b in edges.ends.T.tolist():
        around[a].add(b)
        around[b].add(a)
    return around


@pytest.mark.parametrize("count", [40, 200, 280])
def test_columns_are_those_of_a_loop(count):
    edges = Edges.of_graph(random_graph(count, nodes=25, edges=count))
    around, rows = neighbours(edges), []
    degree = [len(near) for near in around]
    joined = [sum(b in around[a] for a in near for b in near) for near in around]
    clustering = [j / (d * (d - 1)) if d > 1 else 0 for j, d in zip(joined, degree, strict=True)]
    for a, b in edges.ends.T:
        both = around[a] & around[b]
        rows.append([
            math.log1p(len(both)),
            math.log1p(sum(1 / math.log(degree[c]) for c in both)),
            math.log1p(sum(1 / degree[c] for c in both)),
            math.log1p(min(degree[a], degree[b])),
            math.log1p(max(degree[a], degree[b])),
            math.log1p(sum(d in around[c] for c in both for d in both) / 2),
            min(clustering[a], clustering[b]),
            max(clustering[a], clustering[b]),
            len(both) / len(around[a] | around[b]),
        ])  # fmt: skip
    found = shape_columns(edges)
    np.testing.assert_allclose(found[:, [0, 1, 2, 4, 5, 7, 10, 11, 12]], rows, atol=1e-12)
    assert np.array_equal(found[:, COMMON], found[:, [0, 12, 1, 2]])


def test_sums_over_the_edges_that_join_a_common_neighbour():
    edges = Edges.of_graph(random_graph(3, nodes=30, edges=150))
    around, value = neighbours(edges), np.random.default_rng(0).random(len(edges))
    of = {(a, b): v for (a, b), v in zip(edges.ends.T.tolist(), value, strict=True)}
    expected = [
        sum(of[min(c, end), max(c, end)] for c in around[a] & around[b] for end in (a, b))
        for a, b in edges.ends.T.tolist()
    ]
    found = common_neighbours(edges, np.zeros((30, 0)), value)[1]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_large_hub_costs_no_more_than_its_triangles():
    """A hub with 200,000 neighbours, joined in twos, has 2e10 paths of two edges."""
    leaves = np.arange(1, 200_001)
    hub = np.stack([np.zeros_like(leaves), leaves])
    edges = Edges.of(np.concatenate([hub, leaves.reshape(-1, 2).T], 1), 200_001)
    common = common_neighbours(edges, np.ones((200_001, 1)))[0][0]
    assert common.sum() == 3 * 100_000
    assert not links_among_common(edges).any()


def test_no_edges():
    assert shape_columns(Edges.of(np.zeros((2, 0), dtype=np.int64), 3)).shape == (0, 19)
