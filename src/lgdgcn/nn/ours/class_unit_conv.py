"""One layer of our variant: an LGD-GCN layer whose units are class distributions."""

from typing import Any

import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.nn.lgd_conv import Disentangled, LGDConv, Moment
from lgdgcn.nn.ours.batch_edges import EdgeMoments, sampled_edge_loss
from lgdgcn.nn.ours.class_units import vote
from lgdgcn.nn.ours.edge_mixture import (
    drawn_weights,
    edge_loss,
    factor_posterior,
    factor_weights,
)
from lgdgcn.nn.subgraph import Subgraph

__all__ = ["ClassUnitConv"]

_NEVER = -1e4  # score of a class that is not there; its probability is 0


class ClassUnitConv(LGDConv):
    """Like :class:`~lgdgcn.nn.lgd_conv.LGDConv`, but a unit is the square root of a distribution.

    Factor m of a node holds a distribution over d classes. The projection gives the scores of the
    classes, neighbours vote for each other's classes (:func:`~lgdgcn.nn.ours.class_units.vote`)
    and every edge is evidence for the factor in which its ends agree
    (:func:`~lgdgcn.nn.ours.edge_mixture.edge_loss`,
    :func:`~lgdgcn.nn.ours.edge_mixture.factor_posterior`).

    Args:
        in_channels: Size of the input vectors.
        out_channels: Number of classes of all factors together, a multiple of ``factors``.
        first_classes: Number of classes that the first factor has; as many as all by default.
        **options: Those of :class:`~lgdgcn.nn.lgd_conv.LGDConv`.

    Example:
        >>> import torch
        >>> conv = ClassUnitConv(8, 6, factors=3, latent_graph=False)
        >>> conv(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 6])
    """

    owned: Tensor
    factor_weights: Tensor

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        *,
        first_classes: int | None = None,
        **options: Any,
    ) -> None:
        if in_channels is None:
            raise InputError("units that are classes need a projection; give in_channels")
        super().__init__(in_channels, out_channels, **options)
        channels = out_channels // self.factors
        self.first_classes = channels if first_classes is None else first_classes
        every = torch.ones(self.factors, dtype=torch.bool)
        self.register_buffer("owned", every, persistent=False)
        # the meta device needs the shape alone, and a second to import what computes there
        weights = torch.empty(self.factors) if every.is_meta else factor_weights(every)
        self.register_buffer("factor_weights", weights)
        self.moments: EdgeMoments | None = None  # where it is trained on parts of a graph

    def begin(self, owned: Tensor, free_share: float) -> None:
        """Say which factors labels own ``[M]``, and the edges that the others begin with."""
        self.owned.copy_(owned)
        self.factor_weights.copy_(factor_weights(owned, free_share))

    def update_statistics(self, output: Disentangled, moment: Moment) -> None:
        """Update the factors' shares of the edges, too, before every loss: a step of EM.

        So the network that is evaluated, kept and trained on has the same shares.
        """
        super().update_statistics(output, moment)
        if moment == "before_loss" and output.edge_factors.size(-2):
            drawn = output.edge_factors.mean(-2).to(self.factor_weights)
            self.factor_weights.copy_(drawn_weights(drawn, self.owned))

    def project(self, x: Tensor) -> Tensor:
        """Return the nodes' own scores of every factor's classes ``[*, N, M, d]``."""
        assert self.projection is not None  # as there are in_channels
        scores = self.projection.scores(x)
        if self.first_classes == scores.size(-1):
            return scores
        missing = torch.zeros(scores.shape[-2:], dtype=torch.bool, device=scores.device)
        missing[0, self.first_classes :] = True
        return scores.masked_fill(missing, _NEVER)

    def route(self, z: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """Let neighbours vote, T rounds; return class units and edge probabilities.

        Of a part of a graph, the edges are left to :meth:`losses`.
        """
        units = vote(z, edge_index, self.iterations, self.tau)
        if Subgraph.current() is not None:
            return units, units.new_zeros(*units.shape[:-3], 0, self.factors)
        return units, factor_posterior(units, edge_index, self.factor_weights)

    def edge_loss(self, output: Disentangled, edge_index: Tensor) -> Tensor:
        """How badly the layer's classes explain edges ``[*]``; they need not be its own edges."""
        return edge_loss(output.local_units, edge_index, self.factor_weights)

    def losses(self, output: Disentangled, edge_index: Tensor) -> dict[str, Tensor]:
        """Return the edge loss beside the layer's other losses, ``[*]`` each."""
        part = Subgraph.current()
        if part is None or self.moments is None:
            edge = {"edge": self.edge_loss(output, edge_index)}
        else:
            units = output.local_units
            edge = {"edge": sampled_edge_loss(units, part, self.factor_weights, self.moments)}
        return edge | super().losses(output, edge_index)
