"""The models LGD-GCN is compared with, from torch_geometric's own layers.

All take ``(x, edge_index)`` with dense or sparse ``x`` and return class scores; all drop out
their input, as their papers do.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GATConv, GCN2Conv, GCNConv, GMMConv
from torch_geometric.nn.dense import Linear
from torch_geometric.utils import degree

__all__ = ["GAT", "GCN", "GCNII", "MLP", "APPNPNet", "MoNet"]


def feature_dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout that keeps a sparse matrix sparse: its zeros have nothing to lose."""
    if x.layout != torch.sparse_csr:
        return F.dropout(x, p, training)
    if not training or p == 0:
        return x
    values = F.dropout(x.values(), p)
    return torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


class MLP(nn.Module):
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
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.dropout = dropout
        self.layers = nn.ModuleList(map(Linear, sizes[:-1], sizes[1:]))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        for layer in self.layers[:-1]:
            x = layer(feature_dropout(x, self.dropout, self.training)).relu()
        x = self.layers[-1](feature_dropout(x, self.dropout, self.training))
        return x


class GCN(nn.Module):
    """Graph convolutional network (Kipf & Welling, 2017)."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.dropout = dropout
        self.layers = nn.ModuleList(map(GCNConv, sizes[:-1], sizes[1:]))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        for layer in self.layers[:-1]:
            x = layer(feature_dropout(x, self.dropout, self.training), edge_index).relu()
        x = self.layers[-1](feature_dropout(x, self.dropout, self.training), edge_index)
        return x


class GAT(nn.Module):
    """Graph attention network (Veličković et al., 2018); ``hidden_channels`` counts all heads."""

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
        super().__init__()
        self.dropout = dropout
        width = max(1, hidden_channels // heads)
        hidden = [
            GATConv(heads * width if layer else in_channels, width, heads, dropout=dropout)
            for layer in range(num_layers - 1)
        ]
        last = heads * width if hidden else in_channels
        output = GATConv(last, out_channels, heads=1, concat=False, dropout=dropout)
        self.layers = nn.ModuleList([*hidden, output])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        for layer in self.layers[:-1]:
            x = F.elu(layer(feature_dropout(x, self.dropout, self.training), edge_index))
        x = self.layers[-1](feature_dropout(x, self.dropout, self.training), edge_index)
        return x


class MoNet(nn.Module):
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
        super().__init__()
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.dropout = dropout
        self.layers = nn.ModuleList(
            GMMConv(size_in, size_out, dim=2, kernel_size=kernel_size)
            for size_in, size_out in pairwise(sizes)
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        inverse_root = degree(edge_index[1], x.size(0)).clamp_min(1).rsqrt()
        pseudo = inverse_root[edge_index].t()  # [E, 2] coordinates of an edge
        for layer in self.layers[:-1]:
            x = layer(feature_dropout(x, self.dropout, self.training), edge_index, pseudo).relu()
        x = self.layers[-1](feature_dropout(x, self.dropout, self.training), edge_index, pseudo)
        return x


class APPNPNet(nn.Module):
    """Predict, then propagate with personalised PageRank (Gasteiger et al., 2019)."""

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
        self.propagate = APPNP(propagation, alpha, dropout=dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        scores: Tensor = self.propagate(self.predict(x, edge_index), edge_index)
        return scores


class GCNII(nn.Module):
    """Deep GCN with initial residual and identity mapping (Chen et al., 2020)."""

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
            GCN2Conv(hidden_channels, alpha, theta, layer=depth + 1) for depth in range(num_layers)
        )
        self.classifier = Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return class scores ``[N, C]``."""
        h = start = self.encoder(feature_dropout(x, self.dropout, self.training)).relu()
        for layer in self.layers:
            h = layer(F.dropout(h, self.dropout, self.training), start, edge_index).relu()
        scores: Tensor = self.classifier(F.dropout(h, self.dropout, self.training))
        return scores
