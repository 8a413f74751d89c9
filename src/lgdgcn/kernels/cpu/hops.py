"""Weighted sums of the hops of nodes on the CPU: a node's hops are read once for all sums.

Written with torch's operations, every hop is a pass over all sums, and so is the gradient of every
weight. Here the hops of a node, a few kilobytes, stay in the cache while all sums of the node are
made; the gradients of its weights are inner products with the same rows.
"""

from typing import Any

import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu.threads import Array, even_cuts, in_parallel, to_numpy

__all__ = ["sum_hops"]

_GRAIN = 1 << 14  # numbers that are worth a range of their own


def sum_hops(x: Tensor, weights: Tensor) -> Tensor:
    """See `lgdgcn.kernels.sum_hops`."""
    if x.requires_grad:
        return reference.sum_hops(x, weights)
    summed: Tensor = _SumHops.apply(x, weights.to(x.dtype))  # type: ignore[no-untyped-call]
    return summed


class _SumHops(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        sets, nodes, _ = weights.shape
        out = x.new_empty(sets, nodes, x.size(2))
        arrays = to_numpy(x), to_numpy(weights), out.numpy()
        in_parallel(_sum_rows, _cuts(x, sets), *arrays)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensors
        nodes, hops, _ = x.shape
        sets = grads[0].size(0)
        out = x.new_empty(sets, nodes, hops)
        arrays = to_numpy(x), to_numpy(grads[0]), out.numpy()
        in_parallel(_inner_products, _cuts(x, sets), *arrays)
        return None, out


def _cuts(x: Tensor, sets: int) -> list[int]:
    """Ranges of nodes."""
    nodes, hops, size = x.shape
    return even_cuts(nodes, 1 + _GRAIN // max(1, sets * hops * size))


@njit(nogil=True, cache=True, fastmath={"contract"})
def _sum_rows(start: int, stop: int, x: Array, weights: Array, out: Array) -> None:
    """Fill out `[S, n, F]` for the nodes start to stop."""
    for i in range(start, stop):
        for s in range(weights.shape[0]):
            row = out[s, i]
            first = weights[s, i, 0]
            for f in range(x.shape[2]):
                row[f] = first * x[i, 0, f]
            for k in range(1, x.shape[1]):
                weight = weights[s, i, k]
                for f in range(x.shape[2]):
                    row[f] += weight * x[i, k, f]


# a sum may be reordered, which is what lets it be computed in vectors
@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _inner_products(start: int, stop: int, x: Array, grad: Array, out: Array) -> None:
    """Fill out `[S, n, K]` with the inner products of gradients and hops."""
    for i in range(start, stop):
        for s in range(grad.shape[0]):
            for k in range(x.shape[1]):
                total = x.dtype.type(0)
                for f in range(x.shape[2]):
                    total += grad[s, i, f] * x[i, k, f]
                out[s, i, k] = total
