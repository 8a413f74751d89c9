"""Labels that travel along edges, each by the reasons of the edge."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lgdgcn.kernels.graph import edge_reasons, edge_weights, neighbours
from lgdgcn.models.base import NodeModel, NodeOutput, NodePicker
from lgdgcn.models.grand import GRAND
from lgdgcn.nn import Disentangled, dropout
from lgdgcn.nn.label_walk import carry_labels

__all__ = ["AlongReasons"]

HIDDEN = 0.5  # share of the observed labels that a training step hides and predicts
PARTS = 5  # in which training nodes are predicted, each from the labels of the other parts
SPEED = 5.0  # how much faster than other weights those of reasons are learnt
ONE = math.log(math.e - 1) / SPEED  # the parameter of a weight of 1
LEAST = 1e-6  # probability
SAME_GRAPH = 0.5  # share of known edges of a graph whose nodes are those of the training


class AlongReasons(GRAND):
    r"""Classify by features, and let observed labels travel along edges by their reasons.

    .. math:: p_i = \frac{f_i + \kappa (1 - h_i) \pi_i}{h_i + \kappa (1 - h_i)}, \qquad
        a_{ij} = \sum_r w_r\, p(r | ij), \qquad w_r, \kappa \ge 0

    f are the labels that arrive along edges of weight a, and h how many are observed there at all
    (:func:`~lgdgcn.nn.label_walk.carry_labels`); :math:`\pi` is what
    :class:`~lgdgcn.models.grand.GRAND` makes of the features. Training hides half of the observed
    labels in every step and predicts them from the others, so no label reaches its own node. It
    learns which reasons labels travel along (:meth:`reason_weights`); with one reason this is label
    propagation.

    Args:
        in_channels: Number of input features.
        hidden_channels: Size of the hidden layer.
        out_channels: Number of classes or labels.
        propagation: Edges that a label travels at most.
        **options: Those of :class:`~lgdgcn.models.grand.GRAND`.

    Example:
        >>> model = AlongReasons(8, 16, 3)
        >>> model.eval()(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    labels: Tensor
    edges: Tensor
    reasons: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        propagation: int = 10,
        **options: Any,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, **options)
        self.steps, self.uses_edge_weights = propagation, True
        self.reason_scores = nn.Parameter(torch.full((1,), ONE))  # of the weights w
        self.feature_score = nn.Parameter(torch.tensor(ONE))  # of kappa
        # classes [N], or label sets [N, C]; -1 where they are not observed
        shape = (0, out_channels) if self.multi_label else (0,)
        self.register_buffer("labels", torch.full(shape, -1))
        # the edges they travel along [2, E], and the probabilities of their reasons [E, R]
        self.register_buffer("edges", torch.zeros(2, 0, dtype=torch.int64))
        self.register_buffer("reasons", torch.ones(0, 1))

    def reset_parameters(self) -> None:
        """Draw new weights; labels begin to travel along all reasons alike."""
        super().reset_parameters()
        for name in ("reason_scores", "feature_score"):
            if name in self._parameters:  # not yet while the features' part is made
                nn.init.constant_(self.get_parameter(name), ONE)

    def observe(self, nodes: Tensor, y: Tensor, edge_index: Tensor, num_nodes: int) -> None:
        """Read the labels of the training nodes, and the reasons of edges."""
        labels = y if self.multi_label else y.argmax(-1)
        self.labels = self.labels.new_full((num_nodes, *labels.shape[1:]), -1).to(nodes.device)
        self.labels[nodes] = labels.to(self.labels)
        self.edges, self.reasons = edge_index, _reasons_of(edge_index).to(self.bias)
        self.reason_scores = nn.Parameter(self.bias.new_full((self.reasons.size(1),), ONE))

    def reason_weights(self) -> Tensor:
        """How much labels travel along an edge of each reason, of all reasons 1 ``[*, R]``."""
        weights = _positive(self.reason_scores)
        return (weights / weights.sum(-1, keepdim=True)).detach()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the class scores of all nodes, in training of every view ``[*, V * N, C]``.

        After training, those of training nodes come from the labels of other training nodes.
        """
        return self._scores(x, edge_index, parts=0 if self.training else PARTS)

    def disentangle(
        self,
        x: Tensor,
        edge_index: Tensor,
        known: Sequence[Disentangled] = (),
        pick: NodePicker | None = None,
    ) -> NodeOutput:
        """Return the class scores of the picked nodes, view after view, and of all."""
        if pick is None:
            return super().disentangle(x, edge_index, known)
        scores = self._scores(x, edge_index, parts=0).chunk(self.views_now, -2)
        return NodeOutput(torch.cat([pick(view) for view in scores], -2), [], scores)

    def _scores(self, x: Tensor, edge_index: Tensor, parts: int) -> Tensor:
        """Class scores of all nodes ``[*, V * N, C]``.

        Args:
            x: Features. Shape ``[N, F]``.
            edge_index: Edges. Shape ``[2, E]``.
            parts: In how many parts training nodes are predicted without their own labels.
        """
        # 1. what features say
        by_view = super().forward(x, edge_index).chunk(self.views_now, -2)
        scores = torch.stack(by_view, -3)  # [*, V, N, C]
        prior = scores.sigmoid() if self.multi_label else scores.softmax(-1)
        # 2. whose labels are observed: all, or all but some
        observed, labels = self._observed(scores)  # [*, N], [*, N, C + 1]
        seen = observed[..., None, :, None].expand(*scores.shape[:-1], 1)
        part = observed.cumsum(-1) % max(parts, 1)  # [*, N]
        if self.training:
            rate = torch.full(scores.shape[:-3], HIDDEN, device=x.device)
            seen = seen & (dropout(torch.ones_like(scores[..., :1]), rate, True) > 0)
        elif parts:
            number = torch.arange(parts, device=x.device).view(-1, 1)
            others = observed.unsqueeze(-2) & (part.unsqueeze(-2) != number)
            seen = torch.cat([seen, others.unsqueeze(-1)], -3)  # [*, 1 + parts, N, 1]
        # 3. what arrives of them
        edges, weight = neighbours(edge_index, x.size(0)), self._edge_weights(edge_index)
        found = carry_labels(
            labels.unsqueeze(-3), seen, weight[..., edges.order], edges, self.steps
        )
        arrived, hit = found[..., :-1], found[..., -1:]
        missed = _positive(self.feature_score)[..., None, None, None] * (1 - hit)
        both = (arrived + missed * prior) / (hit + missed)
        if self.training:  # a label that is not hidden is predicted by features alone
            both = torch.where(seen, prior, both)
        elif parts:
            number = torch.where(observed, part + 1, 0)[..., None, :, None]
            both = both.take_along_dim(number.expand_as(both[..., :1, :, :]), -3)
        both = both.clamp(LEAST, 1 - LEAST)
        return (both.logit() if self.multi_label else both.log()).flatten(-3, -2)

    def _edge_weights(self, edge_index: Tensor) -> Tensor:
        """How much labels travel along each edge ``[*, E]``."""
        known = self.reasons
        if known.size(-2) != edge_index.size(1):  # there is no graph yet
            known = _reasons_of(edge_index).to(self.bias)
        weight = (known @ _positive(self.reason_scores).unsqueeze(-1)).squeeze(-1)
        given = edge_weights(edge_index)
        return weight if given is None else weight * given.to(weight)

    def _observed(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Whose labels are observed ``[*, N]``, and the labels and a one ``[*, N, C + 1]``."""
        lead, nodes, outputs = scores.shape[:-3], scores.size(-2), scores.size(-1)
        labels = self.labels
        if labels.size(len(lead)) != nodes:  # there is no graph yet
            labels = labels.new_full((*lead, nodes, *labels.shape[len(lead) + 1 :]), -1)
        if self.multi_label:
            observed = labels[..., 0] >= 0
        else:
            observed = labels >= 0
            labels = labels.unsqueeze(-1) == torch.arange(outputs, device=scores.device)
        return observed, F.pad(labels.to(scores.dtype), (0, 1), value=1.0)

    def for_nodes(self, numbers: Tensor) -> "AlongReasons":
        """Return a model for a graph that shares nodes with the one it was trained on.

        Args:
            numbers: What number each node has in the latter, -1 where it is new ``[N]``.
        """
        other, numbers = copy.deepcopy(self), numbers.to(self.labels.device)
        is_new = (numbers < 0).view(-1, *[1] * (self.labels.dim() - 1))
        other.labels = self.labels[numbers.clamp_min(0)].masked_fill(is_new, -1)
        place = numbers.new_full((len(self.labels),), -1)
        place[numbers[numbers >= 0]] = (numbers >= 0).nonzero().flatten()
        edges = place[self.edges]
        there = (edges >= 0).all(0)
        other.edges, other.reasons = edges[:, there], self.reasons[there]
        return other

    def adapted(self, x: Tensor, edge_index: Tensor) -> NodeModel:
        """Return the model itself or, for other edges, one that knows the reasons of those.

        A graph without the nodes that it was trained on has no observed labels: one of another
        size, or of which less than half of the edges are known. A new edge has the reasons that
        are attached to it, or those that are usual.
        """
        if not self.labels.size(0) or torch.equal(self.edges, edge_index):
            return self
        other, count, nodes = copy.deepcopy(self), self.reasons.size(1), len(x)
        found = edge_reasons(edge_index)
        if found is None or found.size(1) != count:
            usual = self.reasons.mean(0) if len(self.reasons) else self.reasons.new_ones(count)
            found = usual.expand(edge_index.size(1), count)
        other.edges, other.reasons = edge_index, found.to(self.reasons)
        other.labels = self.labels.new_full((nodes, *self.labels.shape[1:]), -1)
        if nodes != len(self.labels) or not self.edges.numel() or not edge_index.numel():
            return other
        own, asked = (ends[0] * nodes + ends[1] for ends in (self.edges, edge_index))
        codes, order = own.sort()
        place = torch.searchsorted(codes, asked).clamp_max(len(own) - 1)
        known = codes[place] == asked
        if float(known.double().mean()) >= SAME_GRAPH:
            other.labels = self.labels
            other.reasons = torch.where(known.unsqueeze(1), self.reasons[order[place]], found)
        return other

    def resize(self, saved: Mapping[str, Tensor]) -> None:
        """Give what depends on the graph the sizes of saved tensors."""
        for name in ("labels", "edges", "reasons"):
            own = self.get_buffer(name)
            setattr(self, name, own.new_zeros(saved.get(name, own).shape))
        self.reason_scores = nn.Parameter(self.bias.new_zeros(self.reasons.size(1)))


def _positive(score: Tensor) -> Tensor:
    """The weight of a parameter."""
    return F.softplus(SPEED * score)


def _reasons_of(edge_index: Tensor) -> Tensor:
    """Probabilities of the reasons of edges ``[E, R]``; one reason where none are known."""
    reasons = edge_reasons(edge_index)
    return edge_index.new_ones(edge_index.size(1), 1) if reasons is None else reasons
