"""Controls that have learned nothing, and the types that stay when they are shuffled.

Every control takes a graph, the shown types ``[E, K]`` and a seed, and gives a probability of every
pair and type ``[P, K]``, as the references do.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.reasons.edges import Array, Edges

__all__ = [
    "Method",
    "clustered",
    "majority",
    "permuted",
    "random_cluster",
    "random_node_vectors",
]

Method = Callable[[Data, Tensor, int], Array]  # graph, shown types, seed: probability [P, K]


def random_cluster(data: Data, shown: Tensor, seed: int) -> Array:
    """Throw a die for every pair."""
    clusters = shown.size(1)
    drawn = np.random.default_rng(seed).integers(0, clusters, data.edge_index.size(1) // 2)
    return np.asarray(np.eye(clusters)[drawn])


def random_node_vectors(dimensions: int | None = None) -> Method:
    """Cluster the sums of two random unit vectors, one per node: the zero to beat.

    Pairs with a common end get alike sums. So this scores above chance wherever a node favours a
    type, although it knows nothing but which pairs have a common end. The more dimensions, the
    less do other pairs blur that.

    Args:
        dimensions: Of the vectors; by default as many as there are types.
    """

    def cluster(data: Data, shown: Tensor, seed: int) -> Array:
        size = data.num_nodes, dimensions or shown.size(1)
        vectors = np.random.default_rng(seed).standard_normal(size)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        ends = vectors[Edges.of_graph(data).ends]  # [2, P, dimensions]
        return clustered(ends.sum(0), shown.size(1), seed)

    return cluster


def majority(data: Data, shown: Tensor, seed: int) -> Array:
    """The shares of the shown types, the same for every pair; equal shares if none is shown."""
    counts = Edges.of_graph(data).once(shown).sum(0)
    shares = counts / counts.sum() if counts.sum() else np.full(len(counts), 1 / len(counts))
    return np.tile(shares, (data.edge_index.size(1) // 2, 1))


def permuted(method: Method) -> Method:
    """The same method with the shown types shuffled over the shown pairs."""

    def with_shuffled_types(data: Data, shown: Tensor, seed: int) -> Array:
        types = Edges.of_graph(data).once(shown)
        rows = np.flatnonzero(types.any(1))
        types[rows] = types[np.random.default_rng(seed).permutation(rows)]
        shuffled = torch.from_numpy(types[Edges.of_graph(data).number])
        return method(data, shuffled, seed)

    return with_shuffled_types


def clustered(vectors: Array, clusters: int, seed: int) -> Array:
    """The cluster of every pair by k-means of its vector, best of 10 starts, as 0/1 ``[P, K]``."""
    from sklearn.cluster import KMeans

    found = KMeans(clusters, n_init=10, random_state=seed).fit_predict(vectors)
    return np.asarray(np.eye(clusters)[found])
