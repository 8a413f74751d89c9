"""Reasons as agreements: an edge is there because its ends have something in common.

A household lives in the same city, a club shares an interest, a team is in no column but its
members have common neighbours. Reasons are found one after the other: the column in which the edges
that chance explains so far agree most above random pairs is the next reason. When no column is
left, what is near by walks along those edges is a reason without a column. Then all are refined
together (:mod:`~lgdgcn.reasons.agreement_mixture`), every reason by its columns and by walks along
its edges alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from lgdgcn.reasons.agreement_closeness import walk_closeness
from lgdgcn.reasons.agreement_columns import (
    LEVELS,
    RARITY,
    NodeColumn,
    level_edges,
    levels_of,
    node_columns,
)
from lgdgcn.reasons.agreement_mixture import Mixture, information, start_mixture
from lgdgcn.reasons.edges import Array, Edges

__all__ = ["Agreement", "ColumnAgreement", "fit_agreement"]

MOST_REASONS = 12
RANDOM = (20_000, 150_000)  # fewest and most random pairs; between, five for each edge
LEAST_GAIN = 0.01  # nats of an edge that a reason must explain
LEAST_SHARE = 0.02  # of the edges
ALONGSIDE = 0.2  # of what its first feature says must another one say to belong to a reason
STEPS = 8  # of EM between two looks at walks
ROUNDS = 3
GROUP = "near in the network"  # the name of a reason without a column
NOTABLE = RARITY.index(0.1) + 1  # level from which a number or a text counts as alike


@dataclass(frozen=True)
class ColumnAgreement:
    """How often the ends of edges agree in one column, by reason and by chance.

    Attributes:
        name: Of the column.
        kind: "category", "number", "date", "words", "vector", "numbers" or "walks".
        share: Of the edges of chance and of each reason of which both ends are known, those that
            agree: the same value, or among the tenth of random pairs that are most alike
            ``[1 + R]``.
        chance: The same of random pairs.
        levels: Share of each level, blanks last, of chance and of each reason
            ``[1 + R, LEVELS]``.
    """

    name: str
    kind: str
    share: Array
    chance: float
    levels: Array

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        plain = {"share": self.share.tolist(), "levels": self.levels.tolist()}
        return {"name": self.name, "kind": self.kind, "chance": self.chance} | plain


@dataclass(frozen=True)
class Agreement:
    """Reasons of the edges of a graph, chance first.

    Attributes:
        probability: Of chance and of each reason, a row for each undirected edge ``[E, 1 + R]``.
        names: "chance", and what the ends of a reason's edges have in common.
        columns: How much they agree in every column.
        ratio: Log likelihood ratio of each edge to chance ``[P]``.
        mixture: What was learnt.
        limits: Agreement above which a level begins, columns, then the walks of each
            reason ``[C + 2 R, LEVELS - 2]``.
    """

    probability: Array
    names: list[str]
    columns: list[ColumnAgreement]
    ratio: Array
    mixture: Mixture
    limits: Array

    @property
    def chance(self) -> Array:
        """Probability that an edge is there by chance ``[P]``."""
        result: Array = self.probability[:, 0]
        return result

    @property
    def rests_on_columns(self) -> bool:
        """Whether a reason is more than a part of the network."""
        return any(name != GROUP for name in self.names[1:])

    def at(self, edges: Edges, columns: Sequence[NodeColumn], ends: Array) -> tuple[Array, Array]:
        """Probability of each reason at other pairs of nodes, and log likelihood ratio to chance.

        Args:
            edges: The edges that the reasons are of.
            columns: Of the nodes, as they were given.
            ends: Pairs of nodes ``[2, n]``.

        Returns:
            ``[n, 1 + R]`` and ``[n]``.
        """
        used = {column.name for column in self.columns}
        degree, size = edges.degree, len(self.columns)
        agree = [c.prepared(degree).agreement(ends, degree) for c in columns if c.name in used]
        fixed = [levels_of(*pair) for pair in zip(agree, self.limits[:size], strict=True)]
        levels = []
        for r, weight in enumerate(self.probability.T[1:]):
            near = walk_closeness(edges, weight, ends)
            limits = self.limits[size + 2 * r : size + 2 * r + 2]
            walks = [levels_of(*pair) for pair in zip(near, limits, strict=True)]
            levels.append([*fixed, *walks])
        shape = len(self.names) - 1, size + 2, ends.shape[1]
        return self.mixture.expect(np.array(levels, dtype=np.uint8).reshape(shape))


class _Compared:
    """Edges and random pairs of a graph, compared in every column and by walks."""

    def __init__(
        self, pairs: Edges, columns: Sequence[NodeColumn], draws: np.random.Generator
    ) -> None:
        self.pairs, self.edges = pairs, len(pairs)
        random, without = _random_pairs(pairs, draws)
        self.ends = np.concatenate([pairs.ends, random], 1)
        self.without = np.concatenate([np.full((2, self.edges), -1), without], 1)
        self.columns: list[NodeColumn] = []
        found, edges = [], []
        for column in columns:
            agreement = column.prepared(pairs.degree).agreement(self.ends, pairs.degree)
            limits = level_edges(agreement[self.edges :])
            levels = levels_of(agreement, limits)
            if len(np.unique(levels[levels < LEVELS - 1])) > 1:
                self.columns.append(column)
                found.append(levels)
                edges.append(limits)
        shape = len(found), self.ends.shape[1]
        self.levels = np.array(found, dtype=np.uint8).reshape(shape)
        self.limits = np.array(edges).reshape(len(edges), len(RARITY))

    def walks(self, weight: Array) -> tuple[Array, Array]:
        """Levels of nearness along weighted edges ``[2, P + B]``, and where they begin."""
        near = walk_closeness(self.pairs, weight, self.ends, self.without)
        limits = np.stack([level_edges(one[self.edges :]) for one in near])
        return np.stack([levels_of(*pair) for pair in zip(near, limits, strict=True)]), limits

    def of_reasons(self, probability: Array) -> Array:
        """Levels in all columns and along each reason's edges ``[R, F, P + B]``."""
        reasons = probability.T[1:]
        return np.stack([np.concatenate([self.levels, self.walks(w)[0]]) for w in reasons])


