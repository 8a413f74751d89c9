"""All measures of one layer together."""

from typing import Any

from threadpoolctl import threadpool_limits
from torch import Tensor

from lgdgcn.metrics.catalogue import HEADLINE, MEASURES
from lgdgcn.metrics.draws import (
    Draws,
    correlation_draws,
    dependence_draws,
    diversity_draws,
    edge_draws,
    probe_draws,
    value_of,
)
from lgdgcn.metrics.inputs import Inputs, checked
from lgdgcn.nn import Disentangled

__all__ = ["all_draws", "disentanglement", "headline"]

GROUPS = (
    edge_draws,
    probe_draws,
    correlation_draws,
    dependence_draws,
    diversity_draws,
)


def disentanglement(
    units: Any, edge_index: Any, edge_factors: Any, y_factor: Any = None, y: Any = None
) -> dict[str, float | None]:
    """Measure how well units and edges tell factors apart.

    What each number means, its range and its chance level: ``docs/metrics.md``.

    Args:
        units: Units of every node. Shape ``[N, M, d]``.
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        edge_factors: Channel probabilities of every edge. Shape ``[E, M]``.
        y_factor: Class of every node in every true factor, -1 where unknown. Shape ``[N, F]``.
        y: Class of every node, -1 where unknown. Shape ``[N]``. Used where no factors are known;
            label sets ``[N, L]`` are passed over.

    Returns:
        Numbers by the names of :data:`~lgdgcn.metrics.catalogue.MEASURES`; ``None`` where one does
        not exist, as those that need the factors do without them.

    Raises:
        InputError: Shapes do not fit, or values are not finite.

    Example:
        >>> import torch
        >>> y_factor = torch.cartesian_prod(torch.arange(3), torch.arange(3)).repeat(10, 1)
        >>> units = torch.eye(3)[y_factor]  # unit m is the class in factor m
        >>> edges = torch.combinations(torch.arange(90)).T
        >>> edges = torch.cat([edges, edges.flip(0)], 1)
        >>> same = (y_factor[edges[0]] == y_factor[edges[1]]).float()
        >>> edges, same = edges[:, same.sum(1) > 0], same[same.sum(1) > 0]
        >>> found = disentanglement(units, edges, same / same.sum(1, keepdim=True), y_factor)
        >>> [found[name] for name in ("edge_attribution", "dci_disentanglement", "leakage")]
        [1.0, 1.0, 0.0]
    """
    draws = all_draws(checked(units, edge_index, edge_factors, y_factor, y))
    return {name: value_of(values) for name, values in draws.items()}


def headline(
    layer: Disentangled, edge_index: Tensor, y_factor: Tensor | None = None
) -> dict[str, float]:
    """The few numbers that every training reports; those that do not exist are left out.

    Args:
        layer: What a layer found out. Where that is not finite there are no numbers.
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        y_factor: Class of every node in every true factor, -1 where unknown. Shape ``[N, F]``.
    """
    units, edge_factors = layer.units, layer.edge_factors
    if not (units.isfinite().all() and edge_factors.isfinite().all()):
        return {}
    inputs = checked(units, edge_index, edge_factors, y_factor)
    with threadpool_limits(1, "blas"):
        draws = edge_draws(inputs) | correlation_draws(inputs) | probe_draws(inputs, brief=True)
    found = {name: value_of(draws.get(name)) for name in HEADLINE}
    return {name: value for name, value in found.items() if value is not None}


def all_draws(
    inputs: Inputs, *, edges: Inputs | None = None, resamples: int = 0, seed: int = 0
) -> Draws:
    """Every measure and its bootstrap ``[1 + resamples]``, in the order of the catalogue.

    Args:
        inputs: What is measured.
        edges: What edges are measured by, if it is something else: a sample of them.
        resamples: Bootstrap resamples.
        seed: Their seed.
    """
    draws: Draws = {}
    # Products of thousands of small matrices: BLAS threads would wait for each other most of the
    # time, spinning; where other programs share the cores that took five times as long.
    with threadpool_limits(1, "blas"):
        for group in GROUPS:
            own = edges if edges is not None and group is edge_draws else inputs
            draws |= group(own, resamples, seed)
    return {name: draws.get(name) for name in MEASURES}
