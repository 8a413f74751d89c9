"""The network: L layers, dropout and a linear classifier (Sec. 3.4)."""

import copy
from collections.abc import Sequence
from typing import Any, Literal, cast

from torch import Tensor, nn

from lgdgcn.errors import InputError
from lgdgcn.models.base import NodeModel, NodeOutput, NodePicker
from lgdgcn.nn import VARIANTS, Disentangled, FactorProjection, LGDConv, Moment, dropout

__all__ = ["LGDGCN"]

_LARGEST_COVARIANCE = 64  # channels; above, torch's solvers wait for the host


class LGDGCN(NodeModel):
    """LGD-GCN; with all three global parts off it is DisenGCN.

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
        variant: ``"paper"`` (the text) or ``"released"`` (the authors' code).

    Example:
        >>> import torch
        >>> model = LGDGCN(8, 16, 3, num_layers=2, k=2)
        >>> model(torch.rand(5, 8), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    is_batched = True

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
        variant: str = "paper",
    ) -> None:
        super().__init__()
        if variant not in VARIANTS:
            raise InputError(f"variant is {variant!r}; choose from {', '.join(VARIANTS)}")
        self.variant = VARIANTS[variant]
        self.num_factors = factors
        self.dropout = dropout
        shared = self.variant.shared_projection
        self.projection = (
            FactorProjection(in_channels, hidden_channels, factors) if shared else None
        )
        layers = []
        for layer in range(num_layers):
            is_global = self.variant.global_layers == "every" or layer == num_layers - 1
            layers.append(
                self.make_layer(
                    None if shared else in_channels if layer == 0 else hidden_channels,
                    hidden_channels,
                    factors=factors,
                    iterations=iterations,
                    tau=tau,
                    k=k,
                    graph=graph,
                    update_rate=update_rate,
                    latent_graph=latent_graph and is_global,
                    space=space and is_global,
                    diversity=diversity and is_global,
                    precision=None if precision == "variant" else precision,
                    variant=self.variant,
                )
            )
        self.layers = cast("Sequence[LGDConv]", nn.ModuleList(layers))
        self.classifier = self.make_classifier(hidden_channels, out_channels)

    def make_layer(self, in_channels: int | None, out_channels: int, **options: Any) -> LGDConv:
        """Return one layer; a subclass may have other ones."""
        return LGDConv(in_channels, out_channels, **options)

    def make_classifier(self, in_channels: int, out_channels: int) -> nn.Module:
        """Return what turns the last layer's units into class scores."""
        return nn.Linear(in_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draw new weights and forget all statistics."""
        for module in [self.projection, *self.layers, self.classifier]:
            if module is not None:
                module.reset_parameters()  # type: ignore[operator]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the class scores ``[*, N, C]``."""
        return self.disentangle(x, edge_index).logits

    def factors(
        self,
        x: Tensor,
        edge_index: Tensor,
        known: Sequence[Disentangled] = (),
        count: int | None = None,
    ) -> list[Disentangled]:
        """Run the layers, with dropout between them; see :meth:`NodeModel.factors`."""
        outputs = list(known)
        for layer in self.layers[len(outputs) : count]:
            if outputs:
                h = dropout(outputs[-1].units.flatten(-2), self.dropout, self.training)
            else:
                h = x if self.projection is None else self.projection(x).flatten(-2)
            outputs.append(layer.disentangle(h, edge_index))
        return outputs

    def classify(
        self,
        x: Tensor,
        edge_index: Tensor,
        layers: Sequence[Disentangled],
        pick: NodePicker | None = None,
    ) -> Tensor:
        """Return the class scores from the last layer's units; see :meth:`NodeModel.classify`."""
        h = dropout(self.evidence(layers[-1].units), self.dropout, self.training)
        return self.score(h if pick is None else pick(h))

    def evidence(self, units: Tensor) -> Tensor:
        """Return what the classifier is given of every node, ``[*, N, M, d] -> [*, N, M * d]``."""
        return units.flatten(-2)

    def score(self, evidence: Tensor) -> Tensor:
        """Return the class scores, ``[*, n, M * d] -> [*, n, C]``."""
        head = cast("nn.Linear", self.classifier)
        return evidence @ head.weight.mT + head.bias.unsqueeze(-2)

    def factor_shares(self, units: Tensor, label: Tensor) -> Tensor:
        """Return what each factor adds to one label's score of every node ``[N, M]``."""
        weight = cast("nn.Linear", self.classifier).weight
        return (self.evidence(units) * weight[label]).view_as(units).sum(-1)

    def losses(self, output: NodeOutput, edge_index: Tensor) -> dict[str, Tensor]:
        r"""Return every layer's losses, layer l weighted by :math:`10^{l-L}` (Eq. 7)."""
        total: dict[str, Tensor] = {}  # [*] each
        for depth, (layer, found) in enumerate(zip(self.layers, output.layers, strict=True)):
            weight = 10.0 ** (depth + 1 - len(output.layers))
            for name, loss in layer.losses(found, edge_index).items():
                total[name] = total.get(name, 0) + weight * loss
        return total

    def update_statistics(self, output: NodeOutput, moment: Moment) -> None:
        """Update every layer's means and covariances if this is the variant's moment."""
        for layer, found in zip(self.layers, output.layers, strict=True):
            layer.update_statistics(found, moment)

    def without_latent_graphs(self) -> "LGDGCN | None":
        """Return a copy that does not aggregate along latent graphs; ``None`` if none does."""
        if not any(layer.has_latent_graph for layer in self.layers):
            return None
        local = copy.deepcopy(self)
        for layer in local.layers:
            layer.has_latent_graph = False
        return local

    @property
    def can_be_captured(self) -> bool:  # type: ignore[override]
        """Whether a GPU can record a training epoch: not with large covariances."""
        spaces = [layer.latent_space for layer in self.layers if layer.latent_space is not None]
        return all(space.mean.size(-1) <= _LARGEST_COVARIANCE for space in spaces)
