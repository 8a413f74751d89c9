"""The model of reasons with the manners of scikit-learn."""

import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.errors import InputError
from lgdgcn.reasons.describe import named
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.in_common import columns_of
from lgdgcn.reasons.of_graph import describe_graph, fit_graph, known_types
from lgdgcn.reasons.scores import edge_type_scores
from lgdgcn.reasons.structure import Structure

__all__ = ["FEWEST", "FITS", "EdgeReasonModel"]

HELD_BACK = 0.2  # of the known types
FITS = 3  # that are compared where no type is known
FEWEST = 50  # known types; a fifth of fewer measures nothing


class EdgeReasonModel(BaseEstimator):
    """Find why each edge of a graph is there.

    Where the types of some edges are known it finds those of all, and measures itself on types that
    are held back; otherwise it finds reasons and compares fits of several seeds.

    Args:
        num_reasons: Their number; by default held-out edges decide. Known types are as many.
        fits: How often to hold back types, 1 by default, or how many seeds to compare, 3.
        time_limit: Seconds after which no further fit is begun; the first one is always made.
        random_state: The first seed.

    Attributes:
        reasons_: What was found, an :class:`~lgdgcn.reasons.EdgeReasons`.

    Example:
        >>> from lgdgcn.data import synthetic_graph
        >>> graph = synthetic_graph(factors=2, nodes=60, classes=3, average_degree=6)
        >>> model = EdgeReasonModel(num_reasons=2, fits=1).fit(graph)
        >>> model.predict_proba().shape == (model.reasons_.edges.ends.shape[1], 2)
        True
    """

    def __init__(
        self,
        num_reasons: int | None = None,
        *,
        fits: int | None = None,
        time_limit: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.num_reasons, self.fits = num_reasons, fits
        self.time_limit, self.random_state = time_limit, random_state

    def fit(
        self,
        graph: Data,
        types: Tensor | None = None,
        *,
        progress: Callable[[str], None] = lambda step: None,
    ) -> Self:
        """Fit the edges of a graph.

        Args:
            graph: In canonical form.
            types: 0/1, a row of zeros where nothing is known ``[2 E, T]``; by default those that
                the graph has.
            progress: Called with what is done next.
        """
        types = known_types(graph) if types is None else types
        if types is not None and self.num_reasons is not None:
            raise InputError(
                f"num_reasons is {self.num_reasons}, but {types.size(1)} types of edges are "
                "known, and each is a reason; leave it out"
            )
        started = time.monotonic()
        progress("reasons of edges")
        structure = None
        if types is not None:
            structure = describe_graph(graph, types.size(1), self.random_state)
        reasons = fit_graph(
            graph,
            shown=types,
            num_factors=self.num_reasons,
            structure=structure,
            seed=self.random_state,
        )
        most = self.fits or (1 if types is not None else FITS)
        known = None if types is None else reasons.edges.once(types)
        measures = known is not None and int(known.any(1).sum()) >= FEWEST
        held_back: list[dict[str, Any]] = []
        others: list[Array] = []
        took = time.monotonic() - started
        # the fit itself is one of several seeds, but none of those that are measured
        wanted = range(self.random_state + (0 if measures else 1), self.random_state + most)
        for number, seed in enumerate(wanted, start=1):
            spent = time.monotonic() - started
            if self.time_limit is not None and spent + took > self.time_limit:
                break
            which = "with types held back" if measures else "with other seeds"
            progress(f"reasons of edges {which}, {number} of {len(wanted)}")
            if known is not None and measures:
                scores, probability = _measured(graph, structure, reasons.edges, known, seed)
                held_back.append(scores)
            else:
                count = None if types is not None else len(reasons.names)
                other = fit_graph(
                    graph, shown=types, num_factors=count, structure=structure, seed=seed
                )
                probability = other.probability
            others.append(probability)
        reasons.about["held_back"] = held_back
        reasons.about["left_out"] = len(wanted) - len(others)
        reasons = named(reasons.compared(others), columns_of(graph))
        self.reasons_ = reasons if known is None else reasons.with_known(known)
        return self

    def predict(self) -> Array:
        """Name of the likeliest reason of each undirected edge ``[E]``."""
        return np.array(self.reasons_.names)[self.reasons_.predict()]

    def predict_proba(self) -> Array:
        """Probability of each reason of each undirected edge ``[E, K]``."""
        return self.reasons_.probability


def _measured(
    graph: Data, structure: Structure | None, edges: Edges, known: Array, seed: int
) -> tuple[dict[str, Any], Array]:
    """Fit without a fifth of the known types: scores of these, and all probabilities."""
    typed = np.flatnonzero(known.any(1))
    held = np.zeros(len(edges), dtype=bool)
    held[np.random.default_rng(seed).permutation(typed)[: round(HELD_BACK * len(typed))]] = True
    shown = torch.from_numpy(edges.both(np.where(held[:, None], 0, known)))
    probability = fit_graph(graph, shown=shown, structure=structure, seed=seed).probability
    scores = edge_type_scores(probability, known, named=True, scored=held)
    counts = {"edges": int((held & (known.sum(1) == 1)).sum()), "held_back": int(held.sum())}
    return {"seed": seed, **counts, **scores._asdict()}, probability
