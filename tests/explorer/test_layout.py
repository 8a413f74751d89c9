"""Layouts: structure is seen, nothing flies away, equal input gives equal pictures."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
import torch

from lgdgcn import kernels
from lgdgcn.explorer.descent import GO_ON, STEPS, walk_weights
from lgdgcn.explorer.layout import drawn_in, graph_layout, pack, unit_layout, unit_square


def cliques(count: int, size: int) -> np.ndarray:
    """A ring of cliques, each linked to the next by one edge."""
    inside = np.stack(np.triu_indices(size, 1))
    parts = [inside + size * c for c in range(count)]
    ring = [[size * c, (size * (c + 1)) % (size * count) + 1] for c in range(count)]
    return np.concatenate([*parts, np.array(ring).T], axis=1)


def spread_by_group(position: np.ndarray, group: np.ndarray) -> tuple[float, float]:
    """Median distance of two nodes of one group, and of two groups."""
    distance = np.linalg.norm(position[:, None] - position, axis=-1)
    same = group[:, None] == group
    return np.median(distance[same]), np.median(distance[~same])


def in_square(position: np.ndarray, nodes: int) -> bool:
    fits = position.shape == (nodes, 2) and position.dtype == np.float32
    return fits and np.isfinite(position).all() and np.abs(position).max(initial=0) <= 1


def test_clusters_of_a_graph_are_apart():
    position = graph_layout(cliques(8, 12), 96)
    assert in_square(position, 96)
    inside, between = spread_by_group(position, np.arange(96) // 12)
    assert inside < 0.25 * between


def test_clusters_of_units_are_apart():
    rng = np.random.default_rng(0)
    group = np.arange(200) % 4
    units = rng.normal(size=(4, 16))[group] + 0.1 * rng.normal(size=(200, 16))
    nearest, square = kernels.nearest(torch.from_numpy(units)[None], 15)
    position = unit_layout(units, nearest[0].numpy(), square[0].sqrt().numpy())
    assert in_square(position, 200)
    inside, between = spread_by_group(position, group)
    assert inside < 0.3 * between


@pytest.mark.parametrize("threads", [1, 3])
def test_equal_input_gives_equal_pictures(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        again = graph_layout(cliques(5, 6), 40)
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(again, graph_layout(cliques(5, 6), 40))
    assert not np.array_equal(again, graph_layout(cliques(5, 6), 40, seed=1))


@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_graphs_without_edges(nodes):
    position = graph_layout(np.zeros((2, 0), dtype=np.int64), nodes)
    assert in_square(position, nodes)
    assert len(np.unique(position, axis=0)) == nodes


def test_parts_and_isolated_nodes_lie_around_the_largest_part():
    pairs = np.concatenate([cliques(6, 8), [[50, 52], [51, 53]]], axis=1)
    position = graph_layout(pairs, 60)  # 48 in the ring, two pairs, 48, 49 and 54 to 59 isolated
    assert in_square(position, 60)
    centre = (position[:48].max(0) + position[:48].min(0)) / 2
    radius = np.linalg.norm(position - centre, axis=1)
    assert radius[:48].max() < radius[48:].min()
    assert radius[48:].max() < 3 * radius[:48].max()
    gaps = np.linalg.norm(position[48:, None] - position[48:], axis=-1)
    assert gaps[~np.eye(12, dtype=bool)].min() > 0.02  # none on another


def test_a_factor_whose_units_are_all_equal():
    nearest = (np.arange(9)[:, None] + [1, 2, 3]) % 9
    position = unit_layout(np.ones((9, 4)), nearest, np.zeros((9, 3)))
    assert in_square(position, 9)


def literal_walks(adjacency: np.ndarray) -> np.ndarray:
    step = adjacency / np.maximum(adjacency.sum(1, keepdims=True), 1)
    total = sum(GO_ON**n * np.linalg.matrix_power(step, n) for n in range(1, STEPS + 1))
    np.fill_diagonal(total, 0)
    return total / np.maximum(total.max(1, keepdims=True), 1e-12)


def test_walks_against_powers_of_the_matrix():
    rng = np.random.default_rng(1)
    upper = np.triu(rng.random((30, 30)) < 0.08, 1)
    dense = (upper | upper.T).astype(float)
    assert (dense.sum(1) == 0).any()
    directed = literal_walks(dense)
    expected = np.maximum(directed + directed.T - directed * directed.T, 0.2 * dense)
    weights = walk_weights(scipy.sparse.csr_matrix(dense), 29, 0.2)
    np.testing.assert_allclose(weights.toarray(), expected, atol=1e-12)


def test_only_what_is_far_outside_is_drawn_in():
    rng = np.random.default_rng(2)
    position = np.concatenate([rng.normal(size=(200, 2)), [[500.0, 0], [0, -900]]])
    near = drawn_in(position)
    radius = np.linalg.norm(position - np.median(position, axis=0), axis=1)
    kept = radius <= np.quantile(radius, 0.95)
    assert np.array_equal(near[kept], position[kept])
    assert np.abs(near).max() < 4


def test_packed_parts_do_not_overlap():
    rng = np.random.default_rng(3)
    sizes = np.sort(rng.integers(1, 30, 40))[::-1]
    starts = np.concatenate([[0], sizes.cumsum()])
    packed = pack(rng.normal(size=(starts[-1], 2)), starts)
    parts = [packed[a:b] for a, b in pairwise(starts)]
    centre = np.array([(part.max(0) + part.min(0)) / 2 for part in parts])
    reach = np.array(
        [np.linalg.norm(p - c, axis=1).max() for p, c in zip(parts, centre, strict=True)]
    )
    gap = np.linalg.norm(centre[:, None] - centre, axis=-1) - reach[:, None] - reach
    assert gap[~np.eye(len(parts), dtype=bool)].min() > 0
    assert np.abs(unit_square(packed)).max() == 1
