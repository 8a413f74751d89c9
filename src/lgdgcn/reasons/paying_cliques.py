r"""Cliques that are a reason of their own beside activities.

Hubs that are all linked with each other are a clique, too, but their activities explain that. A
clique pays if it is shorter to name its members, one of :math:`\binom{N}{s}` sets of s nodes, than
to write down its pairs one by one:

.. math::
    \sum_{(i, j) \in c} -\log p(i \sim j) > \log \binom{N}{s} + 2 \log s.

p is the activity model of the pairs that are in no clique that pays.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from lgdgcn.reasons.activity import Activity
from lgdgcn.reasons.clique_kinds import CliqueKinds, memberships_log_likelihood
from lgdgcn.reasons.cliques import CliqueCover
from lgdgcn.reasons.consensus import fit_from_line_graph
from lgdgcn.reasons.edges import Array, Edges

__all__ = ["PayingCliques", "both_reasons", "description_length", "find_paying"]

ROUNDS = 5
COMMUNITIES = 8  # activities that are asked whether they predict the cliques


@dataclass(frozen=True)
class PayingCliques:
    """The cliques that pay, and the other pairs.

    Attributes:
        pairs: The whole graph.
        cover: The cliques that pay; of a pair that is in none the clique is -1.
        gain: Nats that each clique of the given cover saves; those above 0 pay ``[cliques]``.
    """

    pairs: Edges
    cover: CliqueCover
    gain: Array

    @property
    def inside(self) -> Array:
        """Whether each pair is in a clique that pays ``[P]``."""
        result: Array = self.cover.of_pair >= 0
        return result

    @property
    def rest(self) -> Edges:
        """The graph of the other pairs."""
        return self.pairs.keep(~self.inside)

    def are_predicted(self) -> bool:
        """Whether activities of the other pairs predict the cliques better than degrees do.

        Then the cliques are where the activities are dense and no reason of their own: roads
        between near places have triangles, and so has the land that they lie in.
        """
        rest, ends = self.rest, self.pairs.ends[:, self.inside]
        if not ends.size or len(rest) < 4 * COMMUNITIES:
            return False
        several, one = (
            np.log(fit_from_line_graph(rest, count).rates(ends).sum(1) + 1e-9)
            for count in (COMMUNITIES, 1)
        )
        # A clique far from all activities counts no more than one that is merely unlikely.
        return bool(np.maximum(several - one, -2).mean() > 0)


def find_paying(pairs: Edges, cover: CliqueCover) -> PayingCliques:
    """Which cliques of a cover pay, in turns with the activity of the other pairs."""
    size, linked = cover.size, np.count_nonzero(pairs.degree)
    cost = gammaln(linked + 1) - gammaln(size + 1) - gammaln(linked - size + 1) + 2 * np.log(size)
    pays = np.zeros(len(size), dtype=bool)
    gain = -cost
    for _ in range(ROUNDS):
        rest = ~pays[cover.of_pair]
        if not rest.any():
            break
        rate = fit_from_line_graph(pairs.keep(rest), 1).rates(pairs.ends).sum(1)
        # Nodes without another link have no rate: such a pair is one of all that could be.
        nats = -np.log(-np.expm1(-np.maximum(rate, 2 / linked**2)))
        gain = np.bincount(cover.of_pair, nats, minlength=len(size)) - cost
        before, pays = pays, (gain > 0) & (size > 2)
        if np.array_equal(before, pays):
            break
    number = np.where(pays, pays.cumsum() - 1, -1)
    return PayingCliques(pairs, CliqueCover(number[cover.of_pair], cover.member[pays]), gain)


def both_reasons(
    paying: PayingCliques, activity: Activity, kinds: CliqueKinds
) -> tuple[Array, Array]:
    """Probability and presence of the activities and of the kinds of cliques ``[P, M]``.

    A clique makes all its links. In it, an activity is a further reason as often as it would make
    a link.
    """
    ends, inside = paying.pairs.ends, paying.inside
    rates = activity.rates(ends)
    too = -np.expm1(-rates)  # activities beside the clique [P, activities]
    kind = np.zeros((len(inside), kinds.probability.shape[1]))
    kind[inside] = kinds.probability[paying.cover.of_pair[inside]]
    within = np.hstack([too, kind])
    within /= np.maximum(within.sum(1, keepdims=True), 1e-300)
    outside = np.hstack([activity.shares(ends), kind])
    present = np.where(inside[:, None], too, activity.presence(ends))
    return np.where(inside[:, None], within, outside), np.hstack([present, kind])


def description_length(paying: PayingCliques, activity: Activity) -> float:
    """Nats to write down the cliques that pay, of one kind, and the other pairs."""
    cliques = paying.cover.member.shape[0]
    named = memberships_log_likelihood(paying.cover, np.zeros(cliques, dtype=int), 1)
    # What a clique links is known and is no missing link of an activity.
    known = float(activity.rates(paying.pairs.ends[:, paying.inside]).sum())
    return -(named + activity.log_likelihood(paying.rest) + known)
