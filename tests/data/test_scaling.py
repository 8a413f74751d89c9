"""Scaling: what is chosen for which features, and that it stays what it was in training."""

import json

import numpy as np
import pytest
import torch

from lgdgcn.data.features import sparse_features
from lgdgcn.data.scaling import Scaling, fit_scaling, suited_scaling

EVERY = torch.ones(200, dtype=torch.bool)


def counts(share, high=2, seed=0):
    random = np.random.default_rng(seed)
    hit = random.random((200, 40)) < share
    return torch.from_numpy((hit * random.integers(1, high, (200, 40))).astype(np.float32))


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (counts(0.03), "rows"),
        (counts(0.03, high=9), "rows"),
        (counts(0.03) * 0.37, "rows"),  # tf-idf
        (torch.eye(200), "rows"),
        (counts(0.4), "none"),
        (counts(0.4, high=9), "standard"),
        (counts(0.03) - counts(0.03, seed=1), "standard"),
        (torch.randn(200, 5), "standard"),
        (torch.cat([counts(0.4), 170 + torch.randn(200, 1)], 1), "standard"),
        (torch.zeros(200, 3), "rows"),
        (torch.cat([counts(0.03), 900 + torch.randn(200, 1)], 1), "standard"),  # and a price
        (torch.cat([counts(0.1), counts(1.0, high=3)[:, :1]], 1), "rows"),  # a frequent word
    ],
)
def test_what_suits(x, kind):
    assert suited_scaling(x) == kind
    assert suited_scaling(sparse_features(x.to_sparse_coo())) == kind
    scaling = fit_scaling("auto", x, EVERY)
    assert scaling.kind == kind
    assert f"scaling = {kind}" in str(scaling)
    assert scaling(x).isfinite().all()


def test_standard_is_that_of_the_training_nodes():
    x = torch.randn(200, 4, generator=torch.manual_seed(0)) * torch.tensor([1, 10, 0.1, 5]) + 3
    mask = torch.arange(200) < 50
    scaled = fit_scaling("standard", x, mask)(x)
    assert scaled[mask].mean(0).tolist() == pytest.approx([0] * 4, abs=1e-5)
    assert scaled[mask].std(0, correction=0).tolist() == pytest.approx([1] * 4, rel=1e-5)
    assert scaled.dtype == x.dtype
    other = x.clone()
    other[60:] *= 100  # other nodes have no part in it
    assert torch.equal(fit_scaling("standard", other, mask)(x), scaled)


def test_columns_that_are_the_same_for_all_training_nodes():
    x = torch.zeros(200, 3)
    x[:, 0] = 0.1  # everywhere
    x[100:, 1] = 1e6  # not in training
    x[:, 2] = torch.arange(200)
    scaled = fit_scaling("standard", x, torch.arange(200) < 50)(x)
    assert scaled[:, 0].abs().max() < 1e-6
    assert scaled[:, 1].max() == pytest.approx(2)
    assert scaled.isfinite().all()


def test_sparse_columns_stay_sparse():
    x = counts(0.03) - counts(0.03, seed=1)
    sparse = sparse_features(x.to_sparse_coo())
    scaling = fit_scaling("standard", sparse, EVERY)
    assert scaling(sparse).layout == torch.sparse_csr
    deviation = torch.where(x.std(0, correction=0) > 0, x.std(0, correction=0), 1)
    assert torch.allclose(scaling(sparse).to_dense(), x / deviation, rtol=1e-5)
    dense = fit_scaling("standard", x, EVERY)
    assert set(scaling.mean) == {0.0}
    assert dense.deviation == pytest.approx(scaling.deviation)


def test_full_columns_of_a_sparse_matrix_are_centred():
    """A date beside hashed words: without its mean it would be larger than all of them."""
    date = 17_000 + 300 * torch.randn(200, 1, generator=torch.manual_seed(0))
    price = 1e6 + torch.randn(200, 1, generator=torch.manual_seed(1))
    x = torch.cat([date, counts(0.03), torch.full((200, 1), 7.0), price], 1)
    mask = torch.arange(200) < 50
    sparse = sparse_features(x.to_sparse_coo())
    scaling = fit_scaling("standard", sparse, mask)
    scaled = scaling(sparse)
    assert scaled.layout == torch.sparse_csr
    assert torch.equal(scaled.to_dense(), scaling(x))  # whichever way the same features come
    alike = fit_scaling("standard", x, mask)(x)[:, [0, -2, -1]]
    assert torch.allclose(scaled.to_dense()[:, [0, -2, -1]], alike, atol=1e-4)
    assert scaled.values().abs().max() < 20
    assert (scaled.to_dense()[:, 1:-2] == 0).float().mean() > 0.9
    assert (
        fit_scaling("standard", x, mask)(sparse)
        .to_dense()
        .allclose(fit_scaling("standard", x, mask)(x))
    )


def test_what_rounding_leaves_of_a_large_number_stays_small():
    x = (1e17 + 1e10 * torch.arange(200).double()[:, None] / 199).float()
    assert 1 < len(x.unique()) < 5
    assert fit_scaling("standard", x, EVERY)(x).abs().max() < 2


def test_a_scaling_comes_back_from_a_file():
    scaling = fit_scaling("standard", torch.randn(200, 3), EVERY)
    saved = json.loads(json.dumps(scaling.as_dict()))
    assert Scaling.from_dict(saved, 3) == scaling
    for change in (
        {"kind": "rows"},
        {"kind": "odd"},
        {"mean": [1.0]},
        {"deviation": [0.0, 1.0, 1.0]},
        {"mean": ["a", "b", "c"]},
    ):
        with pytest.raises(ValueError, match="cannot be right"):
            Scaling.from_dict(saved | change, 3)
    with pytest.raises(ValueError, match="cannot be right"):
        Scaling.from_dict(saved, 4)
