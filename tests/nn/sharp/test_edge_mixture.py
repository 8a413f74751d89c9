"""The edge loss: against the sum over all pairs, and what it must and must not notice."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from lgdgcn.nn import class_units, edge_loss
from literal import voting as literal
from literal.seeds import seeds
from nn.ugly import NO_EDGES, ugly_edges


def units_of(seed, *shape, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    return class_units(spread * torch.randn(*shape, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("spread", [0.1, 3.0, 1e4])
@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (3, 1), (1, 1)])
def test_equals_the_literal_sum_over_all_pairs(seed, spread, shape):
    units, edges = units_of(seed, 9, *shape, spread=spread), ugly_edges(seed, hub_degree=1000)
    want = literal.edge_loss(units, edges)
    np.testing.assert_allclose(edge_loss(units, edges).item(), want, rtol=1e-9, atol=1e-12)


def test_every_member_has_its_own():
    units, edges = units_of(0, 3, 9, 2, 4), ugly_edges(0)
    alone = torch.stack([edge_loss(own, edges) for own in units])
    torch.testing.assert_close(edge_loss(units, edges), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("members", [(), (3,)])
@pytest.mark.parametrize("nodes", [1, 9])
def test_no_edges_are_no_evidence(members, nodes):
    units = units_of(1, *members, nodes, 2, 4).requires_grad_()
    loss = edge_loss(units, NO_EDGES)
    assert loss.shape == members
    assert not loss.any()
    loss.sum().backward()
    assert not units.grad.any()


@pytest.mark.parametrize("shape", [(3, 4), (1, 1)])
def test_uniform_units_explain_nothing(shape):
    loss = edge_loss(class_units(torch.zeros(9, *shape, dtype=torch.float64)), ugly_edges(2))
    assert abs(loss.item()) < 1e-12


def planted(nodes=60, classes=4, factors=2):
    """Certain classes and all edges between nodes that agree in exactly one factor."""
    label = torch.arange(nodes)
    own = torch.stack([label // classes**m % classes for m in range(factors)], dim=1)
    units = F.one_hot(own, classes).double()
    agree = (own[:, None] == own[None]).sum(-1)
    return units, (agree == 1).nonzero().t(), agree


def test_perfect_classes_reach_the_bound():
    """Every edge has agreement 1, so what is left is how rarely pairs agree."""
    units, edges, agree = planted()
    pairs = agree.sum() - agree.diagonal().sum()
    want = math.log(pairs / (60 * 59))
    assert edge_loss(units, edges).item() == pytest.approx(want, abs=1e-5)
    assert want < -0.5
    for seed in range(3):  # no other classes are as good
        assert edge_loss(units_of(seed, 60, 2, 4, spread=3.0), edges) > want
    blurred = (0.9 * units + 0.1 / 4).sqrt()
    assert edge_loss(blurred, edges) > want
    assert edge_loss(units.roll(7, 0), edges) > want


def test_names_of_factors_and_classes_and_the_order_of_edges_mean_nothing():
    units, edges = units_of(3, 9, 3, 4, spread=2.0), ugly_edges(3)
    want = edge_loss(units, edges)
    for factor in range(3):
        units[:, factor] = units[:, factor, torch.randperm(4)]
    renamed = units[:, torch.randperm(3)]
    for same in (edges, edges.flip(0), edges[:, torch.randperm(edges.size(1))], edges.repeat(1, 2)):
        torch.testing.assert_close(edge_loss(renamed, same), want)


def test_how_dense_the_graph_is_drops_out():
    units, edges, _ = planted()
    few = edges[:, ::7]
    torch.testing.assert_close(edge_loss(units, few), edge_loss(units, edges))


def test_ends_without_a_common_class_have_a_finite_price():
    units = F.one_hot(torch.tensor([[0], [1]]), 2).float().requires_grad_()
    loss = edge_loss(units, torch.tensor([[0, 1], [1, 0]]))
    assert loss.isfinite()
    loss.backward()
    assert units.grad.isfinite().all()


def test_gradients():
    units, edges = units_of(4, 2, 6, 2, 3), ugly_edges(4, nodes=6)
    assert gradcheck(lambda u: edge_loss(u, edges), units.requires_grad_())
