# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# mypy: disable-error-code="assignment"
"""Negative log-determinant of many small Gram matrices, forward and backward, for Triton.

A program takes some nodes and holds their matrices in registers. Loops over the M rows are
unrolled: the rows are a tuple of M tiles `[nodes, columns]`, a triangular factor is a tuple of
M (M + 1) / 2 vectors `[nodes]`, row after row.
"""

from math import log1p
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference

__all__ = ["diversity_loss"]

_LARGEST = 16  # rows of a matrix; unrolled loops over more take long to compile


def diversity_loss(log_rows: Tensor, jitter: float) -> Tensor:
    """See `lgdgcn.kernels.diversity_loss`."""
    if log_rows.size(-1) > _LARGEST:
        return reference.diversity_loss(log_rows, jitter)
    loss: Tensor = _DiversityLoss.apply(log_rows, jitter)
    return loss


class _DiversityLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_rows: Tensor, jitter: float) -> Tensor:
        log_rows = log_rows.contiguous()
        ctx.save_for_backward(log_rows)
        ctx.jitter = jitter
        loss = log_rows.new_empty(log_rows.size(0))
        grid, sizes = _tiles(log_rows)
        constant = log_rows.size(1) * log1p(jitter)
        _loss_forward[grid](log_rows, loss, loss.numel(), CONSTANT=constant, JITTER=jitter, **sizes)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (log_rows,) = ctx.saved_tensors
        back = torch.empty_like(log_rows)
        grid, sizes = _tiles(log_rows)
        _loss_backward[grid](
            log_rows, grads[0].contiguous(), back, back.size(0), JITTER=ctx.jitter, **sizes
        )
        return back, None


def _tiles(log_rows: Tensor) -> tuple[tuple[int], dict[str, int]]:
    """Grid and constants; a program is one warp, so that it never waits for others."""
    count, size, _ = log_rows.shape
    padded = triton.next_power_of_2(size)
    nodes = min(32, 128 // padded)
    sizes = {"SIZE": size, "PADDED": padded, "NODES": nodes, "num_warps": 1}
    return (triton.cdiv(count, nodes),), sizes


@triton.jit
def _loss_forward(
    log_ptr,
    loss_ptr,
    count,
    CONSTANT: tl.constexpr,
    JITTER: tl.constexpr,
    SIZE: tl.constexpr,
    PADDED: tl.constexpr,
    NODES: tl.constexpr,
):
    node = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    rows = _unit_rows(log_ptr, tl.minimum(node, count - 1), SIZE, PADDED)
    lower = _cholesky(rows, JITTER, SIZE)
    inverse = lower[0]
    for i in tl.static_range(1, SIZE):
        inverse *= lower[i * (i + 3) // 2]
    tl.store(loss_ptr + node, 2.0 * tl.log(inverse) + CONSTANT, mask=node < count)


@triton.jit
def _loss_backward(
    log_ptr,
    grad_ptr,
    back_ptr,
    count,
    JITTER: tl.constexpr,
    SIZE: tl.constexpr,
    PADDED: tl.constexpr,
    NODES: tl.constexpr,
):
    node = tl.program_id(0).to(tl.int64) * NODES + tl.arange(0, NODES)
    rows = _unit_rows(log_ptr, tl.minimum(node, count - 1), SIZE, PADDED)
    solved = _solve(_cholesky(rows, JITTER, SIZE), rows, SIZE)
    grad = tl.load(grad_ptr + node, mask=node < count, other=0.0).to(tl.float64)
    column = tl.arange(0, PADDED)
    inside = (node < count)[:, None] & (column < SIZE)[None, :]
    at = node[:, None] * (SIZE * SIZE) + column[None, :]
    # d loss / d rows = -2 gram^-1 rows, then through the division by each row's length
    for i in tl.static_range(SIZE):
        through = -2.0 * grad[:, None] * rows[i] * solved[SIZE - 1 - i]
        back = through - rows[i] * rows[i] * tl.sum(through, axis=1)[:, None]
        tl.store(back_ptr + at + i * SIZE, back, mask=inside)


@triton.jit
def _unit_rows(log_ptr, node, SIZE: tl.constexpr, PADDED: tl.constexpr):
    """The rows scaled to length 1, in float64."""
    column = tl.arange(0, PADDED)
    at = log_ptr + node[:, None] * (SIZE * SIZE) + column[None, :]
    rows = ()
    for i in tl.static_range(SIZE):
        log_row = tl.load(at + i * SIZE, mask=(column < SIZE)[None, :], other=float("-inf"))
        log_row = log_row.to(tl.float64)
        row = tl.exp(log_row - tl.max(log_row, axis=1)[:, None])
        rows += (row * tl.rsqrt(tl.sum(row * row, axis=1))[:, None],)
    return rows


@triton.jit
def _cholesky(rows, JITTER: tl.constexpr, SIZE: tl.constexpr):
    """Lower factor of the jittered Gram matrix, with its diagonal inverted."""
    lower = ()
    for i in tl.static_range(SIZE):
        for j in tl.static_range(i + 1):
            rest = tl.sum(rows[i] * rows[j], axis=1) + (JITTER if i == j else 0.0)
            for k in tl.static_range(j):
                rest -= lower[i * (i + 1) // 2 + k] * lower[j * (j + 1) // 2 + k]
            if i == j:
                lower += (tl.rsqrt(rest),)
            else:
                lower += (rest * lower[j * (j + 3) // 2],)
    return lower


@triton.jit
def _solve(lower, rows, SIZE: tl.constexpr):
    """Solve gram x = rows; the rows of x are returned last one first."""
    half = ()
    for i in tl.static_range(SIZE):
        rest = rows[i]
        for k in tl.static_range(i):
            rest -= lower[i * (i + 1) // 2 + k][:, None] * half[k]
        half += (rest * lower[i * (i + 3) // 2][:, None],)
    solved = ()
    for i in tl.static_range(SIZE - 1, -1, -1):
        rest = half[i]
        for k in tl.static_range(SIZE - 1, i, -1):
            rest -= lower[k * (k + 1) // 2 + i][:, None] * solved[SIZE - 1 - k]
        solved += (rest * lower[i * (i + 3) // 2][:, None],)
    return solved
