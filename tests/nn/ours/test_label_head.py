"""Labels as classes of factors: against a literal loop, and where they start."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from lgdgcn.nn import LabelHead, class_units
from lgdgcn.nn.ours.label_groups import meetings
from literal import voting as literal
from literal.seeds import seeds


def example(seed, factors=3, size=4, labels=5, spread=1.0, nodes=7):
    torch.manual_seed(seed)
    head = LabelHead(factors * size, labels).double()
    head.start.normal_()
    return head, spread * torch.randn(nodes, factors, size, dtype=torch.float64)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("spread", [1e-30, 1.0, 1e4])
@pytest.mark.parametrize(("factors", "size"), [(3, 4), (1, 4), (3, 1), (1, 1)])
def test_equals_the_literal_loop(seed, spread, factors, size):
    head, units = example(seed, factors, size, spread=spread)
    scores = head(head.classes(units)).detach()
    want = literal.label_scores(units.numpy(), head.start.numpy(), head.weight.detach().numpy())
    # where a label is next to certain its log-odds magnify the last digit by 1e5
    np.testing.assert_allclose(scores, want, rtol=0, atol=1e-9)


def test_certain_and_impossible_labels():
    head, _ = example(0, factors=1, labels=2)
    head.start[:] = torch.tensor([[1e4, 0, 0, 0], [0, 1e4, 0, 0]])
    scores = head(head.classes(class_units(torch.tensor([[[1e4, 0, 0, 0]]]).double())))
    assert scores.sigmoid().tolist() == [pytest.approx([1 - 1e-5, 1e-5])]
    head.float()
    scores = head(head.classes(torch.zeros(1, 1, 4)))  # dropped units have no class at all
    assert scores.isfinite().all()
    assert (scores < -11).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_scores_and_gradients_are_finite_in_any_precision(dtype):
    head, _ = example(0, factors=2, labels=2)
    head.start[:] = 0
    head.start[:, 0] = 50
    head.to(dtype)
    units = torch.zeros(3, 2, 4, dtype=dtype)
    units[0, :, 0] = units[1, :, 1] = 1  # certain, impossible and nothing
    scores = head(head.classes(units.requires_grad_()))
    assert scores.dtype == dtype
    assert scores.isfinite().all()
    scores.float().square().sum().backward()
    assert head.weight.grad.isfinite().all()
    assert units.grad.isfinite().all()


def test_every_member_has_its_own():
    members = [example(seed) for seed in range(3)]
    together = example(0)[0]
    together.weight = torch.nn.Parameter(torch.stack([head.weight for head, _ in members]))
    together.start = torch.stack([head.start for head, _ in members])
    units = torch.stack([units for _, units in members])
    scores = together(together.classes(units))
    for got, (head, own) in zip(scores, members, strict=True):
        torch.testing.assert_close(got, head(head.classes(own)))


def test_gradients():
    head, units = example(1, nodes=3)
    assert gradcheck(lambda u: head(head.classes(u)), units.requires_grad_())
    classes = head.classes(units).detach()
    weight = head.weight.detach().clone().requires_grad_()

    def scores(own):
        return torch.func.functional_call(head, {"weight": own}, (classes,))

    assert gradcheck(scores, weight)


# Where labels start


def label_sets(factors=3, classes=4, nodes=200):
    torch.manual_seed(0)
    return F.one_hot(torch.randint(classes, (nodes, factors)), classes).flatten(1)


def begin(head, y, factors):
    head.begin(meetings(y), len(y), factors)


@pytest.mark.parametrize("size", [4, 6])
def test_each_group_of_labels_begins_in_a_factor_of_its_own(size):
    head = LabelHead(3 * size, 12)
    begin(head, label_sets(), 3)
    shares = head.shares().view(3, 4, 3, size)  # [group, label, factor, class]
    factor = shares.sum(-1).argmax(-1)
    assert (factor == factor[:, :1]).all()
    assert sorted(factor[:, 0].tolist()) == [0, 1, 2]
    place = shares.flatten(-2).argmax(-1).flatten()
    assert place.unique().numel() == 12  # no two labels share a class
    assert (shares.flatten(-2).amax(-1) > 0.95).all()
    assert not head.weight.any()


def test_a_node_of_these_classes_has_these_labels():
    y = label_sets()
    head = LabelHead(12, 12)
    begin(head, y, 3)
    place = head.shares().argmax(-1)  # [C]
    classes = torch.zeros(200, 12)
    classes[:, place] = y.float()
    assert torch.equal((head(classes) > 0).long(), y)


def test_more_labels_than_classes_share_them():
    head = LabelHead(6, 12)
    begin(head, F.one_hot(torch.arange(60) % 12), 2)
    place = head.shares().argmax(-1)
    assert (place // 3).unique().numel() == 1
    assert place.bincount(minlength=6).max() == 4


def test_begin_again_and_reset_forget_the_groups():
    head = LabelHead(12, 12)
    begin(head, label_sets(), 3)
    begin(head, F.one_hot(torch.arange(60) % 12), 3)
    assert ((head.start > 0).sum(1) == 1).all()
    head.reset_parameters()
    assert not head.start.any()
    assert head.weight.std() > 0.5


def test_the_start_is_part_of_the_state():
    head, other = LabelHead(12, 12), LabelHead(12, 12)
    begin(head, label_sets(), 3)
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.shares(), head.shares())
