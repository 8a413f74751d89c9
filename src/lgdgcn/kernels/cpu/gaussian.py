"""Diversity loss on the CPU: the small Gram matrices of eight nodes at once.

The other functions of the Gaussian mixture are matrix products, which torch does well on a CPU.

Arrays `[M * M, nodes]` hold one matrix per node, row after row, with the nodes last: a vector then
has the same entry of eight matrices, and every loop below reads as if there were one matrix.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel, to_numpy
from lgdgcn.kernels.cpu.vector_math import exp, maximum, mul_add, sqrt
from lgdgcn.kernels.cpu.vectors import RowShape, broadcast, lanes_of, load, row_shape, store

__all__ = ["diversity_loss"]

_GRAIN = 1 << 14  # numbers that are worth a range of their own
_MOST_ROWS = 32  # of a Gram matrix: the product of its pivots, each at least the jitter, is finite


def diversity_loss(log_rows: Tensor, jitter: float) -> Tensor:
    """See `lgdgcn.kernels.diversity_loss`."""
    if not 0 < log_rows.size(-1) <= _MOST_ROWS:
        return reference.diversity_loss(log_rows, jitter)
    loss: Tensor = _DiversityLoss.apply(log_rows, jitter)  # type: ignore[no-untyped-call]
    return loss


class _DiversityLoss(torch.autograd.Function):
    """Computes the gradient with the loss, because both need the inverse Gram matrix."""

    @staticmethod
    def forward(ctx: Any, log_rows: Tensor, jitter: float) -> Tensor:
        loss = log_rows.new_empty(log_rows.size(0))
        wanted = log_rows.shape if ctx.needs_input_grad[0] else (0, 0, 0)
        gradient = log_rows.new_empty(wanted)
        ctx.save_for_backward(gradient)
        cuts = even_cuts(log_rows.size(0), 1 + _GRAIN // (2 * log_rows.size(1) ** 2))
        results = loss.numpy(), gradient.numpy()
        in_parallel(_loss_range, cuts, to_numpy(log_rows), jitter, *results, row_shape(1, 8))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        # not worth waking torch's threads
        grad = to_numpy(gradient) * to_numpy(grads[0])[:, None, None]
        return torch.from_numpy(grad), None


@njit(nogil=True, cache=True)
def _loss_range(
    start: int,
    stop: int,
    log_rows: Array,
    jitter: float,
    loss: Array,
    gradient: Array,
    shape: RowShape,
) -> None:
    """Fill loss `[n]` and, unless it is empty, gradient `[n, M, M]` from start to stop."""
    size, group = log_rows.shape[1], lanes_of(shape)
    rows, determinant = np.empty((size * size, group)), np.empty(group)
    gram, slope = np.empty((size * size, group)), np.empty((size * size, group))
    for first in range(start, stop, group):
        count = min(group, stop - first)
        for lane in range(group):
            node = first + min(lane, count - 1)  # the last node also fills the rest
            for i in range(size):
                for j in range(size):
                    rows[i * size + j, lane] = log_rows[node, i, j]
        _unit_rows(rows, size, shape)
        _gram(rows, size, jitter, gram, shape)
        _invert(gram, size, determinant, shape)
        for lane in range(count):
            loss[first + lane] = -np.log(determinant[lane])
        if gradient.size:
            _gradient(rows, gram, size, jitter, slope, shape)
            for lane in range(count):
                for i in range(size):
                    for j in range(size):
                        gradient[first + lane, i, j] = slope[i * size + j, lane]


@njit
def _unit_rows(rows: Array, size: int, shape: RowShape) -> None:
    """Turn logarithms of the rows `[M * M, nodes]` into rows of unit length."""
    for first in range(0, size * size, size):
        largest = load(rows, first, shape)
        for at in range(first + 1, first + size):
            largest = maximum(load(rows, at, shape), largest)
        square = broadcast(0.0, shape)
        for at in range(first, first + size):
            entry = exp(load(rows, at, shape) - largest)
            square = mul_add(entry, entry, square)
            store(rows, at, entry)
        scale = broadcast(1.0, shape) / sqrt(square)
        for at in range(first, first + size):
            store(rows, at, load(rows, at, shape) * scale)


@njit
def _gram(rows: Array, size: int, jitter: float, gram: Array, shape: RowShape) -> None:
    """Fill gram `[M * M, nodes]` with (rows rows^T + jitter I) / (1 + jitter)."""
    scale = broadcast(1.0 / (1.0 + jitter), shape)
    for i in range(size):
        for j in range(i + 1):
            total = broadcast(jitter if i == j else 0.0, shape)
            for k in range(size):
                total = mul_add(
                    load(rows, i * size + k, shape), load(rows, j * size + k, shape), total
                )
            store(gram, i * size + j, total * scale)
            store(gram, j * size + i, total * scale)


@njit
def _invert(gram: Array, size: int, determinant: Array, shape: RowShape) -> None:
    """Replace positive definite matrices by their inverses (Gauss-Jordan elimination in place)."""
    one = broadcast(1.0, shape)
    product = one  # of the pivots: the determinant
    for p in range(size):
        pivot = load(gram, p * size + p, shape)
        product = product * pivot
        inverse = one / pivot
        for j in range(size):
            if j != p:
                store(gram, p * size + j, load(gram, p * size + j, shape) * inverse)
        for i in range(size):
            if i == p:
                continue
            multiple = load(gram, i * size + p, shape)
            for j in range(size):
                if j != p:
                    change = multiple * load(gram, p * size + j, shape)
                    store(gram, i * size + j, load(gram, i * size + j, shape) - change)
            store(gram, i * size + p, broadcast(0.0, shape) - multiple * inverse)
        store(gram, p * size + p, inverse)
    store(determinant, 0, product)


@njit
def _gradient(
    rows: Array, inverse: Array, size: int, jitter: float, out: Array, shape: RowShape
) -> None:
    """Fill out `[M * M, nodes]` with the gradient of the loss towards the logarithms.

    With s = -2 / (1 + jitter) * (gram^-1 rows) * rows, entry by entry, the gradient of row i is
    s_i - rows_i^2 * sum(s_i): the second term comes from dividing the row by its length.
    """
    scale = broadcast(-2.0 / (1.0 + jitter), shape)
    for i in range(size):
        row_sum = broadcast(0.0, shape)
        for k in range(size):
            total = broadcast(0.0, shape)
            for j in range(size):
                total = mul_add(
                    load(inverse, i * size + j, shape), load(rows, j * size + k, shape), total
                )
            slope = total * load(rows, i * size + k, shape) * scale
            row_sum = row_sum + slope
            store(out, i * size + k, slope)
        for k in range(size):
            row = load(rows, i * size + k, shape)
            store(out, i * size + k, load(out, i * size + k, shape) - row * row * row_sum)
