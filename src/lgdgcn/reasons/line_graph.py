"""Pairs that lie near each other: eigenvectors of the line graph, which is never formed."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from lgdgcn.reasons.edges import Array, Edges

__all__ = ["LINE_GRAPHS", "leading_vectors", "line_vectors", "node_vectors", "unit_rows"]

# (power of 1 / (degree - 1) by which a hub's pairs count less for each other, regularisation in
# mean degrees of the line graph): no single one is best on every graph, their consensus is good.
LINE_GRAPHS = ((0.0, 0.0), (0.0, 1.0), (0.5, 0.0), (0.5, 1.0), (1.0, 0.0), (1.0, 1.0))
TOLERANCE = 1e-3
DENSE = 300  # rows up to which all eigenvectors are computed


def line_vectors(pairs: Edges, count: int, hub_power: float, regularisation: float) -> Array:
    """Leading eigenvectors of the walk pair → shared end → pair, rows of length 1 ``[P, count]``.

    Two pairs are neighbours if they share an end, and no pair is its own neighbour: with B the
    weighted incidence matrix the line graph is B Bᵀ without its diagonal.
    """
    degree = pairs.degree
    hub = np.where(degree > 1, np.maximum(degree - 1, 1) ** -hub_power, 0)
    if not hub.any():  # no two pairs share an end
        return np.zeros((len(pairs), min(count, len(pairs))))
    links = pairs.incidence.T @ scipy.sparse.diags(np.sqrt(hub))  # [P, N]
    strength = pairs.incidence.T @ (hub * degree) - pairs.incidence.T @ hub
    scale = 1 / np.sqrt(np.maximum(strength + regularisation * strength.mean(), 1e-9))
    links = (scipy.sparse.diags(scale) @ links).tocsr()
    back, itself = links.T.tocsr(), np.asarray(links.multiply(links).sum(1)).ravel()
    if len(pairs) <= DENSE:
        walk = (links @ back).toarray() - np.diag(itself)
    else:
        walk = LinearOperator(
            (len(pairs), len(pairs)),
            matvec=lambda vector: links @ (back @ vector.ravel()) - itself * vector.ravel(),
            dtype=float,
        )
    return unit_rows(leading_vectors(walk, count)[0])


def node_vectors(pairs: Edges, count: int) -> tuple[Array, Array]:
    """Leading regularised spectral vectors of the nodes ``[N, count]`` and their eigenvalues."""
    scale = scipy.sparse.diags(1 / np.sqrt(pairs.degree + pairs.degree.mean()))
    vectors, values = leading_vectors((scale @ pairs.adjacency @ scale).tocsr(), count)
    return vectors * np.sqrt(pairs.num_nodes), values


def unit_rows(matrix: Array) -> Array:
    """Rows of length 1; a row of zeros stays."""
    result: Array = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
    return result


def leading_vectors(matrix: Any, count: int) -> tuple[Array, Array]:
    """Eigenvectors with the largest eigenvalues, those first; the same graph, the same vectors."""
    size = matrix.shape[0]
    if isinstance(matrix, LinearOperator) or size > DENSE:
        count = min(count, size - 1)
        values, vectors = eigsh(matrix, count, which="LA", v0=np.ones(size), tol=TOLERANCE)
    else:
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        values, vectors = np.linalg.eigh(dense)
    order = np.argsort(-values)[:count]
    vectors = vectors[:, order]
    largest = vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1, 1), values[order]
