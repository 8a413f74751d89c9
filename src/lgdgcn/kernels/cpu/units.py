"""Unit length, dropout and Adam on the CPU."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel, to_numpy
from lgdgcn.kernels.cpu.vector_math import all_between, repeat_over_d, sqrt, sum_over_d
from lgdgcn.kernels.cpu.vectors import (
    RowShape,
    broadcast,
    broadcast_factors,
    fill_padding,
    lanes_of,
    load,
    load_factors,
    load_unpacked,
    row_shape,
    store,
    store_unpacked,
)

__all__ = ["adam", "dropout", "normalize_safely", "safe_square_range", "unit_length"]

_GRAIN = 1 << 14  # numbers that are worth a range of their own
_MOST_LANES = 1024  # longer rows leave the registers and take long to compile


# unit length


def unit_length(v: Tensor) -> Tensor:
    """See `lgdgcn.kernels.unit_length`."""
    if v.numel() == 0 or v.dim() == 0:
        return reference.unit_length(v)
    factors = v.size(-2) if v.dim() > 2 else 1
    if row_shape(factors, v.size(-1)).lanes > _MOST_LANES:
        factors = 1
    shape = row_shape(factors, v.size(-1))
    if shape.lanes > _MOST_LANES:
        return reference.unit_length(v)
    unit: Tensor = _UnitLength.apply(v, factors)  # type: ignore[no-untyped-call]
    return unit


class _UnitLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, factors: int) -> Tensor:
        shape = row_shape(factors, v.size(-1))
        rows = v.numel() // (factors * v.size(-1))
        unit = torch.empty_like(v, memory_format=torch.contiguous_format)
        inverse = v.new_empty(rows, shape.padded_factors)
        cuts = even_cuts(rows, 1 + _GRAIN // shape.lanes)
        results = unit.numpy(), inverse.numpy()
        in_parallel(_unit_forward, cuts, to_numpy(v), *results, shape)
        ctx.save_for_backward(unit, inverse)
        ctx.factors = factors
        return unit

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        unit, inverse = ctx.saved_tensors
        shape = row_shape(ctx.factors, unit.size(-1))
        out = torch.empty_like(unit)
        arrays = [to_numpy(tensor) for tensor in (unit, inverse, grads[0])]
        cuts = even_cuts(inverse.size(0), 1 + _GRAIN // shape.lanes)
        in_parallel(_unit_backward, cuts, *arrays, out.numpy(), shape)
        return out, None


@njit(nogil=True, cache=True)
def _unit_forward(
    start: int, stop: int, v: Array, unit: Array, inverse: Array, shape: RowShape
) -> None:
    """Fill unit `[n, M, d]` with v / |v| and inverse `[n, M']` with 1 / |v|."""
    rows = np.empty((1, lanes_of(shape)), v.dtype)
    zeros, ones = broadcast(v.dtype.type(0), shape), broadcast_factors(v.dtype.type(1), shape)
    low, high = safe_square_range(v)
    for i in range(start, stop):
        row = load_unpacked(v, i, zeros, shape)
        square = fill_padding(sum_over_d(row * row, shape), v.dtype.type(1), shape)
        if all_between(square, low, high):
            scale = ones / sqrt(square)
            store(inverse, i, scale)
            row = row * repeat_over_d(scale, shape)
        else:  # a very short or very long vector, or NaN
            store(rows, 0, row)
            normalize_safely(rows[0], inverse[i])
            row = load(rows, 0, shape)
        store_unpacked(unit, i, row, shape)


@njit(nogil=True, cache=True)
def _unit_backward(
    start: int, stop: int, unit: Array, inverse: Array, grad: Array, out: Array, shape: RowShape
) -> None:
    """Fill out `[n, M, d]` with the gradient of v: (g - u <g, u>) / |v| with u = v / |v|."""
    zeros = broadcast(unit.dtype.type(0), shape)
    for i in range(start, stop):
        row, given = load_unpacked(unit, i, zeros, shape), load_unpacked(grad, i, zeros, shape)
        along = repeat_over_d(sum_over_d(given * row, shape), shape)
        scale = repeat_over_d(load_factors(inverse, i, shape), shape)
        store_unpacked(out, i, (given - row * along) * scale, shape)


@njit(error_model="numpy")
def normalize_safely(row: Array, inverse: Array) -> None:
    """Normalise a packed row whose squares may overflow or underflow, in place.

    Divides each factor's vector by its largest entry first. A zero vector stays zero.

    Args:
        row: `[d' * M']`, replaced by unit vectors.
        inverse: `[M']`, receives 1 / length, or 0 for a zero vector.
    """
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
def safe_square_range(like: Array) -> Any:
    """Smallest and largest squared length that is exact up to rounding."""
    limits = np.finfo(like.dtype)
    return limits.tiny / (limits.eps * limits.eps), limits.max * limits.eps


# dropout


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
    in_parallel(_drop_range, even_cuts(x.numel(), _GRAIN), *arguments, out.numpy().reshape(-1))
    return out


@njit(nogil=True, cache=True, error_model="numpy")
def _drop_range(
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
        numbers = slice(at, last)
        _drop_member(x[numbers], at - r * size, a, b, threshold[r], scale[r], out[numbers])
        at = last


@njit
def _drop_member(x: Array, first: int, a: Any, b: Any, least: Any, scale: Any, out: Array) -> None:
    """Drop numbers of one member; a and b are the hashes of its seed, epoch and call."""
    zero = x.dtype.type(0)
    for i in range(len(x)):
        random = _mix(np.uint32(_mix(np.uint32(np.uint32(first + i) ^ a)) + b))
        out[i] = x[i] * scale if random >= least else zero


@njit
def _mix(x: Any) -> Any:
    """Hash a 32-bit number; products wrap around."""
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


# Adam


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
    if not all(tensor.is_contiguous() for tensor in (param, mean, square)):
        return reference.adam(param, grad, mean, square, lr, decay, step)
    flat = [to_numpy(tensor).reshape(-1) for tensor in (param, grad, mean, square)]
    steps, rates = to_numpy(step), to_numpy(lr.double())
    step_size = (rates / (1 - 0.9**steps)).astype(flat[0].dtype)
    root_scale = (1 / np.sqrt(1 - 0.999**steps)).astype(flat[0].dtype)
    members = to_numpy(decay.to(param.dtype)), step_size, root_scale
    in_parallel(_adam_range, even_cuts(param.numel(), _GRAIN), *flat, *members)
    for tensor in (param, mean, square):
        torch.autograd.graph.increment_version(tensor)  # torch did not see the writes
    return None


@njit(nogil=True, cache=True, error_model="numpy")
def _adam_range(
    start: int,
    stop: int,
    param: Array,
    grad: Array,
    mean: Array,
    square: Array,
    decay: Array,
    step_size: Array,
    root_scale: Array,
) -> None:
    """Update the numbers start to stop of param `[R * n]`.

    `step_size` `[R]` is the learning rate divided by the mean's bias correction, `root_scale` `[R]`
    the bias correction of the root of the square.
    """
    each, at = len(param) // len(step_size), start
    while at < stop:
        r = at // each
        numbers = slice(at, min((r + 1) * each, stop))
        moments = mean[numbers], square[numbers]
        _adam_member(param[numbers], grad[numbers], *moments, decay[r], step_size[r], root_scale[r])
        at = numbers.stop


@njit(error_model="numpy")
def _adam_member(
    param: Array, grad: Array, mean: Array, square: Array, decay: Any, step_size: Any, root: Any
) -> None:
    tenth, thousandth = param.dtype.type(0.1), param.dtype.type(0.001)
    kept, least = param.dtype.type(0.999), param.dtype.type(1e-8)
    for i in range(len(param)):
        gradient = grad[i] + decay * param[i]
        mean[i] += tenth * (gradient - mean[i])
        square[i] = kept * square[i] + thousandth * gradient * gradient
        param[i] -= step_size * mean[i] / (np.sqrt(square[i]) * root + least)
