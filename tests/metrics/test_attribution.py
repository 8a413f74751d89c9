"""Measures of disentanglement on cases whose answer is known."""

import itertools
import math

import pytest
import torch

from lgdgcn.data import synthetic_graph
from lgdgcn.metrics.attribution import (
    edge_attribution,
    factor_usage,
    routing_entropy,
)
from lgdgcn.reasons.edges import Edges

GRAPH = synthetic_graph(factors=3, nodes=90, classes=5, average_degree=12, q=0.0, seed=1)


def shared(data=GRAPH):
    """Which factors each edge's ends have a class in common in: what made the edge."""
    source, target = data.edge_index
    return (data.y_factor[source] == data.y_factor[target]).float()


def probabilities(scores):
    return scores / scores.sum(1, keepdim=True)


# Entropy


@pytest.mark.parametrize("factors", [2, 5])
def test_entropy_has_known_ends(factors):
    assert routing_entropy(torch.full((7, factors), 1 / factors)) == pytest.approx(1)
    assert routing_entropy(torch.eye(factors)) == 0


def test_entropy_is_the_mean_over_edges():
    rows = torch.tensor([[0.9, 0.1], [0.3, 0.7], [1.0, 0.0]], dtype=torch.float64)
    expected = (
        torch.distributions.Categorical(probs=rows).entropy().mean() / torch.tensor(2.0).log()
    )
    assert routing_entropy(rows) == pytest.approx(expected.item())


@pytest.mark.parametrize("shape", [(0, 4), (9, 1)])
def test_entropy_that_means_nothing_is_none(shape):
    assert routing_entropy(torch.ones(shape)) is None


# Usage


def test_usage_is_the_effective_number_of_mean_shares():
    rows = [[0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    entropy = 0.0
    for m in range(3):
        share = sum(row[m] for row in rows) / 4
        entropy -= share * math.log(share)
    assert factor_usage(torch.tensor(rows)) == pytest.approx(math.exp(entropy))


@pytest.mark.parametrize("factors", [1, 2, 5])
def test_usage_has_known_ends(factors):
    assert factor_usage(torch.full((7, factors), 1 / factors)) == pytest.approx(factors)
    assert factor_usage(torch.eye(factors)) == pytest.approx(factors)  # each edge has its own
    assert factor_usage(torch.eye(factors)[:1].expand(7, -1)) == 1
    assert factor_usage(torch.ones(0, factors)) is None


# Both directions


def test_directions_are_averaged_in_any_order():
    edge_index = torch.tensor([[2, 0, 1, 1, 2, 0], [1, 1, 0, 2, 0, 2]])
    values = torch.tensor([[1.0, 0.0], [0.2, 0.8], [0.4, 0.6], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    edges = Edges.of(edge_index)
    mean = torch.from_numpy(edges.once(values)).float()
    assert edges.ends.tolist() == [[0, 0, 1], [1, 2, 2]]
    assert torch.allclose(mean, torch.tensor([[0.3, 0.7], [0.5, 0.5], [0.5, 0.5]]))


def test_no_edges_stay_no_edges():
    edges = Edges.of(torch.empty(2, 0, dtype=torch.int64))
    assert (edges.ends.shape, edges.once(torch.empty(0, 3)).shape) == ((2, 0), (0, 3))


# Attribution


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_channels_carry_no_names(order):
    perfect = probabilities(shared()[:, list(order)])
    assert edge_attribution(GRAPH.edge_index, perfect, GRAPH.y_factor) == 1


def test_more_channels_than_factors_and_fewer():
    right = shared()
    single = right[right.sum(1) == 1]
    share = single.mean(0)
    wider = probabilities(torch.cat([torch.zeros_like(right), right], 1))
    assert edge_attribution(GRAPH.edge_index, wider, GRAPH.y_factor) == 1
    narrow = edge_attribution(GRAPH.edge_index, torch.ones(right.size(0), 1), GRAPH.y_factor)
    assert narrow == pytest.approx(share.max().item())


def test_one_channel_for_all_edges_scores_the_commonest_factor():
    right = shared()
    same = torch.tensor([[0.2, 0.5, 0.3]]).expand(right.size(0), -1)
    share = right[right.sum(1) == 1].mean(0)
    assert edge_attribution(GRAPH.edge_index, same, GRAPH.y_factor) == pytest.approx(
        share.max().item()
    )


def test_known_share_of_wrong_edges():
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    y_factor = torch.tensor([[0, 0], [0, 1], [1, 1], [1, 0]])  # each edge of the ring: one factor
    right = shared_of(edge_index, y_factor)
    right[:2] = right[:2].flip(1)  # one of four edges is wrong, both ways
    assert edge_attribution(edge_index, right, y_factor) == 0.75


def shared_of(edge_index, y_factor):
    return (y_factor[edge_index[0]] == y_factor[edge_index[1]]).float()


@pytest.mark.parametrize("y_factor", [[[0, 0], [0, 0]], [[0, 0], [1, 1]]], ids=["both", "neither"])
def test_no_edge_with_a_single_maker_is_none(y_factor):
    edge_index = torch.tensor([[0, 1], [1, 0]])
    factors = torch.full((2, 2), 0.5)
    assert edge_attribution(edge_index, factors, torch.tensor(y_factor)) is None


def test_no_edges_have_no_attribution():
    none = torch.empty(2, 0, dtype=torch.int64)
    assert edge_attribution(none, torch.empty(0, 2), torch.zeros(4, 2)) is None
