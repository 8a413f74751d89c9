"""Measures of edge types against loops over all matchings, scikit-learn and known predictors."""

from itertools import permutations

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from lgdgcn.reasons.scores import (
    accuracy,
    balanced_accuracy,
    edge_type_scores,
    expected_calibration_error,
    macro_auroc,
    matched,
    ranking_measures,
    recall_at,
    reliability_curve,
    single_types,
)


def drawn(seed, pairs=60, clusters=4, types=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, clusters, pairs), rng.choice(types, pairs, p=[0.7, 0.2, 0.1])


def best_over_matchings(measure, guess, true, clusters, types):
    """Try every way to give the clusters different names, some of which no type has."""
    names = range(max(clusters, types))
    return max(measure(np.array(way)[guess], true) for way in permutations(names, clusters))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("clusters", "types"), [(4, 3), (3, 3), (2, 3)])
def test_clusters_are_matched_in_the_best_way(seed, clusters, types):
    guess, true = drawn(seed, clusters=clusters)

    def plain(guess, true):
        return (guess == true).mean()

    def balanced(guess, true):
        return np.mean([(guess == true)[true == one].mean() for one in np.unique(true)])

    expected = best_over_matchings(plain, guess, true, clusters, types)
    assert accuracy(guess, true, named=False) == pytest.approx(expected)
    expected = best_over_matchings(balanced, guess, true, clusters, types)
    assert balanced_accuracy(guess, true, named=False) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_named_types_are_scored_as_scikit_learn_does(seed):
    guess, true = drawn(seed, clusters=3)
    assert accuracy(guess, true, named=True) == sklearn_metrics.accuracy_score(true, guess)
    expected = sklearn_metrics.balanced_accuracy_score(true, guess)
    assert balanced_accuracy(guess, true, named=True) == pytest.approx(expected)


def test_a_type_that_never_occurs_does_not_count():
    guess, true = np.array([0, 0, 2, 3]), np.array([0, 0, 2, 2])
    assert balanced_accuracy(guess, true, named=True) == 0.75
    assert balanced_accuracy(guess, true, named=False) == 0.75


def test_auroc_is_the_mean_over_types_against_the_rest():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([1, 1, 1], 80)
    true = rng.integers(0, 3, 80)
    literal = []
    for one in range(3):
        inside, outside = scores[true == one, one], scores[true != one, one]
        wins = (inside[:, None] > outside).mean() + (inside[:, None] == outside).mean() / 2
        literal.append(wins)
    assert macro_auroc(scores, true) == pytest.approx(np.mean(literal))
    assert macro_auroc(scores, np.zeros(80, int)) is None


def truthful(pairs=40_000, types=3, seed=0):
    """Probabilities, and types that are drawn from them."""
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.ones(types), pairs)
    drawn = (rng.random((pairs, 1)) > probability.cumsum(1)).sum(1)
    return probability, np.minimum(drawn, types - 1)


def test_a_perfect_predictor_is_calibrated():
    probability, true = truthful()
    assert expected_calibration_error(probability, true) < 0.02
    curve = reliability_curve(probability, true)
    assert curve.pairs.sum() == len(true)
    assert np.abs(curve.confidence - curve.accuracy)[curve.pairs > 500].max() < 0.05
    sure = np.eye(3)[true]
    assert expected_calibration_error(sure, true) == 0


def test_a_broken_predictor_is_not_calibrated():
    probability, true = truthful()
    too_sure = probability**6 / (probability**6).sum(1, keepdims=True)
    assert expected_calibration_error(too_sure, true) > 0.15
    wrong = np.eye(3)[(true + 1) % 3]
    assert expected_calibration_error(wrong, true) == 1
    share = np.full((len(true), 3), 1 / 3)  # says little, but what it says is right
    assert expected_calibration_error(share, true) < 0.02


