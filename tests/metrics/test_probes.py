"""Probes, DCI and MIG against scikit-learn and slow loops."""

import math

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import mutual_info_score
from sklearn.model_selection import KFold

from lgdgcn.metrics.arrays import entropy, mutual_information
from lgdgcn.metrics.dci import completeness, disentanglement_of, probe_blocks, rest_hits
from lgdgcn.metrics.mig import gap, information_draws
from lgdgcn.metrics.probes import FOLDS, Probes


def problem(nodes=900, channels=6, seed=0):
    """Classes of unequal size with overlapping, correlated Gaussians, and another label."""
    chance = np.random.default_rng(seed)
    labels = np.stack([chance.choice(4, nodes, p=[0.1, 0.2, 0.3, 0.4]),
                       chance.integers(0, 3, nodes)], 1)  # fmt: skip
    mixing = chance.normal(size=(channels, channels))
    values = (chance.normal(size=(4, channels))[labels[:, 0]] + chance.normal(
        size=(nodes, channels))) @ mixing  # fmt: skip
    return 100 * values + 7, labels


def test_it_is_the_discriminant_of_scikit_learn():
    values, labels = problem()
    channels = np.array([0, 2, 3, 5])
    ours = Probes(values, labels, seed=4).predict(channels, 0)
    theirs = np.empty_like(ours)
    for train, test in KFold(FOLDS, shuffle=True, random_state=4).split(values):
        model = LinearDiscriminantAnalysis().fit(values[train][:, channels], labels[train, 0])
        theirs[test] = model.predict(values[test][:, channels])
    assert (ours == theirs).mean() > 0.98  # but for four pseudo-observations
    truth = labels[:, 0]
    assert (ours == truth).mean() == pytest.approx((theirs == truth).mean(), abs=0.005)
    assert (ours == truth).mean() > 0.5


def test_predictions_do_not_depend_on_scale_and_place():
    values, labels = problem(200)
    ours = Probes(values, labels).predict(np.arange(6), 0)
    moved = Probes(values * np.logspace(-6, 6, 6) - 3, labels).predict(np.arange(6), 0)
    assert (ours == moved).mean() > 0.99


def test_held_out_nodes_are_not_memorised():
    chance = np.random.default_rng(0)
    values, labels = chance.normal(size=(200, 150)), chance.integers(0, 2, (200, 1))
    assert (Probes(values, labels).predict(np.arange(150), 0) == labels[:, 0]).mean() < 0.62


def test_what_luck_reaches():
    probes = Probes(np.zeros((1000, 2)), np.array([[0]] * 700 + [[1]] * 300))
    assert probes.majority(0) == 0.7
    assert 0.74 < probes.noise(0) < 0.76  # three standard errors
    assert (probes.predict(np.arange(2), 0) == 0).all()


def literal_purity(rows):
    total = sum(map(sum, rows))
    found = 0.0
    for row in rows:
        inside = sum(row)
        if inside:
            shares = [value / inside for value in row]
            spread = -sum(share * math.log(share) for share in shares if share)
            found += inside / total * (1 - spread / math.log(len(row)))
    return found


def test_dci_is_what_its_formula_says():
    relevance = np.random.default_rng(1).random((4, 3)) ** 3
    relevance[2] = 0
    assert disentanglement_of(relevance) == pytest.approx(literal_purity(relevance.tolist()))
    assert completeness(relevance) == pytest.approx(literal_purity(relevance.T.tolist()))
    assert disentanglement_of(np.eye(3)) == completeness(np.eye(3)) == 1
    assert disentanglement_of(np.ones((2, 5))) == pytest.approx(0)
    assert disentanglement_of(np.zeros((2, 2))) == 0


def test_relevance_is_accuracy_above_chance_and_noise_is_none():
    values, labels = problem()
    probes = Probes(values, labels)
    blocks = probe_blocks(probes, 2)
    counts = np.arange(900.0) % 3
    accuracy = np.average(probes.predict(np.arange(3), 0) == labels[:, 0], weights=counts)
    majority = np.bincount(labels[:, 0]).max() / 900
    found = blocks.relevance(counts)
    assert found[0, 0] == pytest.approx((accuracy - majority) / (1 - majority))
    assert not found[:, 1].any()  # the second label has nothing to do with the channels


def test_leakage_takes_the_other_units_of_the_best_match():
    values, labels = problem()
    probes = Probes(np.concatenate([labels[:, 1:], values[:, :1] * 0, values], 1)[:, :6], labels)
    blocks = probe_blocks(probes, 3)
    factors, hits = rest_hits(probes, blocks)
    assert sorted(factors) == [0, 1]
    assert hits[list(factors).index(1)].mean() < 0.42  # only the first unit knows that label


def test_information_is_that_of_scikit_learn():
    chance = np.random.default_rng(0)
    pairs = chance.integers(0, 4, (2, 500))
    pairs[1, :200] = pairs[0, :200]
    table = np.zeros((4, 4))
    np.add.at(table, tuple(pairs), 1)
    assert mutual_information(table) == pytest.approx(mutual_info_score(*pairs))
    assert entropy(np.zeros(3)) == 0


def test_the_gap_is_between_the_two_best_units():
    information = np.array([[0.9, 0.2], [0.5, 0.2], [0.1, 0.1]])
    assert gap(information) == pytest.approx(0.2)


def test_information_of_predictions_counts_what_luck_does_not_explain():
    values, labels = problem()
    blocks = probe_blocks(Probes(values, labels), 2)
    counts = np.ones((2, 900))
    counts[1, 450:] = 0
    found = information_draws(blocks, counts)
    predicted, truth = blocks.predicted[0, 0], labels[:, 0]
    raw = mutual_info_score(truth, predicted) / entropy(np.bincount(truth))
    assert raw - 0.02 < found[0, 0, 0] < raw
    half = mutual_info_score(truth[:450], predicted[:450]) / entropy(np.bincount(truth[:450]))
    assert half - 0.02 < found[1, 0, 0] < half
    assert found[0, :, 1].max() < 0.01
