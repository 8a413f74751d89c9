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
    BLANK,
    LEVELS,
    RARITY,
    NodeColumn,
    levels_of,
    node_columns,
)
from lgdgcn.reasons.agreement_mixture import Mixture
from lgdgcn.reasons.agreement_search import AgreementSearch, Compared
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.held_out import HeldOut, hold_out

__all__ = ["Agreement", "ColumnAgreement", "agreement_of", "fit_agreement", "held_agreement"]

MOST_REASONS = 12
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
        driver: The column that each reason rests on, C where it has none ``[R]``.
        agreeing: Levels of that column at which walks count ``[R, LEVELS]``.
        blanks_teach: Whether edges with a blank in it say how near walks must be.
    """

    probability: Array
    names: list[str]
    columns: list[ColumnAgreement]
    ratio: Array
    mixture: Mixture
    limits: Array
    driver: Array
    agreeing: Array
    blanks_teach: bool

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
        used = {(column.name, column.kind) for column in self.columns}
        degree, size = edges.degree, len(self.columns)
        kept = [column for column in columns if (column.name, column.kind) in used]
        agree = [column.prepared(degree).agreement(ends, degree) for column in kept]
        fixed = [levels_of(*pair) for pair in zip(agree, self.limits[:size], strict=True)]
        levels = []
        for r, weight in enumerate(self.probability.T[1:]):
            near = walk_closeness(edges, weight, ends)
            limits = self.limits[size + 2 * r : size + 2 * r + 2]
            walks = np.array([levels_of(*pair) for pair in zip(near, limits, strict=True)])
            if self.driver[r] < size:
                walks[:, ~self.agreeing[r, fixed[self.driver[r]]]] = BLANK
            levels.append([*fixed, *walks])
        shape = len(self.names) - 1, size + 2, ends.shape[1]
        return self.mixture.expect(np.array(levels, dtype=np.uint8).reshape(shape))


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
    columns = node_columns(data, labels)
    return agreement_of(Edges.of_graph(data), columns, num_reasons=num_reasons, seed=seed)


def agreement_of(
    edges: Edges,
    columns: Sequence[NodeColumn],
    *,
    num_reasons: int | None = None,
    blanks_teach: bool | None = None,
    seed: int = 0,
) -> Agreement:
    """The same of a graph's edges, once each, and the columns of its nodes.

    Args:
        edges: The edges.
        columns: From :func:`~lgdgcn.reasons.agreement_columns.node_columns`.
        num_reasons: Most reasons beside chance.
        blanks_teach: See :class:`~lgdgcn.reasons.agreement_search.AgreementSearch`; by default
            held-out edges decide.
        seed: Of the random pairs, and of the edges held out.
    """
    if blanks_teach is None:
        held = hold_out(edges, 1000 * seed)
        better = held_agreement(held, columns, num_reasons, seed)[0] if held.can_be_judged else None
        blanks_teach = better is None or better.blanks_teach
    compared = Compared(edges, columns, np.random.default_rng(seed))
    search = AgreementSearch(compared, blanks_teach)
    search.find(num_reasons or MOST_REASONS)
    return _described(compared, search, blanks_teach)


def held_agreement(
    held: HeldOut, columns: Sequence[NodeColumn], num_reasons: int | None = None, seed: int = 0
) -> tuple[Agreement, Array]:
    """Reasons of a graph without some edges, and how well they predict these.

    Args:
        held: Edges held out.
        columns: Of the nodes.
        num_reasons: Most reasons beside chance.
        seed: Of the random pairs.

    Returns:
        The better one of two ways to treat blanks, and its log-likelihood of each answer ``[H]``.
    """
    found = []
    for blanks_teach in (True, False):
        one = agreement_of(
            held.rest, columns, num_reasons=num_reasons, blanks_teach=blanks_teach, seed=seed
        )
        found.append((one, held.log_likelihood(one.at(held.rest, columns, held.ends)[1])))
    return max(found, key=lambda pair: float(pair[1].mean()))


def _described(compared: Compared, search: AgreementSearch, blanks_teach: bool) -> Agreement:
    probability, edges, count = search.probability, len(compared.graph), len(compared.columns)
    found = []
    for column, levels in zip(compared.columns, compared.levels, strict=True):
        counts = np.stack([np.bincount(levels[:edges], w, LEVELS) for w in probability.T])
        random = np.bincount(levels[edges:], minlength=LEVELS)
        agree = np.arange(BLANK) >= (1 if column.kind == "category" else NOTABLE)
        shares = [_share(of_one, agree) for of_one in (*counts, random)]
        counts = counts / np.maximum(counts.sum(1, keepdims=True), 1e-12)
        found.append(
            ColumnAgreement(column.name, column.kind, np.array(shares[:-1]), shares[-1], counts)
        )
    limits = [compared.limits, *(compared.walks(weight)[1] for weight in probability.T[1:])]
    return Agreement(
        probability=probability,
        names=["chance", *(_name(compared.columns, feature) for feature in search.driver)],
        columns=found,
        ratio=search.ratio,
        mixture=search.mixture,
        limits=np.concatenate(limits),
        driver=np.minimum(search.driver, count),
        agreeing=search.agreeing,
        blanks_teach=blanks_teach,
    )


def _name(columns: Sequence[NodeColumn], feature: int) -> str:
    if feature >= len(columns):
        return GROUP
    verb = {"category": "same", "words": "words of"}.get(columns[feature].kind, "near")
    return f"{verb} {columns[feature].name}"


def _share(count: Array, agree: Array) -> float:
    known = count[:BLANK]
    return float(known[agree].sum() / max(known.sum(), 1e-12))
