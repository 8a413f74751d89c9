"""Unit length, dropout, diversity loss and Adam on the CPU."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import numba_units, reference
from lgdgcn.kernels.cpu_arrays import Array, to_numpy
from lgdgcn.kernels.numba_diversity import diversity_rows
from lgdgcn.kernels.numba_shapes import shape_of
from lgdgcn.kernels.threads import even_cuts, in_parallel

__all__ = ["adam", "diversity_loss", "dropout", "unit_length"]

_GRAIN = 1 << 14  # numbers that are worth a range of their own
_MOST_LANES = 1024
_MOST_ROWS = 32  # of a Gram matrix: the product of its pivots, each at least the jitter, is finite


def unit_length(v: Tensor) -> Tensor:
    """See `lgdgcn.kernels.unit_length`."""
    if v.numel() == 0 or v.dim() == 0:
        return reference.unit_length(v)
    channels = v.size(-2) if v.dim() > 2 else 1
    if shape_of(channels, v.size(-1)).lanes > _MOST_LANES:
        channels = 1
    shape = shape_of(channels, v.size(-1))
    if shape.lanes > _MOST_LANES:
        return reference.unit_length(v)
    unit: Tensor = _UnitLength.apply(v, channels)  # type: ignore[no-untyped-call]
    return unit


class _UnitLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, channels: int) -> Tensor:
        shape = shape_of(channels, v.size(-1))
        rows = v.numel() // (channels * v.size(-1))
        unit = torch.empty_like(v, memory_format=torch.contiguous_format)
        inverse = v.new_empty(rows, shape.wide_channels)
        cuts = even_cuts(rows, 1 + _GRAIN // shape.lanes)
        results = unit.numpy(), inverse.numpy()
        in_parallel(numba_units.unit_forward, cuts, to_numpy(v), *results, shape)
        ctx.save_for_backward(unit, inverse)
        ctx.channels = channels
        return unit

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        unit, inverse = ctx.saved_tensors
        shape = shape_of(ctx.channels, unit.size(-1))
        out = torch.empty_like(unit)
        arrays = [to_numpy(part) for part in (unit, inverse, grads[0])]
        cuts = even_cuts(inverse.size(0), 1 + _GRAIN // shape.lanes)
        in_parallel(numba_units.unit_backward, cuts, *arrays, out.numpy(), shape)
        return out, None


def dropout(x: Tensor, rate: Tensor, seed: Tensor, epoch: Tensor, call: int) -> Tensor:
    """See `lgdgcn.kernels.dropout`."""
    rates = to_numpy(rate)
    threshold = (rates.astype(np.float64) * 2.0**32).astype(np.uint32)
    scale = 1 / (1 - to_numpy(rate.to(x.dtype)))
    members = to_numpy(seed), to_numpy(epoch), threshold, scale
    out: Tensor = _Dropout.apply(x, members, call)  # type: ignore[no-untyped-call]
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, members: tuple[Array, ...], call: int) -> Tensor:
        ctx.members, ctx.call = members, call
        return _drop(x, members, call)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _drop(grads[0], ctx.members, ctx.call), None, None


def _drop(x: Tensor, members: tuple[Array, ...], call: int) -> Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    seed, epoch, threshold, scale = members
    arguments = to_numpy(x).reshape(-1), seed, epoch, call, threshold, scale
    in_parallel(numba_units.drop, even_cuts(x.numel(), _GRAIN), *arguments, out.numpy().reshape(-1))
    return out


def diversity_loss(log_rows: Tensor, jitter: float) -> Tensor:
    """See `lgdgcn.kernels.diversity_loss`."""
    if not 0 < log_rows.size(-1) <= _MOST_ROWS:
        return reference.diversity_loss(log_rows, jitter)
    loss: Tensor = _Diversity.apply(log_rows, jitter)  # type: ignore[no-untyped-call]
    return loss


class _Diversity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_rows: Tensor, jitter: float) -> Tensor:
        loss = log_rows.new_empty(log_rows.size(0))
        wanted = log_rows.shape if ctx.needs_input_grad[0] else (0, 0, 0)
        slopes = log_rows.new_empty(wanted)
        ctx.save_for_backward(slopes)
        cuts = even_cuts(log_rows.size(0), 1 + _GRAIN // (2 * log_rows.size(1) ** 2))
        results = loss.numpy(), slopes.numpy()
        in_parallel(diversity_rows, cuts, to_numpy(log_rows), jitter, *results, shape_of(1, 8))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        # not worth waking torch's threads
        grad = to_numpy(slopes) * to_numpy(grads[0])[:, None, None]
        return torch.from_numpy(grad), None


def adam(
    param: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    lr: Tensor,
    decay: Tensor,
    step: Tensor,
) -> None:
    """See `lgdgcn.kernels.adam`."""
    if not all(part.is_contiguous() for part in (param, mean, square)):
        return reference.adam(param, grad, mean, square, lr, decay, step)
    flat = [to_numpy(part).reshape(-1) for part in (param, grad, mean, square)]
    steps, rates = to_numpy(step), to_numpy(lr.double())
    size = (rates / (1 - 0.9**steps)).astype(flat[0].dtype)
    shrink = (1 / np.sqrt(1 - 0.999**steps)).astype(flat[0].dtype)
    members = to_numpy(decay.to(param.dtype)), size, shrink
    in_parallel(numba_units.adam_step, even_cuts(param.numel(), _GRAIN), *flat, *members)
    for part in (param, mean, square):
        torch.autograd.graph.increment_version(part)  # written behind torch's back
    return None
