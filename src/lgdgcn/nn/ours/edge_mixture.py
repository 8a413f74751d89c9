"""Edges as evidence: every edge is drawn by one factor, from the pairs that agree in it."""

import torch
from torch import Tensor

from lgdgcn import kernels

__all__ = [
    "agreement_by_factor",
    "drawn_weights",
    "edge_loss",
    "factor_posterior",
    "factor_weights",
    "posterior_of",
]

_BACKGROUND = 0.05  # share of the edges that no factor has to explain
_LEAST = 1e-4  # share of a factor that draws nothing: it may come back
SMALLEST = 1e-6  # agreement of ends that have no class in common


def factor_weights(owned: Tensor, free_share: float = 0.1) -> Tensor:
    """Return the share of the edges that each factor is expected to draw at first ``[*, M]``.

    Factors with labels come first: they share all but what the free ones have, and a background
    of one twentieth. A free factor with a small share has to explain an edge much better to get
    it, and earns more by such edges (:func:`drawn_weights`); so factors that are not needed cost
    nothing.

    Args:
        owned: Whether labels own the factor. Shape ``[*, M]``.
        free_share: What the free factors have, all together.

    Example:
        >>> factor_weights(torch.tensor([True, False, False]))
        tensor([0.8500, 0.0500, 0.0500])
    """
    owned = owned | ~owned.any(-1, keepdim=True)  # without labels all factors are alike
    number = owned.sum(-1, keepdim=True)
    others = owned.size(-1) - number
    free = torch.where(others > 0, free_share, 0.0)
    of_owned = (1 - _BACKGROUND - free) / number
    return torch.where(owned, of_owned, free / others.clamp_min(1))


def drawn_weights(drawn: Tensor, owned: Tensor) -> Tensor:
    """Return the shares anew: a step of EM, in which factors with labels keep equal shares.

    (With many factors an edge says too little to tell the shares of all: where they are equal,
    estimates of each cost one point of attribution.)

    Args:
        drawn: Mean over the edges of :func:`factor_posterior`. Shape ``[*, M]``.
        owned: Whether labels own the factor. Shape ``[*, M]``.
    """
    mean = (drawn * owned).sum(-1, keepdim=True) / owned.sum(-1, keepdim=True).clamp_min(1)
    above = torch.where(owned, mean, drawn) + _LEAST
    return (1 - _BACKGROUND) * above / above.sum(-1, keepdim=True)


def edge_loss(units: Tensor, edge_index: Tensor, weights: Tensor) -> Tensor:
    r"""Negative log-likelihood of the edges, beside that of pairs drawn by chance.

    With :math:`q_{i,m} = u_{i,m}^2` as distributions over the factor's classes, two nodes agree
    by :math:`a_{ij,m} = \langle q_{i,m}, q_{j,m} \rangle`, and any two of the graph by
    :math:`\bar a_m` on average. A factor draws pairs with a probability proportional to their
    agreement, and an edge is drawn by one of the factors, or by none:

    .. math:: L_{edge} = - \frac{1}{E} \sum_{(i, j) \in E}
        \log \Big( w_0 + \sum_m w_m \frac{a_{ij,m}}{\bar a_m} \Big)

    The mean over all pairs is a sum over classes, so nothing of size N x N is built. How dense the
    graph is drops out. The loss is 0 where edges agree as much as any pair, and lower the better
    classes explain them; a factor in which all nodes have one class explains nothing. No label
    is needed.

    Args:
        units: Units, whose squares are distributions. Shape ``[*, N, M, d]``.
        edge_index: Edges. Shape ``[2, E]``.
        weights: Shares w of the factors; :math:`w_0` is what is left. Shape ``[*, M]``.

    Returns:
        The loss of every member ``[*]``; 0 without edges.
    """
    shares = units.square()
    if edge_index.size(1) == 0 or units.size(-3) < 2:
        return shares.sum((-1, -2, -3)) * 0
    weights = weights.to(units.dtype)
    scale = (weights / _by_chance(shares)).sqrt()  # [*, M], of either end
    lift = kernels.edge_agreement((shares * scale[..., None, :, None]).flatten(-2), edge_index)
    background = 1 - weights.sum(-1, keepdim=True)
    return -(background + lift).log().mean(-1)


@torch.no_grad()
def factor_posterior(units: Tensor, edge_index: Tensor, weights: Tensor) -> Tensor:
    r"""Return the probability that each factor drew the edge, if any did ``[*, E, M]``.

    .. math:: P(m \mid i, j) \propto w_m \, a_{ij,m} / \bar a_m

    Args:
        units: Units, whose squares are distributions. Shape ``[*, N, M, d]``.
        edge_index: Edges. Shape ``[2, E]``.
        weights: Shares of the factors. Shape ``[*, M]``.
    """
    shares = units.square()
    agreement = agreement_by_factor(shares, edge_index)
    return posterior_of(agreement, weights.to(units.dtype) / _by_chance(shares))


def agreement_by_factor(shares: Tensor, edge_index: Tensor) -> Tensor:
    """Agreement of the ends of every edge in each factor ``[*, E, M]``, for distributions."""
    parts = [kernels.edge_agreement(own.contiguous(), edge_index) for own in shares.unbind(-2)]
    return torch.stack(parts, -1)


def posterior_of(agreement: Tensor, lift: Tensor) -> Tensor:
    """Probability that each factor drew the edge ``[*, E, M]``, by its lift per agreement."""
    evidence = (agreement + SMALLEST) * lift.unsqueeze(-2)
    return evidence / evidence.sum(-1, keepdim=True)


def _by_chance(shares: Tensor) -> Tensor:
    """Mean agreement of any two nodes in each factor, ``[*, N, M, d] -> [*, M]``."""
    pairs = max(1, shares.size(-3) * (shares.size(-3) - 1))
    everyone = shares.sum(-3).square().sum(-1) - shares.square().sum((-1, -3))
    return everyone / pairs + SMALLEST
