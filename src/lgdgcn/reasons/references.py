"""What a model of edges has to beat: known methods, each in a few lines.

Each takes a graph, the shown types ``[E, K]`` (rows of zeros are hidden) and a seed, and gives a
probability of every pair and type ``[P, K]``. None of them looks at ``data.edge_type``.
"""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import svds
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.spectral import COUNT, spectral_features
from lgdgcn.reasons.controls import Method, clustered, majority
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.shape import COMMON, shape_columns

__all__ = [
    "boosting",
    "label_pairs",
    "line_spectral",
    "line_vectors",
    "link_communities",
    "logistic_regression",
    "naive_bayes",
    "shape_clusters",
]

BOOSTING_ROUNDS = 50


# Without shown types


def line_spectral(regularised: bool) -> Method:
    """Spectral clustering of the line graph, whose nodes are the pairs.

    Args:
        regularised: Whether the mean degree is added to all degrees, rather than nothing.
    """

    def cluster(data: Data, shown: Tensor, seed: int) -> Array:
        vectors = line_vectors(data, shown.size(1), regularised)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        return clustered(vectors / np.maximum(length, 1e-12), shown.size(1), seed)

    return cluster


def line_vectors(data: Data, count: int, regularised: bool) -> Array:
    r"""Eigenvectors of the line graph in which a node weighs 1 / (degree + τ) ``[P, count]``.

    Two pairs are joined by their common ends, so the line graph is :math:`B D_τ^{-1} B^T`, B being
    the incidence matrix ``[P, N]``. Its eigenvectors are the left singular vectors of
    :math:`B D_τ^{-1/2}`: the line graph itself, which a hub fills, is never made. The first one is
    nearly constant and left out.
    """
    pairs = Edges.of_graph(data).ends
    number = np.arange(pairs.shape[1])
    shape = pairs.shape[1], data.num_nodes
    incidence = scipy.sparse.csr_matrix(
        (np.ones(pairs.size), (np.tile(number, 2), pairs.ravel())), shape
    )
    degree = np.asarray(incidence.sum(0)).ravel()
    tau = degree.mean() if regularised else 0.0
    scaled = incidence @ scipy.sparse.diags(1 / np.sqrt(np.maximum(degree + tau, 1)))
    if min(shape) <= 300 or count + 1 >= min(shape):
        vectors, values, _ = np.linalg.svd(scaled.toarray(), full_matrices=False)
    else:
        start = np.random.default_rng(0).standard_normal(min(shape))
        vectors, values, _ = svds(scaled, count + 1, v0=start)
    order = np.argsort(-values, kind="stable")[1 : count + 1]
    return np.asarray(vectors[:, order])


def shape_clusters(data: Data, shown: Tensor, seed: int) -> Array:
    """Cluster the columns about common neighbours: edges in cliques, and others."""
    columns = shape_columns(Edges.of_graph(data))[:, COMMON]
    return clustered(_standardised(columns), shown.size(1), seed)


def label_pairs(data: Data, shown: Tensor, seed: int) -> Array:
    """Cluster the pairs by the known labels of both ends, in any order."""
    labels = data.y.numpy()
    known = np.eye(int(labels.max()) + 2)[labels]  # the last column: no label
    ends = known[Edges.of_graph(data).ends]
    return clustered(np.hstack([ends.sum(0), ends.prod(0)]), shown.size(1), seed)


# With and without


def link_communities(
    data: Data, shown: Tensor, seed: int, starts: int = 10, rounds: int = 200
) -> Array:
    r"""Poisson link communities (Ball, Karrer and Newman, 2011) by EM, the likeliest of ten starts.

    The number of edges between i and j in community k has mean :math:`θ_{ik} θ_{jk}`. In the
    E-step :math:`q_{ij}(k) ∝ θ_{ik} θ_{jk}`; in the M-step
    :math:`θ_{ik} = \sum_j q_{ij}(k) / \sqrt{\sum_{ij} q_{ij}(k)}`. Pairs whose type is shown keep
    it as their community.
    """
    edges, rng = Edges.of_graph(data), np.random.default_rng(seed)
    pairs, types = edges.ends, edges.once(shown)
    fixed = types.any(1)
    best, found = -np.inf, types
    for _ in range(starts):
        q = rng.dirichlet(np.ones(shown.size(1)), pairs.shape[1])
        likelihood = -np.inf
        for _ in range(rounds):
            q[fixed] = types[fixed] / types[fixed].sum(1, keepdims=True)
            theta = _at_nodes(pairs, q, data.num_nodes)  # [N, K]
            theta /= np.sqrt(np.maximum(theta.sum(0), 1e-300))
            product = theta[pairs].prod(0) + 1e-300  # [P, K]
            rate = product.sum(1, keepdims=True)
            before, likelihood = likelihood, _poisson(rate, theta)
            q = product / rate
            if likelihood - before < 1e-6 * abs(likelihood):
                break
        if likelihood > best:
            best, found = likelihood, q
    return found


