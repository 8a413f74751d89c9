"""One LGD-GCN layer (Alg. 1)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from lgdgcn.errors import InputError
from lgdgcn.nn.class_units import vote
from lgdgcn.nn.gaussian import Precision
from lgdgcn.nn.latent_graph import GraphKind, latent_graph
from lgdgcn.nn.latent_space import LatentSpace
from lgdgcn.nn.projection import FactorProjection, split_factors, unit_channels
from lgdgcn.nn.routing import route
from lgdgcn.nn.variant import VARIANTS, Variant

__all__ = ["Disentangled", "LGDConv"]


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
        latent_space: Whether to keep statistics (needed by both losses).
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
        latent_space: bool = True,
        precision: Precision | None = None,
        variant: Variant = VARIANTS["paper"],
    ) -> None:
        super().__init__()
        channels = unit_channels(out_channels, factors)
        if in_channels is None and variant.class_units:
            raise InputError("units that are classes need a projection; give in_channels")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.factors = factors
        self.iterations = iterations
        self.k = k
        self.graph: GraphKind = graph
        self.has_latent_graph = latent_graph
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
            if latent_space
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
        local, edge_factors = self._route(x, edge_index)
        # Lines 7-10: build one graph per factor and average along it.
        units = self._aggregate(local) if self.has_latent_graph else local
        return Disentangled(units, local, edge_factors)

    def _route(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """Project (lines 1-3) and route the neighbours to factors (lines 4-5)."""
        if self.projection is not None and self.variant.class_units:
            return vote(self.projection.scores(x), edge_index, self.iterations, self.tau)
        z = split_factors(x, self.factors) if self.projection is None else self.projection(x)
        return route(
            z,
            edge_index,
            self.iterations,
            self.tau,
            uniform_start=self.variant.uniform_start,
            normalize_last=self.variant.normalize_last,
        )

    def _aggregate(self, local: Tensor) -> Tensor:
        own_k = self.own_k if self.own_k.dim() else None
        graph = latent_graph(local.detach(), self.k, self.graph, own_k)
        return graph.aggregate(local, self.variant.normalization, self.variant.one_sided_weight)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, M={self.factors}, "
            f"T={self.iterations}, {self.graph}={self.k if self.has_latent_graph else None})"
        )