def test_calibration_error_is_that_of_a_loop():
    probability, true = truthful(500)
    confidence, right = probability.max(1), probability.argmax(1) == true
    total = 0.0
    for low in np.arange(10) / 10:
        inside = (confidence > low) & (confidence <= low + 0.1)
        if inside.any():
            total += inside.sum() * abs(confidence[inside].mean() - right[inside].mean())
    found = expected_calibration_error(probability, true, bins=10)
    assert found == pytest.approx(total / 500)


def test_ranking_of_pairs_with_several_types():
    rng = np.random.default_rng(1)
    scores, types = rng.random((30, 5)), (rng.random((30, 5)) < 0.5).astype(int)
    types[:, 0] = 1
    types[3] = 1  # has all types
    precision, coverage, recall = ranking_measures(scores, types)
    kept = types.sum(1) < 5
    literal_precision, literal_coverage, literal_recall = [], [], []
    for score, row in zip(scores[kept], types[kept], strict=True):
        rank = [1 + int((score > score[t]).sum()) for t in range(5)]
        true = [rank[t] for t in range(5) if row[t]]
        literal_precision.append(np.mean([sum(r <= own for r in true) / own for own in true]))
        literal_coverage.append(max(true))
        literal_recall.append(np.mean([r <= 3 for r in true]))
    assert precision == pytest.approx(np.mean(literal_precision))
    assert coverage == pytest.approx(np.mean(literal_coverage))
    assert (
        recall == pytest.approx(np.mean(literal_recall)) == recall_at(scores[kept], types[kept], 3)
    )
    assert ranking_measures(np.ones((2, 2)), np.ones((2, 2))) == (None, None, None)


def test_all_measures_together():
    rng = np.random.default_rng(2)
    types = np.eye(4, dtype=np.uint8)[rng.integers(0, 4, 100)]
    types[:20] |= np.roll(types[:20], 1, axis=1)
    true = single_types(types)
    assert (true[:20] == -1).all()
    perfect = types / types.sum(1, keepdims=True)
    named = edge_type_scores(perfect, types, named=True)
    assert named == (1, 1, 1, 1, 0, 1, 2, 1)
    turned = np.roll(perfect, 1, axis=1)
    assert edge_type_scores(turned, types, named=True).accuracy == 0
    found = edge_type_scores(turned, types, named=False)
    assert found == named._replace(calibration_error=None)
    scored = np.arange(100) >= 50
    part = edge_type_scores(turned, types, named=False, scored=scored)
    assert part == found._replace(ranking_precision=None, coverage=None, recall_at_3=None)
    nothing = edge_type_scores(turned, types, named=True, scored=np.zeros(100, bool))
    assert set(nothing) == {None}


def test_fewer_clusters_than_types():
    types = np.eye(3)[[0, 0, 1, 2]]
    found = edge_type_scores(np.eye(2)[[1, 1, 0, 0]], types, named=False)
    assert found.accuracy == 0.75
    assert found.balanced == pytest.approx(2 / 3)


def test_more_clusters_than_types():
    types = np.eye(2, dtype=np.uint8)[[0, 0, 1, 1]]
    clusters = np.eye(3)[[2, 2, 0, 1]]
    found = edge_type_scores(clusters, types, named=False)
    assert found.accuracy == found.balanced == 0.75
    assert matched(clusters, np.array([1, -1, 0]), 2).tolist() == [[1, 0], [1, 0], [0, 1], [0, 0]]


def test_chance_has_no_information():
    rng = np.random.default_rng(3)
    types = np.eye(3, dtype=np.uint8)[rng.integers(0, 3, 3000)]
    found = edge_type_scores(rng.dirichlet(np.ones(3), 3000), types, named=False)
    assert abs(found.information) < 0.01
    assert found.accuracy < 0.4


def test_pairs_of_several_types_alone_are_ranked():
    scores, types = np.array([[0.5, 0.3, 0.2, 0.0]]), np.array([[1, 0, 1, 0]])
    found = edge_type_scores(scores, types, named=True)
    assert found[:5] == (None,) * 5
    assert found[5:] == ranking_measures(scores, types)
    assert edge_type_scores(scores, types, named=False)[5:] == (None,) * 3
