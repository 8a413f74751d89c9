"""Scores against scikit-learn and loops, of one member and of many."""

import pytest
import torch
from sklearn.metrics import (
    average_precision_score,
    roc_auc_score,
)

from lgdgcn.train.scores import average_precision, roc_auc
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
