"""Edges as evidence: against sums over all pairs, and what must and must not be noticed."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from lgdgcn.nn import class_units, edge_loss, factor_posterior, factor_weights
from lgdgcn.nn.ours.edge_mixture import drawn_weights
from literal import voting as literal
from literal.seeds import seeds
from nn.ugly import NO_EDGES, ugly_edges

SHAPES = pytest.mark.parametrize("shape", [(3, 4), (1, 4), (3, 1), (1, 1)])
SPREADS = pytest.mark.parametrize("spread", [0.1, 3.0, 1e4])


def units_of(seed, *shape, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    return class_units(spread * torch.randn(*shape, generator=generator, dtype=torch.float64))


def weights_of(factors):
    """The first factor is a label's."""
    return factor_weights(torch.arange(factors) == 0).double()


@pytest.mark.parametrize("seed", seeds(2))
@SPREADS
@SHAPES
def test_equals_the_literal_sum_over_all_pairs(seed, spread, shape):
    units, edges = units_of(seed, 9, *shape, spread=spread), ugly_edges(seed, hub_degree=1000)
    weights = weights_of(shape[0])
    own = weights.tolist()
    np.testing.assert_allclose(
        edge_loss(units, edges, weights).item(),
        literal.edge_loss(units, edges, own),
        rtol=1e-9,
        atol=1e-12,
    )
    np.testing.assert_allclose(
        factor_posterior(units, edges, weights),
        literal.factor_posterior(units, edges, own),
        rtol=1e-9,
    )


