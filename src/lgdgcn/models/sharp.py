"""The sharp variant's network: class units, edges as evidence, labels that own factors."""

from typing import Any, cast

from torch import Tensor

from lgdgcn.models.lgd_gcn import LGDGCN
from lgdgcn.nn import LabelHead, SharpConv

__all__ = ["SharpGCN"]


class SharpGCN(LGDGCN):
    """LGD-GCN with other units, votes and classifier; ``docs/sharp.md`` explains it.

    Args:
        *sizes: Those of :class:`~lgdgcn.models.lgd_gcn.LGDGCN`.
        label_groups: Whether :meth:`begin` gives labels that exclude each other one factor.
        **options: Those of :class:`~lgdgcn.models.lgd_gcn.LGDGCN` but for ``variant``.

    Example:
        >>> import torch
        >>> model = SharpGCN(8, 16, 3, k=2)
        >>> model(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    def __init__(self, *sizes: int, label_groups: bool = True, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self.label_groups = label_groups

    def make_layer(self, in_channels: int | None, out_channels: int, **options: Any) -> SharpConv:
        """Return a layer whose units are class distributions."""
        return SharpConv(in_channels, out_channels, **options)

    def make_classifier(self, in_channels: int, out_channels: int) -> LabelHead:
        """Return a classifier in which every label is a class of one factor."""
        return LabelHead(in_channels, out_channels)

    @property
    def head(self) -> LabelHead:
        """The classifier."""
        return cast("LabelHead", self.classifier)

    def begin(self, y: Tensor) -> None:
        """Give labels that exclude each other on the training nodes ``[n, C]`` one factor."""
        if self.label_groups:
            self.head.begin(y, self.num_factors)

    def evidence(self, units: Tensor) -> Tensor:
        """Return the distributions over each factor's classes, ``[*, N, M * d]``."""
        return self.head.classes(units)

    def score(self, evidence: Tensor) -> Tensor:
        """Return the labels' log-odds, ``[*, n, M * d] -> [*, n, C]``."""
        scores: Tensor = self.head(evidence)
        return scores

    def factor_shares(self, units: Tensor, label: Tensor) -> Tensor:
        """Return what each factor adds to one label's probability of every node ``[N, M]``."""
        return (self.evidence(units) * self.head.shares()[label]).view_as(units).sum(-1)

    def concerns(self) -> list[str]:
        """Say so if labels that exclude each other do not have a class each."""
        start = self.head.start
        begun = start.view(*start.shape[:-1], self.num_factors, -1) > 0  # [*, C, M, d]
        needed = max(2, int(begun.any(-1).sum(-2).max()))  # a factor's only class is always certain
        if begun.size(-1) >= needed:
            return []
        return [
            f"a factor has {begun.size(-1)} of the {needed} classes that its labels need; "
            f"use hidden_channels={self.num_factors * needed} or more"
        ]
