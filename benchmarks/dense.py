"""LGD-GCN the direct way, as the yardstick of ``lgdgcn bench``: plain torch, dense matrices.

The same network and losses as ``LGDGCN(variant="released")``, computed as the authors' approach
does: every neighbourhood padded to 50 entries, all routing iterations kept by autograd, one N×N
distance matrix per factor, thresholded into an N×N adjacency matrix and only then made sparse,
dense input features. Nodes with more than 50 neighbours route over 50 drawn ones; all else is the
same mathematics (``tests/test_dense.py``). Nothing is slower than the approach asks for.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["DenseLGDGCN", "NeighbourTable", "training_step"]

WIDTH = 50  # neighbours per node
JITTER = 1e-6
LARGEST_EXPONENT = 80.0


class NeighbourTable:
    """The neighbours of every node, padded to one width with a node that does not exist.

    Args:
        edge_index: Edges, source to target. Shape ``[2, E]``.
        nodes: Number of nodes N; also the number of the padding node.
    """

    def __init__(self, edge_index: Tensor, nodes: int) -> None:
        source, target = edge_index
        order = target.argsort(stable=True)
        source, target = source[order], target[order]
        self.source = source
        self.degree = torch.bincount(target, minlength=nodes)
        self.start = self.degree.cumsum(0) - self.degree
        place = torch.arange(source.numel(), device=source.device) - self.start[target]
        fits = place < WIDTH
        self.padded = source.new_full((nodes, WIDTH), nodes)
        self.padded[target[fits], place[fits]] = source[fits]
        self.hubs = (self.degree > WIDTH).nonzero().squeeze(1)

    def sample(self) -> Tensor:
        """The table ``[N, 50]``, with new draws (with replacement) for nodes above the width."""
        if self.hubs.numel():
            chance = torch.rand(self.hubs.numel(), WIDTH, device=self.hubs.device)
            place = (chance * self.degree[self.hubs, None]).long()
            self.padded[self.hubs] = self.source[self.start[self.hubs, None] + place]
        return self.padded


def route(z: Tensor, neighbours: Tensor, iterations: int) -> Tensor:
    """Spread every neighbour over the factors, T times; autograd keeps each iteration.

    Args:
        z: Unit-length units. Shape ``[N, M, d]``.
        neighbours: Padded neighbours. Shape ``[N, 50]``.
        iterations: Number of iterations T.
    """
    with_padding = torch.cat([z, z.new_zeros(1, *z.shape[1:])])  # the padding node is all zero
    incoming = with_padding[neighbours]  # [N, 50, M, d]
    units = z
    chance = z.new_full((*neighbours.shape, z.size(1)), 1 / z.size(1))  # [N, 50, M]
    for step in range(iterations):
        if step > 0:
            chance = (incoming * units.unsqueeze(1)).sum(-1).softmax(-1)
        units = z + (incoming * chance.unsqueeze(-1)).sum(1)
        if step < iterations - 1:
            units = F.normalize(units, dim=-1)
    return units


@torch.no_grad()
def latent_operator(points: Tensor, k: int) -> Tensor:
    """Row-normalised kNN graph of points ``[N, d]``; a one-sided edge weighs one half."""
    distance = torch.cdist(points, points)  # [N, N]
    distance.fill_diagonal_(0)
    reach = distance.topk(k + 1, largest=False).values[:, -1:]  # the nearest is the node itself
    adjacency = (distance <= reach).to(points.dtype)
    adjacency = (adjacency + adjacency.t()) / 2
    return (adjacency / adjacency.sum(1, keepdim=True)).to_sparse()


class DenseLGDGCN(nn.Module):
    """One projection, L routing layers, kNN graphs after the last one, a linear classifier."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        *,
        factors: int,
        iterations: int,
        k: int,
        dropout: float,
        update_rate: float,
    ) -> None:
        super().__init__()
        self.num_layers, self.factors, self.iterations = num_layers, factors, iterations
        self.k, self.dropout, self.update_rate = k, dropout, update_rate
        channels = hidden_channels // factors
        self.projection = nn.Linear(in_channels, hidden_channels)
        self.classifier = nn.Linear(hidden_channels, out_channels)
        self.register_buffer("mean", torch.zeros(factors, channels))
        self.register_buffer("cov", torch.zeros(factors, channels, channels))
        self.initialized = False

    def forward(self, x: Tensor, neighbours: Tensor) -> tuple[Tensor, Tensor]:
        """Class scores ``[N, C]`` and the units ``[N, M, d]`` before the latent graphs."""
        h = self.projection(x).relu()
        for layer in range(self.num_layers):
            z = F.normalize(h.view(len(h), self.factors, -1), dim=-1)
            units = route(z, neighbours, self.iterations)
            if layer < self.num_layers - 1:
                h = F.dropout(units.flatten(1), self.dropout, self.training)
        averaged = [
            torch.sparse.mm(latent_operator(units[:, m].detach(), self.k), units[:, m])
            for m in range(self.factors)
        ]
        h = F.dropout(torch.cat(averaged, dim=1), self.dropout, self.training)
        return self.classifier(h), units

    def losses(self, units: Tensor) -> tuple[Tensor, Tensor]:
        """Update the statistics, then space and diversity loss as the authors compute them."""
        self._update(units.detach())
        rows = F.normalize(self.cov, dim=-1)
        precision = F.normalize(torch.linalg.pinv(rows), dim=-1)
        diff = units - self.mean
        space = torch.einsum("nmc,mce,nme->nm", diff, precision, diff).mean()

        diff = units.unsqueeze(2) - self.mean  # [N, M, M, d]
        exponent = -0.5 * torch.einsum("nmec,ecb,nmeb->nme", diff, self.cov, diff)
        exponent = exponent.clamp(max=LARGEST_EXPONENT)
        highest = exponent.detach().amax(-1, keepdim=True)
        likelihood = F.normalize((exponent - highest).exp(), dim=-1).double()
        gram = likelihood @ likelihood.mT
        eye = torch.eye(self.factors, dtype=gram.dtype, device=gram.device)
        diversity = -torch.logdet((gram + JITTER * eye) / (1 + JITTER)).mean()
        return space, diversity.to(space.dtype)

    def _update(self, units: Tensor) -> None:
        mean = units.mean(0)
        diff = units - mean
        cov = torch.einsum("nmc,nme->mce", diff, diff) / len(units)
        rate = self.update_rate if self.initialized else 1.0
        self.mean.lerp_(mean, rate)
        self.cov.lerp_(cov, rate)
        self.initialized = True


def training_step(data: Any, settings: Any) -> Callable[[], None]:
    """Make a model for a graph and return its training step.

    Args:
        data: Graph with ``x``, ``edge_index``, ``y`` and ``train_mask``.
        settings: The settings of ``LGDGCN``.
    """
    x = data.x.to_dense()
    table = NeighbourTable(data.edge_index, x.size(0))
    model = DenseLGDGCN(
        x.size(1),
        settings.hidden_channels,
        int(data.y.max()) + 1,
        settings.num_layers,
        factors=settings.factors,
        iterations=settings.iterations,
        k=settings.k,
        dropout=settings.dropout,
        update_rate=settings.update_rate,
    ).to(x.device, x.dtype)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay
    )

    def step() -> None:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        logits, units = model(x, table.sample())
        space, diversity = model.losses(units)
        loss = F.cross_entropy(logits[data.train_mask], data.y[data.train_mask])
        loss = loss + settings.lambda_space * space + settings.lambda_div * diversity
        loss.backward()
        optimizer.step()

    return step
