"""Labels as classes of factors: our variant's classifier."""

import math

import torch
from torch import Tensor, nn

from lgdgcn.kernels import unit_length
from lgdgcn.nn.ours.label_groups import met_groups

__all__ = ["LabelHead"]

_CERTAINTY = 3.0  # a label starts with e^3 times the weight of all other classes together
_SMALLEST = 1e-5  # least probability of a label, and of its absence


class LabelHead(nn.Module):
    r"""Every label is one class of one factor, as far as a softmax can say so.

    .. math:: P(c \mid i) = \sum_{m,k} \operatorname{softmax}(B_c + W_c)_{m,k} \; q_{i,m,k}

    A factor's classes q exclude each other, so labels that share a factor must, too; a label that
    wants two factors has to split its weight. Where labels start, B, is given by their groups
    (:func:`~lgdgcn.nn.ours.label_groups.label_groups`); W is learned, and decays back to it.

    If a node has exactly one label, the labels are the first C classes of the first factor, and
    nothing is learned here: :math:`P(c \mid i) = q_{i,1,c}`, among these C.

    Args:
        in_channels: Number of classes of all factors together, M * d.
        out_channels: Number of labels C.
        exclusive: Whether a node has exactly one label.
    """

    start: Tensor

    def __init__(self, in_channels: int, out_channels: int, *, exclusive: bool = False) -> None:
        super().__init__()
        self.exclusive = exclusive
        self.weight = None if exclusive else nn.Parameter(torch.empty(out_channels, in_channels))
        self.register_buffer("start", torch.zeros(out_channels, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights and forget the groups."""
        # on the meta device nothing is drawn, but PyTorch would import its compiler, a second
        if self.weight is not None and not self.weight.is_meta:
            nn.init.normal_(self.weight)
        self.start.zero_()

    def begin(self, met: Tensor, nodes: int, factors: int) -> None:
        """Give each group of labels a factor, and each label a class of it.

        Labels share classes where a factor has too few of them.

        Args:
            met: How many training nodes have both of two labels. Shape ``[C, C]``.
            nodes: How many training nodes there are.
            factors: Number of factors M.
        """
        channels = self.start.size(1) // factors
        group = torch.zeros(len(met)) if self.exclusive else met_groups(met, nodes, factors)
        if self.weight is not None:
            nn.init.zeros_(self.weight)
        self.start.zero_()
        for factor in range(factors):
            labels = (group == factor).nonzero().flatten()
            index = factor * channels + torch.arange(len(labels)) % channels
            self.start[labels, index] = math.log(self.start.size(1)) + _CERTAINTY

    def classes(self, units: Tensor) -> Tensor:
        """The distributions over each factor's classes, ``[*, N, M, d] -> [*, N, M * d]``."""
        return unit_length(units).square().flatten(-2)

    def label_distribution(self, units: Tensor) -> Tensor:
        """The distribution over labels that exclude each other, ``[*, N, M, d] -> [*, N, C]``."""
        return unit_length(units[..., 0, : self.start.size(-2)].contiguous()).square()

    def shares(self) -> Tensor:
        """How much of each label is each class ``[*, C, M * d]``."""
        if self.weight is None:
            return (self.start > 0).to(self.start.dtype)
        return (self.start + self.weight).softmax(-1)

    def forward(self, classes: Tensor) -> Tensor:
        """Return the labels' log-odds, or log-probabilities, ``[*, n, M * d] -> [*, n, C]``."""
        if self.exclusive:
            own = classes[..., : self.start.size(-2)].clamp_min(torch.finfo(classes.dtype).tiny)
            return own.log()
        least = max(_SMALLEST, torch.finfo(classes.dtype).eps)  # half types have no 1 - 1e-5
        probability = (classes @ self.shares().mT).clamp(least, 1 - least)
        return probability.log() - (-probability).log1p()
