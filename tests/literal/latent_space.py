"""Eq. 1, 3, 5 and Alg. 2 as float64 loops, straight from the paper."""

import numpy as np
from scipy.stats import multivariate_normal

from literal.routing import normalise


def projection(x, weight, bias, factors):
    """Eq. 1: W_m and b_m are the m-th blocks of columns."""
    size = weight.shape[1] // factors
    z = np.zeros((len(x), factors, size))
    for i, h in enumerate(np.asarray(x, dtype=np.float64)):
        for m in range(factors):
            block = slice(m * size, (m + 1) * size)
            z[i, m] = normalise(np.maximum(weight[:, block].T @ h + bias[block], 0))
    return z


def exact_precision(cov):
    return np.linalg.inv(cov)


def scaled_precision(cov):
    """Shrink by 1e-4 of the mean variance, then divide the inverse by its mean diagonal."""
    size = len(cov)
    inverse = np.linalg.inv(cov + 1e-4 * np.trace(cov) / size * np.eye(size))
    return inverse / (np.trace(inverse) / size)


def released_precision(cov):
    rows = np.array([normalise(row) for row in cov])
    return np.array([normalise(row) for row in np.linalg.pinv(rows)])


PRECISIONS = {
    "exact": exact_precision,
    "scaled": scaled_precision,
    "released": released_precision,
}


def space_loss(z, mean, cov, precision):
    """Eq. 3 and 6."""
    nodes, factors, size = z.shape
    loss = np.zeros(nodes)
    for i in range(nodes):
        for m in range(factors):
            matrix, diff = PRECISIONS[precision](cov[m]), z[i, m] - mean[m]
            for a in range(size):
                for b in range(size):
                    loss[i] += diff[a] * matrix[a, b] * diff[b] / factors
    return loss


def likelihood(unit, mean, cov, precision):
    if precision == "released":  # the covariance where its inverse belongs, no normaliser
        return np.exp(-0.5 * (unit - mean) @ cov @ (unit - mean))
    if precision == "scaled":
        cov = cov + 1e-4 * np.trace(cov) / len(cov) * np.eye(len(cov))
    return multivariate_normal(mean, cov).pdf(unit)


def diversity(z, mean, cov, precision, jitter=0.0):
    """Eq. 5: the columns of F are the unit-length likelihood vectors of the M units."""
    nodes, factors, _ = z.shape
    volume = np.zeros(nodes)
    for i in range(nodes):
        columns = [
            normalise(
                np.array([likelihood(z[i, m], mean[e], cov[e], precision) for e in range(factors)])
            )
            for m in range(factors)
        ]
        matrix = np.stack(columns, axis=1)
        gram = (matrix.T @ matrix + jitter * np.eye(factors)) / (1 + jitter)
        volume[i] = np.linalg.det(gram)
    return volume


def updated(mean, cov, units, rate, centre="old"):
    """Alg. 2, the loop over m; ``centre="new"`` is the authors' code."""
    nodes, factors, size = units.shape
    new_mean, new_cov = np.zeros((factors, size)), np.zeros((factors, size, size))
    for m in range(factors):
        star = sum(units[i, m] for i in range(nodes)) / nodes
        middle = mean[m] if centre == "old" else star
        spread = sum(np.outer(u - middle, u - middle) for u in units[:, m]) / nodes
        new_mean[m] = (1 - rate) * mean[m] + rate * star
        new_cov[m] = (1 - rate) * cov[m] + rate * spread
    return new_mean, new_cov
