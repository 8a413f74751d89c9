"""How well a model predicts links it has not seen: the measure by which models are chosen."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from lgdgcn.reasons.activity import Activity, fit_activity
from lgdgcn.reasons.cliques import cover_by_cliques
from lgdgcn.reasons.edges import Array, Edges, blocks

__all__ = ["HeldOut", "activity_score", "clique_score", "hold_out", "pairs_not_linked"]

SHARE = 0.1  # of the pairs are hidden


@dataclass(frozen=True)
class HeldOut:
    """Hidden pairs among pairs that are not linked.

    Attributes:
        rest: The graph without the hidden pairs.
        ends: Hidden pairs first, then pairs that are not linked: as many, or all that were found
            in a graph that has hardly any ``[2, H]``.
        linked: Which of them are hidden pairs ``[H]``.
        half: On which of them a score is scaled and on which it is judged, in turn ``[H]``.
    """

    rest: Edges
    ends: Array
    linked: Array
    half: Array

    @property
    def can_be_judged(self) -> bool:
        """Whether both halves have pairs of both kinds."""
        parts = (self.linked[self.half], self.linked[~self.half])
        return all(len(np.unique(part)) == 2 for part in parts)

    @cached_property
    def degrees(self) -> Array:
        """The degrees of both ends and the rate of a single activity, in logs ``[H, 2]``."""
        one = fit_activity(self.rest, np.ones((len(self.rest), 1))).rates(self.ends)[:, 0]
        return np.stack([np.log(self.rest.degree[self.ends] + 1).sum(0), np.log(one + 1e-6)], 1)

    def log_likelihood(self, score: Array) -> Array:
        """Log probability of each answer linked or not, from a score scaled on the other half.

        What degrees alone say is known beside every score. Among pairs that are drawn by degree,
        two hubs are linked less often than not, and a score would be judged by how much it knows
        of that.

        Args:
            score: Larger where a link is more likely ``[H]``.
        """
        from sklearn.linear_model import LogisticRegression

        column = np.column_stack([score, self.degrees])
        column = (column - column.mean(0)) / np.maximum(column.std(0), 1e-9)
        result = np.empty(len(score))
        for part in (self.half, ~self.half):
            scaled = LogisticRegression(C=10.0).fit(column[part], self.linked[part])
            linking = scaled.predict_proba(column[~part])[:, 1]
            result[~part] = np.log(np.where(self.linked[~part], linking, 1 - linking))
        return result


def hold_out(pairs: Edges, seed: int) -> HeldOut:
    """Hide a tenth of the pairs.

    The pairs that are not linked are drawn by the degrees of their ends. Drawn evenly they would
    nearly always have an end with few links, and to know the degrees would be enough.
    """
    draws = np.random.default_rng(seed)
    count = max(2, round(SHARE * len(pairs)))
    hidden = np.zeros(len(pairs), dtype=bool)
    hidden[draws.permutation(len(pairs))[:count]] = True
    not_linked = pairs_not_linked(pairs, count, draws)
    ends = np.concatenate([pairs.ends[:, hidden], not_linked], 1)
    linked = np.arange(ends.shape[1]) < count
    half = np.zeros(ends.shape[1], dtype=bool)
    for part in map(np.flatnonzero, (linked, ~linked)):  # both answers in each half
        half[draws.permutation(part)[::2]] = True
    return HeldOut(pairs.keep(~hidden), ends, linked, half)


def activity_score(held: HeldOut, fit: Callable[[Edges], Activity]) -> Array:
    """Log rate of all factors together, fitted to the rest ``[H]``."""
    result: Array = np.log(fit(held.rest).rates(held.ends).sum(1) + 1e-6)
    return result


def clique_score(held: HeldOut) -> Array:
    """How much of a clique of the one node the other is linked to, both ways ``[H]``."""
    cover = cover_by_cliques(held.rest)
    member, adjacency = cover.member.T.tocsr(), held.rest.adjacency  # [N, cliques], [N, N]
    share = (member @ scipy.sparse.diags(1 / cover.size)).tocsr()
    around = adjacency @ np.diff(member.indptr)  # cliques of all neighbours of a node
    score = np.zeros(held.ends.shape[1])
    for first, second in (held.ends, held.ends[::-1]):
        for rows in blocks(around[second] + np.diff(member.indptr)[first]):
            linked = adjacency[second[rows]] @ member  # [rows, cliques]
            score[rows] += share[first[rows]].multiply(linked).max(1).toarray().ravel()
    return score


def pairs_not_linked(pairs: Edges, count: int, draws: np.random.Generator) -> Array:
    """Up to ``count`` different pairs that are not linked, ends drawn by degree ``[2, …]``."""
    linked = pairs.ends[0] * pairs.num_nodes + pairs.ends[1]
    found = np.zeros(0, dtype=np.int64)
    for _ in range(20 if len(linked) else 0):
        ends = np.sort(draws.choice(pairs.ends.ravel(), (2, 2 * count)), axis=0)
        code = (ends[0] * pairs.num_nodes + ends[1])[ends[0] < ends[1]]
        found = np.unique(np.r_[found, code[~np.isin(code, linked)]])
        if len(found) >= count:
            break
    return np.stack(np.divmod(draws.permutation(found)[:count], pairs.num_nodes))
