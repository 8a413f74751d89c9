"""Which channel an edge is given to, and which factor made it."""

import math

import numpy as np
import torch
from torch import Tensor

from lgdgcn.metrics.arrays import Array
from lgdgcn.reasons.edges import Edges

__all__ = [
    "attribution_table",
    "edge_attribution",
    "effective_number",
    "factor_usage",
    "matched_share",
    "routing_entropy",
    "single_makers",
]


def routing_entropy(edge_factors: Tensor) -> float | None:
    """Mean entropy of the edges' factor probabilities as a share of its maximum.

    Args:
        edge_factors: Probabilities. Shape ``[E, M]``.

    Returns:
        1 where nothing is routed, 0 where every edge has one factor; ``None`` without edges or
        with a single factor.

    Example:
        >>> routing_entropy(torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
        0.5
    """
    edges, factors = edge_factors.shape
    if edges == 0 or factors == 1:
        return None
    entropy = torch.special.entr(edge_factors.double()).sum(-1).mean()
    return float(entropy) / math.log(factors)


def effective_number(shares: Tensor) -> Tensor:
    """How many equal shares would be as spread out, the exponential of the entropy ``[*]``.

    Args:
        shares: Distributions. Shape ``[*, M]``.

    Example:
        >>> effective_number(torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])).tolist()
        [2.0, 1.0]
    """
    number: Tensor = torch.special.entr(shares).sum(-1).exp()
    return number


def factor_usage(edge_factors: Tensor) -> float | None:
    """How many factors all edges together go to: the effective number of their mean shares.

    Args:
        edge_factors: Probabilities. Shape ``[E, M]``.

    Returns:
        1 where one factor has all edges, M where each has as many; ``None`` without edges.

    Example:
        >>> factor_usage(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
        2.0
    """
    if edge_factors.size(0) == 0:
        return None
    return float(effective_number(edge_factors.double().mean(0)))


def edge_attribution(edge_index: Tensor, edge_factors: Tensor, y_factor: Tensor) -> float | None:
    """Share of edges whose strongest channel is the factor that made them.

    Only edges that share the class of exactly one factor have a known maker. Channels carry no
    names, so they are matched to factors one to one in the way that scores best: with fewer
    channels than factors some factors have no channel.

    Args:
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        edge_factors: Channel probabilities. Shape ``[E, M]``.
        y_factor: Class of every node in every true factor, -1 where unknown. Shape ``[N, F]``.

    Returns:
        Accuracy; ``None`` where no edge has exactly one true factor. Where factors make equally
        many edges, random channels reach about 1 / max(M, F), a single channel for all edges
        1 / F, and nothing more than min(M, F) / F.
    """
    edges = Edges.of(edge_index.cpu(), len(y_factor))
    maker = single_makers(edges.ends, y_factor.cpu().numpy())
    shape = edge_factors.size(1), y_factor.size(1)
    channel = edges.once(edge_factors.cpu()).argmax(1)
    table = attribution_table(channel, maker, shape, np.ones(len(maker)))
    return matched_share(table) if table.any() else None


def single_makers(pairs: Array, y_factor: Array) -> Array:
    """The factor that made each edge ``[P]``; -1 where none or several may have, or one is unknown.

    Example:
        >>> y_factor = np.array([[0, 0], [0, 1], [1, 1], [0, 0], [-1, 0]])
        >>> single_makers(np.array([[0, 1, 0, 0, 0], [1, 2, 2, 3, 4]]), y_factor).tolist()
        [0, 1, -1, -1, -1]
    """
    first, second = y_factor[pairs[0]], y_factor[pairs[1]]  # [P, F]
    shared = first == second
    known = ((first >= 0) & (second >= 0)).all(1)
    single = known & (shared.sum(1) == 1)
    if not single.any():
        return np.full(len(single), -1)
    return np.where(single, shared.argmax(1), -1)


def attribution_table(
    channel: Array,
    maker: Array,
    shape: tuple[int, int],
    counts: Array,
) -> Array:
    """Count the edges of every channel and maker ``[M, F]``; those without a maker are left out."""
    known = maker >= 0
    cells = channel[known] * shape[1] + maker[known]
    table = np.bincount(cells, weights=counts[known], minlength=shape[0] * shape[1])
    return table.astype(np.float64).reshape(shape)


def matched_share(table: Array) -> float:
    """Share of what is counted where rows and columns, matched one to one, agree best."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())
