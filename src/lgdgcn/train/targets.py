"""The labelled nodes of one part of the split, for every member of a population."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

__all__ = ["Targets"]


class Targets(NamedTuple):
    """Nodes to score and their labels; S is 1 where all members share a split, else R.

    Attributes:
        nodes: Numbers ``[S, n]``, filled up with node 0 where splits differ in size.
        y: Classes ``[S, n]`` or label sets ``[S, n, L]``.
        weight: 1 for a node, 0 for filling ``[S, n]``.
    """

    nodes: Tensor
    y: Tensor
    weight: Tensor

    @classmethod
    def of(cls, graphs: Sequence[Data], mask: str) -> "Targets":
        """Read the nodes of ``mask`` off every member's graph."""
        if all(torch.equal(graph[mask], graphs[0][mask]) for graph in graphs):
            graphs = graphs[:1]
        nodes = [graph[mask].nonzero().squeeze(1) for graph in graphs]
        size = max(len(own) for own in nodes)
        index = torch.stack([torch.cat([own, own.new_zeros(size - len(own))]) for own in nodes])
        places = torch.arange(size, device=index.device)
        weight = torch.stack([places < len(own) for own in nodes])
        y = torch.stack([graph.y[own] for graph, own in zip(graphs, index, strict=True)])
        filled = ~weight.view(*weight.shape, *[1] * (y.dim() - 2))
        y = y.masked_fill(filled, 0)  # filling may be a node without labels, -1 or NaN
        return cls(index, y, weight.to(torch.get_default_dtype()))

    def pick(self, rows: Tensor) -> Tensor:
        """The rows ``[R, n, d]`` of these nodes among those of all, ``[R, N, d]``."""
        if len(self.nodes) == 1:
            return rows.index_select(1, self.nodes[0])
        return torch.take_along_dim(rows, self.nodes.unsqueeze(-1), dim=1)

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the nodes, ``[R, n] -> [R]``; 0 where there are none."""
        weight = self.weight.to(values.dtype)
        return (values * weight).sum(-1) / weight.sum(-1).clamp_min(1)
