"""What the types shown at other pairs say about a pair."""

import numpy as np
import scipy.sparse

from lgdgcn.reasons.cliques import CliqueCover
from lgdgcn.reasons.edges import Array, Edges

__all__ = ["Evidence", "deal_folds"]

SPREAD = (0.5, 0.9)  # probability that the walk goes on
STEPS = 20


class Evidence:
    """Columns that carry shown types to pairs with a common end, a common clique, or near by.

    Args:
        pairs: The graph.
        cover: Its cliques.
    """

    def __init__(self, pairs: Edges, cover: CliqueCover) -> None:
        self.pairs, self.cover = pairs, cover
        degree = scipy.sparse.diags(1 / np.maximum(pairs.degree, 1))
        self._walk = (degree @ (pairs.adjacency + scipy.sparse.diags(pairs.degree)) / 2).tocsr()
        number = np.arange(len(pairs))
        self._inside = scipy.sparse.csr_matrix((np.ones(len(pairs)), (cover.of_pair, number)))

    def columns(self, types: Array) -> Array:
        """Evidence for every type at every pair.

        Args:
            types: Share of each type in each pair, a row of zeros where it is not shown ``[P, T]``.

        Returns:
            ``[P, 7T]``: the two ends together, the weaker and the stronger one, the pair's clique,
            the other cliques of the ends, and walks that stop sooner or later.
        """
        first, second = self.pairs.ends
        usual = types.sum(0) + 0.5
        usual = usual / usual.sum()
        at_end = _log_shares(self.pairs.incidence @ types, usual)  # [N, T]
        in_clique = self._inside @ types  # [cliques, T]
        clique = _log_shares(in_clique, usual)
        told = np.where(in_clique.sum(1, keepdims=True) > 0, np.exp(clique) * usual - usual, 0)
        others = self.cover.member.T @ told
        own = self.cover.of_pair
        found = [
            at_end[first] + at_end[second],
            np.minimum(at_end[first], at_end[second]),
            np.maximum(at_end[first], at_end[second]),
            clique[own],
            others[first] + others[second] - 2 * told[own],
            *(self._spread(types / usual, go_on) for go_on in SPREAD),
        ]
        return np.concatenate(found, 1)

    def out_of_fold(self, types: Array, shown: Array, fold: Array) -> Array:
        """Columns of the shown pairs, each from the types of the other folds ``[S, 7T]``."""
        result = np.empty((len(shown), 7 * types.shape[1]))
        for one in np.unique(fold):
            rest = types.copy()
            rest[shown[fold == one]] = 0
            result[fold == one] = self.columns(rest)[shown[fold == one]]
        return result

    def _spread(self, types: Array, go_on: float) -> Array:
        """Log share of each type among the shown pairs that a walk from this pair meets."""
        degree = np.maximum(self.pairs.degree, 1)[:, None]
        start = self.pairs.incidence @ types / degree  # mean type at the pairs of a node
        met = start
        for _ in range(STEPS):
            met = start + go_on * (self._walk @ met)
        met = met[self.pairs.ends[0]] + met[self.pairs.ends[1]]
        logs = np.log(met + 1e-4 * met.mean() + 1e-12)
        centred: Array = logs - logs.mean(1, keepdims=True)
        return centred


def deal_folds(types: Array, count: int, seed: int) -> Array:
    """Fold of each shown pair so that every fold has its part of each type ``[S]``."""
    order = np.random.default_rng(seed).permutation(len(types))
    order = order[np.argsort(types[order].argmax(1), kind="stable")]
    fold = np.empty(len(types), dtype=int)
    fold[order] = np.arange(len(types)) % count
    return fold


def _log_shares(counts: Array, usual: Array) -> Array:
    """Log of a type's share over its usual share, with one pseudo-count."""
    shares: Array = (counts + usual) / (counts.sum(1, keepdims=True) + 1)
    return np.log(shares / usual)
