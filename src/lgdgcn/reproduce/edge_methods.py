"""Which methods tell the types of edges, and with which help; a new one is one more line."""

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.reasons import EdgeReasons, controls, fit_edges, references
from lgdgcn.reasons.controls import Method
from lgdgcn.reasons.edges import Array, Edges

__all__ = ["LEVELS", "METHODS", "EdgeMethod", "Level"]


@dataclass(frozen=True)
class Level:
    """How much help a method gets.

    Attributes:
        id: Short name.
        title: What it is called in tables.
        share: Share of the pairs with one type whose type is shown; ``None`` shows all types, of
            which a method may use those of *other* pairs only.
        labels: Whether it knows the labels of nodes.
    """

    id: str
    title: str
    share: float | None = 0.0
    labels: bool = False

    @property
    def named(self) -> bool:
        """Whether types are shown, so that a method can name them."""
        return self.share != 0


LEVELS = (
    Level("none", "no help"),
    Level("labels", "node labels", labels=True),
    Level("shown-1", "1 % of the types shown", 0.01),
    Level("shown-5", "5 % of the types shown", 0.05),
    Level("shown-20", "20 % of the types shown", 0.2),
    Level("others", "all other types shown", None),
)
SHOWN = ("shown-1", "shown-5", "shown-20")
MOST_FITS = 5  # that are kept: one for each seed
_fits: dict[str, EdgeReasons] = {}


@dataclass(frozen=True)
class EdgeMethod:
    """A row of the table.

    Attributes:
        id: Short name, of letters, digits and hyphens.
        title: What it is called in tables.
        kind: What it stands for: something that learned nothing, something known, or ours.
        run: Gives every pair a probability of each type; sees no hidden type.
        levels: The help that it can make use of.
    """

    id: str
    title: str
    kind: Literal["control", "reference", "model"]
    run: Method
    levels: tuple[str, ...]


def ours(data: Data, shown: Tensor, seed: int) -> Array:
    """Our variant trained on the labels of nodes, with a factor for every type."""
    from lgdgcn.estimator import LGDClassifier

    model = LGDClassifier(
        factors=shown.size(1), random_state=seed, device="cpu", budget="none"
    ).fit(data)
    return Edges.of_graph(data).once(model.edge_factors())


def untrained_ours(data: Data, shown: Tensor, seed: int) -> Array:
    """The same network with fresh weights: what its shape alone tells."""
    from lgdgcn.estimator import LGDClassifier
    from lgdgcn.metrics.controls import untrained_copy

    model = LGDClassifier(  # for its sizes
        factors=shown.size(1), epochs=1, budget="none", random_state=seed, device="cpu"
    ).fit(data)
    fresh = untrained_copy(model.trained_, seed)(data)
    factors = fresh.layers[-1].edge_factors
    return Edges.of_graph(data).once(factors)


def reasons(data: Data, shown: Tensor, seed: int) -> Array:
    """The model of edges: activities or kinds of cliques, and types where some are shown."""
    return _fit(data, shown, seed).probability


def balanced_reasons(data: Data, shown: Tensor, seed: int) -> Array:
    """The same probabilities with rare types counted as much as common ones."""
    found = _fit(data, shown, seed)
    weighted = found.probability / np.maximum(found.usual, 1e-6)
    result: Array = weighted / weighted.sum(1, keepdims=True)
    return result


def _fit(data: Data, shown: Tensor, seed: int) -> EdgeReasons:
    """A fit of minutes is made once for both rows that show it."""
    digest = hashlib.sha256(f"{data.num_nodes} {seed}".encode())
    for part in (data.edge_index, shown, data.get("y")):
        digest.update(b"none" if part is None else part.numpy().tobytes())
    key = digest.hexdigest()
    if key not in _fits:
        known = {"shown": shown} if bool(shown.any()) else {"num_factors": shown.size(1)}
        found = fit_edges(data.edge_index, data.num_nodes, y=data.get("y"), seed=seed, **known)
        _fits[key] = found
        while len(_fits) > MOST_FITS:
            del _fits[next(iter(_fits))]
    return _fits[key]


_REGRESSION = references.logistic_regression
METHODS = (
    EdgeMethod("majority", "majority", "control", controls.majority, ("none", *SHOWN)),
    EdgeMethod("random-cluster", "random cluster", "control", controls.random_cluster, ("none",)),
    EdgeMethod("random-vectors", "random node vectors", "control",
               controls.random_node_vectors(), ("none",)),
    EdgeMethod("random-vectors-256", "random node vectors, 256 dimensions", "control",
               controls.random_node_vectors(256), ("none",)),
    EdgeMethod("line-spectral", "line-graph spectral clustering, τ = 0", "reference",
               references.line_spectral(regularised=False), ("none",)),
    EdgeMethod("line-spectral-mean", "line-graph spectral clustering, τ = mean degree",
               "reference", references.line_spectral(regularised=True), ("none",)),
    EdgeMethod("shape-clusters", "k-means on common neighbours", "reference",
               references.shape_clusters, ("none",)),
    EdgeMethod("link-communities", "Poisson link communities (EM)", "reference",
               references.link_communities, ("none", *SHOWN)),
    EdgeMethod("label-pairs", "k-means on the labels of both ends", "reference",
               references.label_pairs, ("labels",)),
    EdgeMethod("untrained", "LGD-GCN, ours, untrained", "control", untrained_ours, ("labels",)),
    EdgeMethod("ours", "LGD-GCN, ours", "model", ours, ("labels",)),
    EdgeMethod("reasons", "LGD-GCN, model of edges", "model", reasons,
               ("none", "labels", *SHOWN)),
    EdgeMethod("reasons-balanced", "LGD-GCN, model of edges, types weighted", "model",
               balanced_reasons, SHOWN),
    EdgeMethod("permuted", "logistic regression, shown types permuted", "control",
               controls.permuted(_REGRESSION()), SHOWN),
    EdgeMethod("permuted-others", "naive Bayes, types permuted", "control",
               controls.permuted(references.naive_bayes), ("others",)),
    EdgeMethod("naive-bayes", "naive Bayes on both ends", "reference",
               references.naive_bayes, (*SHOWN, "others")),
    EdgeMethod("regression", "logistic regression on spectral vectors", "reference",
               _REGRESSION(), SHOWN),
    EdgeMethod("regression-weighted", "logistic regression, types weighted", "reference",
               _REGRESSION(weighted=True), SHOWN),
    EdgeMethod("boosting", "boosting on shape columns", "reference",
               references.boosting(), SHOWN),
    EdgeMethod("boosting-weighted", "boosting, types weighted", "reference",
               references.boosting(weighted=True), SHOWN),
)  # fmt: skip
