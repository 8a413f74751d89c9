"""Features from the structure: what they tell apart, and that they never change."""

import numpy as np
import pytest
import torch

from lgdgcn.data.spectral import COUNT, DENSE, SPECTRAL_NAMES, spectral_features


def blocks(sizes, inside, seed=0):
    """Groups of nodes with an edge from each node to some others of its group."""
    random, start, pairs = np.random.default_rng(seed), 0, []
    for size in sizes:
        ends = random.integers(0, size, (size * inside, 2)) + start
        pairs.append(ends[ends[:, 0] != ends[:, 1]])
        start += size
    pairs = np.concatenate(pairs)
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    return torch.from_numpy(pairs.T.copy())


@pytest.mark.parametrize("size", [60, 2 * DENSE], ids=["dense", "sparse"])
def test_groups_are_told_apart_and_the_sign_is_fixed(size):
    edges = blocks([size, size], 6)
    x = spectral_features(edges, 2 * size).numpy()
    assert x.shape == (2 * size, COUNT + 1) == (2 * size, len(SPECTRAL_NAMES))
    first, second = x[:size, 0], x[size:, 0]
    assert max(first.max(), second.max()) > 0
    assert first.min() > second.max() or second.min() > first.max()
    assert (x[:, :-1] ** 2).mean(0) == pytest.approx(np.ones(COUNT), rel=1e-4)
    assert np.abs(x[:, :-1]).max(0) == pytest.approx(x[:, :-1].max(0), rel=1e-3)
    degree = np.bincount(edges[0].numpy(), minlength=2 * size)
    assert x[:, -1] == pytest.approx(np.log1p(degree))


def test_eigenvectors_are_those_of_numpy():
    """The sparse solver agrees with the dense one of a graph of the same size."""
    nodes = DENSE + 50
    edges = blocks([nodes], 4)
    x = spectral_features(edges, nodes).numpy()[:, :4].astype(float)
    adjacency = np.zeros((nodes, nodes))
    adjacency[tuple(edges.numpy())] = 1
    degree = adjacency.sum(1)
    scale = (degree + degree.mean()) ** -0.5
    laplacian = np.eye(nodes) - scale[:, None] * (adjacency + degree.mean() / nodes) * scale
    for vector in x.T:
        value = vector @ laplacian @ vector / (vector @ vector)
        assert np.abs(laplacian @ vector - value * vector).max() < 0.01
    values = np.linalg.eigvalsh(laplacian)[1:5]
    assert [v @ laplacian @ v / (v @ v) for v in x.T] == pytest.approx(values, abs=1e-3)


def test_the_same_graph_has_the_same_features():
    edges = blocks([400, 200, 5, 5], 3)
    first, second = (spectral_features(edges, 620) for _ in range(2))  # ten nodes are isolated
    assert torch.equal(first, second)
    assert first.isfinite().all()


@pytest.mark.parametrize("nodes", [1, 2, 5, DENSE + 1])
def test_small_graphs_and_graphs_without_edges(nodes):
    none = spectral_features(torch.empty(2, 0, dtype=torch.int64), nodes)
    assert not none.any()
    ring = torch.arange(nodes)
    edges = torch.stack([ring, ring.roll(1)])
    x = spectral_features(torch.cat([edges, edges.flip(0)], 1), nodes)
    assert x.shape == (nodes, COUNT + 1)
    assert x.isfinite().all()
