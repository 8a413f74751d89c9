"""One answer from many fits: activity models from several starts, and what they agree on."""

from collections.abc import Sequence

import numpy as np

from lgdgcn.reasons.activity import Activity, fit_activity
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.line_graph import LINE_GRAPHS, line_vectors, unit_rows

__all__ = [
    "activity_fits",
    "agree",
    "cluster_rows",
    "first_shares",
    "fit_consensus",
    "fit_from_line_graph",
    "sizes_around",
]

AROUND = (2 / 3, 1, 4 / 3, 2)  # numbers of factors of the single fits, in those asked for
QUICK = ((0.5, 1.0), (1.0, 0.0))  # line graphs of single fits
DOUBT = 0.02  # share of every other factor in a start from clusters


def sizes_around(num_factors: int) -> list[int]:
    """Numbers of factors that are fitted for a consensus on ``num_factors``."""
    return sorted({max(2, round(share * num_factors)) for share in AROUND})


def fit_consensus(
    pairs: Edges, num_factors: int, *, classes: Array | None = None, seed: int = 0
) -> Activity:
    """The activity model that many fits agree on, or a single fit that is likelier.

    A single fit depends on its start as much as on the graph. So models with fewer and more
    factors are fitted from every line graph's clusters, pairs that most of them put together are
    clustered, and the model is fitted once more from these clusters.
    """
    if num_factors == 1:
        return fit_activity(pairs, np.ones((len(pairs), 1)), classes=classes)
    fits = activity_fits(pairs, sizes_around(num_factors), classes=classes, seed=seed)
    clusters = agree([fit.shares(pairs.ends) for fit in fits], num_factors, seed)
    agreed = fit_activity(pairs, first_shares(clusters, num_factors), classes=classes)
    rivals = [agreed, *(fit for fit in fits if fit.theta.shape[1] == num_factors)]
    return max(rivals, key=lambda fit: fit.log_likelihood(pairs))


def activity_fits(
    pairs: Edges, sizes: Sequence[int], *, classes: Array | None = None, seed: int = 0
) -> list[Activity]:
    """A model from each line graph with each number of factors."""
    draws = np.random.default_rng(seed)
    found = []
    for line_graph in LINE_GRAPHS:
        vectors = line_vectors(pairs, max(sizes), *line_graph)
        for size in sizes:
            clusters = cluster_rows(
                unit_rows(vectors[:, :size]), size, int(draws.integers(2**31)), 1
            )
            found.append(fit_activity(pairs, first_shares(clusters, size), classes=classes))
    return found


def fit_from_line_graph(
    pairs: Edges,
    count: int,
    *,
    classes: Array | None = None,
    line_graphs: Sequence[tuple[float, float]] = QUICK,
) -> Activity:
    """The likelier of two single fits: not as good as a consensus, but many times quicker."""
    if count == 1:
        return fit_activity(pairs, np.ones((len(pairs), 1)), classes=classes)
    found = []
    for line_graph in line_graphs:
        clusters = cluster_rows(line_vectors(pairs, count, *line_graph), count, 0, 3)
        found.append(fit_activity(pairs, first_shares(clusters, count), classes=classes))
    return max(found, key=lambda fit: fit.log_likelihood(pairs))


def agree(shares: Sequence[Array], num_factors: int, seed: int) -> Array:
    """Clusters of pairs that are together in many fits ``[P]``: spectral co-association."""
    stacked = np.concatenate([np.sqrt(share) for share in shares], 1) / np.sqrt(len(shares))
    stacked /= np.sqrt(np.maximum(stacked @ stacked.sum(0), 1e-9))[:, None]
    _, vectors = np.linalg.eigh(stacked.T @ stacked)
    vectors = unit_rows(stacked @ vectors[:, -num_factors:])
    return cluster_rows(vectors, num_factors, seed, 10)


def first_shares(clusters: Array, num_factors: int) -> Array:
    """Shares to start from, nearly all in a pair's own cluster ``[P, M]``."""
    shares = np.full((len(clusters), num_factors), DOUBT)
    shares[np.arange(len(clusters)), clusters] = 1
    result: Array = shares / shares.sum(1, keepdims=True)
    return result


def cluster_rows(vectors: Array, count: int, seed: int, starts: int) -> Array:
    """k-means, the best of ``starts`` ``[rows]``."""
    from sklearn.cluster import KMeans

    count = min(count, len(np.unique(vectors, axis=0)))
    labels: Array = KMeans(count, n_init=starts, random_state=seed).fit_predict(vectors)
    return labels
