"""What the types shown at other edges say about an edge."""

import numpy as np
import scipy.sparse

from lgdgcn.reasons.activity import fit_activity
from lgdgcn.reasons.cliques import CliqueCover
from lgdgcn.reasons.edges import Array, Edges

__all__ = ["Evidence", "fold_of_each"]

SPREAD = (0.5, 0.9, 0.97)  # probability that the walk goes on
LENGTHS = 3  # steps of a walk, in mean lengths
ACTIVITY_STEPS = 30
LEAST = 1e-4  # probability of a type that an activity has not met


class Evidence:
    """How much speaks for each type, from edges with a common end, a common clique, or near by.

    Every kind of evidence is a log probability over its usual one, so that a model needs one
    weight for a kind, whatever the number of types. The last kind, the longest walk, needs no
    weight: it is a prediction.

    Args:
        edges: The graph.
        cover: Its cliques.
    """

    def __init__(self, edges: Edges, cover: CliqueCover) -> None:
        self.edges, self.cover = edges, cover
        degree = scipy.sparse.diags(1 / np.maximum(edges.degree, 1))
        self._walk = (degree @ (edges.adjacency + scipy.sparse.diags(edges.degree)) / 2).tocsr()
        number = np.arange(len(edges))
        self._inside = scipy.sparse.csr_matrix((np.ones(len(edges)), (cover.of_pair, number)))

    def columns(self, types: Array, rows: Array | None = None) -> Array:
        """Evidence for every type at every edge.

        Args:
            types: Share of each type in each edge, a row of zeros where it is not shown ``[E, T]``.
            rows: The edges that are asked for, all by default.

        Returns:
            ``[rows, 9, T]``: the two ends together, the weaker and the stronger one, the edge's
            clique, the other cliques of the ends, an activity of each type, and walks that stop
            sooner or later.
        """
        rows = np.arange(len(self.edges)) if rows is None else rows
        first, second = self.edges.ends[:, rows]
        usual = usual_shares(types)
        at_end = _log_shares(self.edges.incidence @ types, usual)  # [N, T]
        in_clique = self._inside @ types  # [cliques, T]
        clique = _log_shares(in_clique, usual)
        known = in_clique.sum(1, keepdims=True) > 0
        surplus = np.where(known, np.exp(clique) * usual - usual, 0)
        others = self.cover.member.T @ surplus
        of_edge = self.cover.of_pair[rows]
        found = [
            at_end[first] + at_end[second],
            np.minimum(at_end[first], at_end[second]),
            np.maximum(at_end[first], at_end[second]),
            clique[of_edge],
            others[first] + others[second] - 2 * surplus[of_edge],
            self._activities(types, usual, rows),
            *(self._spread(types, usual, rows, go_on) for go_on in SPREAD),
        ]
        return np.stack(found, 1).astype(np.float32)

    def out_of_fold(self, types: Array, shown: Array, fold: Array) -> Array:
        """Evidence at the shown edges, each from the types of the other folds ``[S, 9, T]``."""
        parts = [np.flatnonzero(fold == one) for one in np.unique(fold)]
        found = []
        for part in parts:
            others = types.copy()
            others[shown[part]] = 0
            found.append(self.columns(others, shown[part]))
        order = np.argsort(np.concatenate(parts))
        return np.asarray(np.concatenate(found)[order])

    def _activities(self, types: Array, usual: Array, rows: Array) -> Array:
        """Where every type is an activity and the shown edges keep theirs."""
        known = types.any(1, keepdims=True)
        start = np.where(known, types, usual)
        model = fit_activity(self.edges, start, known=types, iterations=ACTIVITY_STEPS)
        result: Array = np.log(np.maximum(model.shares(self.edges.ends[:, rows]), LEAST) / usual)
        return result

    def _spread(self, types: Array, usual: Array, rows: Array, go_on: float) -> Array:
        """Share of each type among the shown edges that a walk from the edge meets."""
        degree = np.maximum(self.edges.degree, 1)[:, None]
        start = self.edges.incidence @ types / degree  # mean type at the edges of a node
        met = start
        for _ in range(round(LENGTHS / (1 - go_on))):
            met = start + go_on * (self._walk @ met)
        both = met[self.edges.ends[0, rows]] + met[self.edges.ends[1, rows]]
        both += 2e-3 * met.mean() * usual + 1e-12
        result: Array = np.log(both / both.sum(1, keepdims=True) / usual)
        return result


def usual_shares(types: Array) -> Array:
    """Share of each type among the shown edges, with half a pseudo-count ``[T]``."""
    counts = types.sum(0) + 0.5
    result: Array = counts / counts.sum()
    return result


def fold_of_each(types: Array, count: int, seed: int) -> Array:
    """Fold of each shown edge so that every fold has its part of each type ``[S]``."""
    order = np.random.default_rng(seed).permutation(len(types))
    order = order[np.argsort(types[order].argmax(1), kind="stable")]
    fold = np.empty(len(types), dtype=int)
    fold[order] = np.arange(len(types)) % count
    return fold


def _log_shares(counts: Array, usual: Array) -> Array:
    """Log of a type's share over its usual share, with one pseudo-count."""
    shares: Array = (counts + usual) / (counts.sum(1, keepdims=True) + 1)
    return np.log(shares / usual)
