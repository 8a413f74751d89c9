"""Whether factors say why edges are there: of every edge something, of any edge at all."""

import math
from collections.abc import Sequence

from torch import Tensor

from lgdgcn.config import Settings
from lgdgcn.metrics.attribution import routing_entropy
from lgdgcn.models import NodeOutput
from lgdgcn.train.checks import usage_warning
from lgdgcn.train.trained import TrainedModel

__all__ = ["factor_warnings", "routing_warning", "warnings_of_training"]

_ROUTING = "routing entropy is"  # begins the one sentence
_ONE_FACTOR = "one factor is the likeliest of"  # and this the other
_UNROUTED = 0.99  # routing entropy above which edges are not given to factors
_NEARLY_ALL = 0.95  # share of the edges of one factor from which on fewer than 1 in 20 differ
_FEWEST = 40  # 20 edges in both directions: of two equal factors, one has 19 of them by chance in
# 1 of 25 000 graphs


def routing_warning(edge_factors: Tensor | None, settings: Settings) -> str | None:
    """Say in one sentence that factors do not say why edges are there, where that is so.

    Either every edge is shared by all factors almost alike, or nearly all edges have the same
    likeliest factor: its name then is no reason of an edge, as hardly any edge has another.

    Args:
        edge_factors: Probability of each factor for the edges of the last layer, or for a sample
            of them. Shape ``[E, M]``; ``None`` of a model without factors.
        settings: Of the training.

    Returns:
        The sentence; ``None`` where edges differ in their factors, or nothing is routed.

    Example:
        >>> import torch
        >>> shares = torch.tensor([[0.9, 0.1]]).repeat(50, 1)
        >>> print(routing_warning(shares, Settings(factors=2)))  # doctest: +NORMALIZE_WHITESPACE
        one factor is the likeliest of all edges, so factors do not say why an edge is there;
        try lgdgcn train GRAPH --reasons model
        >>> routing_warning(torch.eye(2).repeat(25, 1), Settings(factors=2))
    """
    entropy = None if edge_factors is None else routing_entropy(edge_factors)
    if edge_factors is None or entropy is None or not math.isfinite(entropy):
        return None
    if entropy > _UNROUTED:
        is_ours = settings.variant == "ours"
        advice = (
            f"raise lambda_edge (now {settings.lambda_edge:g})"
            if is_ours
            else "try lgdgcn train GRAPH --model lgdgcn"
        )
        return (
            f"{_ROUTING} {entropy:.4f}: every edge is shared by all factors almost alike, so "
            "nothing is routed and the factor named for an edge has hardly more of it than the "
            f"others; {advice}"
        )
    edges, factors = edge_factors.shape
    share = int(edge_factors.argmax(1).bincount(minlength=factors).max()) / edges
    if edges < _FEWEST or share < _NEARLY_ALL:
        return None
    known = "all" if share == 1 else f"{math.floor(1000 * share) / 10} % of the"
    return (
        f"{_ONE_FACTOR} {known} edges, so factors do not say why an edge is there; "
        "try lgdgcn train GRAPH --reasons model"
    )


def factor_warnings(trained: TrainedModel, output: NodeOutput) -> list[str]:
    """What a reader of a model's factors should know, a sentence each.

    Args:
        trained: The model.
        output: What its network says of a graph.
    """
    edge_factors = output.layers[-1].edge_factors if output.layers else None
    both = routing_warning(edge_factors, trained.settings), usage_warning(trained, output)
    return [warning for warning in both if warning]


def warnings_of_training(warnings: Sequence[str]) -> list[str]:
    """What a finished run said of its training; the routing of a graph is looked at anew."""
    return [warning for warning in warnings if not warning.startswith((_ROUTING, _ONE_FACTOR))]
