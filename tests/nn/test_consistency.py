import pytest
import torch

from lgdgcn.nn import consistency_loss
from literal import consistency as literal
from literal.seeds import seeds


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.1])
def test_equals_the_literal_loop(seed, temperature):
    torch.manual_seed(seed)
    views = torch.randn(2, 3, 5, 4, dtype=torch.float64).softmax(-1)
    found = consistency_loss(views, torch.tensor([temperature, 1.0], dtype=torch.float64))
    want = [literal.consistency_loss(views[0].tolist(), temperature)]
    want += [literal.consistency_loss(views[1].tolist(), 1.0)]
    torch.testing.assert_close(found, torch.tensor(want, dtype=torch.float64))
    torch.testing.assert_close(consistency_loss(views[0], temperature), found[0])


def test_the_average_is_a_target_without_gradient():
    scores = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    target = scores.detach().softmax(-1).mean(0)
    loss = consistency_loss(scores.softmax(-1), 1.0)
    fixed = (scores.softmax(-1) - target).square().sum(-1).mean()
    (found,) = torch.autograd.grad(loss, scores)
    (want,) = torch.autograd.grad(fixed, scores)
    torch.testing.assert_close(found, want)


def test_views_that_agree_for_certain_cost_nothing():
    certain = torch.eye(3).expand(4, 3, 3).clone().requires_grad_()
    loss = consistency_loss(certain, 0.5)
    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert torch.autograd.grad(loss, certain)[0].isfinite().all()
