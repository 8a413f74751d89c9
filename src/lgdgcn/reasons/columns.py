"""What the graph alone says about a pair, as columns for a classifier of shown types."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from lgdgcn.reasons.cliques import CliqueCover
from lgdgcn.reasons.edges import Array, Edges, blocks
from lgdgcn.reasons.line_graph import LINE_GRAPHS, line_vectors, node_vectors

__all__ = [
    "clique_columns",
    "feature_columns",
    "label_columns",
    "line_columns",
    "node_columns",
    "shape_columns",
    "share_columns",
    "standardise",
]

VECTORS = 32
FEATURE_VECTORS = 16
SCALE = 3.0  # of the first spectral column beside a column of variance 1


def node_columns(pairs: Edges) -> Array:
    """Products, sums and differences of spectral node vectors, the smooth ones larger."""
    vectors, values = node_vectors(pairs, VECTORS)
    result: Array = _both_ends(vectors, pairs.ends) * np.tile(np.sqrt(np.abs(values)), 3) * SCALE
    return result


def line_columns(pairs: Edges) -> Array:
    """Spectral vectors of the line graphs."""
    count = min(VECTORS, max(1, len(pairs) - 1))
    found = [line_vectors(pairs, count, *line_graph) for line_graph in LINE_GRAPHS[1:]]
    result: Array = np.concatenate(found, 1) * np.sqrt(count)
    return result


def share_columns(shares: Sequence[Array]) -> Array:
    """Shares of the factors of several activity models."""
    return np.concatenate([np.sqrt(share * VECTORS / 2) for share in shares], 1)


def shape_columns(pairs: Edges) -> Array:
    """The common neighbourhood of the two ends: how many, how linked, how special."""
    degree = pairs.degree
    parts = [_common_neighbours(pairs, rows) for rows in blocks(degree[pairs.ends].sum(0))]
    common, rare, adamic, root, linked = np.concatenate(parts, 1)
    triangles = pairs.incidence @ common / 2
    clustering = triangles / np.maximum(degree * (degree - 1) / 2, 1)
    strength = pairs.incidence @ common / np.maximum(degree, 1)
    around = _sums_around(pairs, common) / np.maximum(2 * common, 1)
    small, large = _sorted_ends(degree, pairs.ends)
    logs = [common, adamic, rare, root, small, large, around, linked]
    logs += _sorted_ends(strength, pairs.ends)
    plain = [
        *_sorted_ends(clustering, pairs.ends),
        common / np.maximum(small + large - common, 1),
        common / np.maximum(small - 1, 1),
        common / np.maximum(large - 1, 1),
        linked / np.maximum(common * (common - 1) / 2, 1),
        common == 0,
        rare / np.maximum(common, 1),
        np.log1p(around) - np.log1p(common),
    ]
    return standardise(np.column_stack([*np.log1p(logs), *plain]))


def _common_neighbours(pairs: Edges, rows: slice) -> Array:
    """Of some pairs: number of common neighbours, three weights of them, links among them."""
    adjacency, degree = pairs.adjacency, pairs.degree
    first, second = pairs.ends[:, rows]
    both = adjacency[first].multiply(adjacency[second]).tocsr()  # [rows, N]
    weights = [
        np.ones(pairs.num_nodes),
        1 / np.maximum(degree, 1),
        1 / np.log(np.maximum(degree, 2)),
        1 / np.sqrt(np.maximum(degree, 1)),
    ]
    linked = np.zeros(both.shape[0])
    for part in blocks(both @ degree):  # their neighbours are many more
        of_part = both[part]
        linked[part] = np.asarray(of_part.multiply(of_part @ adjacency).sum(1)).ravel() / 2
    return np.stack([*(both @ weight for weight in weights), linked])


def _sums_around(pairs: Edges, values: Array) -> Array:
    """Sum of what the other two sides of every triangle of a pair have ``[P]``."""
    adjacency, found = pairs.adjacency, np.zeros(len(pairs))
    weighted = scipy.sparse.csr_matrix((values, tuple(pairs.ends)), adjacency.shape)
    weighted = (weighted + weighted.T).tocsr()
    for rows in blocks(pairs.degree[pairs.ends].sum(0)):
        first, second = pairs.ends[:, rows]
        sides = adjacency[first].multiply(weighted[second])
        sides = sides + weighted[first].multiply(adjacency[second])
        found[rows] = np.asarray(sides.sum(1)).ravel()
    return found


def clique_columns(pairs: Edges, shape: Array, cover: CliqueCover) -> Array:
    """Means over the pair's clique, its size, and how many cliques the ends are in."""
    inside = np.asarray(cover.member.sum(0)).ravel()
    pairs_of = np.bincount(cover.of_pair, minlength=cover.member.shape[0])
    sizes = [np.log(cover.size)[cover.of_pair], np.log(pairs_of)[cover.of_pair]]
    ends = _sorted_ends(inside, pairs.ends)
    return standardise(np.column_stack([cover.mean(shape)[cover.of_pair], *sizes, *ends]))


def feature_columns(x: Any, pairs: Edges) -> Array:
    """Cosine of the two ends' features, and their main directions at both ends."""
    from sklearn.preprocessing import normalize
    from sklearn.utils.extmath import randomized_svd

    unit = normalize(scipy.sparse.csr_matrix(x, dtype=float))
    first, second = pairs.ends
    cosine = np.asarray(unit[first].multiply(unit[second]).sum(1)).ravel()
    count = min(FEATURE_VECTORS, *unit.shape)
    left, values, _ = randomized_svd(unit, count, random_state=0)
    return np.column_stack([standardise(cosine[:, None]), _both_ends(left * values, pairs.ends)])


def label_columns(y: Array, pairs: Edges) -> Array:
    """Which node labels the two ends have, and whether they agree; -1 is no label."""
    labels = np.arange(y.max(initial=0) + 1)
    ends = (y[pairs.ends[0]][:, None] == labels), (y[pairs.ends[1]][:, None] == labels)
    both = ends[0].astype(float) * ends[1]
    return standardise(np.column_stack([ends[0] + 1.0 * ends[1], both, both.sum(1)]))


def standardise(columns: Array) -> Array:
    """Mean 0 and variance 1 in each column."""
    result: Array = (columns - columns.mean(0)) / (columns.std(0) + 1e-9)
    return result


def _both_ends(vectors: Array, ends: Array) -> Array:
    first, second = vectors[ends[0]], vectors[ends[1]]
    return standardise(np.concatenate([first * second, first + second, abs(first - second)], 1))


def _sorted_ends(values: Array, ends: Array) -> list[Array]:
    """The smaller and the larger of the two ends' values."""
    return [np.minimum(*values[ends]), np.maximum(*values[ends])]
