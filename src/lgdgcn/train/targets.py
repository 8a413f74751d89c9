"""The nodes that are trained on or scored, with their labels, of many members at once."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

__all__ = ["Targets", "balanced_weights", "one_hot"]


class Targets(NamedTuple):
    """Nodes to score and their labels; S is 1 where all members share a split, else R.

    Attributes:
        nodes: Numbers ``[S, n]``, filled up with node 0 where splits differ in size.
        y: Classes ``[S, n]`` or label sets ``[S, n, L]``.
        weight: 1 for a node, or what its class counts, and 0 for filling ``[S, n]``.
        positive_weight: What a label counts where a node has it, ``[S, 1, L]``; 1 if ``None``.
    """

    nodes: Tensor
    y: Tensor
    weight: Tensor
    positive_weight: Tensor | None = None

    @classmethod
    def of(cls, graphs: Sequence[Data], mask: str) -> "Targets":
        """Read the nodes of ``mask`` off every member's graph."""
        if all(torch.equal(graph[mask], graphs[0][mask]) for graph in graphs):
            graphs = graphs[:1]
        nodes = [graph[mask].nonzero().squeeze(1) for graph in graphs]
        size = max(len(own) for own in nodes)
        index = torch.stack([torch.cat([own, own.new_zeros(size - len(own))]) for own in nodes])
        position = torch.arange(size, device=index.device)
        weight = torch.stack([position < len(own) for own in nodes])
        y = torch.stack([graph.y[own] for graph, own in zip(graphs, index, strict=True)])
        filled = ~weight.view(*weight.shape, *[1] * (y.dim() - 2))
        y = y.masked_fill(filled, 0)  # filling may be a node without labels, -1 or NaN
        return cls(index, y, weight.to(torch.get_default_dtype()))

    def repeated(self, views: int) -> "Targets":
        """The same nodes once for every view, whose scores come one view after the other."""
        if views == 1:
            return self
        nodes, y, weight = (torch.cat([part] * views, 1) for part in self[:3])
        return Targets(nodes, y, weight, self.positive_weight)

    def balanced(self, outputs: int) -> "Targets":
        """The same nodes, with rare classes or labels counting more (:func:`balanced_weights`)."""
        counted = (self.weight > 0).unsqueeze(-1)
        is_set = self.y.dim() == 3
        labels = self.y > 0 if is_set else one_hot(self.y, outputs)
        sizes = (labels & counted).sum(1)  # [S, C]
        return self.weighted(balanced_weights(sizes, counted.sum(1), is_set=is_set))

    def weighted(self, weights: Tensor) -> "Targets":
        """The same nodes by the weights of their classes, or of labels they have ``[S, C]``."""
        weights = weights.to(self.weight.dtype)
        if self.y.dim() == 3:
            return self._replace(positive_weight=weights.unsqueeze(1))
        return self._replace(weight=self.weight * torch.take_along_dim(weights, self.y, 1))

    def to(self, device: torch.device) -> "Targets":
        """The same on a device, without synchronising."""
        nodes, y, weight = (part.to(device, non_blocking=True) for part in self[:3])
        positive = self.positive_weight
        return Targets(nodes, y, weight, None if positive is None else positive.to(device))

    def pick(self, rows: Tensor) -> Tensor:
        """The rows ``[R, n, d]`` of these nodes among those of all, ``[R, N, d]``."""
        if len(self.nodes) == 1:
            return rows.index_select(1, self.nodes[0])
        return torch.take_along_dim(rows, self.nodes.unsqueeze(-1), dim=1)

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the nodes, ``[R, n] -> [R]``; 0 where there are none."""
        weight = self.weight.to(values.dtype)
        return (values * weight).sum(-1) / weight.sum(-1).clamp_min(1)


def one_hot(classes: Tensor, count: int) -> Tensor:
    """Class numbers ``[*]`` as ``[*, C]``, never read by the host."""
    return classes.unsqueeze(-1) == torch.arange(count, device=classes.device)


def balanced_weights(sizes: Tensor, total: Tensor, *, is_set: bool) -> Tensor:
    """What classes or labels count if rare ones count more, by how many nodes have them ``[S, C]``.

    All classes together count alike, as scikit-learn's ``"balanced"``: a node of class c counts
    n / (classes * n_c). A label counts as much where nodes have it as where they have it not.
    """
    if is_set:
        missing = total - sizes
        known = (sizes > 0) & (missing > 0)
        return torch.where(known, missing / sizes.clamp_min(1), 1.0)
    classes = (sizes > 0).sum(1, keepdim=True)
    return total / (classes * sizes).clamp_min(1)
