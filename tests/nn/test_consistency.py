import pytest
import torch

from lgdgcn.nn import consistency_loss
from lgdgcn.nn.consistency import sharpened
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


@pytest.mark.parametrize("seed", seeds(3))
def test_only_nodes_that_are_sure_count(seed):
    torch.manual_seed(seed)
    views = (2 * torch.randn(4, 3, 20, 4, dtype=torch.float64)).softmax(-1)
    bounds = torch.tensor([0.0, 0.4, 0.6, 0.999], dtype=torch.float64)
    sure = [int((views[r].mean(0).amax(-1) > bounds[r]).sum()) for r in range(4)]
    assert sure[0] == 20 > sure[1] > 0 == sure[3]
    found = consistency_loss(views, 0.5, bounds)
    want = [literal.consistency_loss(views[r].tolist(), 0.5, float(bounds[r])) for r in range(4)]
    torch.testing.assert_close(found, torch.tensor(want, dtype=torch.float64))
    torch.testing.assert_close(consistency_loss(views[1], 0.5, 0.4), found[1])
    assert found[3] == 0


def test_without_a_bound_the_loss_is_the_mean_to_the_bit():
    views = torch.randn(5, 2, 3, 30, 4).softmax(-1).movedim(1, 3).movedim(3, 1)
    target = sharpened(views.mean(-3), 0.5).unsqueeze(-3)
    want = (views - target).square().sum(-1).mean((-1, -2))
    assert torch.equal(consistency_loss(views, 0.5), want)
    assert torch.equal(consistency_loss(views, 0.5, torch.zeros(5, 2)), want)


@pytest.mark.parametrize("confidence", [0.0, 0.6, 0.999])
def test_gradients_are_differences_of_the_literal_loop(confidence):
    views = (2 * torch.randn(2, 6, 3, dtype=torch.float64)).softmax(-1).requires_grad_()
    means, step = literal.averages(views.tolist()), 1e-6  # the target stays where it is
    (found,) = torch.autograd.grad(consistency_loss(views, 0.5, confidence), views)
    for place in [(v, i, c) for v in range(2) for i in range(6) for c in range(3)]:
        moved = torch.zeros_like(views)
        moved[place] = step
        high, low = (
            literal.consistency_loss(other.tolist(), 0.5, confidence, means)
            for other in (views + moved, views - moved)
        )
        assert found[place].item() == pytest.approx((high - low) / (2 * step), abs=1e-7)


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
