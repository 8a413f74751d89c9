"""The nodes that are trained on, and the total loss on them term by term (Eq. 7)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.models import NodeModel, NodeOutput
from lgdgcn.train.task import Task

__all__ = ["Targets", "loss_terms"]


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


def loss_terms(
    model: NodeModel,
    output: NodeOutput,
    task: Task,
    targets: Targets,
    edge_index: Tensor,
    weights: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    r"""Return the terms of every member's loss and their sum, ``[R]`` each.

    .. math:: L_{total} = L_{cls} + \sum_l 10^{l-L} (\lambda_{space} L_{space}^{(l)}
        + \lambda_{div} L_{div}^{(l)} + \lambda_{edge} L_{edge}^{(l)})

    Args:
        model: The members' network.
        output: What it says of the target nodes; its class scores are ``[R, n, C]``.
        task: What is predicted.
        targets: The nodes that are trained on.
        edge_index: Edges. Shape ``[2, E]``.
        weights: The members' weights :math:`\lambda` by the name of the loss, ``[R]`` each. A
            loss of the model that has none counts once.

    Returns:
        ``classification``, the model's own losses (before their weights) and ``total``.
    """
    total = task.loss(output.logits, targets)
    own = model.losses(output, edge_index)
    terms = {"classification": total, **own}
    for name in dict.fromkeys([*weights, *own]):
        if name in own:
            total = total + (weights[name] * own[name] if name in weights else own[name])
    return {**terms, "total": total}
