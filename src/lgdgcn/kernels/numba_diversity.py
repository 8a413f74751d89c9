"""Loop for numba over the small Gram matrices of the diversity loss, eight nodes per vector."""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.numba_lanes import exp, larger, mul_add, root
from lgdgcn.kernels.numba_shapes import Shape, lanes_of
from lgdgcn.kernels.numba_vectors import fill, load, store

__all__ = ["diversity_rows"]

Array = np.ndarray[Any, Any]


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
