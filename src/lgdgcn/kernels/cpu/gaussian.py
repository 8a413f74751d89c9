"""Diversity loss: the small Gram matrices of eight nodes per vector."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel, to_numpy
from lgdgcn.kernels.cpu.vector_math import exp, larger, mul_add, root
from lgdgcn.kernels.cpu.vectors import Shape, fill, lanes_of, load, shape_of, store

__all__ = ["diversity_loss"]

_GRAIN = 1 << 14  # numbers that are worth a range of their own
_MOST_ROWS = 32  # of a Gram matrix: the product of its pivots, each at least the jitter, is finite


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


@njit
def _unit_rows(rows: Array, size: int, shape: Shape) -> None:
    """Turn logarithms of the rows `[M * M, nodes]` into rows of unit length."""
    for first in range(0, size * size, size):
        top = load(rows, first, shape)
        for at in range(first + 1, first + size):
            top = larger(load(rows, at, shape), top)
        square = fill(0.0, shape)
        for at in range(first, first + size):
            weight = exp(load(rows, at, shape) - top)
            square = mul_add(weight, weight, square)
            store(rows, at, weight)
        factor = fill(1.0, shape) / root(square)
        for at in range(first, first + size):
            store(rows, at, load(rows, at, shape) * factor)


@njit
def _gram(rows: Array, size: int, jitter: float, gram: Array, shape: Shape) -> None:
    """Fill gram `[M * M, nodes]` with the jittered inner products; its diagonal stays 1."""
    scale = fill(1.0 / (1.0 + jitter), shape)
    for i in range(size):
        for j in range(i + 1):
            total = fill(jitter if i == j else 0.0, shape)
            for k in range(size):
                total = mul_add(
                    load(rows, i * size + k, shape), load(rows, j * size + k, shape), total
                )
            store(gram, i * size + j, total * scale)
            store(gram, j * size + i, total * scale)


@njit
def _invert(gram: Array, size: int, volume: Array, shape: Shape) -> None:
    """Replace positive definite matrices by their inverses; volume gets the determinants."""
    one = fill(1.0, shape)
    determinant = one
    for p in range(size):
        pivot = load(gram, p * size + p, shape)
        determinant = determinant * pivot
        inverse = one / pivot
        for j in range(size):
            if j != p:
                store(gram, p * size + j, load(gram, p * size + j, shape) * inverse)
        for i in range(size):
            if i == p:
                continue
            factor = load(gram, i * size + p, shape)
            for j in range(size):
                if j != p:
                    change = factor * load(gram, p * size + j, shape)
                    store(gram, i * size + j, load(gram, i * size + j, shape) - change)
            store(gram, i * size + p, fill(0.0, shape) - factor * inverse)
        store(gram, p * size + p, inverse)
    store(volume, 0, determinant)


@njit
def _slopes(
    rows: Array, inverse: Array, size: int, jitter: float, out: Array, shape: Shape
) -> None:
    """Fill out `[M * M, nodes]` with the gradient of the loss towards the logarithms."""
    scale = fill(-2.0 / (1.0 + jitter), shape)
    for i in range(size):
        along = fill(0.0, shape)
        for k in range(size):
            total = fill(0.0, shape)
            for j in range(size):
                total = mul_add(
                    load(inverse, i * size + j, shape), load(rows, j * size + k, shape), total
                )
            row = load(rows, i * size + k, shape)
            slope = total * row * scale  # towards the logarithm, were the length fixed
            along = along + slope
            store(out, i * size + k, slope)
        for k in range(size):
            row = load(rows, i * size + k, shape)
            store(out, i * size + k, load(out, i * size + k, shape) - row * row * along)


@njit(nogil=True, cache=True)
def diversity_rows(
    start: int,
    stop: int,
    log_rows: Array,
    jitter: float,
    loss: Array,
    slopes: Array,
    shape: Shape,
) -> None:
    """Fill loss `[n]` and its gradients `[n, M, M]`, unless slopes is empty, from start to stop."""
    size, group = log_rows.shape[1], lanes_of(shape)
    rows, volume = np.empty((size * size, group)), np.empty(group)
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
        _invert(gram, size, volume, shape)
        for lane in range(count):
            loss[first + lane] = -np.log(volume[lane])
        if slopes.size:
            _slopes(rows, gram, size, jitter, slope, shape)
            for lane in range(count):
                for i in range(size):
                    for j in range(size):
                        slopes[first + lane, i, j] = slope[i * size + j, lane]
