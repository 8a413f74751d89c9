"""Dependence between units against slow loops, and its resampling against fresh samples."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lgdgcn.metrics import dependence
from lgdgcn.metrics.dependence import gaussian, inner_products, pair_means, plain, shares
from lgdgcn.metrics.resampling import Resamples


def u_centred(matrix):
    """Székely and Rizzo's definition, entry by entry."""
    n = len(matrix)
    result = np.zeros_like(matrix)
    for i in range(n):
        for j in range(n):
            if i != j:
                result[i, j] = matrix[i, j] - matrix[i].sum() / (n - 2)
                result[i, j] += -matrix[:, j].sum() / (n - 2)
                result[i, j] += matrix.sum() / ((n - 1) * (n - 2))
    return result


def song_hsic(k, other):
    """The unbiased estimate of Song et al. 2012."""
    n, one = len(k), np.ones(len(k))
    k, other = k - np.diag(np.diag(k)), other - np.diag(np.diag(other))
    found = np.trace(k @ other) + (one @ k @ one) * (one @ other @ one) / ((n - 1) * (n - 2))
    return (found - 2 / (n - 2) * (one @ k @ other @ one)) / (n * (n - 3))


def related(nodes, seed=0, strength=0.5):
    chance = np.random.default_rng(seed)
    units = chance.normal(size=(nodes, 3, 4))
    units[:, 1] += strength * units[:, 0] ** 2  # related, yet hardly correlated
    return units


@pytest.mark.parametrize("rows", [5, 64])
def test_against_slow_loops(monkeypatch, rows):
    monkeypatch.setattr(dependence, "ROWS", rows)
    units = related(23)
    kernel, distance = inner_products(units, (gaussian(units), plain), Resamples(23))
    distances = [cdist(units[:, m], units[:, m]) for m in range(3)]
    centred = [u_centred(each) for each in distances]
    widths = [np.median(each[each > 0]) for each in distances]
    kernels = [np.exp(-(d**2) / (2 * s**2)) for d, s in zip(distances, widths, strict=True)]
    for a in range(3):
        for b in range(3):
            expected = (centred[a] * centred[b]).sum() / (23 * 20)
            assert distance[0, a, b] == pytest.approx(expected)
            assert kernel[0, a, b] == pytest.approx(song_hsic(kernels[a], kernels[b]))


def measured(units, count=0):
    units = units.astype(np.float32)
    kernel, distance = inner_products(units, (gaussian(units), plain),
                                      Resamples(len(units), count))  # fmt: skip
    return shares(kernel), shares(distance)


def test_known_answers():
    units = related(600)
    units[:, 2] = 3 * units[:, 0] @ np.linalg.qr(units[:4, 2])[0] + 1  # turned, scaled and moved
    for found in measured(units):
        assert found[0, 0, 2] == pytest.approx(1, abs=1e-4)
        assert 0.03 < found[0, 0, 1] < 0.6
    units[:, 2] = 0
    for found in measured(units):
        assert found[0, 0, 2] == 0


def test_independent_units_of_many_channels_give_nothing():
    units = np.random.default_rng(0).normal(size=(400, 2, 32))
    for found in measured(units):
        assert found[0, 0, 1] < 0.03


def test_linearised_draws_spread_like_fresh_samples():
    fresh = [[each[0, 0, 1] for each in measured(related(150, seed))] for seed in range(60)]
    drawn = [each[1:, 0, 1] for each in measured(related(150, 99), count=200)]
    for place in range(2):
        spread = np.std([one[place] for one in fresh])
        assert 0.6 < drawn[place].std() / spread < 1.6


def test_pairs_are_averaged_once_each():
    products = np.array([[[4.0, 1.0, -2.0], [1.0, 1.0, 0.0], [-2.0, 0.0, 9.0]]])
    assert pair_means(products) == pytest.approx(1 / 3)
    assert pair_means(shares(products)) == pytest.approx(0.5 / 3)
