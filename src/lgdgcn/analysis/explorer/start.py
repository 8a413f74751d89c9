"""Where layouts start: a smooth picture that the descent then takes apart."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

__all__ = ["diffused", "principal"]

Array = npt.NDArray[Any]

WIDTH = 10.0  # from the middle to the rim, in widths of the similarity
GRAIN = 1e-3  # parts equal points
PATTERNS = 16  # of diffusion, whose main plane is the start of a graph
SMOOTHING = 30  # steps of it


def principal(points: Array, seed: int) -> Array:
    """The plane in which points differ most, ``[N, d] -> [N, 2]``, with a little grain."""
    centred = points.astype(np.float64) - points.mean(0, dtype=np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])] < 0, -1, 1)
    plane = np.zeros((len(points), 2))
    plane[:, : axes.shape[1]] = centred @ axes
    return _scaled(plane, seed)


def diffused(adjacency: Any, part: Array, seed: int) -> Array:
    """A smooth start: slowly fading patterns of a random walk, centred within each part."""
    nodes = adjacency.shape[0]
    degree = np.maximum(np.asarray(adjacency.sum(1)).ravel(), 1)
    share = scipy.sparse.csr_matrix((degree, (part, np.arange(nodes))))  # [parts, N]
    share = scipy.sparse.diags(1 / np.asarray(share.sum(1)).ravel()) @ share
    pattern = np.random.default_rng(seed).standard_normal((nodes, PATTERNS))
    for step in range(1, SMOOTHING + 1):
        pattern = (pattern + (adjacency @ pattern) / degree[:, None]) / 2
        pattern -= (share @ pattern)[part]
        if step % 10 == 0:
            pattern, _ = np.linalg.qr(pattern)
    length = np.sqrt((pattern**2).sum(1, keepdims=True))
    return principal(pattern / np.where(length > 0, length, 1), seed)


def _scaled(plane: Array, seed: int) -> Array:
    spread = np.abs(plane).max()
    grain = np.random.default_rng(seed).standard_normal(plane.shape) * GRAIN
    return plane * (WIDTH / spread if spread > 0 else 0) + grain
