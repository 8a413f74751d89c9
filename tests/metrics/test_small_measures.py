"""Correlation blocks, diversity and resampling."""

import numpy as np
import pytest
import torch

from lgdgcn.metrics.correlation import block_correlation, channel_correlation, factor_correlation
from lgdgcn.metrics.diversity import node_diversity
from lgdgcn.metrics.resampling import Resamples, interval
from lgdgcn.nn.latent_space import diversity


def apart(distance, nodes=150, factors=3, seed=0):
    chance = np.random.default_rng(seed)
    place = distance * np.eye(factors, 4)
    return chance.normal(size=(nodes, factors, 4)) + place


def test_counting_a_node_twice_is_having_it_twice():
    units = apart(1.0)
    counts = np.random.default_rng(0).integers(0, 3, 150).astype(float)
    repeated = np.repeat(units, counts.astype(int), axis=0)
    flat, long = units.reshape(150, -1), repeated.reshape(len(repeated), -1)
    assert np.allclose(channel_correlation(flat, counts), np.abs(np.corrcoef(long.T)))
    assert block_correlation(units, counts).ratio == pytest.approx(
        block_correlation(repeated).ratio
    )


def test_correlation_by_factor_leaves_out_what_does_not_vary():
    units = np.random.default_rng(0).normal(size=(50, 3, 4))
    units[:, 0, 1], units[:, 2] = 0.5, 1
    means = factor_correlation(units)
    rho = np.abs(np.corrcoef(units[:, :2].reshape(50, 8)[:, [0, 2, 3, 4, 5, 6, 7]].T))
    assert means[0, 1] == means[1, 0] == pytest.approx(rho[:3, 3:].mean())
    assert means[1, 1] == pytest.approx((rho[3:, 3:].sum() - 4) / 12)
    assert np.isnan(means[2]).all()
    blocks = block_correlation(units)
    assert blocks.between == pytest.approx(means[0, 1])
    assert blocks.inside == pytest.approx((rho[:3, :3].sum() + rho[3:, 3:].sum() - 7) / 18)


def test_diversity_is_eq_5_under_the_units_own_gaussians():
    units = apart(1.5)
    flat = torch.from_numpy(units)
    covariance = torch.stack([flat[:, m].T.cov(correction=0) for m in range(3)])
    expected = diversity(flat, flat.mean(0), covariance, "scaled")
    assert np.allclose(node_diversity(units), expected.numpy())
    assert node_diversity(apart(30.0)).mean() == pytest.approx(1)
    same = np.repeat(units[:, :1], 3, axis=1)
    assert node_diversity(same).max() < 1e-6


# Resampling


def test_draws_are_the_same_each_time_and_the_first_is_plain():
    resamples = Resamples(50, 3, seed=5)
    first, again = list(resamples), list(resamples)
    assert np.array_equal(first, again)
    assert (first[0] == 1).all()
    assert [counts.sum() for counts in first] == [50] * 4
    values = np.arange(50.0)
    assert resamples.means(values)[0] == pytest.approx(values.mean())


def test_intervals_of_a_mean_cover_it_as_often_as_they_say():
    hits = 0
    for seed in range(200):
        sample = np.random.default_rng(seed).normal(size=80)
        low, high = interval(Resamples(80, 200, seed).means(sample), -9, 9)
        hits += low < 0 < high
    assert 0.89 <= hits / 200 <= 0.99


def test_intervals_stay_in_range_and_need_draws():
    draws = np.array([0.99, 0.9, 0.95, 0.999, 1.0])
    low, high = interval(draws, 0, 1)
    assert low < 0.99 < high <= 1
    assert interval(draws[:2], 0, 1) is None
    assert interval(np.array([0.5, np.nan, np.nan]), 0, 1) is None
