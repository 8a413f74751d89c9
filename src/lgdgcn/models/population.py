"""Many models of one architecture as one: every tensor gets a leading axis of members."""

import copy
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from lgdgcn import kernels
from lgdgcn.models.base import NodeModel, NodeOutput, NodePicker
from lgdgcn.nn import Disentangled, Moment, RandomStreams, dropout_everywhere

__all__ = ["Ensemble", "single_names", "sparse_members", "stack"]


def stack(models: Sequence[NodeModel]) -> NodeModel:
    """Return one model that runs all models at once.

    Args:
        models: Models that differ in weights, buffers, dropout (whose rates the active
            :class:`~lgdgcn.nn.RandomStreams` know) and, LGD-GCN, in ``k``, ``tau`` and
            ``update_rate``.

    Returns:
        A model whose layers take a leading axis of members becomes its own population; others
        become an :class:`Ensemble`. Both map features ``[N, F]`` to scores ``[R, N, C]``.
    """
    if not all(model.is_batched for model in models):
        return Ensemble(models)
    stacked = copy.deepcopy(models[0])
    for entries in list(zip(*(_tensors(model) for model in models), strict=True)):
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
    for module, *members in zip(*(m.modules() for m in (stacked, *models)), strict=True):
        if hasattr(module, "merge_members"):  # numbers that decide what is computed at all
            module.merge_members(members)
    return stacked


def single_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give tensors of a stacked model the names that a single one has for them."""
    return {name.replace("/", "."): tensor for name, tensor in tensors.items()}


class Ensemble(NodeModel):
    """Models that know nothing of members, such as those of torch_geometric's own layers.

    Their parameters and buffers are stacked, ``[R, ...]`` each. On a CPU the members take turns,
    which costs nothing there; on a GPU one pass runs them all (``torch.func.vmap``).
    """

    def __init__(self, models: Sequence[NodeModel]) -> None:
        super().__init__()
        template = max(models, key=_dropout)  # a layer of rate 0 would never ask for dropout
        self._template = [_Methods(copy.deepcopy(template))]  # in a list: not a submodule
        self.num_factors = template.num_factors
        self.can_be_captured = template.can_be_captured
        for entries in zip(*(model.named_parameters() for model in models), strict=True):
            joined = torch.stack([tensor.detach() for _, tensor in entries])
            self.register_parameter(entries[0][0].replace(".", "/"), nn.Parameter(joined))
        persistent = models[0].state_dict()
        for buffers in zip(*(model.named_buffers() for model in models), strict=True):
            name, joined = buffers[0][0], torch.stack([tensor for _, tensor in buffers])
            self.register_buffer(name.replace(".", "/"), joined, persistent=name in persistent)

    def train(self, mode: bool = True) -> "Ensemble":
        """Switch dropout and the statistics of batch norm on or off."""
        self._template[0].train(mode)
        super().train(mode)
        return self

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return the class scores of every member ``[R, N, C]``."""
        scores: Tensor = self._each("forward", x, edge_index)
        return scores

    def disentangle(
        self,
        x: Tensor,
        edge_index: Tensor,
        known: Sequence[Disentangled] = (),
        pick: NodePicker | None = None,
    ) -> NodeOutput:
        """Return class scores and factors of every member."""
        output: NodeOutput = self._each("disentangle", x, edge_index)
        return output if pick is None else output._replace(logits=pick(output.logits))

    def concerns(self) -> list[str]:
        """Return what a user should know of the members' architecture."""
        return self._template[0].model.concerns()

    def losses(self, output: NodeOutput, edge_index: Tensor) -> dict[str, Tensor]:
        """Return the members' own losses, ``[R]`` each."""
        losses: dict[str, Tensor] = self._each("losses", edge_index, output=output)
        return losses

    def update_statistics(self, output: NodeOutput, moment: Moment) -> None:
        """Update the members' own statistics, which are buffers."""
        self._each("update_statistics", moment, output=output)

    def _each(self, method: str, *args: Any, output: NodeOutput | None = None) -> Any:
        """Call a method of every member; ``output`` is cut into members and comes first."""
        template = self._template[0]
        if not template.has_own(method):
            return {}
        tensors = single_names(dict(chain(self.named_parameters(), self.named_buffers())))
        streams = RandomStreams.current()
        stream = () if streams is None else (streams.seed, streams.epoch, streams.rate)
        sparse = [arg for arg in args if isinstance(arg, Tensor) and arg.layout != torch.strided]

        def run(own: dict[str, Tensor], stream: Sequence[Tensor], part: Sequence[Any]) -> Any:
            one = RandomStreams(*(number.reshape(1) for number in stream)) if stream else None
            with (
                one.active() if one else nullcontext(),
                sparse_members(sparse[0]) if sparse and self.in_one_pass else nullcontext(),
                dropout_everywhere(),
            ):
                named = {f"model.{name}": tensor for name, tensor in own.items()}
                return functional_call(template, named, (method, *part, *args))

        members = (tensors, stream, () if output is None else (output,))
        if self.in_one_pass:
            return vmap(run)(*members)
        parts = [
            run(*pytree.tree_map(lambda tensor, row=row: tensor[row], members))
            for row in range(len(next(iter(tensors.values()))))
        ]
        return pytree.tree_map(lambda *rows: torch.stack(rows), *parts)

    @property
    def in_one_pass(self) -> bool:
        """Whether all members run at once instead of taking turns."""
        return next(self.parameters()).is_cuda


