r"""Kinds of cliques, distinguished by how many cliques of a kind a node is in and by their sizes.

A film has one director but three actors: cliques of directors do not overlap, those of actors do.
Every clique c has a kind :math:`z_c`. With :math:`n_{ik}` the cliques of kind k that node i is in,
:math:`s_c` the size of a clique and :math:`S_k` the sum of the sizes of kind k, the memberships
have the probability

.. math::
    \prod_k \Big[ \frac{\prod_i p_k(n_{ik}) n_{ik}!}{S_k!} \prod_{c: z_c = k} π_k f_k(s_c) s_c!
    \Big]:

each node draws how many cliques of a kind it is in, and the places are dealt out at random.
The tables :math:`p, f, π` are estimated along the way; the kinds are sampled while a temperature
falls, because a quick descent stops at kinds that are mixed.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.special import gammaln

from lgdgcn.reasons.cliques import CliqueCover
from lgdgcn.reasons.consensus import cluster_rows
from lgdgcn.reasons.edges import Array
from lgdgcn.reasons.line_graph import leading_vectors

__all__ = ["CliqueKinds", "find_kinds", "memberships_log_likelihood"]

MOST = 8  # cliques of a kind at a node that are distinguished
SIZES = 16  # classes of sizes, two for each doubling
STEPS = 5000
HOT = 2.0  # temperature at the start; it ends at 1, the model's own probability
WARM = 1.5  # where a start is already known
CHANGE = 0.4  # share of the cliques drawn anew in a step; above a half all flip to and fro
RESTARTS = 4
PSEUDO = 0.5
LOOK = 10  # steps between two likelihoods of the mean


@dataclass(frozen=True)
class CliqueKinds:
    """Kinds found.

    Attributes:
        probability: Probability of each kind for each clique ``[cliques, K]``.
        evidence: Mean log-likelihood of the memberships plus the entropy of the kinds. The entropy
            matters: a few cliques that overlap by accident can have a sharper peak than two kinds
            with many small cliques that may be of either.
    """

    probability: Array
    evidence: float


def find_kinds(cover: CliqueCover, count: int, seed: int = 0, steps: int = STEPS) -> CliqueKinds:
    """The best of a few runs by evidence: annealed ones, and one from how cliques overlap."""
    if count == 1 or len(cover.size) <= count:
        kind = np.arange(len(cover.size)) % count
        return CliqueKinds(np.eye(count)[kind], memberships_log_likelihood(cover, kind, count))
    draws = [np.random.default_rng([seed, run]) for run in range(RESTARTS + 1)]
    found = [_anneal(cover, _overlap_start(cover, count, seed), count, draws[0], steps // 5, WARM)]
    for one in draws[1:]:
        start = one.integers(0, count, len(cover.size))
        found.append(_anneal(cover, start, count, one, steps, HOT))
    return max(found, key=lambda kinds: kinds.evidence)


def memberships_log_likelihood(cover: CliqueCover, kind: Array, count: int) -> float:
    """Log probability of which node is in which clique, given the kinds ``[cliques]``."""
    size, mine = cover.size, np.eye(count)[kind]
    inside = cover.member.T @ mine  # [N, K]
    inside = inside[inside.sum(1) > 0]
    per_node, per_size, share = _tables(inside, _size_class(size), mine)
    total = gammaln(size + 1).sum() + gammaln(inside + 1).sum() - gammaln(size @ mine + 1).sum()
    for one in range(count):
        total += per_node[one, _capped(inside[:, one])].sum()
        total += per_size[one, _size_class(size[kind == one])].sum()
    return float(total + (mine.sum(0) * share).sum())


def _overlap_start(cover: CliqueCover, count: int, seed: int) -> Array:
    """Kinds that overlap with each other more than with themselves ``[cliques]``.

    They stand apart in the eigenvectors of the overlaps with the smallest eigenvalues.
    """
    overlap = (cover.member @ cover.member.T).tolil()
    overlap.setdiag(0)
    strength = np.asarray(overlap.sum(1)).ravel()
    scale = scipy.sparse.diags(1 / np.sqrt(strength + 0.5 * strength.mean() + 1e-9))
    vectors = leading_vectors((-scale @ overlap.tocsr() @ scale).tocsr(), count - 1)[0]
    return cluster_rows(vectors, count, seed, 10)


def _anneal(
    cover: CliqueCover,
    kind: Array,
    count: int,
    draws: np.random.Generator,
    steps: int,
    hot: float,
) -> CliqueKinds:
    """Sample kinds at a falling temperature; a part of the cliques changes in each step."""
    member, back = cover.member, cover.member.T.tocsr()
    size, linked = cover.size[:, None], member.sum(0).A1 > 0
    size_class = _size_class(cover.size)
    mean = np.zeros((len(size), count))
    cooling = int(0.9 * steps)  # then averages are taken
    likelihoods = []
    for step in range(steps):
        temperature = hot ** (1 - min(step / cooling, 1))
        mine = np.eye(count)[kind]  # [cliques, K]
        inside = back @ mine  # [N, K]
        per_node, per_size, share = _tables(inside[linked], size_class, mine)
        # What a node that is in n cliques of a kind gains by one more, and gained by the last one.
        gain = np.diff(per_node, append=per_node[:, -1:]) + np.log(np.arange(MOST) + 1.0)
        place, kinds = _capped(inside), np.arange(count)
        gains = np.hstack([gain[kinds, place], gain[kinds, np.maximum(place - 1, 0)]])
        one_more, last = np.hsplit(member @ gains, 2)
        others = cover.size @ mine - mine * size
        score = np.where(mine > 0, last, one_more) + per_size[:, size_class].T + share
        score -= size * np.log(others + size / 2 + 1)
        score = np.exp((score - score.max(1, keepdims=True)) / temperature)
        score /= score.sum(1, keepdims=True)
        if step >= cooling:
            mean += score / (steps - cooling)
            if step % LOOK == 0:
                likelihoods.append(memberships_log_likelihood(cover, kind, count))
        drawn = (score.cumsum(1) < draws.random((len(size), 1))).sum(1).clip(0, count - 1)
        kind = np.where(draws.random(len(size)) < CHANGE, drawn, kind)
    entropy = -(mean * np.log(np.maximum(mean, 1e-12))).sum()
    return CliqueKinds(mean, float(np.mean(likelihoods) + entropy))


def _tables(inside: Array, size_class: Array, mine: Array) -> tuple[Array, Array, Array]:
    """Log of p ``[K, MOST]``, f ``[K, SIZES]`` and π ``[K]`` from the present kinds."""
    place = _capped(inside)
    per_node = np.stack([np.bincount(column, minlength=MOST) for column in place.T]) + PSEUDO
    sizes = [np.bincount(size_class, kind, minlength=SIZES) for kind in mine.T]
    per_size = np.stack(sizes) + PSEUDO
    share = mine.sum(0) + PSEUDO
    return (
        np.log(per_node / per_node.sum(1, keepdims=True)),
        np.log(per_size / per_size.sum(1, keepdims=True)),
        np.log(share / share.sum()),
    )


def _capped(inside: Array) -> Array:
    """Number of cliques as a column of p."""
    return np.minimum(np.rint(inside), MOST - 1).astype(int)


def _size_class(size: Array) -> Array:
    result: Array = np.minimum(2 * np.log2(size), SIZES - 1).astype(int)
    return result