def fit_agreement(
    data: Data,
    *,
    labels: Array | None = None,
    num_reasons: int | None = None,
    seed: int = 0,
) -> Agreement:
    """Find the reasons of a graph's edges from what their ends have in common.

    Args:
        data: A graph from :func:`~lgdgcn.data.validate.canonical`.
        labels: Labels that may be seen, -1 for all others ``[N]``; none by default.
        num_reasons: Most reasons beside chance; by default as many as there are.
        seed: Of the random pairs.
    """
    pairs = Edges.of_graph(data)
    return agreement_of(pairs, node_columns(data, labels), num_reasons=num_reasons, seed=seed)


def agreement_of(
    pairs: Edges, columns: Sequence[NodeColumn], *, num_reasons: int | None = None, seed: int = 0
) -> Agreement:
    """The same of a graph's edges, once each, and the columns of its nodes."""
    compared = _Compared(pairs, columns, np.random.default_rng(seed))
    probability, used, first = _search(compared, num_reasons or MOST_REASONS)
    if not len(used):
        mixture = Mixture(np.ones(1), np.zeros((0, len(compared.levels) + 2, LEVELS)), np.zeros(0))
        ratio = np.zeros(len(pairs))
    else:
        mixture, probability, ratio = _fit(compared, probability, used, ROUNDS)
    return _described(compared, probability, ratio, mixture, first)