class _Methods(nn.Module):
    """Makes every method of a model callable by ``functional_call``, which knows ``forward``."""

    def __init__(self, model: NodeModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, method: str, *args: Any) -> Any:
        """Call a method of the model; one that returns nothing returns an empty dictionary."""
        result = getattr(self.model, method)(*args)
        return {} if result is None else result

    def has_own(self, method: str) -> bool:
        """Whether the model does not just have the default of :class:`NodeModel`."""
        own = getattr(type(self.model), method)
        return method == "disentangle" or own is not getattr(NodeModel, method)


def _dropout(model: nn.Module) -> float:
    """The highest rate in a model, of ``nn.Dropout`` or of a layer's number ``dropout``."""
    rates = [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
    numbers = (getattr(module, "dropout", None) for module in model.modules())
    return max([*rates, *(rate for rate in numbers if isinstance(rate, int | float))], default=0.0)


def _tensors(model: nn.Module) -> "chain[tuple[str, Tensor]]":
    return chain(model.named_parameters(), model.named_buffers())


class sparse_members(TorchFunctionMode):  # noqa: N801 - used like a function
    """Let many members multiply one sparse feature matrix by their own weights.

    Inside, a product with ``x`` is one kernel for all members. A matrix that is made anew from
    ``x``'s indices and other entries (dropout makes one) stays ``x`` itself, and the entries, one
    set for every member, are remembered for the product.

    Args:
        x: The features, ``torch.sparse_csr``.
    """

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.x = x
        self.values: Tensor | None = None

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Replace what is done with the features, leave everything else alone."""
        if func is torch.sparse_csr_tensor:
            self.values = args[2]
            return self.x
        if func is torch.matmul and args[0] is self.x:
            return self._product(args[1])
        if func is F.linear and args[0] is self.x:
            out = self._product(args[1].mT)
            return out if len(args) < 3 or args[2] is None else out + args[2]
        return func(*args, **kwargs or {})

    def _product(self, weight: Tensor) -> Tensor:
        out: Tensor = _Product.apply(self.x, weight, self.values)  # type: ignore[no-untyped-call]
        return out


class _Product(torch.autograd.Function):
    """The product under ``vmap``; its derivative is the kernel's own."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, values: Tensor | None) -> Tensor:
        raise NotImplementedError("this product is only for vmap, which replaces it")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, weight: Tensor, values: Tensor | None
    ) -> tuple[Tensor, int]:
        _, weights_at, values_at = in_dims
        assert weights_at is not None
        if values is not None and values_at is not None:
            values = values.movedim(values_at, 0).contiguous()
        return kernels.matmul(x, weight.movedim(weights_at, 0), values), 0
