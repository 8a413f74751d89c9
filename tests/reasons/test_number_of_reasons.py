import numpy as np
import pytest

from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.held_out import hold_out
from lgdgcn.reasons.number_of_reasons import choose_model, fewest_within_one_error
from reasons.planted import activity_graph, clique_graph


def test_hidden_pairs_are_out_of_the_rest_and_the_others_not_linked():
    ends, _ = activity_graph()
    pairs = Edges.of(ends, 150)
    held = hold_out(pairs, 0)
    hidden = len(pairs) - len(held.rest)
    codes = [set((e[0] * 150 + e[1]).tolist()) for e in (pairs.ends, held.rest.ends, held.ends)]
    assert len(held.ends[0]) == 2 * hidden
    assert not codes[1] & codes[2]
    assert len(codes[0] & codes[2]) == hidden


def test_a_perfect_score_has_likelihood_near_0_and_degrees_tell_no_more_than_a_constant():
    pairs = Edges.of(activity_graph()[0], 150)
    held = hold_out(pairs, 0)
    codes = set((held.rest.ends[0] * 150 + held.rest.ends[1]).tolist())
    whole = set((pairs.ends[0] * 150 + pairs.ends[1]).tolist())
    linked = np.array([code in whole - codes for code in held.ends[0] * 150 + held.ends[1]])
    assert np.array_equal(linked, held.linked)
    assert held.log_likelihood(linked.astype(float)).mean() > -0.05
    constant = held.log_likelihood(np.zeros(len(linked))).mean()
    assert abs(constant + np.log(2)) < 0.05  # pairs that are not linked are drawn by degree
    for known in held.degrees.T:
        assert abs(held.log_likelihood(known).mean() - constant) < 0.01


def test_the_fewest_within_one_error_of_the_best():
    mean, error = np.array([-3.0, -1.1, -1.0, -1.05]), np.array([0.1, 0.2, 0.0, 0.1])
    assert fewest_within_one_error((1, 2, 4, 8), mean / 2, error) == 2
    assert fewest_within_one_error((1, 2, 4, 8), mean, error) == 1  # a coin is better


def test_planted_activities_are_counted():
    ends, _ = activity_graph(sizes=(70, 60, 50))
    choice = choose_model(Edges.of(ends, 150), candidates=(1, 2, 3, 6, 12))
    assert not choice.cliques
    assert choice.num_factors == 3
    assert len(choice.mean) == len(choice.error) == len(choice.counts) == 5


def test_very_unequal_activities_are_counted():
    ends, types = activity_graph(sizes=(120, 60, 30))
    assert types.sum(0).max() > 5 * types.sum(0).min()
    choice = choose_model(Edges.of(ends, 150), candidates=(1, 2, 3, 6, 12))
    assert choice.num_factors in (2, 3)


def test_random_links_have_one_reason():
    ends = np.random.default_rng(0).integers(0, 100, (2, 400))
    choice = choose_model(Edges.of(ends, 100), candidates=(1, 2, 4, 8))
    assert (choice.num_factors, choice.kinds) == (1, 0)


def test_cliques_are_seen_to_be_cliques():
    ends, _ = clique_graph()
    assert choose_model(Edges.of(ends, 500), num_factors=2).cliques


def test_a_dense_graph_has_fewer_pairs_that_are_not_linked():
    first, second = np.triu_indices(60, 1)
    kept = np.random.default_rng(0).random(len(first)) < 0.95
    pairs = Edges.of(np.stack([first[kept], second[kept]]), 60)
    held = hold_out(pairs, 0)
    assert held.linked.sum() == len(pairs) - len(held.rest) > (~held.linked).sum() > 0
    assert held.log_likelihood(held.linked.astype(float)).mean() > -0.05


@pytest.mark.parametrize("num_factors", [None, 2])
def test_where_all_are_linked_nothing_can_be_compared(num_factors):
    pairs = Edges.of(np.stack(np.triu_indices(8, 1)), 8)
    assert not hold_out(pairs, 0).can_be_judged
    choice = choose_model(pairs, num_factors=num_factors)
    assert (choice.num_factors, choice.counts) == (num_factors or 1, ())


def test_pairs_that_share_no_end_can_be_fitted():
    pairs = Edges.of(np.arange(800).reshape(2, 400), 800)
    assert choose_model(pairs, candidates=(1, 2, 3)).num_factors >= 1


def test_labels_of_nodes_are_used_where_they_predict_links():
    draws = np.random.default_rng(0)
    classes = draws.integers(0, 4, 120)
    first, second = np.triu_indices(120, 1)
    likely = np.where(classes[first] == classes[second], 0.3, 0.01)
    pairs = Edges.of(np.stack([first, second])[:, draws.random(len(first)) < likely], 120)
    assert choose_model(pairs, num_factors=1, classes=classes).use_classes
    assert not choose_model(pairs, num_factors=1, classes=draws.permutation(classes)).use_classes
