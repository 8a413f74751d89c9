"""Scores and thresholds against scikit-learn and loops, of one member and of many."""

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    average_precision_score,
    roc_auc_score,
)

from lgdgcn.train.scores import average_precision, best_cut, label_cuts, roc_auc
from literal import scores as literal
from literal.seeds import seeds

SEEDS = seeds(3)


def ranking(seed, levels=0, size=60):
    """Scores and truths; with levels many scores are equal."""
    torch.manual_seed(seed)
    values, truth = 2 * torch.randn(size, dtype=torch.float64), torch.rand(size) < 0.3
    truth[:2] = torch.tensor([True, False])
    return (values * levels / 4).round() if levels else values, truth


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [0, 3], ids=["distinct", "many equal"])
def test_average_precision(seed, levels):
    values, truth = ranking(seed, levels)
    found = average_precision(values, truth).item()
    assert found == pytest.approx(literal.average_precision(values.tolist(), truth.tolist()))
    assert found == pytest.approx(average_precision_score(truth, values))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("levels", [0, 3], ids=["distinct", "many equal"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_roc_auc(seed, levels, dtype):
    values, truth = ranking(seed, levels)
    values = values.to(dtype)
    found = roc_auc(values, truth)
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(literal.roc_auc(values.tolist(), truth.tolist()))
    assert found.item() == pytest.approx(roc_auc_score(truth, values))


@pytest.mark.parametrize("score", [average_precision, roc_auc])
@pytest.mark.parametrize("levels", [0, 3], ids=["distinct", "many equal"])
def test_rankings_of_many_members_and_filling(score, levels):
    values, truth = map(torch.stack, zip(*(ranking(seed, levels) for seed in SEEDS), strict=True))
    want = [score(*ranking(seed, levels)).item() for seed in SEEDS]
    assert score(values, truth).tolist() == want
    filled = torch.cat([values, torch.full((3, 7), -torch.inf)], 1)
    assert score(filled, torch.cat([truth, truth[:, :7] & False], 1)).tolist() == pytest.approx(
        want
    )


def test_rankings_of_one_kind():
    assert average_precision(torch.rand(5), torch.zeros(5)) == 0
    assert roc_auc(torch.rand(5), torch.zeros(5)) == 0.5
    assert roc_auc(torch.rand(5), torch.ones(5)) == 0.5
    assert roc_auc(torch.zeros(6), torch.arange(6) % 2) == 0.5  # one answer for all


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
