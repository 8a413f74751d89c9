"""Routing loops for numba: all iterations of one node in one pass over its in-edges.

Arrays of vectors are `[slots, M, d]` throughout and helpers take a slot and a channel: views of
single vectors would cost more than the arithmetic on them.
"""

from typing import Any

import numpy as np
from numba import njit

__all__ = ["route_backward", "route_forward", "sum_by_source"]

Array = np.ndarray[Any, Any]

# sums may be reordered for the vector units; NaN and infinity keep their meaning
_FAST = {"reassoc", "contract", "nsz"}


@njit(fastmath=_FAST)
def _dot(a: Array, i: int, b: Array, j: int, m: int) -> Any:
    """Inner product of a[i, m] and b[j, m]."""
    total = a.dtype.type(0)
    for x in range(a.shape[2]):
        total += a[i, m, x] * b[j, m, x]
    return total


@njit(fastmath=_FAST)
def _add(out: Array, i: int, scale: Any, a: Array, j: int, m: int) -> None:
    """Add scale * a[j, m] to out[i, m]."""
    for x in range(a.shape[2]):
        out[i, m, x] += scale * a[j, m, x]


@njit
def _copy(out: Array, i: int, a: Array, j: int) -> None:
    """Set out[i] to a[j]."""
    for m in range(a.shape[1]):
        for x in range(a.shape[2]):
            out[i, m, x] = a[j, m, x]


@njit
def _softmax(p: Array, i: int, e: int) -> None:
    """Turn the scores p[i, e] into probabilities."""
    top = p[i, e, 0]
    for m in range(1, p.shape[2]):
        top = max(top, p[i, e, m])
    total = p.dtype.type(0)
    for m in range(p.shape[2]):
        p[i, e, m] = np.exp(p[i, e, m] - top)
        total += p[i, e, m]
    for m in range(p.shape[2]):
        p[i, e, m] /= total


@njit
def _iterate(
    z: Array,
    source: Array,
    first: int,
    t: int,
    degree: int,
    sharp: Any,
    tiny: Any,
    uniform_start: bool,
    normalize_last: bool,
    c: Array,
    p: Array,
    factor: Array,
) -> None:
    """Run all iterations of node t.

    Fills c `[T+1, M, d]` with the start and every result, factor `[T, M]` with what normalised
    it, and p `[slots, degree, M]` with the probabilities of the last `slots` iterations.
    """
    channels, iterations = z.shape[1], c.shape[0] - 1
    one = z.dtype.type(1)
    _copy(c, 0, z, t)
    for step in range(iterations):
        slot = step % p.shape[0]
        _copy(c, step + 1, z, t)
        for e in range(degree):
            s = source[first + e]
            if uniform_start and step == 0:
                for m in range(channels):
                    p[slot, e, m] = one / z.dtype.type(channels)
            else:
                for m in range(channels):
                    p[slot, e, m] = _dot(z, s, c, step, m) * sharp
                _softmax(p, slot, e)
            for m in range(channels):
                _add(c, step + 1, p[slot, e, m], z, s, m)
        if step == iterations - 1 and not normalize_last:
            continue
        for m in range(channels):
            square = _dot(c, step + 1, c, step + 1, m)
            factor[step, m] = one / np.sqrt(square) if square >= tiny else z.dtype.type(0)
            for x in range(z.shape[2]):
                c[step + 1, m, x] *= factor[step, m]


@njit
def _longest(row_ptr: Array, start: int, stop: int) -> int:
    longest = 0
    for t in range(start, stop):
        longest = max(longest, row_ptr[t + 1] - row_ptr[t])
    return longest


@njit(nogil=True, cache=True)
def route_forward(
    start: int,
    stop: int,
    z: Array,
    row_ptr: Array,
    source: Array,
    order: Array,
    iterations: int,
    sharp: Any,
    tiny: Any,
    uniform_start: bool,
    normalize_last: bool,
    units: Array,
    chance: Array,
) -> None:
    """Fill units `[N, M, d]` and chance `[E, M]` for the nodes from start to stop."""
    channels, size = z.shape[1], z.shape[2]
    p = np.empty((1, _longest(row_ptr, start, stop), channels), z.dtype)
    c = np.empty((iterations + 1, channels, size), z.dtype)
    factor = np.empty((iterations, channels), z.dtype)
    for t in range(start, stop):
        first, degree = row_ptr[t], row_ptr[t + 1] - row_ptr[t]
        _iterate(
            z,
            source,
            first,
            t,
            degree,
            sharp,
            tiny,
            uniform_start,
            normalize_last,
            c,
            p,
            factor,
        )
        _copy(units, t, c, iterations)
        for e in range(degree):
            for m in range(channels):
                chance[order[first + e], m] = p[0, e, m]


