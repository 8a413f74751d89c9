"""The models LGD-GCN is compared with, from torch_geometric's own layers.

All take ``(x, edge_index)`` with dense or sparse ``x`` and return class scores; all drop out
their input, as their papers do.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GATConv, GCN2Conv, GCNConv, GMMConv
from torch_geometric.nn.dense import Linear
from torch_geometric.utils import add_self_loops, degree

from lgdgcn.kernels.graph import TensorCache
from lgdgcn.models.base import NodeModel
from lgdgcn.nn.propagation import Propagator, average_neighbours, normalized_adjacency

__all__ = ["GAT", "GCN", "GCNII", "MLP", "APPNPNet", "MoNet"]


def feature_dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout that keeps a sparse matrix sparse: its zeros have nothing to lose."""
    if x.layout != torch.sparse_csr:
        return F.dropout(x, p, training)
    if not training or p == 0:
        return x
    values = F.dropout(x.values(), p)
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


_with_loops: TensorCache[Tensor] = TensorCache()


def with_loops(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The edges with a loop at every node; worked out once per graph."""
    return _with_loops.get(
        edge_index, num_nodes, lambda: add_self_loops(edge_index, num_nodes=num_nodes)[0]
    )


def one_hop(self: Any, edge_index: Propagator, x: Tensor, edge_weight: None = None) -> Tensor:
    """The ``propagate`` of a torch_geometric layer that is given a :class:`Propagator`.

    The layer's own writes down a message for every edge, which would take most of a step.
    """
    return average_neighbours(x, edge_index)


class FastGCNConv(GCNConv):
    """The layer of GCN."""

    propagate = one_hop


class FastGCN2Conv(GCN2Conv):
    """The layer of GCNII."""

    propagate = one_hop


class FastAPPNP(APPNP):
    """The steps of personalised PageRank."""

    propagate = one_hop


def _sizes(first: int, hidden: int, last: int, num_layers: int) -> list[tuple[int, int]]:
    """Input and output size of every layer."""
    return list(pairwise([first, *[hidden] * (num_layers - 1), last]))


class Stack(NodeModel):
    """Layers with dropout before each and an activation between them."""

    activation = staticmethod(torch.relu)

    def __init__(self, layers: Iterable[nn.Module], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = dropout

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        graph = self.graph(edge_index, x)
        for depth, layer in enumerate(self.layers):
            if depth > 0:
                x = self.activation(x)
            x = layer(feature_dropout(x, self.dropout, self.training), *graph)
        return x

    def graph(self, edge_index: Tensor, x: Tensor) -> tuple[Any, ...]:
        """What a layer is given of the graph."""
        return (normalized_adjacency(edge_index, x.size(0)),)


class MLP(Stack):
    """Linear layers with ReLU and dropout; the graph is not used."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
    ) -> None:
        sizes = _sizes(in_channels, hidden_channels, out_channels, num_layers)
        super().__init__((Linear(*pair) for pair in sizes), dropout)

    def graph(self, edge_index: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        """Nothing."""
        return ()


class GCN(Stack):
    """Graph convolutional network (Kipf & Welling, 2017)."""

    uses_edge_weights = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
    ) -> None:
        sizes = _sizes(in_channels, hidden_channels, out_channels, num_layers)
        super().__init__((FastGCNConv(*pair, normalize=False) for pair in sizes), dropout)


class GAT(Stack):
    """Graph attention network (Veličković et al., 2018); ``hidden_channels`` counts all heads."""

    activation = staticmethod(F.elu)

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        heads: int = 8,
        dropout: float = 0.6,
    ) -> None:
        width = max(1, hidden_channels // heads)
        *hidden, last = _sizes(in_channels, heads * width, out_channels, num_layers)
        shared = {"dropout": dropout, "add_self_loops": False}
        layers = [GATConv(size, width, heads, **shared) for size, _ in hidden]
        output = GATConv(*last, heads=1, concat=False, **shared)
        super().__init__([*layers, output], dropout)

    def graph(self, edge_index: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        """The edges with a loop at every node."""
        return (with_loops(edge_index, x.size(0)),)


class MoNet(Stack):
    """Mixture model network (Monti et al., 2017): Gaussian kernels over the degrees."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        kernel_size: int = 3,
        dropout: float = 0.5,
    ) -> None:
        sizes = _sizes(in_channels, hidden_channels, out_channels, num_layers)
        layers = (GMMConv(*pair, dim=2, kernel_size=kernel_size) for pair in sizes)
        super().__init__(layers, dropout)

    def graph(self, edge_index: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        """The edges and their two coordinates ``[E, 2]``."""
        inverse_root = degree(edge_index[1], x.size(0), x.dtype).clamp_min(1).rsqrt()
        return edge_index, inverse_root[edge_index].t()


class APPNPNet(NodeModel):
    """Predict, then propagate with personalised PageRank (Gasteiger et al., 2019)."""

    uses_edge_weights = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        propagation: int = 10,
        alpha: float = 0.1,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.predict = MLP(in_channels, hidden_channels, out_channels, num_layers, dropout=dropout)
        # no dropout of edges here: torch_geometric's adds up over the steps until none is left
        self.propagate = FastAPPNP(propagation, alpha, normalize=False)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.predict.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        graph = normalized_adjacency(edge_index, x.size(0))
        scores: Tensor = self.propagate(self.predict(x, edge_index), graph)
        return scores


class GCNII(NodeModel):
    """Deep GCN with initial residual and identity mapping (Chen et al., 2020)."""

    uses_edge_weights = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 16,
        *,
        alpha: float = 0.1,
        theta: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.encoder = Linear(in_channels, hidden_channels)
        self.layers = nn.ModuleList(
            FastGCN2Conv(hidden_channels, alpha, theta, layer=depth + 1, normalize=False)
            for depth in range(num_layers)
        )
        self.classifier = Linear(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for module in (self.encoder, *self.layers, self.classifier):
            module.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        graph = normalized_adjacency(edge_index, x.size(0))
        h = start = self.encoder(feature_dropout(x, self.dropout, self.training)).relu()
        for layer in self.layers:
            h = layer(F.dropout(h, self.dropout, self.training), start, graph).relu()
        scores: Tensor = self.classifier(F.dropout(h, self.dropout, self.training))
        return scores
