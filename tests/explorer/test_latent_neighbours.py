"""Latent neighbours against a look at every pair."""

import numpy as np
import pytest
import torch

from lgdgcn import kernels
from lgdgcn.explorer.nodes import latent_neighbours


def literal(units, linked, count):
    found = np.full((len(units), count), -1)
    far = np.zeros((len(units), count))
    for i in range(len(units)):
        others = [j for j in range(len(units)) if j != i and not linked[i, j]]
        distance = {j: np.sqrt(((units[i] - units[j]) ** 2).sum()) for j in others}
        for place, j in enumerate(sorted(others, key=lambda j: (distance[j], j))[:count]):
            found[i, place], far[i, place] = j, distance[j]
    return found, far


@pytest.mark.parametrize(("nodes", "listed", "density"), [(60, 12, 0.1), (40, 6, 0.7), (6, 5, 0.9)])
def test_against_a_look_at_every_pair(nodes, listed, density):
    rng = np.random.default_rng(nodes)
    units = rng.normal(size=(nodes, 5))
    upper = np.triu(rng.random((nodes, nodes)) < density, 1)
    linked = upper | upper.T
    nearest, square = kernels.nearest(torch.from_numpy(units)[None], listed)
    lists = nearest[0].numpy(), square[0].sqrt().numpy()
    found, far = latent_neighbours(units, *lists, np.stack(np.nonzero(linked)), 8)
    expected, distance = literal(units, linked, 8)
    assert np.array_equal(found, expected)
    np.testing.assert_allclose(far, distance, atol=1e-6)
