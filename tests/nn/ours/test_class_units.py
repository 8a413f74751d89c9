"""Units that are classes and the votes of neighbours, against literal loops."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from lgdgcn.nn import class_units, vote
from literal import voting as literal
from literal.seeds import seeds
from nn.ugly import NO_EDGES, ugly_edges


def scores_of(seed, *shape, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    return spread * torch.randn(*shape, generator=generator, dtype=torch.float64)


def assert_equal_the_loop(scores, edges, rounds, tau=1.0):
    want = literal.vote(scores, edges, rounds, tau)
    np.testing.assert_allclose(vote(scores, edges, rounds, tau), want, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("tau", [1.0, 0.1])
@pytest.mark.parametrize("shape", [(3, 3), (1, 4), (4, 1)])
def test_equals_the_literal_loop(seed, rounds, tau, shape):
    assert_equal_the_loop(scores_of(seed, 9, *shape), ugly_edges(seed), rounds, tau)


@pytest.mark.parametrize("spread", [1e-4, 10.0, 1e4])
def test_a_hub_and_scores_of_any_size(spread):
    assert_equal_the_loop(scores_of(0, 9, 3, 3, spread=spread), ugly_edges(0, hub_degree=1000), 3)


@pytest.mark.parametrize("nodes", [1, 5])
def test_without_edges_every_node_votes_for_itself(nodes):
    scores = scores_of(1, nodes, 3, 3)
    assert_equal_the_loop(scores, NO_EDGES, 3)


def test_every_member_votes_alone_with_its_own_temperature():
    scores, edges, tau = scores_of(2, 3, 9, 3, 3), ugly_edges(2), torch.tensor([0.1, 1.0, 7.0])
    together = vote(scores, edges, 3, tau.double())
    for member in range(3):
        alone = vote(scores[member], edges, 3, tau[member].item())
        torch.testing.assert_close(together[member], alone, rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_units_have_length_1_and_finite_gradients(dtype, spread):
    scores = scores_of(3, 9, 3, 3, spread=spread).to(dtype).requires_grad_()
    units = vote(scores, ugly_edges(3, hub_degree=1000), 4, 0.1)
    torch.testing.assert_close(units.norm(dim=-1), torch.ones(9, 3, dtype=dtype))
    (units * torch.randn_like(units)).sum().backward()
    assert scores.grad.isfinite().all()


def test_the_overlap_of_two_units_is_that_of_their_classes():
    same, other = class_units(torch.eye(2, dtype=torch.float64) * 1e4)
    assert (same @ same, same @ other) == (1, 0)


def test_neighbours_pull_a_node_without_opinion_through_the_factor_they_share():
    scores = torch.zeros(4, 2, 2, dtype=torch.float64)
    scores[:3, 0, 0] = 8.0  # all agree in the first factor
    scores[torch.arange(4), 1, torch.tensor([0, 1, 0, 1])] = 8.0
    edges = torch.tensor([[0, 1, 2], [3, 3, 3]])
    units = vote(scores, edges, 5, 0.1)
    assert units[3, 0, 0] > 0.8 > 0.6 > units[3, 0, 1]


def test_gradients():
    scores, edges = scores_of(4, 5, 3, 3), ugly_edges(4, nodes=5)
    assert gradcheck(lambda s: vote(s, edges, 3, 0.5), scores.requires_grad_())
