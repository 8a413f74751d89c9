import numpy as np
import pytest
import torch

from lgdgcn.data import load, synthetic_graph
from lgdgcn.data.synthetic import PAPER_P, _random_pairs, solve_p
from lgdgcn.errors import InputError


def shared_factors(data):
    """Number of factors in which the two ends of each edge agree [E]."""
    source, target = data.edge_index
    return (data.y_factor[source] == data.y_factor[target]).sum(1)


def pairs_by_shared_factors(data):
    """Number of unordered node pairs that agree in 0, 1, ... factors."""
    same = (data.y_factor[:, None] == data.y_factor[None]).sum(2)
    upper = torch.triu(torch.ones_like(same), diagonal=1).bool()
    return torch.bincount(same[upper], minlength=data.y_factor.shape[1] + 1)


def average_degree(data):
    return data.edge_index.shape[1] / data.num_nodes


@pytest.mark.parametrize("factors", PAPER_P)
def test_average_degree_is_the_papers(factors):
    degrees = [average_degree(synthetic_graph(factors, seed=seed)) for seed in range(12)]
    assert 39.5 <= np.mean(degrees) <= 40.5


@pytest.mark.parametrize(("factors", "share"), [(4, 0.83), (8, 0.65)])
def test_edges_with_one_true_factor_as_published(factors, share):
    graphs = [synthetic_graph(factors, seed=seed) for seed in range(4)]
    shared = torch.cat([shared_factors(data) for data in graphs])
    assert (shared == 1).float().mean() == pytest.approx(share, abs=0.015)


@pytest.mark.parametrize("factors", PAPER_P)
def test_statistics_match_the_published_graph(factors, shared_data):
    published = load(f"lgd_syn_fac{factors}", shared_data)
    made = synthetic_graph(factors, seed=7)
    assert average_degree(made) == pytest.approx(average_degree(published), abs=1.2)
    ours, theirs = (
        torch.bincount(shared_factors(data), minlength=3)[:3] / data.edge_index.shape[1]
        for data in (made, published)
    )
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=0.03)
    assert made.y.shape == published.y.shape
    assert made.y_factor.shape == published.y_factor.shape


@pytest.mark.parametrize(("p", "q"), [(0.164, 3e-5), (0.3, 0.02), (1.0, 0.0)])
def test_pair_probability_given_shared_factors(p, q):
    data = synthetic_graph(factors=3, p=p, q=q, seed=5)
    pairs = pairs_by_shared_factors(data).double()
    edges = torch.bincount(shared_factors(data), minlength=4).double() / 2
    for shared in range(3):
        expected = 1 - (1 - p) ** shared * (1 - q) ** (3 - shared)
        sigma = float((expected * (1 - expected) / pairs[shared]) ** 0.5)
        assert float(edges[shared] / pairs[shared]) == pytest.approx(expected, abs=4.5 * sigma)


@pytest.mark.parametrize("wanted", [3, 40, 120])
def test_average_degree_solves_for_p(wanted):
    data = synthetic_graph(factors=5, nodes=2000, average_degree=wanted, seed=2)
    assert average_degree(data) == pytest.approx(wanted, rel=0.03)
    p = solve_p(wanted, factors=5, nodes=2000)
    again = synthetic_graph(factors=5, nodes=2000, p=p, seed=2)
    assert again.edge_index.equal(data.edge_index)


def test_solved_p_is_the_papers_to_three_digits():
    for factors, p in PAPER_P.items():
        assert solve_p(40, factors=factors, nodes=1000) == pytest.approx(p, abs=0.001)


def test_default_of_other_sizes_keeps_degree_40():
    assert average_degree(synthetic_graph(factors=5)) == pytest.approx(40, abs=1)
    assert average_degree(synthetic_graph(nodes=3000)) == pytest.approx(40, abs=1)
    assert average_degree(synthetic_graph(factors=2, nodes=300)) == pytest.approx(12, abs=1)


def test_contents_of_the_graph():
    data = synthetic_graph(factors=3, nodes=205, classes=4, average_degree=20, seed=9)
    source, target = data.edge_index
    key = source * 205 + target
    assert (key[1:] > key[:-1]).all()  # sorted, no duplicates
    assert (source != target).all()
    dense = torch.zeros(205, 205)
    dense[source, target] = 1
    assert dense.equal(dense.T)
    assert data.x.layout == torch.sparse_csr
    assert data.x.to_dense().equal(dense)
    assert data.y.dtype == torch.float32
    assert data.y.view(205, 3, 4).argmax(2).equal(data.y_factor)
    assert data.y.sum(1).eq(3).all()
    for factor in range(3):
        assert sorted(torch.bincount(data.y_factor[:, factor]).tolist()) == [51, 51, 51, 52]
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert masks.sum(1).tolist() == [123, 41, 41]
    assert masks.sum(0).eq(1).all()


def test_seed_decides_everything():
    first, same, other = (synthetic_graph(nodes=300, seed=seed) for seed in (1, 1, 2))
    for key in ("edge_index", "y_factor", "train_mask"):
        assert first[key].equal(same[key])
        assert not first[key].equal(other[key])


def test_twenty_thousand_nodes_without_a_dense_matrix():
    data = synthetic_graph(factors=8, nodes=20_000, seed=0)
    assert average_degree(data) == pytest.approx(40, abs=0.3)


@pytest.mark.parametrize("probability", [0.0, 1e-300, 0.3, 1.0])
def test_random_pairs_are_distinct_and_ordered(probability):
    i, j = _random_pairs(60, probability, np.random.default_rng(0))
    assert ((i >= 0) & (i < j) & (j < 60)).all()
    assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == len(i)
    assert len(i) == pytest.approx(1770 * probability, abs=4 * (1770 * 0.21) ** 0.5)


def test_random_pairs_are_uniform():
    rng = np.random.default_rng(1)
    draws = [_random_pairs(8, 0.2, rng) for _ in range(4000)]
    i, j = np.concatenate(draws, axis=1)
    _, counts = np.unique(i * 8 + j, return_counts=True)
    assert len(counts) == 28
    assert np.abs(counts / 4000 - 0.2).max() < 4.5 * (0.16 / 4000) ** 0.5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"p": 0.1, "average_degree": 40}, "give one"),
        ({"p": 1.5}, "p is 1.5"),
        ({"p": float("nan")}, "p is nan"),
        ({"q": -0.1}, "q is -0.1"),
        ({"q": "much"}, "q is 'much'"),
        ({"factors": 0}, "factors is 0"),
        ({"nodes": 4}, "nodes is 4"),
        ({"nodes": 100.0}, "nodes is 100.0"),
        ({"classes": 501}, "classes is 501"),
        ({"average_degree": 900}, "average_degree is 900"),
        ({"average_degree": "many"}, "average_degree is 'many'"),
        ({"average_degree": float("nan")}, "average_degree is nan"),
        ({"nodes": 1_000_000, "p": 1.0}, "edges"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
    ],
)
def test_settings_out_of_range(settings, words):
    with pytest.raises(InputError, match=words):
        synthetic_graph(**settings)


def test_labels_that_cannot_fit_are_refused():
    with pytest.raises(InputError, match=r"the labels of the graph would take .*lower nodes"):
        synthetic_graph(nodes=1_000_000, classes=500_000, factors=200, average_degree=2)
