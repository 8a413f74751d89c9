"""What the two ends of a reason's edges have in common that random pairs have not."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from lgdgcn.reasons.agreement_columns import NodeColumn, node_columns
from lgdgcn.reasons.edges import Array, Edges, blocks
from lgdgcn.reasons.held_out import pairs_not_linked
from lgdgcn.reasons.of_graph import seen_labels

__all__ = ["InCommon", "SharedColumn", "columns_of", "in_common"]

RANDOM = (5_000, 50_000)  # fewest and most random pairs
ALIKE = 0.1  # share of random pairs that count as alike in a number, a date or a text
LEAST_GAP = 0.1  # between a reason and what it is compared with, in shares
LARGEST_P = 1e-3  # that chance gives as many edges that agree
LEAST_TIMES = 2.0  # as many common neighbours as other edges have, or half as many
LEAST_NEAR = 0.25  # common neighbours; fewer are as good as none
PHRASES = {
    "category": "same {}",
    "number": "similar {}",
    "date": "{} at a similar time",
    "words": "common words in {}",
    "vector": "similar {}",
    "numbers": "similar {}",
}


@dataclass(frozen=True)
class SharedColumn:
    """How often the ends of a reason's edges agree in one column.

    They agree where they have the same value; in a number, a date or a text where they are among
    the tenth of random pairs that are most alike.

    Attributes:
        column: Its name.
        kind: Of :class:`~lgdgcn.reasons.agreement_columns.NodeColumn`.
        share: Of the edges of which both ends are known, those whose ends agree.
        chance: The same of random pairs of nodes, drawn by their degrees.
        others: The same of all other edges; None if there are none.
    """

    column: str
    kind: str
    share: float
    chance: float
    others: float | None

    @property
    def phrase(self) -> str:
        """What the ends have in common."""
        return PHRASES[self.kind].format(self.column)

    def __str__(self) -> str:
        return f"{self.phrase} {100 * self.share:.0f} % (random pairs {100 * self.chance:.0f} %)"


@dataclass(frozen=True)
class InCommon:
    """What the ends of the edges of one reason have in common.

    Attributes:
        columns: Those in which they agree more than random pairs, the most telling first; where
            there are any, only those in which they agree more than other edges, too.
        common_neighbours: Mean number of an edge's ends.
        by_chance: The same of random pairs.
        is_group: Whether neither a column nor the number of common neighbours tells these edges
            from the others, so that the reason only says which part of the network they are in.
    """

    columns: list[SharedColumn]
    common_neighbours: float
    by_chance: float
    is_group: bool

    def __str__(self) -> str:
        near = f"{self.common_neighbours:.1f} common neighbours (random pairs {self.by_chance:.1f})"
        return ", ".join([*map(str, self.columns[:3]), near])


def columns_of(data: Data) -> list[NodeColumn]:
    """The columns of a graph's nodes, and the labels of those that are seen in training."""
    labels = seen_labels(data)
    has_labels = labels is not None and labels.dim() == 1 and bool((labels >= 0).any())
    return node_columns(data, labels.numpy() if labels is not None and has_labels else None)


def in_common(
    edges: Edges, likeliest: Array, count: int, columns: Sequence[NodeColumn], seed: int = 0
) -> list[InCommon]:
    """Find what the ends of every reason's edges have in common.

    Args:
        edges: Of the graph.
        likeliest: The reason that each edge belongs to ``[E]``.
        count: Number of reasons.
        columns: Of the nodes.
        seed: Of the random pairs.
    """
    draws = np.random.default_rng(seed)
    random = pairs_not_linked(edges, int(np.clip(len(edges), *RANDOM)), draws)
    near = [_common_neighbours(edges, ends) for ends in (edges.ends, random)]
    by_chance = float(near[1].mean()) if len(near[1]) else 0.0
    agree = {column.name: _agree(edges, column, random) for column in columns}
    found = []
    for reason in range(count):
        mine = likeliest == reason
        every = [_shared(column, mine, *agree[column.name]) for column in columns if mine.any()]
        above = [shared for shared in every if shared is not None]
        above.sort(key=lambda shared: -_telling(shared.share, shared.chance))
        apart = [one for one in above if one.others is None or one.share - one.others >= LEAST_GAP]
        own, others = (
            float(near[0][some].mean()) if some.any() else None for some in (mine, ~mine)
        )
        few, many = (0.0, 0.0) if own is None or others is None else sorted((own, others))
        is_group = not apart and many < LEAST_TIMES * max(few, LEAST_NEAR)
        found.append(InCommon(apart or above, own or 0.0, by_chance, is_group))
    return found


def _agree(edges: Edges, column: NodeColumn, random: Array) -> tuple[Array, Array, Array, float]:
    """Whether the ends of every edge agree, and whether that is known; share by chance."""
    prepared = column.prepared(edges.degree)
    own, other = (prepared.agreement(ends, edges.degree) for ends in (edges.ends, random))
    known = other[~np.isnan(other)]
    limit = 0.0 if column.kind == "category" else np.inf
    if column.kind != "category" and len(known):
        limit = float(np.quantile(known, 1 - ALIKE))
    chance = float((known > limit).mean()) if len(known) else np.nan
    return own > limit, ~np.isnan(own), known, chance


def _shared(
    column: NodeColumn, mine: Array, agree: Array, known: Array, random: Array, chance: float
) -> SharedColumn | None:
    """How often edges agree in a column; None if not more often than random pairs."""
    from scipy.stats import binom

    inside, outside = agree[mine & known], agree[~mine & known]
    if not len(inside) or not len(random) or not 0 < chance < 1:
        return None
    share = float(inside.mean())
    by_chance = binom.sf(inside.sum() - 1, len(inside), chance)
    if share - chance < LEAST_GAP or by_chance > LARGEST_P:
        return None
    others = float(outside.mean()) if len(outside) else None
    return SharedColumn(column.name, column.kind, share, chance, others)


def _telling(share: float, chance: float) -> float:
    """Information of an agreement, in nats: relative entropy of the share to that of chance."""
    pairs = ((share, chance), (1 - share, 1 - chance))
    return float(sum(p * np.log(p / q) for p, q in pairs if p > 0))


def _common_neighbours(edges: Edges, ends: Array) -> Array:
    """Number of common neighbours of pairs of nodes ``[n]``."""
    adjacency: Any = edges.adjacency
    result = np.zeros(ends.shape[1])
    for rows in blocks(edges.degree[ends].sum(0)):
        first, second = (adjacency[part] for part in ends[:, rows])
        result[rows] = np.asarray(first.multiply(second).sum(1)).ravel()
    return result
