"""Units and edges whose disentanglement is known."""

import numpy as np
import torch

from lgdgcn.data import synthetic_graph

CLASSES = 4


def graph(factors=3, nodes=480, seed=0):
    """A graph whose edges have known makers, as ``edge_index`` and ``y_factor``."""
    data = synthetic_graph(factors=factors, nodes=nodes, classes=CLASSES, average_degree=8,
                           q=0.0, seed=seed)  # fmt: skip
    return data.edge_index, data.y_factor


def perfect(y_factor, noise=0.02, seed=0):
    """Unit m is the class in factor m, and nothing else."""
    chance = np.random.default_rng(seed)
    units = np.eye(CLASSES)[y_factor.numpy()]
    return torch.from_numpy(units + noise * chance.normal(size=units.shape))


def rotated(units, seed=0):
    """The same information, each channel a mixture of all."""
    nodes, factors, channels = units.shape
    chance = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(chance.normal(size=(factors * channels,) * 2))
    flat = units.reshape(nodes, -1)
    return ((flat - flat.mean(0)) @ torch.from_numpy(turn)).reshape(units.shape)


def makers(edge_index, y_factor):
    """Probabilities that name the factors that may have made each edge."""
    shared = (y_factor[edge_index[0]] == y_factor[edge_index[1]]).double()
    return shared / shared.sum(1, keepdim=True)


def random_chances(edge_index, factors, seed=0):
    """Probabilities that have nothing to do with the edges, the same in both directions."""
    low, high = edge_index.aminmax(dim=0)
    generator = torch.Generator().manual_seed(seed)
    nodes = int(edge_index.max()) + 1
    table = torch.rand(nodes, nodes, factors, generator=generator, dtype=torch.float64)
    return table[low, high].softmax(-1)
