# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""Unit length, dropout and Adam on a GPU: one thread per number, one program per tile of them."""

from math import log2
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["adam", "dropout", "unit_length"]

_TILE = 1024  # elements per program
_TINY = tl.constexpr(torch.finfo(torch.float32).tiny)
_GOLDEN = tl.constexpr(0x9E3779B9)  # spreads calls over 32 bits; part of the definition of dropout
_LOG2_FIRST = tl.constexpr(log2(0.9))
_LOG2_SECOND = tl.constexpr(log2(0.999))


# unit length


def unit_length(v: Tensor) -> Tensor:
    """See `lgdgcn.kernels.unit_length`."""
    unit: Tensor = _UnitLength.apply(v)
    return unit


class _UnitLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:
        unit = torch.empty_like(v, memory_format=torch.contiguous_format)
        inverse = v.new_empty(v.shape[:-1])
        grid, sizes = _row_tiles(v)
        _unit_forward[grid](v.contiguous(), unit, inverse, inverse.numel(), **sizes)
        ctx.save_for_backward(unit, inverse)
        return unit

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        unit, inverse = ctx.saved_tensors
        back = torch.empty_like(unit)
        grid, sizes = _row_tiles(unit)
        _unit_backward[grid](grads[0].contiguous(), unit, inverse, back, inverse.numel(), **sizes)
        return back


