"""Eq. 1: project every node into M unit-length factor units."""

import math

import torch
from torch import Tensor, nn

from lgdgcn.errors import InputError
from lgdgcn.kernels import matmul, unit_length

__all__ = ["FactorProjection", "split_factors", "unit_channels"]


def unit_channels(out_channels: int, factors: int) -> int:
    """Size d of one of M units that make up ``out_channels``; refuses what M does not divide."""
    if factors < 1 or out_channels % factors:
        raise InputError(
            f"hidden_channels is {out_channels}, which {factors} factors do not divide; "
            f"use a multiple such as {max(1, factors) * max(1, out_channels // max(1, factors))}"
        )
    return out_channels // factors


def split_factors(h: Tensor, factors: int) -> Tensor:
    """Cut node vectors into M factors and give each part unit length.

    Args:
        h: Node vectors. Shape ``[*, N, M * d]``.
        factors: Number of factors M.

    Returns:
        Units of shape ``[*, N, M, d]``; a zero part stays zero, with zero gradient.

    Example:
        >>> split_factors(torch.tensor([[3.0, 4.0, 0.0, 0.0]]), factors=2).tolist()
        [[[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]]
    """
    return unit_length(h.reshape(*h.shape[:-1], factors, -1))


class FactorProjection(nn.Module):
    r"""One affine map, ReLU and unit length per factor.

    .. math:: z_{i,m} = \sigma(W_m^T h_i + b_m) / \|\sigma(W_m^T h_i + b_m)\|_2

    The M maps are stored side by side and run as one product, so a sparse bag-of-words matrix
    is read once and never becomes dense.

    Args:
        in_channels: Size of the input vectors.
        out_channels: Total size of the M units, a multiple of ``factors``.
        factors: Number of factors M.

    Shapes:
        - **input:** ``[*, N, in_channels]``, dense or (without leading axis) sparse
        - **output:** ``[*, N, M, d]`` with ``d = out_channels / M``
    """

    def __init__(self, in_channels: int, out_channels: int, factors: int) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.factors = factors
        unit_channels(out_channels, factors)
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as DisenGCN does; the scale only matters against the bias."""
        bound = 1 / math.sqrt(self.out_channels)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Project the nodes (Eq. 1)."""
        return unit_length(self.scores(x).relu())

    def scores(self, x: Tensor) -> Tensor:
        """The affine maps alone, ``[*, N, M, d]``."""
        h = matmul(x, self.weight) + self.bias.unsqueeze(-2)
        return h.reshape(*h.shape[:-1], self.factors, -1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, M={self.factors})"
