import numpy as np
import pytest

from lgdgcn.reasons.activity import Activity, fit_activity
from lgdgcn.reasons.consensus import activity_fits, first_shares, fit_consensus
from lgdgcn.reasons.edges import Edges
from reasons.planted import activity_graph, matched_accuracy


def literal_log_likelihood(model: Activity, linked: set[tuple[int, int]]) -> float:
    nodes, factors = model.theta.shape
    total = 0.0
    for i in range(nodes):
        for j in range(i + 1, nodes):
            rate = 0.0
            for m in range(factors):
                mix = model.block[model.classes[i]][model.classes[j]]
                rate += model.theta[i, m] * model.theta[j, m] * mix
            total += np.log(1 - np.exp(-rate)) if (i, j) in linked else -rate
    return total


@pytest.mark.parametrize("with_classes", [False, True])
def test_likelihood_equals_the_literal_loop_over_all_pairs(with_classes):
    draws = np.random.default_rng(0)
    ends, types = activity_graph(sizes=(60, 40))
    pairs = Edges.of(ends, 150)
    classes = draws.integers(0, 3, 150) if with_classes else None
    start = first_shares(types.argmax(1), 2)
    model = fit_activity(pairs, start, classes=classes, iterations=5)
    linked = {(int(i), int(j)) for i, j in pairs.ends.T}
    assert model.log_likelihood(pairs) == pytest.approx(literal_log_likelihood(model, linked))


def test_em_raises_the_likelihood():
    ends, _ = activity_graph()
    pairs = Edges.of(ends, 150)
    start = np.random.default_rng(0).dirichlet(np.ones(3), len(pairs))
    values = [
        fit_activity(pairs, start, shrinkage=0.0, iterations=steps).log_likelihood(pairs)
        for steps in (1, 5, 20, 80)
    ]
    assert values == sorted(values)


def test_planted_activities_of_unequal_size_are_found():
    ends, types = activity_graph(sizes=(90, 60, 30))  # with the planted activities known: 0.95
    pairs = Edges.of(ends, 150)
    model = fit_consensus(pairs, 3)
    assert matched_accuracy(model.shares(pairs.ends).argmax(1), types) > 0.85
    majority = np.bincount(types[types.sum(1) == 1].argmax(1)).max() / (types.sum(1) == 1).sum()
    assert majority < 0.75


def test_the_consensus_is_no_less_likely_than_any_single_fit():
    pairs = Edges.of(activity_graph(seed=3)[0], 150)
    best = fit_consensus(pairs, 3).log_likelihood(pairs)
    assert all(best >= fit.log_likelihood(pairs) for fit in activity_fits(pairs, [3]))


def test_a_few_known_types_tie_the_activities_to_names():
    ends, types = activity_graph()
    pairs, single = Edges.of(ends, 150), types.sum(1) == 1
    known = np.zeros_like(types)
    for kind in range(3):
        few = np.flatnonzero(single & (types[:, kind] == 1))[:8]
        known[few, kind] = 1
    start = np.where(known.any(1, keepdims=True), known, 1 / 3)
    shares = fit_activity(pairs, start, known=known).shares(pairs.ends)
    hidden = single & ~known.any(1)
    assert (shares.argmax(1) == types.argmax(1))[hidden].mean() > 0.85


def test_classes_that_mix_only_within_are_learned():
    draws = np.random.default_rng(0)
    classes = np.repeat([0, 1], 40)
    first, second = np.triu_indices(80, 1)
    linked = (classes[first] == classes[second]) & (draws.random(len(first)) < 0.3)
    pairs = Edges.of(np.stack([first[linked], second[linked]]), 80)
    model = fit_activity(pairs, np.ones((len(pairs), 1)), classes=classes)
    assert model.block[0, 0] > 20 * model.block[0, 1]
    assert model.block[1, 1] > 20 * model.block[1, 0]


def test_random_links_rest_more_on_the_background():
    draws = np.random.default_rng(1)
    ends, _ = activity_graph(sizes=(60, 40))
    outside = np.sort(draws.integers(0, 150, (2, 60)), axis=0)
    pairs = Edges.of(np.concatenate([ends, outside], 1), 150)
    planted = {(int(i), int(j)) for i, j in ends.T}
    is_random = np.array([(int(i), int(j)) not in planted for i, j in pairs.ends.T])
    unknown = fit_consensus(pairs, 2).background(pairs)
    assert ((unknown >= 0) & (unknown <= 1)).all()
    assert unknown[is_random].mean() > 2 * unknown[~is_random].mean()


def test_a_link_can_have_two_reasons_at_once():
    theta = np.array([[2.0, 2.0], [2.0, 2.0], [2.0, 0.0]])
    model = Activity(theta, np.ones((1, 1)), np.zeros(3, dtype=int), np.zeros((3, 2)))
    both, one = model.presence(np.array([[0, 0], [1, 2]]))
    assert (both > 0.95).all()
    assert one == pytest.approx([1, 0])
    assert model.shares(np.array([[0], [1]]))[0] == pytest.approx([0.5, 0.5])