def _poisson(rate: Array, theta: Array) -> float:
    """Log likelihood of the pairs, without the rates of nodes with themselves."""
    return float(np.log(rate).sum() - (theta.sum(0) ** 2).sum() / 2)


def _at_nodes(pairs: Array, values: Array, num_nodes: int) -> Array:
    """Sums over the pairs at every node ``[N, K]``."""
    columns = [
        np.bincount(pairs.ravel(), np.tile(column, 2), minlength=num_nodes) for column in values.T
    ]
    return np.stack(columns, axis=1)


# With shown types


def naive_bayes(data: Data, shown: Tensor, seed: int) -> Array:
    """The product of the type shares at the two ends, over the overall share.

    A pair's own type is left out of what its ends have, so that with all types shown this says
    what all *other* types know. Shares are smoothed by one more pair of the overall shares.
    """
    edges = Edges.of_graph(data)
    pairs, types = edges.ends, edges.once(shown)
    overall = (types.sum(0) + 1e-9) / (types.sum() + 1e-9 * types.shape[1])
    at_ends = _at_nodes(pairs, types, data.num_nodes)[pairs] - types  # [2, P, K]
    share = (at_ends + overall) / (at_ends.sum(2, keepdims=True) + 1)
    product = share.prod(0) / overall
    return np.asarray(product / product.sum(1, keepdims=True))


def logistic_regression(weighted: bool = False) -> Method:
    """Logistic regression on products, sums and differences of spectral vectors of both ends.

    Args:
        weighted: Whether every type weighs the same, however few pairs of it are shown.
    """

    def fit(data: Data, shown: Tensor, seed: int) -> Array:
        from sklearn.linear_model import LogisticRegression

        vectors = spectral_features(data.edge_index, data.num_nodes).numpy()[:, :COUNT]
        first, second = vectors[Edges.of_graph(data).ends]
        common = shape_columns(Edges.of_graph(data))[:, :1]  # its logarithm
        columns = [first * second, first + second, np.abs(first - second), common]
        model = LogisticRegression(class_weight="balanced" if weighted else None, max_iter=500)
        return _fitted(model, _standardised(np.hstack(columns)), data, shown)

    return fit


def boosting(weighted: bool = False) -> Method:
    """Gradient boosting on the columns of the shape.

    Args:
        weighted: Whether every type weighs the same, however few pairs of it are shown.
    """

    def fit(data: Data, shown: Tensor, seed: int) -> Array:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            max_iter=BOOSTING_ROUNDS,
            class_weight="balanced" if weighted else None,
            early_stopping=False,
            random_state=seed,
        )
        return _fitted(model, shape_columns(Edges.of_graph(data)), data, shown)

    return fit


def _fitted(model: Any, columns: Array, data: Data, shown: Tensor) -> Array:
    """Fit the pairs with one shown type; a type that is not shown has probability 0."""
    types = Edges.of_graph(data).once(shown)
    single = types.sum(1) == 1
    probability = np.zeros((len(types), types.shape[1]))
    occurring = np.unique(types[single].argmax(1))
    if len(occurring) < 2:  # nothing to tell apart
        return majority(data, shown, 0)
    model.fit(columns[single], types[single].argmax(1))
    probability[:, model.classes_] = model.predict_proba(columns)
    return probability


def _standardised(columns: Array) -> Array:
    from sklearn.preprocessing import StandardScaler

    return np.asarray(StandardScaler().fit_transform(columns))
