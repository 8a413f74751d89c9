"""Many models of one architecture as one: every tensor gets a leading axis of members."""

import copy
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import chain

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lgdgcn.models.lgd_gcn import LGDGCN
from lgdgcn.models.sparse_members import sparse_members
from lgdgcn.nn import LGDConv, RandomStreams, dropout_everywhere

__all__ = ["Ensemble", "lone_names", "stack"]


def stack(models: Sequence[nn.Module]) -> nn.Module:
    """Return one module that runs all models at once.

    Args:
        models: Models that differ in weights, in dropout (whose rates the active
            :class:`~lgdgcn.nn.RandomStreams` know) and, LGD-GCN, in ``k``, ``tau`` and
            ``update_rate``.

    Returns:
        LGD-GCN is its own population, since its layers work on ``[*, N, M, d]``; others become an
        :class:`Ensemble`. Both map shared features ``[N, F]`` to scores ``[R, N, C]``.
    """
    if not all(isinstance(model, LGDGCN) for model in models):
        return Ensemble(models)
    stacked = copy.deepcopy(models[0])
    named = zip(*(_tensors(model) for model in models), strict=True)
    for entries in list(named):
        name, tensors = entries[0][0], [tensor for _, tensor in entries]
        path, _, key = name.rpartition(".")
        owner = stacked.get_submodule(path)
        if key == "own_k" and all(torch.equal(tensor, tensors[0]) for tensor in tensors):
            continue  # one k for all needs no mask
        joined = torch.stack([tensor.detach() for tensor in tensors])
        if key in owner._parameters:
            owner.register_parameter(key, nn.Parameter(joined))
        else:
            owner._buffers[key] = joined
    for layers in zip(*(model.modules() for model in (stacked, *models)), strict=True):
        if isinstance(layers[0], LGDConv):
            layers[0].k = max(layer.k for layer in layers[1:])
    return stacked


def lone_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give tensors of a stacked module the names that a lone one has for them."""
    return {name.replace("/", "."): tensor for name, tensor in tensors.items()}


class Ensemble(nn.Module):
    """Models that know nothing of members, from torch_geometric's own layers.

    On the CPU they take turns, which costs nothing there; on a GPU one pass runs them all.
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        template = max(models, key=_dropout)  # a layer of rate 0 would never ask for dropout
        self._template = [copy.deepcopy(template)]  # in a list: not a submodule, no weights here
        for entries in zip(*(model.named_parameters() for model in models), strict=True):
            joined = torch.stack([tensor.detach() for _, tensor in entries])
            self.register_parameter(entries[0][0].replace(".", "/"), nn.Parameter(joined))

    def train(self, mode: bool = True) -> "Ensemble":
        """Switch dropout on or off."""
        self._template[0].train(mode)
        super().train(mode)
        return self

    def forward(
        self, x: Tensor, edge_index: Tensor, streams: RandomStreams | None = None
    ) -> Tensor:
        """Return the class scores of every member ``[R, N, C]``."""
        weights = lone_names(dict(self.named_parameters()))
        if x.device.type == "cuda":
            return self._at_once(weights, x, edge_index, streams)
        split = {name: tensor.unbind(0) for name, tensor in weights.items()}
        members = len(next(iter(split.values())))
        outputs = []
        for member in range(members):
            own = {name: tensors[member] for name, tensors in split.items()}
            outputs.append(
                self._run(own, x, edge_index, streams and streams.of(slice(member, member + 1)))
            )
        return torch.stack(outputs)

    def _run(
        self,
        weights: Mapping[str, Tensor],
        x: Tensor,
        edge_index: Tensor,
        streams: RandomStreams | None,
    ) -> Tensor:
        with nullcontext() if streams is None else streams.active(), dropout_everywhere():
            scores: Tensor = functional_call(self._template[0], dict(weights), (x, edge_index))
            return scores

    def _at_once(
        self,
        weights: Mapping[str, Tensor],
        x: Tensor,
        edge_index: Tensor,
        streams: RandomStreams | None,
    ) -> Tensor:
        def run(own: dict[str, Tensor], *stream: Tensor) -> Tensor:
            one = RandomStreams(*(part.view(1) for part in stream)) if stream else None
            with nullcontext() if x.layout == torch.strided else sparse_members(x):
                return self._run(own, x, edge_index, one)

        own = () if streams is None else (streams.seed, streams.epoch, streams.rate)
        scores: Tensor = vmap(run)(dict(weights), *own)
        return scores


def _dropout(model: nn.Module) -> float:
    return max(getattr(module, "dropout", 0.0) for module in model.modules())


def _tensors(model: nn.Module) -> "chain[tuple[str, Tensor]]":
    return chain(model.named_parameters(), model.named_buffers())