def test_every_member_has_its_own():
    units, edges, weights = units_of(0, 3, 9, 2, 4), ugly_edges(0), torch.rand(3, 2).double() / 2
    for function in (edge_loss, factor_posterior):
        pairs = zip(units, weights, strict=True)
        alone = torch.stack([function(one, edges, own) for one, own in pairs])
        torch.testing.assert_close(function(units, edges, weights), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("members", [(), (3,)])
@pytest.mark.parametrize("nodes", [1, 9])
def test_no_edges_are_no_evidence(members, nodes):
    units = units_of(1, *members, nodes, 2, 4).requires_grad_()
    loss = edge_loss(units, NO_EDGES, weights_of(2))
    assert loss.shape == members
    assert not loss.any()
    loss.sum().backward()
    assert not units.grad.any()
    assert factor_posterior(units, NO_EDGES, weights_of(2)).shape == (*members, 0, 2)


@pytest.mark.parametrize("owned", [[1, 0, 0], [1, 1, 1], [0, 0], [1, 0, 1, 0], [1]])
def test_the_weights_of_factors(owned):
    weights = factor_weights(torch.tensor(owned, dtype=torch.bool))
    np.testing.assert_allclose(weights, literal.factor_weights(owned), rtol=1e-6)
    assert weights.sum().item() == pytest.approx(0.95)


@pytest.mark.parametrize("shape", [(3, 4), (1, 1)])
def test_units_that_are_alike_explain_nothing(shape):
    """Be they uniform, or all of one class: no pair is told from another."""
    uniform = class_units(torch.zeros(9, *shape, dtype=torch.float64))
    certain = F.one_hot(torch.zeros(9, shape[0], dtype=torch.int64), shape[1]).double()
    for units in (uniform, certain):
        loss = edge_loss(units, ugly_edges(2), weights_of(shape[0]))
        assert abs(loss.item()) < 1e-5


def planted(nodes=60, classes=4, factors=2):
    """Certain classes and all edges between nodes that agree in exactly one factor."""
    label = torch.arange(nodes)
    own = torch.stack([label // classes**m % classes for m in range(factors)], dim=1)
    units = F.one_hot(own, classes).double()
    agree = own[:, None] == own[None]
    edges = (agree.sum(-1) == 1).nonzero().t()
    return units, edges, agree[edges[0], edges[1]]


def test_perfect_classes_reach_the_bound():
    """Every edge has agreement 1 in one factor, so what is left is how rarely pairs agree."""
    units, edges, _ = planted()
    weights = factor_weights(torch.ones(2, dtype=torch.bool))
    chance = [literal.by_chance(units.numpy(), m) for m in range(2)]
    made = [(edges.size(1) / 2, share) for share in chance]  # half of them by each factor
    want = -sum(n * math.log(0.05 + 0.475 / share) for n, share in made) / edges.size(1)
    assert edge_loss(units, edges, weights).item() == pytest.approx(want, abs=1e-2)
    assert want < -0.5
    for seed in range(3):  # no other classes are as good
        assert edge_loss(units_of(seed, 60, 2, 4, spread=3.0), edges, weights) > want + 0.1
    blurred = (0.9 * units + 0.1 / 4).sqrt()
    assert edge_loss(blurred, edges, weights) > edge_loss(units, edges, weights)
    assert edge_loss(units.roll(7, 0), edges, weights) > want + 0.1


def test_every_edge_goes_to_the_factor_that_drew_it():
    units, edges, makers = planted()
    blurred = (0.9 * units + 0.1 / 4).sqrt()
    found = factor_posterior(blurred, edges, weights_of(2))
    assert (found.argmax(-1) == makers.long().argmax(-1)).all()


def test_a_factor_with_one_class_for_all_takes_no_edges_from_one_that_explains_them():
    units, edges, makers = planted()
    collapsed = torch.zeros(60, 1, 4, dtype=torch.float64)
    collapsed[:, :, 2] = 1
    joined = torch.cat([units, collapsed], 1)
    for owned in ([1, 1, 0], [1, 1, 1]):
        weights = factor_weights(torch.tensor(owned, dtype=torch.bool))
        found = factor_posterior(joined, edges, weights)
        assert (found.argmax(-1) == makers.long().argmax(-1)).all()


def test_shares_of_factors_are_found_by_steps_of_em():
    """A free factor that draws most edges gets them, one that draws none can come back."""
    units, edges, makers = planted()
    uneven = edges[:, (makers[:, 1] | (torch.arange(edges.size(1)) % 4 == 0))]
    weights = weights_of(2)
    for _ in range(200):
        drawn = factor_posterior(units, uneven, weights).mean(0)
        weights = drawn_weights(drawn, torch.tensor([True, False]))
    share = makers[:, 1].sum() / uneven.size(1)
    torch.testing.assert_close(weights[1].item(), 0.95 * share.item(), rtol=0.01, atol=0)
    gone = drawn_weights(torch.tensor([1.0, 0.0]), torch.tensor([True, False]))
    assert 0 < gone[1] < 1e-3
    assert gone.sum().item() == pytest.approx(0.95)
    of_labels = drawn_weights(torch.tensor([0.6, 0.2, 0.2]), torch.tensor([True, True, False]))
    assert of_labels[0] == of_labels[1] > of_labels[2]


def test_names_of_factors_and_classes_and_the_order_of_edges_mean_nothing():
    units, edges = units_of(3, 9, 3, 4, spread=2.0), ugly_edges(3)
    weights = torch.tensor([0.5, 0.3, 0.1])
    want = edge_loss(units, edges, weights)
    for factor in range(3):
        units[:, factor] = units[:, factor, torch.randperm(4)]
    order = torch.randperm(3)
    for same in (edges, edges.flip(0), edges[:, torch.randperm(edges.size(1))], edges.repeat(1, 2)):
        torch.testing.assert_close(edge_loss(units[:, order], same, weights[order]), want)


def test_ends_without_a_common_class_have_a_finite_price():
    units = F.one_hot(torch.tensor([[0], [1]]), 2).float().requires_grad_()
    edges = torch.tensor([[0, 1], [1, 0]])
    loss = edge_loss(units, edges, weights_of(1))
    assert loss.isfinite()
    loss.backward()
    assert units.grad.isfinite().all()
    assert factor_posterior(units, edges, weights_of(1)).tolist() == [[1.0], [1.0]]


def test_gradients():
    units, edges = units_of(4, 2, 6, 2, 3), ugly_edges(4, nodes=6)
    assert gradcheck(lambda u: edge_loss(u, edges, weights_of(2)), units.requires_grad_())
