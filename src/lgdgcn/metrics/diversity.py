"""How different the units of a node are: the diversity of Eq. 5."""

import torch

from lgdgcn.metrics.arrays import Array
from lgdgcn.nn.latent_space import diversity

__all__ = ["node_diversity"]


def node_diversity(units: Array) -> Array:
    """Volume spanned by the likelihoods of each node's units under all channels, ``[N]``.

    Mean and covariance of every channel are those of the units themselves, so that any units can be
    measured, not only those of a network that kept statistics.

    Args:
        units: Units. Shape ``[N, M, d]``.

    Returns:
        1 where each unit is likely under its own channel only, 0 where two are alike.
    """
    mean = units.mean(0)  # [M, d]
    centred = (units - mean).transpose(1, 0, 2)  # [M, N, d]
    covariance = centred.transpose(0, 2, 1) @ centred / len(units)
    z, mu, sigma = (torch.from_numpy(part) for part in (units, mean, covariance))
    # shrunk, as dead channels have no variance
    volume: Array = diversity(z, mu, sigma, "scaled").clamp(0, 1).numpy()
    return volume
