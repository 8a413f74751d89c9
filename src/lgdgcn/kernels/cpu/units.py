"""Unit length, dropout and Adam on the CPU."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel, to_numpy
from lgdgcn.kernels.cpu.vector_math import between, fold, root, spread
from lgdgcn.kernels.cpu.vectors import (
    Shape,
    fill,
    fill_channels,
    lanes_of,
    load,
    load_channels,
    load_outside,
    pad_with,
    shape_of,
    store,
    store_outside,
)

__all__ = ["adam", "dropout", "safe_squares", "scaled_first", "unit_length"]

_GRAIN = 1 << 14  # numbers that are worth a range of their own
_MOST_LANES = 1024


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
        in_parallel(unit_forward, cuts, to_numpy(v), *results, shape)
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
        in_parallel(unit_backward, cuts, *arrays, out.numpy(), shape)
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
    in_parallel(drop, even_cuts(x.numel(), _GRAIN), *arguments, out.numpy().reshape(-1))
    return out


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
    in_parallel(adam_step, even_cuts(param.numel(), _GRAIN), *flat, *members)
    for part in (param, mean, square):
        torch.autograd.graph.increment_version(part)  # written behind torch's back
    return None


@njit(error_model="numpy")
def scaled_first(row: Array, inverse: Array) -> None:
    """Scale a packed row to unit length where its squares may leave the range of the type."""
    zero, one = row.dtype.type(0), row.dtype.type(1)
    for m in range(inverse.shape[0]):
        largest = zero
        for x in range(m, row.shape[0], inverse.shape[0]):
            largest = max(largest, abs(row[x]))
        usable = largest >= np.finfo(row.dtype).tiny
        scale = largest if usable else one
        square = zero
        for x in range(m, row.shape[0], inverse.shape[0]):
            row[x] /= scale
            square += row[x] * row[x]
        factor = one / np.sqrt(square) if usable else zero
        for x in range(m, row.shape[0], inverse.shape[0]):
            row[x] *= factor
        inverse[m] = factor / scale


@njit
def safe_squares(like: Array) -> Any:
    """Between which bounds the square of a length is exact to rounding."""
    limits = np.finfo(like.dtype)
    return limits.tiny / (limits.eps * limits.eps), limits.max * limits.eps


@njit(nogil=True, cache=True)
def unit_forward(
    start: int, stop: int, v: Array, unit: Array, inverse: Array, shape: Shape
) -> None:
    """Fill unit `[n, M, d]` with v / |v| and inverse `[n, M']` with 1 / |v|."""
    rows = np.empty((1, lanes_of(shape)), v.dtype)
    zeros, ones = fill(v.dtype.type(0), shape), fill_channels(v.dtype.type(1), shape)
    low, high = safe_squares(v)
    for i in range(start, stop):
        row = load_outside(v, i, zeros, shape)
        square = pad_with(fold(row * row, shape), v.dtype.type(1), shape)
        if between(square, low, high):
            factor = ones / root(square)
            store(inverse, i, factor)
            row = row * spread(factor, shape)
        else:
            store(rows, 0, row)
            scaled_first(rows[0], inverse[i])
            row = load(rows, 0, shape)
        store_outside(unit, i, row, shape)


@njit(nogil=True, cache=True)
def unit_backward(
    start: int, stop: int, unit: Array, inverse: Array, grad: Array, out: Array, shape: Shape
) -> None:
    """Fill out `[n, M, d]` with the gradient of v from that of its unit vectors."""
    zeros = fill(unit.dtype.type(0), shape)
    for i in range(start, stop):
        row, given = load_outside(unit, i, zeros, shape), load_outside(grad, i, zeros, shape)
        along = spread(fold(given * row, shape), shape)
        factor = spread(load_channels(inverse, i, shape), shape)
        store_outside(out, i, (given - row * along) * factor, shape)


@njit
def _mix(x: Any) -> Any:
    """Hash a 32-bit number; products wrap."""
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


@njit
def _drop_member(x: Array, first: int, a: Any, b: Any, least: Any, scale: Any, out: Array) -> None:
    zero = x.dtype.type(0)
    for i in range(len(x)):
        drawn = _mix(np.uint32(_mix(np.uint32(np.uint32(first + i) ^ a)) + b))
        out[i] = x[i] * scale if drawn >= least else zero


@njit(nogil=True, cache=True, error_model="numpy")
def drop(
    start: int,
    stop: int,
    x: Array,
    seed: Array,
    epoch: Array,
    call: int,
    threshold: Array,
    scale: Array,
    out: Array,
) -> None:
    """Fill the numbers start to stop of out `[R * n]` with those of x that stay, scaled up."""
    size, at = len(x) // len(seed), start
    while at < stop:
        r = at // size
        last = min((r + 1) * size, stop)
        a = _mix(np.uint32(seed[r] + 0x9E3779B9 * (call + 1)))
        b = _mix(np.uint32(_mix(np.uint32(epoch[r] + a)) ^ np.uint32(seed[r] >> 32)))
        part = slice(at, last)
        _drop_member(x[part], at - r * size, a, b, threshold[r], scale[r], out[part])
        at = last


@njit(error_model="numpy")
def _adam_member(
    param: Array, grad: Array, mean: Array, square: Array, decay: Any, size: Any, shrink: Any
) -> None:
    tenth, thousandth = param.dtype.type(0.1), param.dtype.type(0.001)
    kept, least = param.dtype.type(0.999), param.dtype.type(1e-8)
    for i in range(len(param)):
        slope = grad[i] + decay * param[i]
        mean[i] += tenth * (slope - mean[i])
        square[i] = kept * square[i] + thousandth * slope * slope
        param[i] -= size * mean[i] / (np.sqrt(square[i]) * shrink + least)


@njit(nogil=True, cache=True, error_model="numpy")
def adam_step(
    start: int,
    stop: int,
    param: Array,
    grad: Array,
    mean: Array,
    square: Array,
    decay: Array,
    size: Array,
    shrink: Array,
) -> None:
    """Step the numbers start to stop of param `[R * n]`.

    `size` `[R]` is the learning rate over the mean's correction, `shrink` `[R]` what corrects
    the root of the square.
    """
    each, at = len(param) // len(size), start
    while at < stop:
        r = at // each
        part = slice(at, min((r + 1) * each, stop))
        moments = mean[part], square[part]
        _adam_member(param[part], grad[part], *moments, decay[r], size[r], shrink[r])
        at = part.stop
