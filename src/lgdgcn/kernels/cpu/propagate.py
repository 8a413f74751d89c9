"""K-hop averages on the CPU: all hops of sixteen columns at once, while these are in the cache.

One hop after the other over all columns would read and write every number from memory K times.
Sixteen columns of all nodes are a few hundred kilobytes for graphs of some thousand nodes, so a
task takes sixteen columns of one set through all hops before it writes them back. A neighbour's
sixteen numbers are one cache line, and one vector register.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn.kernels.cpu.threads import Array, in_parallel, to_numpy
from lgdgcn.kernels.cpu.vector_math import broadcast16, load16, mul_add
from lgdgcn.kernels.cpu.vectors import LANES, store

__all__ = ["propagate"]


def propagate(x: Tensor, row_ptr: Tensor, column: Tensor, value: Tensor, weights: Tensor) -> Tensor:
    """See `lgdgcn.kernels.propagate`."""
    out: Tensor = _Propagate.apply(  # type: ignore[no-untyped-call]
        x, weights.to(x.dtype), row_ptr, column, value.to(x.dtype)
    )
    return out


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, *graph: Tensor) -> Tensor:
        # the features are needed again for the gradient of the weights only
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weights, *graph)
        return _average(x, weights, graph, None)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # The matrix is symmetric: the gradient of the features is the same average of the
        # gradient, and that of weight k is the inner product of the features with its k-th hop.
        x, weights, *graph = ctx.saved_tensors
        grad, products = _average(grads[0], weights, graph, x)
        return grad, products if x is not None else None, None, None, None


def _average(x: Tensor, weights: Tensor, graph: Any, other: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the average of the hops of x, and `other`'s inner product with each hop."""
    sets, _, size = x.shape
    blocks = -(-size // LANES)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    products = x.new_zeros(sets, blocks, weights.size(1))
    compared = x.new_empty(0, 0, 0) if other is None else other
    arrays = [to_numpy(tensor) for tensor in (x, weights, *graph, compared)]
    in_parallel(_average_blocks, range(sets * blocks + 1), *arrays, out.numpy(), products.numpy())
    return out, products.sum(1)


@njit(nogil=True, cache=True, fastmath={"contract"})
def _average_blocks(
    start: int,
    stop: int,
    x: Array,
    weights: Array,
    row_ptr: Array,
    column: Array,
    value: Array,
    other: Array,
    out: Array,
    products: Array,
) -> None:
    """Fill the sixteen columns of tasks start to stop, task t being block t of all sets'."""
    sets, nodes, size = x.shape
    blocks, hops = products.shape[1:]
    sets_per_graph = sets // value.shape[0]
    now = np.zeros((nodes, LANES), x.dtype)
    after, total = np.zeros_like(now), np.zeros_like(now)
    zero = x.dtype.type(0)
    for task in range(start, stop):
        # 1. copy the columns of this task; those beyond the last stay 0
        b, block = divmod(task, blocks)
        graph, low = b // sets_per_graph, block * LANES
        width = min(LANES, size - low)
        now[:, width:] = zero
        for i in range(nodes):
            for j in range(width):
                now[i, j] = x[b, i, low + j]
                total[i, j] = weights[b, 0] * now[i, j]
        if other.shape[0]:
            products[b, block, 0] = _inner_product(now, other, b, low, width)
        # 2. hop by hop: every node sums its neighbours, itself among them
        for k in range(1, hops):
            scale = broadcast16(weights[b, k])
            for i in range(nodes):
                row = broadcast16(zero)
                for e in range(row_ptr[graph, i], row_ptr[graph, i + 1]):
                    row = mul_add(broadcast16(value[graph, e]), load16(now, column[graph, e]), row)
                store(after, i, row)
                store(total, i, mul_add(scale, row, load16(total, i)))
            now, after = after, now
            if other.shape[0]:
                products[b, block, k] = _inner_product(now, other, b, low, width)
        # 3. write the average back
        for i in range(nodes):
            for j in range(width):
                out[b, i, low + j] = total[i, j]


@njit
def _inner_product(hop: Array, other: Array, b: int, low: int, width: int) -> Any:
    result = 0.0
    for i in range(hop.shape[0]):
        for j in range(width):
            result += hop[i, j] * other[b, i, low + j]
    return result
