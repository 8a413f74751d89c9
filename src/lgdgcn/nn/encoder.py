"""What class units are read from: random propagation and a hidden layer."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from lgdgcn.errors import InputError
from lgdgcn.kernels import matmul, sum_hops
from lgdgcn.nn.batch_norm import MemberBatchNorm
from lgdgcn.nn.dropout import dropout
from lgdgcn.nn.propagation import (
    Propagator,
    SampledPropagator,
    drop_nodes,
    mean_of_hops,
    propagate,
    weights_of_one_hop,
)
from lgdgcn.nn.subgraph import Subgraph

__all__ = ["HopWeights", "PropagationEncoder", "PropagationOrder"]

PropagationOrder = Literal["hidden", "features"]
HopWeights = Literal["mean", "learned", "signed", "separate"]

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
        hop_weights: Weights of the hops: their ``"mean"``, ``"learned"`` shares (softmax),
            ``"signed"``, learned numbers of either sign that begin as shares, or ``"separate"``: a
            matrix :math:`W_k` for every hop, so that what a node says of itself and what its
            neighbours say are read apart (Abu-El-Haija et al. 2019, "MixHop").
        drop_nodes: Probability to drop a node in a view.
        input_dropout: Dropout of single features.
        dropout: Dropout of hidden channels.
        layers: Number of hidden layers. One after the first reads a node and the average of its
            neighbours apart, :math:`\operatorname{ReLU}(h U + \hat{A} h W + b)`.
        batch_norm: Whether the input of the first layer and of the next is normalised. With
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
        layers: int = 1,
    ) -> None:
        super().__init__()
        self.hops = hops
        self.order = order
        self.hop_weights = hop_weights
        self.dropout = dropout
        self.has_input_dropout = input_dropout > 0
        self.is_separate = hop_weights == "separate"
        if self.is_separate and order == "features":
            raise InputError("hop_weights is separate with propagate = features; use hidden")
        matrices = hops + 1 if self.is_separate else 1
        self.weight = nn.Parameter(torch.empty(in_channels, matrices * out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        is_learned = hop_weights in ("learned", "signed")
        self.hop_scores = nn.Parameter(torch.empty(hops + 1)) if is_learned else None
        by_feature = batch_norm and order == "features"
        self.input_norm = MemberBatchNorm(in_channels) if by_feature else None
        self.hidden_norm = MemberBatchNorm(out_channels) if batch_norm else None
        is_gated = batch_norm and order == "hidden"
        self.gate = nn.Parameter(torch.empty(in_channels)) if is_gated else None
        self.register_buffer("input_scale", torch.ones(in_channels) if is_gated else None)
        # buffers, so that the members of a population can have a rate each
        for name, rate in (("node_rate", drop_nodes), ("input_rate", input_dropout)):
            self.register_buffer(name, torch.tensor(rate, dtype=torch.float64), persistent=False)
        self.deeper = nn.ModuleList(
            DeeperLayer(out_channels, dropout, batch_norm) for _ in range(layers - 1)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights; hops begin with equal shares."""
        for layer in cast("Iterable[DeeperLayer]", self.deeper):
            layer.reset_parameters()
        bound = 1 / math.sqrt(self.bias.size(0))
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

    def forward(self, x: Tensor, graph: Propagator | SampledPropagator, views: int) -> Tensor:
        """Return the hidden vectors of every node in so many views.

        Features that were propagated before have all their hops, ``[N, K + 1, F]``.
        """
        shares = self.hop_shares()
        shares = shares.unsqueeze(-2) if shares.dim() > 1 else shares  # for all views of a member
        if x.dim() == 3:
            h = self.project_hops(x, views)
        elif self.order == "features":
            # 1. drop nodes and propagate; 2. normalise and drop features; 3. project
            dense = x.to_dense() if x.layout != torch.strided else x
            dense = dense.expand(*self.bias.shape[:-1], views, *dense.shape)  # [*, V, N, F]
            h = propagate(drop_nodes(dense, self.node_rate, self.training), graph, shares)
            h = h if self.input_norm is None else self.input_norm(h)
            h = dropout(h, self.input_rate, self.training)
            h = h @ self.weight.unsqueeze(-3)  # [*, V, N, C]
        else:
            # 1. drop features and project; 2. drop nodes and propagate
            h = drop_nodes(self.project(x, views), self.node_rate, self.training)
            h = self._sum_of_hops(h, graph) if self.is_separate else propagate(h, graph, shares)
        h = self.activate(h)
        for layer in self.deeper:
            h = layer(h, graph)
        return h

    def activate(self, h: Tensor) -> Tensor:
        """Return the first hidden layer of summed hops ``[*, V, N, C]``."""
        h = (h + self.bias[..., None, None, :]).relu()
        h = h if self.hidden_norm is None else self.hidden_norm(h)
        return dropout(h, self.dropout, self.training)

    def _sum_of_hops(self, h: Tensor, graph: Propagator | SampledPropagator) -> Tensor:
        """Sum the hops of every matrix's own channels, ``[*, (K + 1) C] -> [*, C]``.

        By Horner's rule, so that no channel is propagated twice: to the channels of hop K, carried
        one hop on, those of hop K - 1 are added, and so on.
        """
        out: Tensor
        *nearer, out = h.view(*h.shape[:-1], self.hops + 1, -1).unbind(-2)
        one_hop = weights_of_one_hop(h)
        for channels in reversed(nearer):
            out = propagate(out.contiguous(), graph, one_hop) + channels
        return out

    def project_hops(self, x: Tensor, views: int) -> Tensor:
        """Drop contributions of hops, sum the others, drop features and project.

        Where nodes and features are dropped before they are propagated, averaging over neighbours
        leaves little of it. Here they are dropped afterwards, from each hop of a node and from the
        sum, and only in part: with the same mean, and about the same variance.
        """
        lead, (nodes, hops, _) = self.bias.shape[:-1], x.shape
        part = Subgraph.current()
        left = None if part is None or part.variance is None else part.variance.to(x.dtype)
        every = torch.ones((*lead, views, nodes * hops, 1), dtype=x.dtype, device=x.device)
        kept = drop_nodes(every, self.node_rate, self.training).view(*lead, views, nodes, hops)
        if left is not None and self.training:
            mean = drop_nodes(every, self.node_rate, training=False).view_as(kept)
            kept = torch.lerp(mean, kept, (left * hops).clamp_max(1).sqrt().unsqueeze(-1))
        weight: Tensor = self.weight
        if self.gate is not None and self.input_scale is not None:
            weight = weight * (self.gate * self.input_scale).unsqueeze(-1)
        if self.is_separate:  # [*, F, (K + 1) C] -> [*, (K + 1) F, C]
            h = (x * kept.unsqueeze(-1)).flatten(-2)
            weight = torch.cat(weight.chunk(hops, -1), -2)
        else:
            shares = kept  # of hops that were summed before, where there is only one
            if hops > 1:
                shares = kept * self.hop_shares()[..., None, None, :]
            summed = sum_hops(x, shares.flatten(0, -3))
            h = summed.view(*lead, views, *summed.shape[1:])  # [*, V, N, F]
        h = h if self.input_norm is None else self.input_norm(h)
        if self.has_input_dropout and self.training:
            dropped = dropout(h, self.input_rate, self.training)
            if left is not None and self.order == "hidden":  # else it is dropped here anyway
                dropped = torch.lerp(h, dropped, left.sqrt().unsqueeze(-1))
            h = dropped
        return h @ weight.unsqueeze(-3)

    def merge_members(self, members: Sequence["PropagationEncoder"]) -> None:
        """Drop features if any member does."""
        self.has_input_dropout = any(member.has_input_dropout for member in members)

    def project(self, x: Tensor, views: int) -> Tensor:
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


