"""References and controls against loops and dense matrices, and on graphs with planted types."""

import numpy as np
import pytest
import torch

from lgdgcn.reasons.controls import majority, permuted, random_cluster, random_node_vectors
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.references import (
    boosting,
    label_pairs,
    line_spectral,
    line_vectors,
    link_communities,
    logistic_regression,
    naive_bayes,
    shape_clusters,
)
from lgdgcn.reasons.scores import edge_type_scores
from lgdgcn.reasons.shown import shown_types
from reasons.graphs import planted_graph, random_graph

UNSUPERVISED = {
    "random cluster": random_cluster,
    "random node vectors": random_node_vectors(),
    "majority": majority,
    "line spectral": line_spectral(False),
    "line spectral, regularised": line_spectral(True),
    "link communities": link_communities,
    "shape": shape_clusters,
    "labels": label_pairs,
}
SUPERVISED = {
    "majority": majority,
    "link communities": link_communities,
    "naive Bayes": naive_bayes,
    "logistic regression": logistic_regression(),
    "weighted regression": logistic_regression(weighted=True),
    "boosting": boosting(),
    "weighted boosting": boosting(weighted=True),
    "permuted": permuted(naive_bayes),
}
METHODS = [*((name, run, 0.0) for name, run in UNSUPERVISED.items()),
           *((name, run, 0.3) for name, run in SUPERVISED.items())]  # fmt: skip


def with_labels(data):
    data.y = torch.arange(data.num_nodes) % 4 - 1
    return data


def hidden_types_permuted(data, shown, seed=0):
    """The same graph, with the types of hidden pairs dealt anew in both directions."""
    other = data.clone()
    hidden = ((shown.sum(1) == 0) & (data.edge_type.sum(1) == 1)).nonzero().view(-1)
    row_of = {pair: row for row, pair in enumerate(zip(*data.edge_index.tolist(), strict=True))}
    firsts = [row for row in hidden.tolist() if data.edge_index[0, row] < data.edge_index[1, row]]
    dealt = np.random.default_rng(seed).permutation(firsts)
    for row, source in zip(firsts, dealt, strict=True):
        a, b = data.edge_index[:, row].tolist()
        for place in (row, row_of[b, a]):
            other.edge_type[place] = data.edge_type[source]
    return other


@pytest.mark.parametrize(("name", "run", "share"), METHODS)
def test_hidden_types_cannot_leak(name, run, share):
    data = with_labels(random_graph(7, nodes=40, edges=260))
    shown = shown_types(data.edge_index, data.edge_type, share, 1)
    other = hidden_types_permuted(data, shown)
    assert not other.edge_type.equal(data.edge_type)
    again = shown_types(other.edge_index, other.edge_type, share, 1)
    assert again.equal(shown)
    assert np.array_equal(run(data, shown, 0), run(other, again, 0))


@pytest.mark.parametrize(("name", "run", "share"), METHODS)
def test_probabilities_of_every_pair(name, run, share):
    data = with_labels(random_graph(8, nodes=40, edges=200))
    shown = shown_types(data.edge_index, data.edge_type, share, 0)
    before = shown.clone()
    found = run(data, shown, 3)
    assert found.shape == (data.edge_index.size(1) // 2, 3)
    assert np.isfinite(found).all()
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-9)
    assert np.array_equal(found, run(data, shown, 3))  # the seed decides
    assert shown.equal(before)


@pytest.mark.parametrize(
    "name", ["line spectral", "line spectral, regularised", "link communities"]
)
def test_planted_communities_are_found_without_help(name):
    data = planted_graph()
    nothing = shown_types(data.edge_index, data.edge_type, 0)
    types = Edges.of_graph(data).once(data.edge_type)
    found = edge_type_scores(UNSUPERVISED[name](data, nothing, 0), types, named=False)
    assert found.balanced > 0.9
    chance = edge_type_scores(random_cluster(data, nothing, 0), types, named=False)
    assert chance.information < 0.02


@pytest.mark.parametrize("name", ["naive Bayes", "logistic regression", "link communities"])
def test_planted_communities_are_found_with_a_few_types(name):
    data = planted_graph()
    shown = shown_types(data.edge_index, data.edge_type, 0.2, 0)
    hidden = Edges.of_graph(data).once(shown).sum(1) == 0
    types = Edges.of_graph(data).once(data.edge_type)
    found = edge_type_scores(SUPERVISED[name](data, shown, 0), types, named=True, scored=hidden)
    assert found.accuracy > 0.9