def _row_tiles(v: Tensor) -> tuple[tuple[int], dict[str, int]]:
    """Grid and constants of a kernel over tiles of whole rows."""
    width = v.size(-1)
    padded = triton.next_power_of_2(max(1, width))
    rows = max(1, _TILE // padded)
    count = v.shape[:-1].numel()
    return (triton.cdiv(count, rows),), {"SIZE": width, "ROWS": rows, "PADDED": padded}


@triton.jit
def _row_tile(count, SIZE: tl.constexpr, ROWS: tl.constexpr, PADDED: tl.constexpr):
    """The rows of this program `[ROWS]`, their elements `[ROWS, PADDED]` and which exist."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, PADDED)
    inside = (row < count)[:, None] & (column < SIZE)[None, :]
    return row, row[:, None] * SIZE + column[None, :], inside


@triton.jit
def _unit_forward(
    v_ptr, unit_ptr, inverse_ptr, count,
    SIZE: tl.constexpr, ROWS: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Write v / |v| and 1 / |v|, dividing by the largest entry first: squares stay in range."""
    row, at, inside = _row_tile(count, SIZE, ROWS, PADDED)
    v = tl.load(v_ptr + at, mask=inside, other=0.0)
    largest = tl.max(tl.abs(v), axis=1)
    is_zero = largest < _TINY
    scale = tl.where(is_zero, 1.0, largest)
    scaled = v / scale[:, None]
    square = tl.sum(scaled * scaled, axis=1)
    # the maximum overlooks NaN, the sum does not
    inverse = tl.where(is_zero, square * 0.0, tl.rsqrt(tl.where(is_zero, 1.0, square)))
    tl.store(unit_ptr + at, scaled * inverse[:, None], mask=inside)
    tl.store(inverse_ptr + row, inverse / scale, mask=row < count)


@triton.jit
def _unit_backward(
    grad_ptr, unit_ptr, inverse_ptr, back_ptr, count,
    SIZE: tl.constexpr, ROWS: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Write the gradient of v: (g - u <g, u>) / |v| with u = v / |v|."""
    row, at, inside = _row_tile(count, SIZE, ROWS, PADDED)
    grad = tl.load(grad_ptr + at, mask=inside, other=0.0)
    unit = tl.load(unit_ptr + at, mask=inside, other=0.0)
    inverse = tl.load(inverse_ptr + row, mask=row < count, other=0.0)
    along = tl.sum(grad * unit, axis=1)
    back = (grad - unit * along[:, None]) * inverse[:, None]
    tl.store(back_ptr + at, back, mask=inside)


# dropout


def dropout(x: Tensor, rate: Tensor, seed: Tensor, epoch: Tensor, call: int) -> Tensor:
    """See `lgdgcn.kernels.dropout`."""
    out: Tensor = _Dropout.apply(x, rate, seed, epoch, call)
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, rate: Tensor, seed: Tensor, epoch: Tensor, call: int
    ) -> Tensor:
        ctx.save_for_backward(rate, seed, epoch)
        ctx.call = call
        return _drop(x, rate, seed, epoch, call)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        rate, seed, epoch = ctx.saved_tensors
        return _drop(grads[0], rate, seed, epoch, ctx.call), None, None, None, None


def _drop(x: Tensor, rate: Tensor, seed: Tensor, epoch: Tensor, call: int) -> Tensor:
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    size = x.shape[1:].numel()
    grid = triton.cdiv(size, _TILE), x.size(0)
    _dropout_kernel[grid](x.contiguous(), rate, seed, epoch, call, out, size, TILE=_TILE)
    return out


@triton.jit(do_not_specialize=["call"])
def _dropout_kernel(x_ptr, rate_ptr, seed_ptr, epoch_ptr, call, out_ptr, size, TILE: tl.constexpr):
    """Drop elements of one tile of one member; a random number is a hash of its index."""
    member = tl.program_id(1).to(tl.int64)
    seed = tl.load(seed_ptr + member)
    epoch = tl.load(epoch_ptr + member).to(tl.uint32)
    rate = tl.load(rate_ptr + member)
    # two hashes of the member's seed, the call and the epoch
    first = _mix(seed.to(tl.uint32) + _GOLDEN * (call + 1).to(tl.uint32))
    second = _mix(_mix(epoch + first) ^ (seed >> 32).to(tl.uint32))
    threshold = (rate.to(tl.float64) * 4294967296.0).to(tl.int64).to(tl.uint32)
    scale = tl.div_rn(1.0, 1.0 - rate.to(tl.float32))
    element = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    keep = _mix(_mix(element.to(tl.uint32) ^ first) + second) >= threshold
    at = member * size + element
    x = tl.load(x_ptr + at, mask=element < size)
    tl.store(out_ptr + at, tl.where(keep, x * scale, 0.0), mask=element < size)


@triton.jit
def _mix(x):
    """Hash 32-bit numbers; every input bit reaches every output bit."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


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
    """See `lgdgcn.kernels.adam`; `param`, `mean` and `square` must be contiguous."""
    size = param.shape[1:].numel()
    grid = triton.cdiv(size, _TILE), param.size(0)
    state = param.detach(), grad.contiguous(), mean, square
    _adam_kernel[grid](*state, lr, decay, step, size, TILE=_TILE)
    torch.autograd.graph.increment_version((param, mean, square))  # torch did not see the writes


@triton.jit
def _adam_kernel(
    param_ptr, grad_ptr, mean_ptr, square_ptr, lr_ptr, decay_ptr, step_ptr, size,
    TILE: tl.constexpr,
):  # fmt: skip
    """Update one tile of one member's parameter."""
    member = tl.program_id(1).to(tl.int64)
    decay = tl.load(decay_ptr + member).to(tl.float32)
    step = tl.load(step_ptr + member).to(tl.float64)
    # bias corrections 1 - 0.9^step and 1 - 0.999^step; float64, because 1 - 0.999 loses digits
    first = 1.0 - tl.exp2(step * _LOG2_FIRST)
    second = 1.0 - tl.exp2(step * _LOG2_SECOND)
    step_size = (tl.load(lr_ptr + member).to(tl.float64) / first).to(tl.float32)
    root_scale = (1.0 / tl.sqrt(second)).to(tl.float32)

    element = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = element < size
    at = member * size + element
    param = tl.load(param_ptr + at, mask=inside)
    grad = tl.load(grad_ptr + at, mask=inside) + decay * param
    mean = tl.load(mean_ptr + at, mask=inside)
    mean += (grad - mean) * 0.1
    square = tl.load(square_ptr + at, mask=inside) * 0.999 + grad * grad * 0.001
    param -= step_size * mean / (tl.sqrt_rn(square) * root_scale + 1e-8)
    tl.store(param_ptr + at, param, mask=inside)
    tl.store(mean_ptr + at, mean, mask=inside)
    tl.store(square_ptr + at, square, mask=inside)
