import numpy as np

from edges.planted import activity_graph, clique_graph
from lgdgcn.edges.held_out import hold_out
from lgdgcn.edges.number_of_reasons import choose_model, fewest_within_one_error
from lgdgcn.edges.pairs import find_pairs


def test_hidden_pairs_are_out_of_the_rest_and_the_others_not_linked():
    ends, _ = activity_graph()
    pairs = find_pairs(ends, 150)
    held = hold_out(pairs, 0)
    hidden = len(pairs) - len(held.rest)
    codes = [set((e[0] * 150 + e[1]).tolist()) for e in (pairs.ends, held.rest.ends, held.ends)]
    assert len(held.ends[0]) == 2 * hidden
    assert not codes[1] & codes[2]
    assert len(codes[0] & codes[2]) == hidden


def test_a_perfect_score_has_likelihood_near_0_and_degrees_tell_no_more_than_a_constant():
    held = hold_out(find_pairs(activity_graph()[0], 150), 0)
    linked = np.arange(held.ends.shape[1]) < held.ends.shape[1] // 2
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
    choice = choose_model(find_pairs(ends, 150), candidates=(1, 2, 3, 6, 12))
    assert not choice.cliques
    assert choice.num_factors == 3
    assert len(choice.mean) == len(choice.error) == len(choice.counts) == 5


def test_very_unequal_activities_are_counted():
    ends, types = activity_graph(sizes=(120, 60, 30))
    assert types.sum(0).max() > 5 * types.sum(0).min()
    choice = choose_model(find_pairs(ends, 150), candidates=(1, 2, 3, 6, 12))
    assert choice.num_factors in (2, 3)


def test_random_links_have_one_reason():
    ends = np.random.default_rng(0).integers(0, 100, (2, 400))
    choice = choose_model(find_pairs(ends, 100), candidates=(1, 2, 4, 8))
    assert (choice.num_factors, choice.kinds) == (1, 0)


def test_cliques_are_seen_to_be_cliques():
    ends, _ = clique_graph()
    assert choose_model(find_pairs(ends, 500), num_factors=2).cliques