@pytest.mark.parametrize("regularised", [False, True])
@pytest.mark.parametrize("nodes", [20, 320])
def test_line_vectors_are_eigenvectors_of_the_line_graph(nodes, regularised):
    data = random_graph(9, nodes=nodes, edges=2 * nodes)
    pairs = Edges.of_graph(data).ends
    degree = np.bincount(pairs.ravel(), minlength=nodes)
    tau = degree.mean() if regularised else 0
    count = pairs.shape[1]
    line = np.zeros((count, count))
    for i in range(count):
        for j in range(count):
            for end in set(pairs[:, i]) & set(pairs[:, j]):
                line[i, j] += 1 / (degree[end] + tau)
    vectors = line_vectors(data, 3, regularised)
    values = np.linalg.eigvalsh(line)[::-1]
    for number in range(3):
        found = vectors[:, number]
        np.testing.assert_allclose(line @ found, values[number + 1] * found, atol=1e-6)


def test_naive_bayes_is_that_of_a_loop():
    data = random_graph(10)
    shown = shown_types(data.edge_index, data.edge_type, 0.5, 0)
    edges = Edges.of_graph(data)
    types, pairs = edges.once(shown), edges.ends
    overall = types.sum(0) / types.sum()
    found = naive_bayes(data, shown, 0)
    for number, ends in enumerate(pairs.T):
        product = 1 / overall
        for end in ends:
            others = [i for i in range(pairs.shape[1]) if end in pairs[:, i] and i != number]
            counts = types[others].sum(0) + overall
            product = product * counts / counts.sum()
        np.testing.assert_allclose(found[number], product / product.sum(), atol=1e-6)


def test_em_never_lowers_the_likelihood_and_ends_in_a_fixed_point():
    data = planted_graph(1, nodes=20)
    nothing = shown_types(data.edge_index, data.edge_type, 0)
    pairs = Edges.of_graph(data).ends
    before = -np.inf
    for rounds in (1, 2, 5, 20, 200):
        q = link_communities(data, nothing, 0, starts=1, rounds=rounds)
        theta = np.zeros((20, 2))
        for (a, b), share in zip(pairs.T, q, strict=True):
            theta[a] += share
            theta[b] += share
        theta /= np.sqrt(theta.sum(0))
        rate = np.array([theta[a] @ theta[b] for a, b in pairs.T])
        likelihood = np.log(rate).sum() - (theta.sum(0) ** 2).sum() / 2
        assert likelihood >= before - 1e-9
        before = likelihood


def test_shown_communities_stay():
    data = planted_graph(2)
    shown = shown_types(data.edge_index, data.edge_type, 0.3, 0)
    types = Edges.of_graph(data).once(shown)
    found = link_communities(data, shown, 0)
    rows = types.sum(1) == 1
    assert (found[rows].argmax(1) == types[rows].argmax(1)).mean() > 0.95


def test_permuted_types_tell_nothing():
    data = planted_graph(3)
    types = Edges.of_graph(data).once(data.edge_type)
    method = permuted(naive_bayes)
    found = [edge_type_scores(method(data, data.edge_type, s), types, named=True).balanced
             for s in range(5)]  # fmt: skip
    assert np.mean(found) < 0.6
    assert edge_type_scores(naive_bayes(data, data.edge_type, 0), types, named=True).balanced > 0.9


def test_majority_says_the_shares_of_the_shown():
    data = random_graph(11)
    shown = shown_types(data.edge_index, data.edge_type, 0.5, 0)
    counts = Edges.of_graph(data).once(shown).sum(0)
    assert majority(data, shown, 0)[5] == pytest.approx(counts / counts.sum())
    assert majority(data, torch.zeros_like(shown), 0)[0] == pytest.approx(np.full(3, 1 / 3))


def test_one_shown_type_or_none():
    data = random_graph(12)
    single = (Edges.of_graph(data).once(data.edge_type).sum(1) == 1).sum()
    one = shown_types(data.edge_index, data.edge_type, 1 / single, 0)
    for name, run in SUPERVISED.items():
        for shown in (one, torch.zeros_like(one)):
            found = run(data, shown, 0)
            np.testing.assert_allclose(found.sum(1), 1, err_msg=name)
