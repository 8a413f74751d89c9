"""Edges as evidence: every edge is drawn by one factor, from the pairs that agree in it."""

from torch import Tensor

from lgdgcn import kernels

__all__ = ["edge_loss"]

_SMALLEST = 1e-6  # agreement of ends that have no class in common


def edge_loss(units: Tensor, edge_index: Tensor) -> Tensor:
    r"""Negative log-likelihood of the edges among all pairs of nodes.

    With :math:`q_{i,m} = u_{i,m}^2` as distributions over the factor's classes, two nodes agree
    by :math:`a_{ij} = \sum_m \langle q_{i,m}, q_{j,m} \rangle`, and an edge is a pair drawn with
    a probability proportional to that. How dense the graph is drops out:

    .. math:: L_{edge} = \log \frac{1}{N (N - 1)} \sum_{i \ne j} a_{ij}
        - \frac{1}{E} \sum_{(i, j) \in E} \log a_{ij}

    The sum over all pairs is one over classes, so nothing of size N x N is built. The loss is 0
    where edges agree as much as any pair, and lower the better classes explain them. No label is
    needed. (A small number is added under both logarithms, so that ends with no class in common
    have a finite price.)

    Args:
        units: Units, whose squares are distributions. Shape ``[*, N, M, d]``.
        edge_index: Edges. Shape ``[2, E]``.

    Returns:
        The loss of every member ``[*]``; 0 without edges.
    """
    shares = units.square()
    nodes, edges = units.size(-3), edge_index.size(1)
    if edges == 0 or nodes < 2:
        return shares.sum((-1, -2, -3)) * 0
    agreement = kernels.edge_agreement(shares.flatten(-2), edge_index)  # [*, E]
    everyone = shares.sum(-3).square().sum((-1, -2)) - shares.square().sum((-1, -2, -3))
    by_chance = everyone / (nodes * (nodes - 1))
    return (by_chance + _SMALLEST).log() - (agreement + _SMALLEST).log().mean(-1)
