from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.special import gammaln

from lgdgcn.reasons import held_out
from lgdgcn.reasons.clique_kinds import find_kinds, memberships_log_likelihood
from lgdgcn.reasons.cliques import cover_by_cliques
from lgdgcn.reasons.edges import Edges, blocks
from lgdgcn.reasons.held_out import hold_out
from reasons.planted import clique_graph, matched_accuracy


def test_every_pair_is_in_its_clique_and_all_members_are_linked():
    ends, _ = clique_graph(nodes=200)
    pairs = Edges.of(ends, 200)
    cover = cover_by_cliques(pairs)
    linked = {(int(i), int(j)) for i, j in pairs.ends.T}
    member = cover.member.toarray() > 0
    assert member[cover.of_pair, pairs.ends[0]].all()
    assert member[cover.of_pair, pairs.ends[1]].all()
    for clique in member:
        assert all(pair in linked for pair in combinations(np.flatnonzero(clique).tolist(), 2))


def test_two_cliques_with_a_common_node_stay_two():
    edges = [*combinations(range(5), 2), *combinations(range(4, 9), 2)]
    cover = cover_by_cliques(Edges.of(np.array(edges).T, 9))
    assert sorted(cover.size) == [5, 5]


def test_memberships_likelihood_by_hand():
    # Two cliques of size 2 that share node 1, both of one kind: counts 1, 2, 1.
    cover = cover_by_cliques(Edges.of(np.array([[0, 1], [1, 2]]), 3))
    counts = np.array([0, 2, 1, 0, 0, 0, 0, 0]) + 0.5
    sizes = np.zeros(16) + 0.5
    sizes[2] += 2  # two doublings' halves: log2(2) * 2 = 2
    by_hand = 2 * np.log(counts[1] / counts.sum()) + np.log(counts[2] / counts.sum())
    by_hand += 2 * np.log(sizes[2] / sizes.sum()) + np.log(2) - gammaln(5) + 2 * np.log(2)
    assert memberships_log_likelihood(cover, np.zeros(2, dtype=int), 1) == pytest.approx(by_hand)


def test_cliques_that_do_not_overlap_are_told_from_those_that_do():
    ends, types = clique_graph()
    cover = cover_by_cliques(Edges.of(ends, 500))
    kinds = find_kinds(cover, 2, steps=1000)
    assert kinds.probability.sum(1) == pytest.approx(1)
    assert matched_accuracy(kinds.probability.argmax(1)[cover.of_pair], types) > 0.85


def test_hubs_are_looked_at_some_pairs_at_a_time(monkeypatch):
    """The square of a hub's degree never is in memory, and the result is the same."""
    pairs = Edges.of(np.random.default_rng(0).integers(0, 40, (2, 300)), 40)
    held = hold_out(pairs, 0)
    whole = held_out.clique_score(held)
    monkeypatch.setattr(held_out, "blocks", partial(blocks, most=30))
    assert np.array_equal(held_out.clique_score(held), whole)
