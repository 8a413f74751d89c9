"""What class units are read from: random propagation and a hidden layer."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from lgdgcn.kernels import matmul
from lgdgcn.nn.batch_norm import MemberBatchNorm
from lgdgcn.nn.dropout import dropout
from lgdgcn.nn.propagation import Propagator, drop_nodes, mean_of_hops, propagate

__all__ = ["HopWeights", "PropagationEncoder", "PropagationOrder"]

PropagationOrder = Literal["hidden", "features"]
HopWeights = Literal["mean", "learned", "signed"]

_COLUMNS = 64  # features that are propagated at once


class PropagationEncoder(nn.Module):
    r"""Random propagation and one hidden layer, in as many views as asked.

    .. math:: h_i = \operatorname{ReLU}(\sum_k w_k [\hat{A}^k (\epsilon \odot X)]_i W + b)

    The product with W and the propagation can change places, without dropout to the same result:
    ``order="hidden"`` projects first and propagates the few hidden channels, ``"features"``
    propagates the features, which batch norm on the input needs.

    Args:
        in_channels: Number of features F.
        out_channels: Number of hidden channels.
        hops: Number of hops K.
        order: What is propagated.
        hop_weights: Weights of the hops: their ``"mean"``, ``"learned"`` shares (softmax), or
            ``"signed"``, learned numbers of either sign that begin as shares.
        drop_nodes: Probability to drop a node in a view.
        input_dropout: Dropout of single features.
        dropout: Dropout of hidden channels.
        batch_norm: Whether the input of this layer and the next is normalised. With
            ``order="hidden"`` there are no propagated features to normalise: a feature is divided
            by the standard deviation that it would have (:meth:`begin`), and the learned scale of
            batch norm is a gate of every feature.

    Shapes:
        - **input:** features ``[N, F]``, dense or sparse
        - **output:** ``[*, V, N, out_channels]`` for V views
    """

    node_rate: Tensor
    input_rate: Tensor
    input_scale: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hops: int,
        order: PropagationOrder = "hidden",
        hop_weights: HopWeights = "mean",
        drop_nodes: float = 0.5,
        input_dropout: float = 0.0,
        dropout: float = 0.5,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        self.hops = hops
        self.order = order
        self.hop_weights = hop_weights
        self.dropout = dropout
        self.has_input_dropout = input_dropout > 0
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.hop_scores = nn.Parameter(torch.empty(hops + 1)) if hop_weights != "mean" else None
        by_feature = batch_norm and order == "features"
        self.input_norm = MemberBatchNorm(in_channels) if by_feature else None
        self.hidden_norm = MemberBatchNorm(out_channels) if batch_norm else None
        is_gated = batch_norm and order == "hidden"
        self.gate = nn.Parameter(torch.empty(in_channels)) if is_gated else None
        self.register_buffer("input_scale", torch.ones(in_channels) if is_gated else None)
        # buffers, so that the members of a population can have a rate each
        for name, rate in (("node_rate", drop_nodes), ("input_rate", input_dropout)):
            self.register_buffer(name, torch.tensor(rate, dtype=torch.float64), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights; hops begin with equal shares."""
        bound = 1 / math.sqrt(self.weight.size(1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)
        if self.hop_scores is not None:
            equal = 0.0 if self.hop_weights == "learned" else 1 / (self.hops + 1)
            nn.init.constant_(self.hop_scores, equal)
        if self.gate is not None:
            nn.init.ones_(self.gate)

    def hop_shares(self) -> Tensor:
        """The weights of hops 0 to K, ``[*, K + 1]``."""
        if self.hop_scores is None:
            return mean_of_hops(self.hops, self.bias)
        return self.hop_scores.softmax(-1) if self.hop_weights == "learned" else self.hop_scores

    @torch.no_grad()
    def begin(self, x: Tensor, graph: Propagator) -> None:
        """Find what every feature is multiplied by, where it is: its inverse spread."""
        if self.input_scale is None:
            return
        for start in range(0, x.size(1), _COLUMNS):  # some at a time, as x may be sparse and wide
            columns = torch.arange(start, min(start + _COLUMNS, x.size(1)), device=x.device)
            chosen = torch.zeros(x.size(1), len(columns), dtype=x.dtype, device=x.device)
            chosen[columns, columns - start] = 1
            spread = propagate(matmul(x, chosen), graph, self.hop_shares()).std(-2, unbiased=False)
            self.input_scale[columns] = torch.where(spread > 0, 1 / spread, 0)

    def forward(self, x: Tensor, graph: Propagator, views: int) -> Tensor:
        """Return the hidden vectors of every node in so many views."""
        shares = self.hop_shares()
        shares = shares.unsqueeze(-2) if shares.dim() > 1 else shares  # for all views of a member
        if self.order == "features":
            # 1. drop nodes and propagate; 2. normalise and drop features; 3. project
            dense = x.to_dense() if x.layout != torch.strided else x
            dense = dense.expand(*self.bias.shape[:-1], views, *dense.shape)  # [*, V, N, F]
            h = propagate(drop_nodes(dense, self.node_rate, self.training), graph, shares)
            h = h if self.input_norm is None else self.input_norm(h)
            h = dropout(h, self.input_rate, self.training)
            h = h @ self.weight.unsqueeze(-3)  # [*, V, N, C]
        else:
            # 1. drop features and project; 2. drop nodes and propagate
            h = drop_nodes(self._project(x, views), self.node_rate, self.training)
            h = propagate(h, graph, shares)
        h = (h + self.bias[..., None, None, :]).relu()
        h = h if self.hidden_norm is None else self.hidden_norm(h)
        return dropout(h, self.dropout, self.training)

    def merge_members(self, members: Sequence["PropagationEncoder"]) -> None:
        """Drop features if any member does."""
        self.has_input_dropout = any(member.has_input_dropout for member in members)

    def _project(self, x: Tensor, views: int) -> Tensor:
        """Multiply features by weights, each view with features of its own dropped."""
        weight: Tensor = self.weight
        lead = weight.shape[:-2]
        if self.gate is not None and self.input_scale is not None:
            weight = weight * (self.gate * self.input_scale).unsqueeze(-1)
        if not self.training or not self.has_input_dropout:
            h = matmul(x, weight)  # [*, N, C]
            return h.unsqueeze(-3).expand(*lead, views, *h.shape[-2:])
        members = weight.expand(*(lead or (1,)), *weight.shape[-2:])  # [R, F, C]
        weight = members.repeat_interleave(views, 0)
        if x.layout == torch.sparse_csr:
            values = x.values().expand(len(members), views, -1)
            values = dropout(values, self.input_rate.reshape(-1), self.training)
            h = matmul(x, weight, values.flatten(0, 1).contiguous())
        else:
            dense = x.expand(len(members), views, *x.shape)
            h = dropout(dense, self.input_rate.reshape(-1), self.training).flatten(0, 1) @ weight
        return h.view(*lead, views, *h.shape[-2:])
