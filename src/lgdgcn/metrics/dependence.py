"""How much two units have to do with each other, by kernels and distances over the nodes.

Both measures are inner products of n x n matrices, one per unit, whose rows and columns are
centred: Gaussian kernels give the Hilbert-Schmidt independence criterion (HSIC), distances give the
distance covariance. With U-centring (Székely and Rizzo 2014; Song et al. 2012 for HSIC) the inner
products are unbiased: independent units give 0 on average, whatever their size.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.spatial.distance import cdist

from lgdgcn.metrics.arrays import Array
from lgdgcn.metrics.resampling import Resamples

__all__ = [
    "LEAST_NODES",
    "MOST_NODES",
    "gaussian",
    "inner_products",
    "pair_means",
    "plain",
    "shares",
]

MOST_NODES = 5_000  # above that, a sample of so many
LEAST_NODES = 4  # U-centring divides by n - 3
ROWS = 128  # rows of the n x n matrices that are held at a time

Transform = Callable[[Array], Array]  # distances [M, r, n] -> entries, in a new array


def plain(distance: Array) -> Array:
    """The distances themselves."""
    return distance.copy()


def gaussian(units: Array, seed: int = 0) -> Transform:
    """Kernels exp(-|a - b|^2 / (2 s^2)), s the median distance in each unit (of a sample).

    All are less 1, which centring undoes: a constant unit then gives zeros, not rounding.
    """
    some = np.random.default_rng(seed).permutation(len(units))[:1000]
    median = np.array([_median(cdist(unit, unit)) for unit in units[some].transpose(1, 0, 2)])

    def kernels(distance: Array) -> Array:
        exponent: Array = distance / median[:, None, None].astype(distance.dtype)
        exponent *= exponent
        exponent *= -0.5
        np.expm1(exponent, out=exponent)
        return exponent

    return kernels


def inner_products(
    units: Array, transforms: Sequence[Transform], resamples: Resamples
) -> list[Array]:
    """Unbiased inner products of the U-centred matrices of all units, ``[1 + B, M, M]`` each.

    The first is the value; the others are its bootstrap over nodes, linearised: a node's share of
    the sum stands for what its repetition would change (the centring changes nothing to first
    order), so that no matrix is made twice.

    Args:
        units: Units. Shape ``[n, M, d]``, n at least 4.
        transforms: What becomes of the distances, one result each.
        resamples: Of the nodes.
    """
    nodes, factors, _ = units.shape
    sums = np.zeros((len(transforms), factors, nodes))
    for rows, distance in _distances(units):
        for index, transform in enumerate(transforms):
            sums[index, :, rows] = _without_self(transform(distance), rows).sum(-1)
    row = sums / (nodes - 2)
    grand = sums.sum(-1) / ((nodes - 1) * (nodes - 2))
    parts = np.empty((len(transforms), nodes, factors, factors))
    for rows, distance in _distances(units):
        for index, transform in enumerate(transforms):
            entries = transform(distance)
            entries -= row[index, :, rows, None]
            entries -= row[index, :, None]
            entries += grand[index, :, None, None]
            by_row = _without_self(entries, rows).transpose(1, 0, 2)  # [r, M, n]
            parts[index, rows] = by_row @ by_row.transpose(0, 2, 1)
    return [_drawn(each / (nodes - 3), resamples) for each in parts]


def shares(products: Array) -> Array:
    """Products over the geometric mean of their units' own, 0 to 1; 0 with a constant unit."""
    own = np.sqrt(np.maximum(np.diagonal(products, axis1=1, axis2=2), 0))  # [B, M]
    norm = own[:, :, None] * own[:, None]
    found: Array = np.clip(products / np.where(norm > 0, norm, np.inf), 0, 1)
    return found


def pair_means(values: Array) -> Array:
    """Mean over the pairs of two units ``[B]`` of symmetric values ``[B, M, M]``."""
    first, second = np.triu_indices(values.shape[-1], k=1)
    means: Array = np.maximum(values[:, first, second], 0).mean(-1)
    return means


def _drawn(parts: Array, resamples: Resamples) -> Array:
    """The mean over the nodes of their parts ``[n, M, M]``, then its linearised bootstrap."""
    nodes, value = len(parts), parts.mean(0)
    totals = np.stack([counts @ parts.reshape(nodes, -1) for counts in resamples])
    drawn: Array = 2 * totals.reshape(-1, *value.shape) / nodes - value
    drawn[0] = value
    return drawn


def _distances(units: Array) -> Iterator[tuple[slice, Array]]:
    """Euclidean distances of some nodes to all ``[M, r, n]``, some rows at a time."""
    by_unit = np.ascontiguousarray(units.transpose(1, 0, 2))  # [M, n, d]
    square = (by_unit**2).sum(-1)
    for start in range(0, len(units), ROWS):
        rows = slice(start, min(start + ROWS, len(units)))
        distance = by_unit[:, rows] @ by_unit.transpose(0, 2, 1)
        distance *= -2
        distance += square[:, rows, None]
        distance += square[:, None]
        np.maximum(distance, 0, out=distance)
        np.sqrt(distance, out=distance)
        yield rows, distance


def _without_self(entries: Array, rows: slice) -> Array:
    """Set the entries of a node with itself to 0, in place."""
    here = np.arange(rows.start, rows.stop)
    entries[:, here - rows.start, here] = 0
    return entries


def _median(distance: Array) -> float:
    """Median of the distances that are not 0; 1 where there are none."""
    positive = distance[distance > 0]
    return float(np.median(positive)) if positive.size else 1.0
