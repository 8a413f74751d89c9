"""Dropout whose random numbers are counted, not drawn: the same in any population."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lgdgcn import kernels

__all__ = ["RandomStreams", "dropout", "dropout_everywhere"]


class RandomStreams:
    """The random numbers of one epoch, one stream per member.

    A number depends on its member's seed, the epoch, how many dropouts came before in this pass,
    and its index in the tensor, so a member draws the same whoever is trained beside it, and an
    interrupted run goes on with the numbers it would have drawn.

    Args:
        seed: ``[R]`` int64.
        epoch: ``[R]`` int64.
        rate: ``[R]`` share of elements each member drops.
    """

    def __init__(self, seed: Tensor, epoch: Tensor, rate: Tensor) -> None:
        self.seed = seed
        self.epoch = epoch
        self.rate = rate
        self._calls = count()

    def of(self, members: slice) -> "RandomStreams":
        """The streams of some members, from the start of the epoch."""
        return RandomStreams(self.seed[members], self.epoch[members], self.rate[members])

    def drop(self, x: Tensor, rate: Tensor | None = None) -> Tensor:
        """Drop elements of ``x [R, ...]``, with other rates ``[R]`` than the streams' if given."""
        call = next(self._calls)
        rate = self.rate if rate is None else rate.to(self.rate.dtype)
        if torch._C._functorch.is_batchedtensor(self.seed):
            inside: Tensor = _InVmap.apply(x, rate, self.seed, self.epoch, call)  # type: ignore[no-untyped-call]
            return inside
        return kernels.dropout(x, rate, self.seed, self.epoch, call)

    @staticmethod
    def current() -> "RandomStreams | None":
        """The streams that are active, if any."""
        return _active.get()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Use these streams in every :func:`dropout` inside."""
        token = _active.set(self)
        try:
            yield
        finally:
            _active.reset(token)


class _InVmap(torch.autograd.Function):
    """Dropout of one member, which ``vmap`` turns into that of all; the kernel differentiates."""

    @staticmethod
    def forward(x: Tensor, rate: Tensor, seed: Tensor, epoch: Tensor, call: int) -> Tensor:
        raise NotImplementedError("this dropout is only for vmap, which replaces it")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], x: Tensor, *stream: Any
    ) -> tuple[Tensor, int]:
        members = info.batch_size
        x = x.expand(members, *x.shape) if in_dims[0] is None else x.movedim(in_dims[0], 0)
        rate, seed, epoch = (number.reshape(members) for number in stream[:3])  # of [R, 1]
        return kernels.dropout(x.squeeze(1).contiguous(), rate, seed, epoch, stream[3]).unsqueeze(
            1
        ), 0


_active: ContextVar[RandomStreams | None] = ContextVar("random streams", default=None)


def dropout(x: Tensor, rate: float | Tensor, training: bool) -> Tensor:
    """Drop elements of ``x``, by the active streams or by torch's own random numbers.

    Args:
        x: Anything; with active streams, one entry per member first, ``[R, ...]``.
        rate: Probability to drop an element. Active streams know the members' own rates, so a
            number is not used then; a tensor ``[R]`` (or ``[]``) takes their place.
        training: Whether anything is dropped.
    """
    streams = _active.get()
    if not training:
        return x
    if streams is None:
        return F.dropout(x, float(rate))
    return streams.drop(x, rate if isinstance(rate, Tensor) else None)


class dropout_everywhere(TorchFunctionMode):  # noqa: N801 - used like a function
    """Send torch's own dropout, wherever a layer calls it, through :func:`dropout`."""

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Replace dropout in training, leave everything else alone."""
        if func is not F.dropout:
            return func(*args, **kwargs or {})
        return _replacement(*args, **kwargs or {})


def _replacement(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    streams = _active.get()
    with torch._C.DisableTorchFunction():
        if streams is None or not training:
            return F.dropout(input, p, training)
        return streams.drop(input.unsqueeze(0)).squeeze(0)
