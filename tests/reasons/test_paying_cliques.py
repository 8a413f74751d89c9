from math import comb

import numpy as np
import pytest

from lgdgcn.reasons import fit_edges
from lgdgcn.reasons.clique_kinds import memberships_log_likelihood
from lgdgcn.reasons.cliques import cover_by_cliques
from lgdgcn.reasons.consensus import fit_from_line_graph
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.number_of_reasons import choose_model
from lgdgcn.reasons.paying_cliques import description_length, find_paying
from reasons.planted import activity_graph, matched_accuracy, mixed_graph


def test_a_cliques_gain_is_its_pairs_less_its_name():
    ends, _ = mixed_graph(nodes=90)
    pairs = Edges.of(ends, 90)
    cover = cover_by_cliques(pairs)
    paying = find_paying(pairs, cover)
    theta = fit_from_line_graph(paying.rest, 1).theta[:, 0]
    linked = int((pairs.degree > 0).sum())
    for clique in range(0, len(cover.size), 7):
        size = int(cover.size[clique])
        gain = -np.log(comb(linked, size)) - 2 * np.log(size)
        for i, j in pairs.ends.T[cover.of_pair == clique]:
            gain -= np.log(1 - np.exp(-max(theta[i] * theta[j], 2 / linked**2)))
        assert paying.gain[clique] == pytest.approx(gain)


def test_length_equals_the_literal_loop_over_all_pairs():
    ends, _ = mixed_graph(nodes=90)
    pairs = Edges.of(ends, 90)
    paying = find_paying(pairs, cover_by_cliques(pairs))
    model = fit_from_line_graph(paying.rest, 2)
    rest = {(int(i), int(j)) for i, j in paying.rest.ends.T}
    inside = {(int(i), int(j)) for i, j in pairs.ends.T[paying.inside]}
    assert inside
    nats = -memberships_log_likelihood(paying.cover, np.zeros(len(paying.cover.size), int), 1)
    for i in range(90):
        for j in range(i + 1, 90):
            rate = float(model.theta[i] @ model.theta[j])
            if (i, j) in rest:
                nats -= np.log(1 - np.exp(-rate))
            elif (i, j) not in inside:
                nats += rate
    assert description_length(paying, model) == pytest.approx(nats)


def test_hubs_that_are_linked_are_no_clique_of_their_own():
    pairs = Edges.of(activity_graph()[0], 150)
    assert find_paying(pairs, cover_by_cliques(pairs)).inside.mean() < 0.02


def test_triangles_of_a_lattice_are_predicted_and_families_are_not():
    """Who is near to whom is one reason, though near nodes are in cliques."""
    step = np.arange(1, 4)
    nodes = np.repeat(np.arange(200), 3)
    ring = np.stack([nodes, (nodes + np.tile(step, 200)) % 200])
    lattice, mixed = Edges.of(ring, 200), Edges.of(mixed_graph()[0], 240)
    lattice = lattice.keep(np.random.default_rng(0).random(len(lattice)) < 0.9)
    near, families = (find_paying(p, cover_by_cliques(p)) for p in (lattice, mixed))
    assert near.inside.any()
    assert near.are_predicted()
    assert families.inside.any()
    assert not families.are_predicted()


def test_an_activity_and_cliques_in_one_graph():
    ends, types = mixed_graph()
    choice = choose_model(Edges.of(ends, 240), candidates=(1, 2, 4))
    assert (choice.num_factors, choice.kinds, choice.cliques) == (2, 1, False)
    assert choice.family == "reasons: 1 activity of nodes and 1 kind of cliques"
    reasons = fit_edges(ends, 240, num_factors=2)
    assert matched_accuracy(reasons.predict(), types) > 0.9
    assert reasons.probability.sum(1) == pytest.approx(1)
    both = types.sum(1) == 2
    assert both.any()
    present = reasons.presence.min(1)
    assert present[both].mean() > present.mean()
