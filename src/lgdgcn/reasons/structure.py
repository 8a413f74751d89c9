"""What a graph says about each of its edges, found once and used by every fit of types."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from lgdgcn.progress import long_work
from lgdgcn.reasons.agreement import agreement_of
from lgdgcn.reasons.agreement_columns import BLANK, NodeColumn, level_edges, levels_of
from lgdgcn.reasons.clique_kinds import find_kinds
from lgdgcn.reasons.cliques import CliqueCover, cover_by_cliques
from lgdgcn.reasons.consensus import activity_fits, sizes_around
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.line_graph import LINE_GRAPHS, line_vectors, node_vectors
from lgdgcn.reasons.number_of_reasons import ModelChoice, choose_model
from lgdgcn.reasons.shape import shape_columns, sorted_ends

__all__ = ["Structure", "describe_edges"]

RANDOM = 20_000  # pairs of nodes that say what agreement is rare
VECTORS = 32
FEATURE_VECTORS = 16
SCALE = 3.0  # of the first spectral column beside a column of variance 1
MOST_ACTIVITIES = 32  # of a model whose shares are columns: more of them cost much and tell little


@dataclass(frozen=True)
class Structure:
    """Columns of every edge that no type has a part in.

    Attributes:
        edges: The graph.
        cover: Its cliques.
        choice: The family of reasons that the edges follow.
        place: Where in the graph an edge lies: spectral vectors, activities ``[E, F]``.
        local: What its two ends have in common and how it lies in its neighbourhood ``[E, F']``.
    """

    edges: Edges
    cover: CliqueCover
    choice: ModelChoice
    place: Array
    local: Array


def describe_edges(
    edges: Edges,
    count: int,
    *,
    x: Any = None,
    labels: Array | None = None,
    columns: Sequence[NodeColumn] = (),
    seed: int = 0,
) -> Structure:
    """Find all that a graph says about its edges.

    Args:
        edges: The graph.
        count: Number of types: as many activities are looked for.
        x: Node features, dense or sparse ``[N, F]``.
        labels: Label of each node, -1 for none ``[N]``.
        columns: Of the nodes' table, in each of which the two ends may agree.
        seed: Of all random choices.
    """
    with long_work("describing the edges"):
        classes = None if labels is None else np.where(labels < 0, labels.max() + 1, labels)
        choice = choose_model(edges, num_factors=count, classes=classes, seed=seed)
        cover = cover_by_cliques(edges)
        shape = standardise(shape_columns(edges))
        place, local = [_node_columns(edges)], [shape, _clique_columns(edges, shape, cover)]
        if choice.cliques:
            kinds = np.log(find_kinds(cover, choice.num_factors, seed).probability + 0.01)
            local.append((kinds - kinds.mean(1, keepdims=True))[cover.of_pair])
        else:
            sizes = sizes_around(min(choice.num_factors, MOST_ACTIVITIES))
            used = classes if choice.use_classes else None
            fits = activity_fits(edges, sizes, classes=used, seed=seed)
            place += [_line_columns(edges)]
            place += [_share_columns([fit.shares(edges.ends) for fit in fits])]
        if x is not None:
            cosine, vectors = _feature_columns(x, edges)
            local.append(cosine)
            place.append(vectors)
        local += [] if labels is None else [_label_columns(labels, edges)]
        local += [_agreement_columns(columns, edges, seed)] if columns else []
        parts = [np.concatenate(part, 1).astype(np.float32) for part in (place, local)]
        return Structure(edges, cover, choice, *parts)


def _node_columns(edges: Edges) -> Array:
    """Products, sums and differences of spectral node vectors, the smooth ones larger."""
    vectors, values = node_vectors(edges, VECTORS)
    result: Array = _both_ends(vectors, edges.ends) * np.tile(np.sqrt(np.abs(values)), 3) * SCALE
    return result


def _line_columns(edges: Edges) -> Array:
    """Spectral vectors of the line graphs."""
    count = min(VECTORS, max(1, len(edges) - 1))
    found = [line_vectors(edges, count, *line_graph) for line_graph in LINE_GRAPHS[1:]]
    result: Array = np.concatenate(found, 1) * np.sqrt(count)
    return result


def _share_columns(shares: Sequence[Array]) -> Array:
    """Shares of the factors of several activity models."""
    return np.concatenate([np.sqrt(share * VECTORS / 2) for share in shares], 1)


def _clique_columns(edges: Edges, shape: Array, cover: CliqueCover) -> Array:
    """Means over the edge's clique, its size, and how many cliques the ends are in."""
    inside = np.asarray(cover.member.sum(0)).ravel()
    edges_of = np.bincount(cover.of_pair, minlength=cover.member.shape[0])
    sizes = [np.log(cover.size)[cover.of_pair], np.log(edges_of)[cover.of_pair]]
    ends = sorted_ends(inside, edges.ends)
    return standardise(np.column_stack([cover.mean(shape)[cover.of_pair], *sizes, *ends]))


def _feature_columns(x: Any, edges: Edges) -> tuple[Array, Array]:
    """Cosine of the two ends' features, and their main directions at both ends."""
    from sklearn.preprocessing import normalize
    from sklearn.utils.extmath import randomized_svd

    unit = normalize(scipy.sparse.csr_matrix(x, dtype=float))
    first, second = edges.ends
    cosine = np.asarray(unit[first].multiply(unit[second]).sum(1)).ravel()
    count = min(FEATURE_VECTORS, *unit.shape)
    left, values, _ = randomized_svd(unit, count, random_state=0)
    return standardise(cosine[:, None]), _both_ends(left * values, edges.ends)


def _label_columns(y: Array, edges: Edges) -> Array:
    """Which node labels the two ends have, and whether they agree; -1 is no label."""
    labels = np.arange(y.max(initial=0) + 1)
    ends = (y[edges.ends[0]][:, None] == labels), (y[edges.ends[1]][:, None] == labels)
    both = ends[0].astype(float) * ends[1]
    return standardise(np.column_stack([ends[0] + 1.0 * ends[1], both, both.sum(1)]))


def _agreement_columns(columns: Sequence[NodeColumn], edges: Edges, seed: int) -> Array:
    """How rare the agreement of the ends is in each column, where one is blank, and what it means.

    The last columns are the reasons that are found without types: walks along the edges of each
    are near in a team that no column shows.
    """
    draws = np.random.default_rng(seed)
    random = draws.choice(edges.ends.ravel(), (2, RANDOM))  # nodes by their degrees
    found = []
    for column in columns:
        ready = column.prepared(edges.degree)
        limits = level_edges(ready.agreement(random, edges.degree))
        level = levels_of(ready.agreement(edges.ends, edges.degree), limits)
        found += [np.where(level == BLANK, 0, level), level == BLANK]
    reasons = np.log(agreement_of(edges, list(columns), seed=seed).probability + 0.01)
    return standardise(np.column_stack([*found, reasons]))


def standardise(columns: Array) -> Array:
    """Mean 0 and variance 1 in each column."""
    result: Array = (columns - columns.mean(0)) / (columns.std(0) + 1e-9)
    return result


def _both_ends(vectors: Array, ends: Array) -> Array:
    first, second = vectors[ends[0]], vectors[ends[1]]
    return standardise(np.concatenate([first * second, first + second, abs(first - second)], 1))
