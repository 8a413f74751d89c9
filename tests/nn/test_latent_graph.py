"""kNN and CkNN against their definitions, and Eq. 4 against dense matrices (Sec. 3.2)."""

import warnings

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.nn import cknn_graph, knn_graph, latent_graph
from literal import aggregation as literal
from literal.seeds import seeds

SEEDS = seeds(3)


def points(kind, seed):
    """Points whose distances are exact in float32, so that only real ties are ties."""
    torch.manual_seed(seed)
    if kind == "random":
        return torch.randint(-2000, 2000, (30, 4)) / 256
    if kind == "duplicated":
        return (torch.randint(-2000, 2000, (10, 3)) / 256)[torch.randint(0, 10, (30,))]
    if kind == "grid":
        return torch.cartesian_prod(torch.arange(6.0), torch.arange(5.0))[torch.randperm(30)]
    return torch.ones(12, 2)  # identical


KINDS = pytest.mark.parametrize("kind", ["random", "duplicated", "grid", "identical"])
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def dense(edge_index, nodes):
    matrix = np.zeros((nodes, nodes))
    np.add.at(matrix, tuple(edge_index.numpy()), 1)
    assert matrix.max(initial=0) <= 1, "an edge is listed twice"
    assert (matrix == matrix.T).all()
    assert not matrix.diagonal().any()
    return matrix


@KINDS
@DTYPES
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_knn_joins_what_one_end_lists(kind, dtype, seed, k):
    z = points(kind, seed).to(dtype)
    got = dense(knn_graph(z, k), len(z))
    assert (got == literal.knn(z, k)).all()
    # and, whatever the order of ties: nothing farther than the k-th, everything nearer
    squared = literal.distances(z)
    reach = np.maximum.outer(*2 * [np.sort(squared, axis=1)[:, k - 1]])
    assert (squared[got == 1] <= reach[got == 1]).all()
    assert (got[squared < reach] == 1).all()


@KINDS
@DTYPES
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 2, 5, 11])
def test_cknn_is_the_strict_inequality(kind, dtype, seed, k):
    z = points(kind, seed).to(dtype)
    assert (dense(cknn_graph(z, k), len(z)) == literal.cknn(z, k)).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 4])
def test_every_node_lists_exactly_k(seed, k):
    z = points("grid", seed)
    graph = latent_graph(z.unsqueeze(1), k, "knn")
    # a mutual edge is listed by both ends, any other by one
    assert graph.ends.sum() == 2 * k * len(z)
    lists = literal.knn_lists(z, k)
    source, target = graph.edge_index.numpy()
    assert (graph.ends.numpy() == (lists + lists.T)[target, source]).all()


@pytest.mark.parametrize("kind", ["knn", "cknn"])
def test_every_factor_has_its_own_graph(kind):
    z = torch.stack([points("random", s) for s in SEEDS], dim=1)  # [30, 3, 4]
    edges = latent_graph(z, 3, kind).edge_index
    for factor in range(3):
        mine = edges[:, edges[1] // 30 == factor] - 30 * factor
        assert (dense(mine, 30) == getattr(literal, kind)(z[:, factor], 3)).all()


@pytest.mark.parametrize("build", [knn_graph, cknn_graph])
@pytest.mark.parametrize(("nodes", "k"), [(1, 1), (1, 4), (2, 2), (5, 5), (5, 99)])
def test_k_is_at_most_the_other_nodes(build, nodes, k):
    z = torch.randn(nodes, 3)
    with pytest.warns(LGDWarning, match=f"k is {k}.*using k = {nodes - 1}"):
        edges = build(z, k)
    assert edges.dtype == torch.int64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if nodes > 1:
            assert torch.equal(edges, build(z, nodes - 1))
        else:
            assert edges.shape == (2, 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_points_are_compared_in_single_precision(dtype):
    z = (torch.randn(40, 8) * 100).to(dtype)
    assert torch.equal(knn_graph(z, 5), knn_graph(z.float(), 5))
    assert torch.equal(cknn_graph(z, 5), cknn_graph(z.float(), 5))


# Eq. 4


def units_of(seed, nodes=14, factors=3, size=2):
    torch.manual_seed(seed)
    return torch.randn(nodes, factors, size, dtype=torch.float64)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["knn", "cknn"])
def test_aggregation_equals_dense_matrices(seed, kind):
    units = units_of(seed)
    got = latent_graph(units, 3, kind).aggregate(units)
    for factor in range(3):
        z = units[:, factor].numpy()
        want = literal.symmetric(getattr(literal, kind)(z, 3), z)
        np.testing.assert_allclose(got[:, factor], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["knn", "cknn"])
def test_row_means_with_half_weight_for_one_sided_edges(seed, kind):
    units = units_of(seed)
    got = latent_graph(units, 3, kind).aggregate(units, "row", one_sided_weight=0.5)
    choice = {"knn": literal.knn_lists, "cknn": literal.cknn}[kind]  # CkNN has no sides
    for factor in range(3):
        z = units[:, factor].numpy()
        want = literal.released(choice(z, 3), z)
        np.testing.assert_allclose(got[:, factor], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("normalization", ["symmetric", "row"])
def test_gradients(normalization):
    units = units_of(SEEDS[0], nodes=6).requires_grad_()
    graph = latent_graph(units, 2, "knn")
    assert gradcheck(lambda u: graph.aggregate(u, normalization, 0.5), units)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_in_half_precision_out(dtype):
    units = units_of(0).to(dtype)
    got = latent_graph(units, 3).aggregate(units)
    assert got.dtype == dtype
    want = latent_graph(units.float(), 3).aggregate(units.float())
    torch.testing.assert_close(got.float(), want, rtol=2e-2, atol=2e-2)


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match=r"graph is 'foo'; choose from knn, cknn"):
        latent_graph(torch.rand(4, 1, 2), 1, "foo")
