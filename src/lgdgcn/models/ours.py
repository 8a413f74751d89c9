"""Our variant's network: class units, edges as evidence, labels that own factors."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from lgdgcn.kernels.graph import TensorCache
from lgdgcn.models.base import NodeOutput, NodePicker
from lgdgcn.models.lgd_gcn import LGDGCN
from lgdgcn.nn import (
    ClassUnitConv,
    Disentangled,
    LabelHead,
    LGDConv,
    PropagationEncoder,
    PropagationGraph,
    UnitConv,
    consistency_loss,
    normalized_adjacency,
)
from lgdgcn.nn.encoder import HopWeights, PropagationOrder
from lgdgcn.nn.ours.label_groups import meetings
from lgdgcn.nn.ours.past_weights import PastWeights
from lgdgcn.nn.ours.structure import REFRESHES, Structure
from lgdgcn.nn.propagation import Propagator, SampledPropagator
from lgdgcn.nn.subgraph import Subgraph

__all__ = ["ClassUnitGCN"]

_STRUCTURE = "propagation_graph."  # what the names of a structure's buffers begin with

_copies: TensorCache[Tensor] = TensorCache()


class ClassUnitGCN(LGDGCN):
    """LGD-GCN with other units, votes and classifier; ``docs/ours.md`` explains it.

    With ``encoder_channels``, class units are read from random propagation in front of the layers
    (:class:`~lgdgcn.nn.encoder.PropagationEncoder`). A training step then sees the nodes in
    several views, side by side as copies of the graph, and a loss makes the views agree.

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of classes of all factors together, a multiple of ``factors``.
        out_channels: Number of classes or labels.
        num_layers: Number of layers L.
        multi_label: Whether a node has a set of labels. If not, and with an encoder, the labels
            are the classes of the first factor, and ``hidden_channels`` grows if they are more.
        label_groups: Whether :meth:`begin` gives labels that exclude each other one factor.
        free_share: Share of the edges that factors without labels begin with.
        encoder_channels: Hidden channels of the encoder; 0 for none.
        encoder_layers: Its hidden layers.
        hops: Hops K of the propagation.
        propagate: ``"hidden"`` channels or ``"features"``.
        hop_weights: ``"mean"``, ``"learned"``, ``"signed"`` or ``"separate"``, see
            :class:`~lgdgcn.nn.PropagationEncoder`.
        drop_nodes: Share of nodes dropped in every view.
        input_dropout: Dropout of single features.
        batch_norm: Whether the input of both layers is normalised.
        views: Views V in every step.
        sharpening: Temperature of the views' average.
        confidence: Probability above which a node's likeliest class makes its views agree.
        structure: What is propagated along beside plain edges: edges by agreement (``"local"``),
            latent neighbours (``"global"``), ``"both"`` or ``"none"`` of them.
        structure_neighbours: Latent neighbours of every node.
        structure_weight: Weight of latent neighbours.
        refresh_every: Epochs after which the structure is found anew.
        unit_length: For comparison: units of length 1, as in the paper, and a linear classifier.
            Labels own no factors then, views agree in the labels' probabilities, and edges are
            no evidence.
        **options: Those of :class:`~lgdgcn.models.lgd_gcn.LGDGCN` but for ``variant``.

    Example:
        >>> model = ClassUnitGCN(8, 16, 3, k=2)
        >>> model(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    sharpening: Tensor
    confidence: Tensor

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        *,
        multi_label: bool = True,
        label_groups: bool = True,
        free_share: float = 0.1,
        encoder_channels: int = 0,
        encoder_layers: int = 1,
        hops: int = 0,
        propagate: PropagationOrder = "hidden",
        hop_weights: HopWeights = "mean",
        drop_nodes: float = 0.5,
        input_dropout: float = 0.0,
        batch_norm: bool = False,
        views: int = 1,
        sharpening: float = 0.5,
        confidence: float = 0.0,
        structure: Structure = "none",
        structure_neighbours: int = 10,
        structure_weight: float = 0.3,
        refresh_every: int = 50,
        unit_length: bool = False,
        factors: int = 4,
        dropout: float = 0.5,
        **options: Any,
    ) -> None:
        # without an encoder the votes can be so sure that the logarithm of a class has no bounds
        self.is_exclusive = bool(encoder_channels) and not multi_label
        self.num_labels = out_channels
        self.unit_length = unit_length
        if self.is_exclusive:
            hidden_channels = factors * max(hidden_channels // factors, out_channels)
        super().__init__(
            encoder_channels or in_channels,
            hidden_channels,
            out_channels,
            num_layers,
            factors=factors,
            dropout=dropout,
            **options,
        )
        self.label_groups = label_groups
        self.free_share = free_share
        asked = hops > 0 or views > 1 or structure != "none"
        self.ignores_propagation = asked and not encoder_channels
        self.encoder: PropagationEncoder | None = None
        self.propagation_graph: PropagationGraph | None = None
        if encoder_channels:
            self.encoder = PropagationEncoder(
                in_channels,
                encoder_channels,
                hops,
                propagate,
                hop_weights,
                drop_nodes,
                input_dropout,
                dropout,
                batch_norm,
                encoder_layers,
            )
            self.views = views
            self.uses_edge_weights = hops > 0 and structure == "none"  # which weighs them itself
            if structure != "none":
                self.propagation_graph = PropagationGraph(
                    structure, structure_neighbours, structure_weight
                )
                self.refresh_every = refresh_every
            self.is_random_from_start = True
        # buffers, so that the members of a population can have one each
        for name, number in (("sharpening", sharpening), ("confidence", confidence)):
            self.register_buffer(name, torch.tensor(number).double(), persistent=False)

    def make_layer(self, in_channels: int | None, out_channels: int, **options: Any) -> LGDConv:
        """Return a layer whose units are class distributions."""
        options["precision"] = options["precision"] or "scaled"  # has no size for λ_space to fit
        if self.unit_length:
            return UnitConv(in_channels, out_channels, **options)
        labels = self.num_labels if self.is_exclusive else None
        return ClassUnitConv(in_channels, out_channels, first_classes=labels, **options)

    def make_classifier(self, in_channels: int, out_channels: int) -> nn.Module:
        """Return a classifier in which every label is a class of one factor."""
        if self.unit_length:
            return super().make_classifier(in_channels, out_channels)
        return LabelHead(in_channels, out_channels, exclusive=self.is_exclusive)

    def reset_parameters(self) -> None:
        """Draw new weights and forget all statistics."""
        super().reset_parameters()
        if self.encoder is not None:
            self.encoder.reset_parameters()

    @property
    def head(self) -> LabelHead:
        """The classifier."""
        return cast("LabelHead", self.classifier)

    def begin(self, y: Tensor, x: Tensor, edge_index: Tensor) -> None:
        """Give labels that exclude each other on the training nodes one factor."""
        labels = y.size(1)  # a node that has one label only says nothing of groups
        met = torch.zeros(labels, labels) if self.is_exclusive else meetings(y)
        self.begin_labels(met, len(y))
        if self.encoder is not None:
            self.encoder.begin(x, normalized_adjacency(edge_index, x.size(0)))
        if self.propagation_graph is not None:
            self.propagation_graph.begin(edge_index, x.size(0))

    def begin_labels(self, met: Tensor, nodes: int) -> None:
        """The part of :meth:`begin` that knows no more than how often labels meet.

        Args:
            met: How many training nodes have both of two labels ``[C, C]``.
            nodes: How many training nodes there are.
        """
        if (self.label_groups or self.is_exclusive) and not self.unit_length:
            self.head.begin(met, nodes, self.num_factors)
        owned = self.owned_factors()
        if owned is not None:
            for layer in cast("Sequence[ClassUnitConv]", self.layers):
                layer.begin(owned, self.free_share)

    def factors(
        self,
        x: Tensor,
        edge_index: Tensor,
        known: Sequence[Disentangled] = (),
        count: int | None = None,
    ) -> list[Disentangled]:
        """Run encoder and layers; in training, nodes are those of all views, view after view."""
        if self.encoder is None or len(known) or count == 0:
            return super().factors(x, edge_index, known, count)
        nodes, views = x.size(0), self.views_now
        h = self._hidden(x, edge_index, views).flatten(-3, -2)  # [*, V * N, C]
        return super().factors(h, _side_by_side(edge_index, nodes, views), (), count)

    def _hidden(self, x: Tensor, edge_index: Tensor, views: int) -> Tensor:
        """What the encoder makes of every node in each view, ``[*, V, N, C]``."""
        assert self.encoder is not None
        graph: Propagator | SampledPropagator
        part = Subgraph.current()
        if part is not None:
            graph = part.propagator
        elif self.propagation_graph is None:
            graph = normalized_adjacency(edge_index, x.size(0))
        else:
            graph = self.propagation_graph.matrix()
        hidden: Tensor = self.encoder(x, graph, views)
        return hidden

    @torch.no_grad()
    def refresh(self, x: Tensor, edge_index: Tensor, due: Tensor) -> None:
        """Weigh what is propagated along by the classes and neighbours that nodes have now."""
        if self.propagation_graph is None:
            return
        hidden = self._hidden(x, edge_index, 1).squeeze(-3)
        layers = super().factors(hidden, edge_index)
        parts = self.agreement_parts(layers[-1].units)
        self.propagation_graph.refresh(edge_index, parts, hidden, due)

    def agreement_parts(self, units: Tensor) -> Tensor:
        """What nodes agree in, whose inner products are in [0, 1], ``[*, N, M, d] -> [*, N, D]``.

        They are the mean over the factors that labels own of how probable it is that two nodes
        have the same class.
        """
        classes, owned = self._label_classes(units)
        share = (owned / owned.sum(-1, keepdim=True)).sqrt().to(classes.dtype)
        return (classes * share[..., None, :, None]).flatten(-2)

    def adapted(self, x: Tensor, edge_index: Tensor) -> "ClassUnitGCN":
        """Return the network, or for a graph that it was not trained on one that has seen it."""
        graph = self.propagation_graph
        if graph is None or graph.is_for(edge_index, x.size(0)):
            return self
        past, other = self.past(), copy.deepcopy(self)
        finder = other if past is None else past
        assert finder.propagation_graph is not None
        finder.propagation_graph.begin(edge_index, x.size(0))
        for _ in range(0 if past is None else REFRESHES):
            finder.refresh(x, edge_index, torch.ones_like(graph.gamma, dtype=torch.bool))
        other.propagation_graph = finder.propagation_graph
        return other

    def keep_past(self) -> None:
        """Have a place for the weights that the structure is found with, which are saved then."""
        if self.propagation_graph is not None:
            self.propagation_graph.past = PastWeights(self._own_weights())

    def remember(self, epoch: int) -> None:
        """Keep the present weights as those that the structure of an epoch is found with."""
        assert self.propagation_graph is not None
        assert self.propagation_graph.past is not None
        self.propagation_graph.past.keep(self._own_weights(), epoch)

    def past(self) -> "ClassUnitGCN | None":
        """A copy with the weights that the structure is found with; ``None`` if it has none yet.

        Where no weights are kept for that, they are the present ones.
        """
        graph, other = self.propagation_graph, copy.deepcopy(self)
        if graph is not None and graph.past is not None:
            if not bool(graph.past.epoch.any()):
                return None
            other.load_state_dict(graph.past.weights(), strict=False)
        return other

    def _own_weights(self) -> dict[str, Tensor]:
        """Weights and statistics, without anything about the structure."""
        every = self.state_dict().items()
        return {name: tensor for name, tensor in every if not name.startswith(_STRUCTURE)}

    def resize(self, saved: Mapping[str, Tensor]) -> None:
        """Give the buffers that depend on the graph the sizes of saved ones."""
        if self.propagation_graph is not None:
            own = {name.removeprefix(_STRUCTURE): tensor for name, tensor in saved.items()}
            self.propagation_graph.resize(own)
            if "past.epoch" in own:
                self.keep_past()

    def classify(
        self,
        x: Tensor,
        edge_index: Tensor,
        layers: Sequence[Disentangled],
        pick: NodePicker | None = None,
    ) -> Tensor:
        """Return the class scores of every view's nodes; see :meth:`NodeModel.classify`."""
        if self.encoder is None:
            return super().classify(x, edge_index, layers, pick)
        units = layers[-1].units
        if pick is not None:  # before anything is computed of them
            flat = units.flatten(-2).chunk(self.views_now, -2)
            picked = torch.cat([pick(view) for view in flat], -2)
            units = picked.view(*picked.shape[:-1], *units.shape[-2:])
        return self.score(self.evidence(units))

    def losses(self, output: NodeOutput, edge_index: Tensor) -> dict[str, Tensor]:
        """Return the layers' losses and, of several views, how much they disagree."""
        views = self.views_now
        units = output.layers[-1].units  # [*, V * N, M, d]
        nodes = units.size(-3) // views
        losses = super().losses(output, _side_by_side(edge_index, nodes, views))
        if views > 1:
            part = Subgraph.current()
            of_nodes = 1.0 if part is None else part.parts * part.seeds / part.num_nodes
            counted = units if part is None else part.seeds_of(units, views)
            losses["consistency"] = of_nodes * self._disagreement(counted, views)
        return losses

    def _disagreement(self, units: Tensor, views: int) -> Tensor:
        """Mean consistency loss of the factors that labels own, ``[*]``."""
        found, owned = self._label_classes(units)
        classes = found.view(*units.shape[:-3], views, -1, *found.shape[-2:])  # [*, V, N, M, d]
        by_factor = classes.movedim(-2, -4).flatten(0, -4)  # [* M, V, N, d]
        both = (self.sharpening, self.confidence)
        numbers = (number.unsqueeze(-1).expand_as(owned).reshape(-1) for number in both)
        loss = consistency_loss(by_factor, *numbers).view_as(owned)
        mean: Tensor = (loss * owned).sum(-1) / owned.sum(-1)
        return mean

    def _label_classes(self, units: Tensor) -> tuple[Tensor, Tensor]:
        """Distributions over classes ``[*, N, M, d]``, and in which of them labels are ``[*, M]``.

        Without class units they are the labels' probabilities. If a node has exactly one label,
        only the first factor is returned, and of its classes those that labels have: C, not M d.
        """
        if self.is_exclusive and not self.unit_length:
            classes = self.head.label_distribution(units).unsqueeze(-2)
            return classes, torch.ones_like(classes[..., 0, :, 0], dtype=torch.bool)
        owned = self.owned_factors()
        if owned is not None:
            return self.head.classes(units).view_as(units), owned
        scores = self.score(self.evidence(units))
        if self.is_exclusive:
            classes = scores.softmax(-1).unsqueeze(-2)
        else:  # every label is a distribution over yes and no
            classes = torch.stack([scores.sigmoid(), (-scores).sigmoid()], -1)
        return classes, torch.ones_like(classes[..., 0, :, 0], dtype=torch.bool)

    def owned_factors(self) -> Tensor | None:
        """Return whether labels own each factor ``[*, M]``; without groups all may be owned."""
        if self.unit_length:
            return None
        start = self.head.start
        owned = (start > 0).any(-2).view(*start.shape[:-2], self.num_factors, -1).any(-1)
        return owned | ~owned.any(-1, keepdim=True)

    def evidence(self, units: Tensor) -> Tensor:
        """Return the distributions over each factor's classes, ``[*, N, M * d]``."""
        if self.unit_length:
            return super().evidence(units)
        return self.head.classes(units)

    def score(self, evidence: Tensor) -> Tensor:
        """Return the labels' log-odds, ``[*, n, M * d] -> [*, n, C]``."""
        if self.unit_length:
            return super().score(evidence)
        scores: Tensor = self.head(evidence)
        return scores

    def factor_shares(self, units: Tensor, label: Tensor) -> Tensor:
        """Return what each factor adds to one label's probability of every node ``[N, M]``."""
        if self.unit_length:
            return super().factor_shares(units, label)
        return (self.evidence(units) * self.head.shares()[label]).view_as(units).sum(-1)

    def factor_classes(self, units: Tensor) -> Tensor | None:
        """Return each node's most probable class in every factor ``[N, M]``."""
        return None if self.unit_length else self.evidence(units).view_as(units).argmax(-1)

    def label_classes(self) -> Tensor | None:
        """Return the class that has more than half of each label ``[C]``, -1 where none has."""
        if self.unit_length:
            return None
        share, number = self.head.shares().max(-1)
        return number.where(share > 0.5, -1)

    def concerns(self) -> list[str]:
        """Say so if settings are not used, or labels that exclude each other lack classes."""
        if self.ignores_propagation:
            return ["hops, views and structure are not used without encoder_channels; set it to 32"]
        if self.unit_length:
            return []
        start = self.head.start
        begun = start.view(*start.shape[:-1], self.num_factors, -1) > 0  # [*, C, M, d]
        needed = max(2, int(begun.any(-1).sum(-2).max()))  # a factor's only class is always certain
        if begun.size(-1) >= needed:
            return []
        return [
            f"a factor has {begun.size(-1)} of the {needed} classes that its labels need; "
            f"use hidden_channels={self.num_factors * needed} or more"
        ]


def _side_by_side(edge_index: Tensor, nodes: int, views: int) -> Tensor:
    """The edges of several copies of a graph; node i of view v is v * N + i."""
    if views == 1:
        return edge_index

    def build() -> Tensor:
        offset = torch.arange(views, device=edge_index.device) * nodes
        return (edge_index.unsqueeze(1) + offset.view(1, -1, 1)).flatten(1)

    return _copies.get(edge_index, (nodes, views), build)
