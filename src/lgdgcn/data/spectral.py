"""Features of a graph that has none: where each node lies in the structure."""

from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor

from lgdgcn.progress import long_work
from lgdgcn.runtime import require_memory

__all__ = ["SPECTRAL_NAMES", "spectral_features"]

COUNT = 32  # eigenvectors
DENSE = 300  # nodes up to which all eigenvectors are computed
TOLERANCE = 1e-4
SPECTRAL_NAMES = [*(f"spectral {number + 1}" for number in range(COUNT)), "log degree"]

Array = np.ndarray[Any, Any]


def spectral_features(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""Eigenvectors of the normalised Laplacian with the smallest eigenvalues, and log(1 + degree).

    They are those of the regularised Laplacian :math:`I - D_τ^{-1/2} (A + τ/N) D_τ^{-1/2}` (Amini
    et al., 2013), τ being the mean degree: plain ones would be spent on small components. The
    first eigenvector, which is constant but for the degree, is left out. Each has mean square 1,
    and its largest entry is positive. The same graph always gives the same features, another graph
    gives others: they are of one graph only.

    Args:
        edge_index: Both directions of each edge. Shape ``[2, E]``.
        num_nodes: N.

    Returns:
        float32 ``[N, 33]``; a column is 0 where the graph is too small to have that eigenvector.
    """
    source, target = edge_index.numpy()
    ones = np.ones(len(source))
    adjacency = scipy.sparse.csr_matrix((ones, (source, target)), (num_nodes, num_nodes))
    degree = np.asarray(adjacency.sum(1)).ravel()
    x = np.zeros((num_nodes, COUNT + 1), dtype=np.float32)
    x[:, -1] = np.log1p(degree)
    if len(source):
        what = "the spectral features"
        require_memory(8 * num_nodes * 3 * COUNT, what, "use --features degree instead")
        with long_work("spectral features"):
            vectors = _smooth_vectors(adjacency, degree)
        x[:, : vectors.shape[1]] = vectors * np.sqrt(num_nodes)
    return torch.from_numpy(x)


def _smooth_vectors(adjacency: Any, degree: Array) -> Array:
    """Up to :data:`COUNT` eigenvectors of length 1, the smoothest first ``[N, count]``."""
    nodes, mean = len(degree), degree.mean()
    scale = 1 / np.sqrt(degree + mean)  # [N]

    def product(vector: Array) -> Array:  # the largest eigenvalues of this are the smallest of L
        scaled = scale * vector.ravel()
        result: Array = scale * (adjacency @ scaled + mean / nodes * scaled.sum())
        return result

    if nodes <= DENSE:
        matrix = scale[:, None] * (adjacency.toarray() + mean / nodes) * scale
        values, vectors = np.linalg.eigh(matrix)
    else:
        operator = LinearOperator((nodes, nodes), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(nodes)
        try:
            values, vectors = eigsh(
                operator, COUNT + 1, which="LA", v0=start, tol=TOLERANCE, maxiter=100
            )
        except ArpackNoConvergence as error:
            values, vectors = error.eigenvalues, error.eigenvectors
        except ArpackError:
            return np.zeros((nodes, 0))
    order = np.argsort(-values, kind="stable")[1 : COUNT + 1]
    vectors = vectors[:, order]
    largest = np.abs(vectors).round(6).argmax(0)  # of entries that are nearly equal the first
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.asarray(vectors * np.where(signs == 0, 1, signs))
