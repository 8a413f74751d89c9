"""Loops for numba over single rows and numbers: unit length, dropout, Adam."""

from typing import Any

import numpy as np
from numba import njit

from lgdgcn.kernels.numba_lanes import between, fold, root, spread
from lgdgcn.kernels.numba_shapes import Shape, lanes_of
from lgdgcn.kernels.numba_vectors import (
    fill,
    fill_channels,
    load,
    load_channels,
    load_outside,
    pad_with,
    store,
    store_outside,
)

__all__ = ["adam_step", "drop", "safe_squares", "scaled_first", "unit_backward", "unit_forward"]

Array = np.ndarray[Any, Any]


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