def _search(compared: _Compared, most: int) -> tuple[Array, Array, list[int]]:
    """First probabilities ``[P, 1 + R]``, features used ``[R, F]``, the first one of each."""
    edges, count = compared.edges, len(compared.levels)
    probability = np.ones((edges, 1))
    used, first = np.zeros((0, count + 2), dtype=bool), list[int]()
    left = np.ones(count + 2, dtype=bool)
    while len(used) < most:
        by_chance = probability[:, 0]
        levels = np.concatenate([compared.levels, compared.walks(by_chance)[0]])
        gain, excess = information(levels, edges, by_chance)
        gain = np.where(left, gain, -1)
        columns = gain[:count]
        of_walks = not (columns >= LEAST_GAIN * edges).any()
        best = int(gain.argmax() if of_walks else columns.argmax())
        if gain[best] < LEAST_GAIN * edges:
            break
        new = by_chance * excess[best][levels[best, :edges]]
        left[best] = False
        if new.sum() < LEAST_SHARE * edges:
            continue
        probability = np.column_stack([probability, new])
        probability[:, 0] -= new
        features = np.arange(count + 2) == best
        features[count:] |= of_walks
        used = np.vstack([used, features])
        first.append(best)
        if of_walks:
            used = _wider(compared, probability, used, walks=True)
        _, probability, _ = _fit(compared, probability, used, 1)
        used = _wider(compared, probability, used, walks=of_walks)
        _, probability, _ = _fit(compared, probability, used, 2)
        left[:] = True
    for _ in range(ROUNDS if len(used) else 0):
        used = _wider(compared, probability, used, walks=True)
        _, probability, _ = _fit(compared, probability, used, 1)
    return probability, used, first


def _wider(compared: _Compared, probability: Array, used: Array, walks: bool) -> Array:
    """Let reasons use further features in which their edges agree much, too ``[R, F]``."""
    used, count = used.copy(), len(compared.levels)
    for r, levels in enumerate(compared.of_reasons(probability)):
        gain, _ = information(levels, compared.edges, probability[:, r + 1])
        more = gain > ALONGSIDE * gain[used[r]].max()
        more[count:] &= walks
        used[r] |= more
    return used


def _fit(
    compared: _Compared, probability: Array, used: Array, rounds: int
) -> tuple[Mixture, Array, Array]:
    """EM from first probabilities, walks computed anew in every round."""
    mixture = None
    for _ in range(rounds):
        levels = compared.of_reasons(probability)
        mixture = mixture or start_mixture(levels, probability, used)
        for _ in range(STEPS):
            probability = mixture.step(levels, compared.edges, used)
    assert mixture is not None
    probability, ratio = mixture.expect(compared.of_reasons(probability)[:, :, : compared.edges])
    return mixture, probability, ratio


def _random_pairs(pairs: Edges, draws: np.random.Generator) -> tuple[Array, Array]:
    """Pairs of nodes drawn by their degrees, not linked, and the edges they are drawn in place of.

    Two edges are drawn and an end of each; the other ends are returned, too ``[2, B]``, twice.
    """
    count = int(np.clip(5 * len(pairs), *RANDOM))
    ends = np.concatenate([pairs.ends, pairs.ends[::-1]], 1)
    drawn = draws.integers(0, ends.shape[1], (2, count))
    random, without = ends[0][drawn], ends[1][drawn]
    code = random.min(0) * pairs.num_nodes + random.max(0)
    linked = np.isin(code, pairs.ends[0] * pairs.num_nodes + pairs.ends[1])
    fit = ~linked & (random[0] != random[1])
    return random[:, fit], without[:, fit]


def _described(
    compared: _Compared, probability: Array, ratio: Array, mixture: Mixture, first: list[int]
) -> Agreement:
    kinds = [column.kind for column in compared.columns]
    found = []
    for column, levels in zip(compared.columns, compared.levels, strict=True):
        counts = np.stack([np.bincount(levels[: compared.edges], w, LEVELS) for w in probability.T])
        random = np.bincount(levels[compared.edges :], minlength=LEVELS)
        agree = np.arange(LEVELS - 1) >= (1 if column.kind == "category" else NOTABLE)
        shares = [_share(count, agree) for count in (*counts, random)]
        counts = counts / np.maximum(counts.sum(1, keepdims=True), 1e-12)
        found.append(
            ColumnAgreement(column.name, column.kind, np.array(shares[:-1]), shares[-1], counts)
        )
    names = ["chance"]
    for feature in first:
        names.append(GROUP)
        if feature < len(kinds):
            verb = {"category": "same", "words": "words of"}.get(kinds[feature], "near")
            names[-1] = f"{verb} {compared.columns[feature].name}"
    limits = [compared.limits, *(compared.walks(weight)[1] for weight in probability.T[1:])]
    return Agreement(probability, names, found, ratio, mixture, np.concatenate(limits))


def _share(count: Array, agree: Array) -> float:
    known = count[:-1]
    return float(known[agree].sum() / max(known.sum(), 1e-12))