@njit(fastmath=_FAST)
def _edge_backward(
    z: Array,
    s: int,
    sharp: Any,
    c: Array,
    step: int,
    p: Array,
    e: int,
    score: Array,
    back: Array,
    edge_grad: Array,
    at: int,
) -> None:
    """Pass one edge backwards; score `[M]` holds what p already received."""
    mean = z.dtype.type(0)
    for m in range(z.shape[1]):
        score[m] += _dot(back, 0, z, s, m)
        mean += p[step, e, m] * score[m]
    for m in range(z.shape[1]):
        slope = p[step, e, m] * (score[m] - mean) * sharp
        weight = p[step, e, m]
        _add(back, 1, slope, z, s, m)
        for x in range(z.shape[2]):
            edge_grad[at, m, x] += slope * c[step, m, x] + weight * back[0, m, x]


@njit(nogil=True, cache=True)
def route_backward(
    start: int,
    stop: int,
    z: Array,
    row_ptr: Array,
    source: Array,
    order: Array,
    iterations: int,
    sharp: Any,
    tiny: Any,
    uniform_start: bool,
    normalize_last: bool,
    grad_units: Array,
    grad_chance: Array,
    grad: Array,
    edge_grad: Array,
    base: int,
) -> None:
    """Recompute the iterations of each node, then walk them backwards.

    Fills `grad` `[N, M, d]` with each node's gradient through itself and `edge_grad`
    `[entries, M, d]`, which begins at entry `base`, with the gradient of each in-edge towards its
    source, for the nodes from start to stop. `grad_chance` is `[0, M]` when p received no gradient.
    """
    channels, size = z.shape[1], z.shape[2]
    zero, one = z.dtype.type(0), z.dtype.type(1)
    p = np.empty((iterations, _longest(row_ptr, start, stop), channels), z.dtype)
    c = np.empty((iterations + 1, channels, size), z.dtype)
    factor = np.empty((iterations, channels), z.dtype)
    score = np.empty(channels, z.dtype)
    back = np.empty((2, channels, size), z.dtype)  # gradients of this and the previous c
    for t in range(start, stop):
        first, degree = row_ptr[t], row_ptr[t + 1] - row_ptr[t]
        _iterate(
            z,
            source,
            first,
            t,
            degree,
            sharp,
            tiny,
            uniform_start,
            normalize_last,
            c,
            p,
            factor,
        )
        _copy(back, 0, grad_units, t)
        for m in range(channels):
            for x in range(size):
                grad[t, m, x] = zero
        for step in range(iterations - 1, -1, -1):
            final = step == iterations - 1
            for m in range(channels):
                if not final or normalize_last:
                    _add(back, 0, -_dot(back, 0, c, step + 1, m), c, step + 1, m)
                    for x in range(size):
                        back[0, m, x] *= factor[step, m]
                for x in range(size):
                    grad[t, m, x] += back[0, m, x]
                    back[1, m, x] = zero
            for e in range(degree):
                at = first - base + e
                if final:
                    for m in range(channels):
                        for x in range(size):
                            edge_grad[at, m, x] = zero
                if uniform_start and step == 0:
                    for m in range(channels):
                        _add(edge_grad, at, p[step, e, m], back, 0, m)
                    continue
                for m in range(channels):
                    score[m] = zero
                    if final and grad_chance.shape[0] > 0:
                        score[m] = grad_chance[order[first + e], m]
                _edge_backward(
                    z, source[first + e], sharp, c, step, p, e, score, back, edge_grad, at
                )
            _copy(back, 0, back, 1)
        for m in range(channels):
            _add(grad, t, one, back, 0, m)


@njit(nogil=True, cache=True)
def sum_by_source(
    start: int,
    stop: int,
    edge_grad: Array,
    out_ptr: Array,
    out_entry: Array,
    cursor: Array,
    first: int,
    grad: Array,
) -> None:
    """Add edge gradients of the entries from `first` on to the sources from start to stop.

    `cursor` `[N]` holds how many out-edges of each node earlier calls have taken; entries are
    added in their order.
    """
    last = first + edge_grad.shape[0]
    for s in range(start, stop):
        at = out_ptr[s] + cursor[s]
        while at < out_ptr[s + 1] and out_entry[at] < last:
            for m in range(grad.shape[1]):
                _add(grad, s, grad.dtype.type(1), edge_grad, out_entry[at] - first, m)
            at += 1
        cursor[s] = at - out_ptr[s]
