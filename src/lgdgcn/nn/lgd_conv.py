"""One LGD-GCN layer (Alg. 1)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from lgdgcn.nn.gaussian import Precision
from lgdgcn.nn.latent_graph import GraphKind, LatentGraph, latent_graph
from lgdgcn.nn.latent_space import LatentSpace
from lgdgcn.nn.projection import FactorProjection, split_factors, unit_channels
from lgdgcn.nn.routing import route
from lgdgcn.nn.variant import VARIANTS, Variant

__all__ = ["Disentangled", "LGDConv", "Moment"]

Moment = Literal["first_epoch", "before_loss", "after_step"]  # of a training step


class Disentangled(NamedTuple):
    """What a layer knows of each node and edge."""

    units: Tensor  # [*, N, M, d] after the latent graph
    local_units: Tensor  # [*, N, M, d] after routing
    edge_factors: Tensor  # [*, E, M] probability that factor m explains the edge


class LGDConv(nn.Module):
    """Local and global disentangled graph convolution.

    From `LGD-GCN: Local and Global Disentangled Graph Convolutional Networks
    <https://arxiv.org/abs/2104.11893>`_: projection (Eq. 1), neighbourhood routing, latent
    space (Eq. 2, 3, 5), latent graph and global aggregation (Eq. 4).

    Args:
        in_channels: Size of the input vectors, or ``None`` where the input already consists of
            M units (the released variant's later layers have no weights).
        out_channels: Size of the output vectors, a multiple of ``factors``.
        factors: Number of factors M.
        iterations: Number of routing iterations T.
        tau: Routing temperature.
        k: Neighbours in the latent graph.
        graph: Kind of latent graph, ``"knn"`` or ``"cknn"``.
        update_rate: Share of new statistics in an update.
        latent_graph: Whether to aggregate along the latent graph.
        space: Whether :meth:`losses` has the space loss.
        diversity: Whether :meth:`losses` has the diversity loss.
        precision: What stands for the inverse covariance; the variant's own by default.
        variant: Reading of the paper, see :class:`~lgdgcn.nn.variant.Variant`.

    Shapes:
        - **input:** nodes ``[*, N, in_channels]`` (dense or sparse), edges ``[2, E]``
        - **output:** nodes ``[*, N, out_channels]``

    Example:
        >>> import torch
        >>> conv = LGDConv(8, 6, factors=3, k=2)
        >>> conv(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 6])
    """

    tau: Tensor
    own_k: Tensor

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        factors: int = 4,
        iterations: int = 7,
        tau: float = 1.0,
        k: int = 4,
        graph: GraphKind = "cknn",
        update_rate: float = 0.5,
        latent_graph: bool = True,
        space: bool = True,
        diversity: bool = True,
        precision: Precision | None = None,
        variant: Variant = VARIANTS["paper"],
    ) -> None:
        super().__init__()
        channels = unit_channels(out_channels, factors)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.factors = factors
        self.iterations = iterations
        self.k = k
        self.graph: GraphKind = graph
        self.has_latent_graph = latent_graph
        self.space = space
        self.diversity = diversity
        self.variant = variant
        # buffers, so that the members of a population can have one each; no k above self.k
        highest = torch.iinfo(torch.int64).max
        self.register_buffer("tau", torch.tensor(tau, dtype=torch.float64), persistent=False)
        self.register_buffer("own_k", torch.tensor(min(k, highest)), persistent=False)
        self.projection = (
            None if in_channels is None else FactorProjection(in_channels, out_channels, factors)
        )
        self.latent_space = (
            LatentSpace(
                factors,
                channels,
                update_rate,
                precision or variant.precision,
                centre="old" if variant.statistics == "after_step" else "new",
            )
            if space or diversity
            else None
        )

    def reset_parameters(self) -> None:
        """Draw new weights and forget the statistics."""
        if self.projection is not None:
            self.projection.reset_parameters()
        if self.latent_space is not None:
            self.latent_space.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the concatenated units of every node."""
        return self.disentangle(x, edge_index).units.flatten(-2)

    def disentangle(self, x: Tensor, edge_index: Tensor) -> Disentangled:
        """Run the layer and return everything it found out (Alg. 1)."""
        z = self.project(x)  # lines 1-3: M units per node, [*, N, M, d]
        local, edge_factors = self.route(z, edge_index)  # lines 4-5: neighbours by factor
        graph = self.build_graph(local)  # lines 7-8: one latent graph per factor
        units = self.aggregate(local, graph)  # lines 9-10: average along it
        return Disentangled(units, local, edge_factors)

    def project(self, x: Tensor) -> Tensor:
        """Project every node into M unit-length factor units (Eq. 1)."""
        return split_factors(x, self.factors) if self.projection is None else self.projection(x)

    def route(self, z: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """Route the neighbours to factors, T iterations; returns units and edge probabilities."""
        return route(
            z,
            edge_index,
            self.iterations,
            self.tau,
            uniform_start=self.variant.uniform_start,
            normalize_last=self.variant.normalize_last,
        )

    def build_graph(self, local: Tensor) -> LatentGraph | None:
        """Link every node to its nearest ones in each factor; ``None`` if that is switched off."""
        if not self.has_latent_graph:
            return None
        own_k = self.own_k if self.own_k.dim() else None
        return latent_graph(local.detach(), self.k, self.graph, own_k)

    def aggregate(self, local: Tensor, graph: LatentGraph | None) -> Tensor:
        """Average the units along the latent graphs (Eq. 4)."""
        if graph is None:
            return local
        return graph.aggregate(local, self.variant.normalization, self.variant.one_sided_weight)

    def merge_members(self, members: Sequence["LGDConv"]) -> None:
        """List as many neighbours as the member with most needs; ``own_k`` says how many count."""
        self.k = max(layer.k for layer in members)

    def losses(self, output: Disentangled, edge_index: Tensor) -> dict[str, Tensor]:
        """Pull units to their own component, push factors apart (Eq. 3, 5, 6), ``[*]`` each."""
        losses: dict[str, Tensor] = {}
        if self.latent_space is not None and self.space:
            losses["space"] = self.latent_space.space_loss(output.local_units)
        if self.latent_space is not None and self.diversity:
            losses["diversity"] = self.latent_space.diversity_loss(output.local_units)
        return losses

    def update_statistics(self, output: Disentangled, moment: Moment) -> None:
        """Update means and covariances if this is the moment when the variant does so.

        Args:
            output: What the layer found out.
            moment: ``"first_epoch"`` (before the first loss of all), ``"before_loss"`` of every
                step, or ``"after_step"``, when the output is that of the updated network.
        """
        if self.latent_space is None:
            return
        if self.variant.statistics == "before_loss":  # the authors' code
            if moment == "before_loss":
                self.latent_space.update(output.local_units)
        elif moment == "first_epoch":  # Alg. 2, which needs statistics to begin with
            self.latent_space.initialize(output.units)
        elif moment == "after_step":
            self.latent_space.update(output.units)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, M={self.factors}, "
            f"T={self.iterations}, {self.graph}={self.k if self.has_latent_graph else None})"
        )
