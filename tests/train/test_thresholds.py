"""Thresholds of labels, against loops; rare labels have nearly the common one."""

import numpy as np
import pytest
import torch

from lgdgcn.train.scores import best_cut, label_cuts
from literal import scores as literal
from literal.seeds import seeds

SEEDS = seeds(3)


def example(seed, nodes=30, labels=6):
    torch.manual_seed(seed)
    logits = 2 * torch.randn(nodes, labels, dtype=torch.float64)
    return logits, torch.rand(nodes, labels) < 0.3, torch.ones(nodes, dtype=torch.bool)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shift", [0, -6, 9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_cut_is_better(seed, shift, dtype):
    logits, truth, counted = example(seed)
    logits = (logits + shift).to(dtype)
    common, _ = label_cuts(logits, truth, counted)
    best = literal.highest_micro_f1(logits.tolist(), truth.numpy())
    assert literal.f1((logits.double() > common).numpy(), truth.numpy())[0] == pytest.approx(best)
    for label in range(6):
        column, own = logits[:, [label]].double(), truth[:, [label]]
        best = literal.highest_micro_f1(column.tolist(), own.numpy())
        found = literal.f1((column > best_cut(column.mT, own.mT)).numpy(), own.numpy())
        assert found[0] == pytest.approx(best)


def test_extreme_or_equal_scores():
    truth, counted = torch.tensor([[1, 0], [1, 0]]), torch.ones(2, dtype=torch.bool)
    for low, high in ((-1e4, 1e4), (-20.0, -10.0), (0.0, 1.0), (2.0, 2.0)):
        logits = torch.tensor([[high, low], [high, low]])
        common, own = label_cuts(logits, truth, counted)
        assert 0 < common.sigmoid() < 1
        assert ((own.sigmoid() > 0) & (own.sigmoid() < 1)).all()
        predicted = logits.double() > common
        assert predicted.all() if low == high else torch.equal(predicted, truth > 0)


def test_nothing_is_true_or_nothing_is_there():
    logits, truth, counted = example(0)
    common, own = label_cuts(logits, truth & False, counted)
    assert common == 0
    assert not own.any()
    common, own = label_cuts(logits[:0], truth[:0], counted[:0])
    assert common == 0
    assert own.shape == (6,)
    assert not own.any()


@pytest.mark.parametrize("having", [1, 5, 30, 1000])
def test_the_fewer_nodes_have_a_label_the_nearer_its_threshold_is_to_the_common_one(having):
    has_it = torch.arange(2 * having) < having
    first = torch.where(has_it, 4.0, 2.0)  # best told apart at 3
    other = torch.where(has_it, 1.0, -1.0)  # at 0, as all 40 other labels
    logits = torch.stack([first, *[other] * 40], 1)
    truth = has_it.unsqueeze(1).expand_as(logits)
    common, own = label_cuts(logits, truth, has_it | True)
    assert common == 0
    assert own[0] == pytest.approx(3 * having / (having + 10))
    assert not own[1:].any()


@pytest.mark.parametrize("seed", SEEDS)
def test_members_and_filling(seed):
    """Every member has the cuts of its own nodes; filling, whatever it scores, does not count."""
    examples = [example(seed + i) for i in range(3)]
    logits, truth = (torch.stack(parts) for parts in list(zip(*examples, strict=True))[:2])
    counted = torch.arange(30) < torch.tensor([[30], [20], [7]])
    common, cuts = label_cuts(logits, truth, counted)
    for member, size in enumerate((30, 20, 7)):
        rows = logits[member, :size], truth[member, :size], counted[0, :size]
        own = label_cuts(*rows)
        np.testing.assert_array_equal(common[member], own[0])
        np.testing.assert_array_equal(cuts[member], own[1])
