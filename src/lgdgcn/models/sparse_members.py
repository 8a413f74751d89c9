"""Sparse features inside ``vmap``, which knows no sparse tensors."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lgdgcn import kernels

__all__ = ["sparse_members"]


class sparse_members(TorchFunctionMode):  # noqa: N801 - used like a function
    """Let many members multiply one sparse feature matrix by their own weights.

    Inside, a product with ``x`` is one kernel for all members. A matrix that is made anew from
    ``x``'s places and other entries (dropout makes one) stays ``x`` itself, and the entries, one
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
        raise NotImplementedError("this product is for vmap alone")

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
