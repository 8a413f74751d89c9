"""How far apart units are: clusters that tell factors from each other, and Eq. 5's diversity."""

import numpy as np
import torch

from lgdgcn.metrics.arrays import Array, normalized_information
from lgdgcn.metrics.resampling import Resamples
from lgdgcn.nn.latent_space import diversity

__all__ = ["MOST_POINTS", "channel_nmi", "node_diversity", "silhouette"]

MOST_POINTS = 4_000  # units of all channels together


def silhouette(units: Array, resamples: Resamples) -> Array | None:
    """Mean silhouette of the units by their channel, ``[1 + B]``.

    Args:
        units: Units of a sample. Shape ``[n, M, d]``.
        resamples: Of the nodes; the other units are kept as they are.

    Returns:
        Between -1 and 1; ``None`` with one channel or one node.
    """
    from sklearn.metrics import silhouette_samples

    nodes, factors, channels = units.shape
    if nodes < 2 or factors < 2:
        return None
    own = silhouette_samples(units.reshape(-1, channels), np.tile(np.arange(factors), nodes))
    return resamples.means(own.reshape(nodes, factors).mean(1))


def channel_nmi(units: Array, resamples: Resamples, seed: int = 0) -> Array | None:
    """Normalised mutual information of channels and as many clusters (k-means), ``[1 + B]``.

    Args:
        units: Units of a sample. Shape ``[n, M, d]``.
        resamples: Of the nodes; the clusters are kept as they are.
        seed: Seed of the clusters.

    Returns:
        Between 0 and 1; ``None`` with one channel or one node.
    """
    from sklearn.cluster import KMeans

    nodes, factors, channels = units.shape
    if nodes < 2 or factors < 2:
        return None
    points = units.reshape(-1, channels)
    if len(np.unique(points, axis=0)) < factors:
        return np.zeros(resamples.count + 1)  # fewer distinct points than clusters
    found = KMeans(factors, n_init=3, random_state=seed).fit_predict(points)
    one_hot = np.eye(factors)[found].reshape(nodes, -1)  # [n, M * clusters]
    tables = np.stack([counts @ one_hot for counts in resamples]).reshape(-1, factors, factors)
    return normalized_information(tables)


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
