"""Graphs whose edges have reasons that are known because they were planted."""

from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from lgdgcn.reasons.edges import Array


def activity_graph(seed: int = 0, sizes: tuple[int, ...] = (90, 60, 30)) -> tuple[Array, Array]:
    """Carriers: a few hubs and many served nodes each; pairs [2, P] and their types [P, M]."""
    draws = np.random.default_rng(seed)
    nodes = 150
    theta = np.zeros((nodes, len(sizes)))
    for factor, size in enumerate(sizes):
        served = draws.permutation(nodes)[:size]
        theta[served, factor] = 0.25
        theta[served[:5], factor] = 3.0
    first, second = np.triu_indices(nodes, 1)
    linked = draws.random((len(first), len(sizes))) < 1 - np.exp(-theta[first] * theta[second])
    some = linked.any(1)
    return np.stack([first[some], second[some]]), linked[some].astype(float)


def clique_graph(seed: int = 0, nodes: int = 500) -> tuple[Array, Array]:
    """Films: one director and three actors each; pairs [2, P] and their types [P, 2]."""
    draws = np.random.default_rng(seed)
    people = [draws.integers(0, nodes // 10, (nodes, 1)), draws.integers(0, nodes // 4, (nodes, 3))]
    reasons: dict[tuple[int, int], list[float]] = {}
    for kind, who in enumerate(people):
        for person in np.unique(who):
            films = np.flatnonzero((who == person).any(1)).tolist()
            for pair in combinations(films, 2):
                reasons.setdefault(pair, [0.0, 0.0])[kind] = 1.0
    return np.array(sorted(reasons)).T, np.array([reasons[pair] for pair in sorted(reasons)])


def matched_accuracy(found: Array, types: Array) -> float:
    """Accuracy on pairs with one type under the best one-to-one naming of the reasons."""
    single = types.sum(1) == 1
    table = np.zeros((int(found.max()) + 1, types.shape[1]))
    np.add.at(table, (found[single], types[single].argmax(1)), 1)
    return float(table[linear_sum_assignment(-table)].sum() / table.sum())


def mixed_graph(seed: int = 0, nodes: int = 240) -> tuple[Array, Array]:
    """Flights of one carrier and families of six; pairs [2, P] and their types [P, 2]."""
    draws = np.random.default_rng(seed)
    theta = np.where(draws.random(nodes) < 0.6, 0.15, 0.0)
    theta[draws.permutation(nodes)[:8]] = 2.5
    family = draws.permutation(nodes) // 6
    first, second = np.triu_indices(nodes, 1)
    flight = draws.random(len(first)) < 1 - np.exp(-theta[first] * theta[second])
    types = np.stack([flight, family[first] == family[second]], 1)
    some = types.any(1)
    return np.stack([first[some], second[some]]), types[some].astype(float)
