"""Reasons as cliques: films of one director are all linked with each other."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.shape import common_neighbours

__all__ = ["CliqueCover", "cover_by_cliques"]


@dataclass(frozen=True)
class CliqueCover:
    """Cliques so that every pair is in one.

    Attributes:
        of_pair: The clique each pair is counted for ``[P]``.
        member: Which node is in which clique, sparse 0/1 ``[cliques, N]``.
    """

    of_pair: Array
    member: scipy.sparse.csr_matrix

    @property
    def size(self) -> Array:
        """Nodes of each clique."""
        return np.diff(self.member.indptr)

    def mean(self, columns: Array) -> Array:
        """Mean of the rows of ``columns`` over the pairs of each clique ``[cliques, …]``."""
        count = self.member.shape[0]
        pairs = np.arange(len(self.of_pair))
        rows = scipy.sparse.csr_matrix((np.ones(len(pairs)), (self.of_pair, pairs)))
        return np.asarray(rows @ columns) / np.bincount(self.of_pair, minlength=count)[:, None]


def cover_by_cliques(pairs: Edges) -> CliqueCover:
    """Greedy cover: from the uncovered pair with most common neighbours grow a clique, repeat.

    A clique grows by the common neighbour that is linked to most of the others, so a person with
    many films is found whole before smaller cliques take single pairs out of it.
    """
    neighbours: list[set[int]] = [set() for _ in range(pairs.num_nodes)]
    number: dict[tuple[int, int], int] = {}
    ends: list[list[int]] = pairs.ends.T.tolist()
    for pair, (first, second) in enumerate(ends):
        neighbours[first].add(second)
        neighbours[second].add(first)
        number[first, second] = pair
    common = common_neighbours(pairs, np.ones((pairs.num_nodes, 1)))[0][0]
    of_pair = np.full(len(pairs), -1)
    cliques: list[list[int]] = []
    for pair in np.argsort(-common, kind="stable").tolist():
        if of_pair[pair] >= 0:
            continue
        clique = _grow(ends[pair][0], ends[pair][1], neighbours)
        for position, first in enumerate(clique):
            for second in clique[position + 1 :]:
                covered = number[first, second]
                if of_pair[covered] < 0:
                    of_pair[covered] = len(cliques)
        cliques.append(clique)
    sizes = [len(clique) for clique in cliques]
    nodes = np.array([node for clique in cliques for node in clique], dtype=int)
    start = np.r_[0, np.cumsum(sizes)].astype(int)
    shape = (len(cliques), pairs.num_nodes)
    return CliqueCover(of_pair, scipy.sparse.csr_matrix((np.ones(len(nodes)), nodes, start), shape))


def _grow(first: int, second: int, neighbours: list[set[int]]) -> list[int]:
    """A clique that holds both nodes and that no node can be added to, sorted."""
    clique, candidates = [first, second], neighbours[first] & neighbours[second]
    links = {node: len(neighbours[node] & candidates) for node in candidates}
    # Ties go to the node with fewer links elsewhere, then to the smaller index.
    for node in sorted(links, key=lambda node: (-links[node], len(neighbours[node]), node)):
        if node in candidates:
            clique.append(node)
            candidates = candidates & neighbours[node]
    return sorted(clique)