class DeeperLayer(nn.Module):
    r"""A hidden layer that reads a node and the average of its neighbours apart.

    .. math:: h'_i = \operatorname{ReLU}(h_i U + [\hat{A} h]_i W + b)

    Args:
        channels: Number of hidden channels C.
        dropout: Dropout of its output.
        batch_norm: Whether its output is normalised.

    Shapes:
        - **input, output:** ``[*, V, N, C]``
    """

    def __init__(self, channels: int, dropout: float, batch_norm: bool) -> None:
        super().__init__()
        self.dropout = dropout
        self.weight = nn.Parameter(torch.empty(channels, 2 * channels))  # U and W side by side
        self.bias = nn.Parameter(torch.empty(channels))
        self.norm = MemberBatchNorm(channels) if batch_norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        bound = 1 / math.sqrt(self.bias.size(0))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, h: Tensor, graph: Propagator | SampledPropagator) -> Tensor:
        """Return the hidden vectors of the next layer."""
        own, neighbours = self.project(h)
        return self.activate(own, propagate(neighbours, graph, weights_of_one_hop(h)))

    def project(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return what a node reads of itself, and what its neighbours do, before the average."""
        own, neighbours = (h @ self.weight.unsqueeze(-3)).chunk(2, -1)
        return own, neighbours.contiguous()

    def activate(self, own: Tensor, neighbours: Tensor) -> Tensor:
        """Return the layer's output from both."""
        h = (own + neighbours + self.bias[..., None, None, :]).relu()
        h = h if self.norm is None else self.norm(h)
        return dropout(h, self.dropout, self.training)
