"""Reasons of the edges of a graph: the one entry to this package."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from lgdgcn.errors import InputError
from lgdgcn.reasons.agreement import agreement_of
from lgdgcn.reasons.agreement_columns import NodeColumn
from lgdgcn.reasons.clique_kinds import find_kinds
from lgdgcn.reasons.cliques import cover_by_cliques
from lgdgcn.reasons.consensus import fit_consensus
from lgdgcn.reasons.edge_reasons import EdgeReasons
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.number_of_reasons import ModelChoice, choose_model
from lgdgcn.reasons.paying_cliques import both_reasons, find_paying
from lgdgcn.reasons.structure import Structure, describe_edges
from lgdgcn.reasons.typed import fit_types

__all__ = ["UNKNOWN", "fit_edges", "known_labels"]

UNKNOWN = 0.5  # an edge is unknown if a larger part of it is explained by no reason


def fit_edges(
    edge_index: Any,
    num_nodes: int,
    *,
    x: Any = None,
    y: Any = None,
    shown: Any = None,
    type_names: Sequence[str] | None = None,
    num_factors: int | None = None,
    columns: Sequence[NodeColumn] = (),
    structure: Structure | None = None,
    seed: int = 0,
) -> EdgeReasons:
    """Find the reasons of the edges, with or without the types of some.

    Args:
        edge_index: Edges in one or both directions ``[2, E]``.
        num_nodes: N.
        x: Node features, used beside shown types ``[N, F]``.
        y: Node labels, -1 for none ``[N]``.
        shown: One where an edge is known to have a type; a row of zeros where nothing is known
            ``[E, T]``.
        type_names: Names of the T types.
        num_factors: Number of reasons without shown types; by default held-out edges decide.
            Of agreements it is the largest, chance not counted.
        columns: Of the nodes, in which the ends of edges may agree; used without shown types.
        structure: Of the same graph from :func:`~lgdgcn.reasons.structure.describe_edges`, so that
            fits to different shown types share it.
        seed: Of all random choices.

    Example:
        >>> from itertools import combinations
        >>> ring = [(node, (node + 1) % 8) for node in range(8)]
        >>> edges = np.array([*combinations(range(8, 14), 2), *ring]).T
        >>> reasons = fit_edges(edges, 14, num_factors=2)
        >>> reasons.probability.shape, reasons.names
        ((23, 2), ['reason 1', 'reason 2'])
    """
    pairs = Edges.of(edge_index, num_nodes)
    if not len(pairs):
        raise InputError("edge_index has no edge between two different nodes: give at least one")
    if num_factors is not None and num_factors < 1:
        raise InputError(f"num_factors is {num_factors}: give 1 or more")
    labels = known_labels(y, num_nodes)
    classes = None if labels is None else np.where(labels < 0, labels.max() + 1, labels)
    types = None if shown is None else _types_of_pairs(shown, pairs)
    if types is not None:
        if num_factors is not None:
            raise InputError(
                f"num_factors is {num_factors}, but {types.shape[1]} types are shown, and each is "
                "a reason; leave it out"
            )
        num_factors = types.shape[1]
    elif type_names is not None:
        raise InputError("type_names are given, but no types are shown: give both or neither")
    if types is None:
        choice = choose_model(
            pairs, num_factors=num_factors, classes=classes, columns=columns, seed=seed
        )
        if choice.agreement_mean is not None:
            return _agreements(pairs, columns, choice, num_factors, seed)
        return _without_types(pairs, choice, classes if choice.use_classes else None, seed)
    names = [f"type {number + 1}" for number in range(types.shape[1])]
    if type_names is not None:
        names = [str(name) for name in type_names]
        if len(names) != types.shape[1]:
            raise InputError(f"type_names has {len(names)} names: give {types.shape[1]}, as shown")
    if structure is None:
        features = None if x is None else _rows(x, num_nodes, "x")
        structure = describe_edges(pairs, types.shape[1], x=features, labels=labels, seed=seed)
    model = fit_types(structure, types / np.maximum(types.sum(1, keepdims=True), 1), seed)
    # With several types to a pair, as many are drawn as a shown pair has on average.
    several = max(1.0, types.sum() / max(int((types.sum(1) > 0).sum()), 1))
    presence = 1 - (1 - model.probability) ** several
    return EdgeReasons(
        edges=pairs,
        probability=model.probability,
        names=names,
        presence=presence,
        unknown=model.unknown,
        usual=model.usual,
        noun="type",
        about={
            "choice": asdict(structure.choice),
            "log_loss": model.log_loss,
            "weights": model.weights,
        },
    )


def _agreements(
    pairs: Edges,
    columns: Sequence[NodeColumn],
    choice: ModelChoice,
    num_factors: int | None,
    seed: int,
) -> EdgeReasons:
    found = agreement_of(
        pairs, columns, num_reasons=num_factors, blanks_teach=choice.blanks_teach, seed=seed
    )
    choice = replace(choice, num_factors=len(found.names))
    return EdgeReasons(
        edges=pairs,
        probability=found.probability,
        names=found.names,
        presence=found.probability,
        unknown=found.chance > UNKNOWN,
        usual=found.probability.mean(0),
        about={"choice": asdict(choice), "columns": [one.as_dict() for one in found.columns]},
    )


def _without_types(
    pairs: Edges, choice: ModelChoice, classes: Array | None, seed: int
) -> EdgeReasons:
    names = [f"reason {number + 1}" for number in range(choice.num_factors)]
    cover = cover_by_cliques(pairs)
    if choice.cliques:
        kinds = find_kinds(cover, choice.num_factors, seed)
        probability = presence = kinds.probability[cover.of_pair]
        unknown = (cover.size[cover.of_pair] == 2).astype(float)  # a pair alone is no clique
    elif choice.kinds:
        paying = find_paying(pairs, cover)
        activities = choice.num_factors - choice.kinds
        model = fit_consensus(paying.rest, activities, classes=classes, seed=seed)
        kinds = find_kinds(paying.cover, choice.kinds, seed)
        probability, presence = both_reasons(paying, model, kinds)
        unknown = np.zeros(len(pairs))
        unknown[~paying.inside] = model.background(paying.rest)
    else:
        model = fit_consensus(pairs, choice.num_factors, classes=classes, seed=seed)
        probability, presence = model.shares(pairs.ends), model.presence(pairs.ends)
        unknown = model.background(pairs)
    return EdgeReasons(
        edges=pairs,
        probability=probability,
        names=names,
        presence=presence,
        unknown=unknown > UNKNOWN,
        usual=probability.mean(0),
        about={"choice": asdict(choice)},
    )


def _types_of_pairs(shown: Any, pairs: Edges) -> Array:
    """Types shown at either direction of a pair ``[P, T]``."""
    given = np.asarray(shown, dtype=float)
    if given.ndim != 2 or len(given) != len(pairs.number) or given.shape[1] < 2:
        edges = len(pairs.number)
        raise InputError(f"shown has shape {list(given.shape)}: give [{edges}, 2 or more types]")
    if not np.isin(given, (0, 1)).all():
        wrong = given[~np.isin(given, (0, 1))][0]
        raise InputError(f"shown has the value {wrong}: give 0 or 1")
    return (pairs.once(given) > 0).astype(float)


def known_labels(y: Any, num_nodes: int) -> Array | None:
    """One label per node, or None where there are none or several per node."""
    labels = None if y is None else _rows(y, num_nodes, "y")
    if labels is None or labels.ndim != 1 or labels.max() < 0:
        return None
    result: Array = labels.astype(int)
    return result


def _rows(values: Any, num_nodes: int, name: str) -> Any:
    rows = values if hasattr(values, "tocsr") else np.asarray(values)
    if rows.shape[0] != num_nodes:
        raise InputError(f"{name} has {rows.shape[0]} rows: give {num_nodes}, one for each node")
    return rows
