"""Latent graphs and Eq. 4 as dense float64 matrices, straight from the paper (Sec. 3.2)."""

import numpy as np

from literal.neighbours import nearest


def distances(z):
    """Squared distances; the node itself is infinitely far."""
    z = np.asarray(z, dtype=np.float64)
    squared = np.array([[sum((a - b) ** 2) for b in z] for a in z])
    np.fill_diagonal(squared, np.inf)
    return squared


def knn_lists(z, k):
    """0/1 matrix, one where i lists j; of equally near points the lower number is listed."""
    lists = np.zeros((len(z), len(z)))
    for i, row in enumerate(nearest(np.asarray(z)[None], k)[0][0]):
        lists[i, row] = 1
    return lists


def knn(z, k):
    lists = knn_lists(z, k)
    return np.maximum(lists, lists.T)


def cknn(z, k):
    squared = distances(z)
    reach = np.sort(squared, axis=1)[:, k - 1]  # squared
    # both sides to the fourth power: d < sqrt(r_i r_j) without the rounding of roots
    return (squared**2 < np.outer(reach, reach)).astype(float)


def symmetric(adjacency, units):
    """Eq. 4 for one factor, units ``[N, d]``."""
    looped = adjacency + np.eye(len(adjacency))
    root = np.diag(looped.sum(axis=1) ** -0.5)
    return root @ looped @ root @ units


def released(lists, units):
    """The authors' code for one factor: half the weight for a one-sided edge, row means."""
    looped = (lists + lists.T) / 2 + np.eye(len(lists))
    return np.diag(1 / looped.sum(axis=1)) @ looped @ units
