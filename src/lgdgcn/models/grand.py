"""GRAND: random propagation and consistency in front of a plain classifier."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lgdgcn.models.base import NodeModel, NodeOutput, NodePicker
from lgdgcn.nn import Disentangled, PropagationEncoder, consistency_loss, normalized_adjacency
from lgdgcn.nn.encoder import HopWeights, PropagationOrder

__all__ = ["GRAND"]


class GRAND(NodeModel):
    """Graph random neural network (Feng et al. 2020): what ours stands on, without factors.

    A training step sees the nodes in several random views of the graph; a loss makes the class
    distributions of the views agree.

    Args:
        in_channels: Number of input features.
        hidden_channels: Size of the hidden layer.
        out_channels: Number of classes or labels.
        multi_label: Whether a node has a set of labels, each with a probability of its own.
        hops: Hops K of the propagation.
        propagate: ``"hidden"`` channels or ``"features"``.
        hop_weights: ``"mean"``, ``"learned"``, ``"signed"`` or ``"separate"``, see
            :class:`~lgdgcn.nn.PropagationEncoder`.
        drop_nodes: Share of nodes dropped in every view.
        input_dropout: Dropout of single features.
        dropout: Dropout of hidden channels.
        batch_norm: Whether the input of both layers is normalised.
        views: Views V in every step.
        sharpening: Temperature of the views' average.
        confidence: Probability above which a node's likeliest class makes its views agree.

    Example:
        >>> model = GRAND(8, 16, 3, hops=2)
        >>> model.eval()(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    is_batched = True
    is_random_from_start = True
    sharpening: Tensor
    confidence: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        multi_label: bool = True,
        hops: int = 0,
        propagate: PropagationOrder = "hidden",
        hop_weights: HopWeights = "mean",
        drop_nodes: float = 0.5,
        input_dropout: float = 0.0,
        dropout: float = 0.5,
        batch_norm: bool = False,
        views: int = 1,
        sharpening: float = 0.5,
        confidence: float = 0.0,
    ) -> None:
        super().__init__()
        self.multi_label = multi_label
        self.views = views
        self.uses_edge_weights = hops > 0
        self.encoder = PropagationEncoder(
            in_channels,
            hidden_channels,
            hops,
            propagate,
            hop_weights,
            drop_nodes,
            input_dropout,
            dropout,
            batch_norm,
        )
        self.weight = nn.Parameter(torch.empty(hidden_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        # buffers, so that the members of a population can have one each
        for name, number in (("sharpening", sharpening), ("confidence", confidence)):
            self.register_buffer(name, torch.tensor(number).double(), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.encoder.reset_parameters()
        bound = 1 / math.sqrt(self.weight.size(-2))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def begin(self, y: Tensor, x: Tensor, edge_index: Tensor) -> None:
        """Let the encoder see the features, which it may scale."""
        self.encoder.begin(x, normalized_adjacency(edge_index, x.size(0)))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the class scores of all nodes, in training of every view ``[*, V * N, C]``."""
        h = self.encoder(x, normalized_adjacency(edge_index, x.size(0)), self.views_now)
        scores: Tensor = h @ self.weight.unsqueeze(-3) + self.bias[..., None, None, :]
        return scores.flatten(-3, -2)

    def disentangle(
        self,
        x: Tensor,
        edge_index: Tensor,
        known: Sequence[Disentangled] = (),
        pick: NodePicker | None = None,
    ) -> NodeOutput:
        """Return the class scores of the picked nodes, view after view, and of all."""
        scores = self(x, edge_index).chunk(self.views_now, -2)
        picked = scores if pick is None else [pick(view) for view in scores]
        return NodeOutput(torch.cat(list(picked), -2), [], scores)

    def losses(self, output: NodeOutput, edge_index: Tensor) -> dict[str, Tensor]:
        """Return how much the views disagree."""
        if len(output.views) < 2:
            return {}
        by_view = torch.stack(output.views, -3)  # [*, V, N, C]
        if not self.multi_label:
            loss = consistency_loss(by_view.softmax(-1), self.sharpening, self.confidence)
            return {"consistency": loss}
        # every label is a distribution over yes and no
        yes = by_view.sigmoid().movedim(-1, 0)  # [C, *, V, N]
        both = torch.stack([yes, 1 - yes], -1)
        numbers = (n.expand(both.shape[:-3]) for n in (self.sharpening, self.confidence))
        return {"consistency": consistency_loss(both, *numbers).mean(0)}
