"""The network: L layers, dropout and a linear classifier (Sec. 3.4)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, cast

from torch import Tensor, nn

from lgdgcn.errors import InputError
from lgdgcn.nn import (
    VARIANTS,
    Disentangled,
    FactorProjection,
    LabelHead,
    LatentSpace,
    LGDConv,
    dropout,
    edge_loss,
)

__all__ = ["LGDGCN", "LGDOutput"]


class LGDOutput(NamedTuple):
    """Class scores of every node and what each layer found out."""

    logits: Tensor  # [*, N, C]
    layers: list[Disentangled]


class LGDGCN(nn.Module):
    """LGD-GCN; with all three global parts off it is DisenGCN, but for the sharp variant.

    Args:
        in_channels: Number of input features.
        hidden_channels: Size of every layer's output, a multiple of ``factors``.
        out_channels: Number of classes or labels.
        num_layers: Number of layers L.
        factors: Number of factors M.
        iterations: Routing iterations T.
        tau: Routing temperature.
        k: Neighbours in the latent graphs.
        graph: ``"knn"`` or ``"cknn"``.
        dropout: Dropout after every layer.
        update_rate: Share of new statistics per epoch.
        space: Whether the space loss is part of training.
        diversity: Whether the diversity loss is part of training.
        latent_graph: Whether layers aggregate along their latent graphs.
        precision: What stands for the inverse covariance; the variant's own by default.
        label_groups: Whether :meth:`begin` gives labels that exclude each other one factor (sharp).
        variant: ``"paper"`` (the text), ``"released"`` (the authors' code) or ``"sharp"`` (units
            that are classes).

    Example:
        >>> import torch
        >>> model = LGDGCN(8, 16, 3, num_layers=2, k=2)
        >>> model(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 1,
        *,
        factors: int = 4,
        iterations: int = 7,
        tau: float = 1.0,
        k: int = 4,
        graph: Literal["knn", "cknn"] = "cknn",
        dropout: float = 0.5,
        update_rate: float = 0.5,
        space: bool = True,
        diversity: bool = True,
        latent_graph: bool = True,
        precision: Literal["variant", "scaled", "exact", "released"] = "variant",
        label_groups: bool = True,
        variant: str = "paper",
    ) -> None:
        super().__init__()
        if variant not in VARIANTS:
            raise InputError(f"variant is {variant!r}; choose from {', '.join(VARIANTS)}")
        self.variant = VARIANTS[variant]
        self.space = space
        self.diversity = diversity
        self.label_groups = label_groups
        self.dropout = dropout
        shared = self.variant.shared_projection
        self.projection = (
            FactorProjection(in_channels, hidden_channels, factors) if shared else None
        )
        layers = []
        for layer in range(num_layers):
            is_global = self.variant.global_layers == "every" or layer == num_layers - 1
            layers.append(
                LGDConv(
                    None if shared else in_channels if layer == 0 else hidden_channels,
                    hidden_channels,
                    factors=factors,
                    iterations=iterations,
                    tau=tau,
                    k=k,
                    graph=graph,
                    update_rate=update_rate,
                    latent_graph=latent_graph and is_global,
                    latent_space=(space or diversity) and is_global,
                    precision=None if precision == "variant" else precision,
                    variant=self.variant,
                )
            )
        self.layers = cast("Sequence[LGDConv]", nn.ModuleList(layers))
        head = LabelHead if self.variant.class_units else nn.Linear
        self.classifier: LabelHead | nn.Linear = head(hidden_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw new weights and forget all statistics."""
        for module in [self.projection, *self.layers, self.classifier]:
            if module is not None:
                module.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the class scores ``[*, N, C]``."""
        return self.disentangle(x, edge_index).logits

    def first_layer(self, x: Tensor, edge_index: Tensor) -> Disentangled:
        """Run the first layer alone; no dropout comes before its end."""
        h = x if self.projection is None else self.projection(x).flatten(-2)
        return self.layers[0].disentangle(h, edge_index)

    def disentangle(
        self,
        x: Tensor,
        edge_index: Tensor,
        first: Disentangled | None = None,
        pick: Callable[[Tensor], Tensor] | None = None,
    ) -> LGDOutput:
        """Return the class scores together with units and edge factors of every layer.

        Args:
            x: Features, dense or sparse. Shape ``[N, F]``.
            edge_index: Edges. Shape ``[2, E]``.
            first: What :meth:`first_layer` returned for the same weights, to save the work.
            pick: Takes the nodes to classify out of all, ``[*, N, d] -> [*, n, d]``.
        """
        outputs = [self.first_layer(x, edge_index) if first is None else first]
        for layer in self.layers[1:]:
            outputs.append(layer.disentangle(self._dropped(outputs[-1].units), edge_index))
        return LGDOutput(self.classify(outputs[-1].units, pick), outputs)

    def classify(self, units: Tensor, pick: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Return the class scores of the nodes with these units, see :meth:`disentangle`."""
        head = self.classifier
        h = head.classes(units) if isinstance(head, LabelHead) else units.flatten(-2)
        h = dropout(h, self.dropout, self.training)
        h = h if pick is None else pick(h)
        if isinstance(head, LabelHead):
            return head(h)  # type: ignore[no-any-return]
        return h @ head.weight.mT + head.bias.unsqueeze(-2)

    def factor_shares(self, units: Tensor, label: Tensor) -> Tensor:
        """What each factor adds to one label's score of every node ``[N, M]``; both are sums."""
        head = self.classifier
        if isinstance(head, LabelHead):
            evidence, weight = head.classes(units), head.shares()
        else:
            evidence, weight = units.flatten(-2), head.weight
        return (evidence * weight[label]).view_as(units).sum(-1)

    def begin(self, y: Tensor) -> None:
        """Prepare the classifier for the training nodes' label sets ``[n, C]``."""
        if isinstance(self.classifier, LabelHead) and self.label_groups:
            self.classifier.begin(y, self.layers[-1].factors)

    def _dropped(self, units: Tensor) -> Tensor:
        return dropout(units.flatten(-2), self.dropout, self.training)

    def regularization(self, layers: list[Disentangled], edge_index: Tensor) -> dict[str, Tensor]:
        r"""Space, diversity and edge loss, layer l weighted by :math:`10^{l-L}` (Eq. 7)."""
        losses: dict[str, Tensor] = {}  # [*] each
        if self.variant.class_units:
            for depth, output in enumerate(layers, start=1):
                loss = 10.0 ** (depth - len(layers)) * edge_loss(output.local_units, edge_index)
                losses["edge"] = losses.get("edge", 0) + loss
        for depth, space, output in self._latent_spaces(layers):
            weight = 10.0 ** (depth - len(layers))
            if self.space:
                loss = weight * space.space_loss(output.local_units)
                losses["space"] = losses.get("space", 0) + loss
            if self.diversity:
                loss = weight * space.diversity_loss(output.local_units)
                losses["diversity"] = losses.get("diversity", 0) + loss
        return losses

    def before_loss(self, layers: list[Disentangled], first_epoch: bool = True) -> None:
        """Set the statistics from the first forward; the released variant updates them here."""
        for _, space, output in self._latent_spaces(layers):
            if self.variant.statistics == "before_loss":
                space.update(output.local_units)
            elif first_epoch:
                space.initialize(output.units)

    def after_step(self, layers: list[Disentangled]) -> None:
        """Update the statistics from the updated network's units, once per epoch (Alg. 2)."""
        if self.variant.statistics == "after_step":
            for _, space, output in self._latent_spaces(layers):
                space.update(output.units)

    def _latent_spaces(
        self, layers: list[Disentangled]
    ) -> Iterator[tuple[int, LatentSpace, Disentangled]]:
        """Yield depth l = 1..L, statistics and output of every layer that keeps statistics."""
        for depth, (layer, output) in enumerate(zip(self.layers, layers, strict=True), start=1):
            if layer.latent_space is not None:
                yield depth, layer.latent_space, output
