# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
"""K-hop averages on a GPU: one launch per hop, in which every program sums a few rows.

A launch reads the hop before and writes the next one, and adds it to the average at once, so the
average is read and written K times but no hop is kept.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["propagate"]

_ROWS = 16  # rows per program
_COLUMNS = 32  # at most, per program
_WARPS = 4


def propagate(x: Tensor, row_ptr: Tensor, column: Tensor, value: Tensor, weights: Tensor) -> Tensor:
    """See `lgdgcn.kernels.propagate`."""
    out: Tensor = _Propagate.apply(x, weights.to(x.dtype), row_ptr, column, value.to(x.dtype))
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
        # A is symmetric, so both gradients come from the hops of the output's gradient
        x, weights, *graph = ctx.saved_tensors
        grad, products = _average(grads[0], weights, graph, x)
        return grad, products, None, None, None


def _average(
    x: Tensor, weights: Tensor, graph: Any, other: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Return the average of the hops of x, and `other`'s inner product with each hop."""
    row_ptr, column, value = (tensor.contiguous() for tensor in graph)
    sets, nodes, size = x.shape
    now, weights = x.contiguous(), weights.contiguous()
    total = weights[:, 0, None, None] * now
    products = [] if other is None else [(now * other).sum((1, 2))]
    shape = {"SIZE": size, "COLUMNS": min(_COLUMNS, triton.next_power_of_2(size)), "ROWS": _ROWS}
    grid = (triton.cdiv(nodes, _ROWS), sets, triton.cdiv(size, shape["COLUMNS"]))
    sets_per_graph = sets // len(value)
    for k in range(1, weights.size(1)):
        after = torch.empty_like(now)
        if x.numel():
            with torch.cuda.device_of(x):
                _hop_kernel[grid](
                    now, row_ptr, column, value, weights, after, total, nodes, column.size(1),
                    sets_per_graph, weights.size(1), k, **shape, num_warps=_WARPS,
                )  # fmt: skip
        now = after
        if other is not None:
            products.append((now * other).sum((1, 2)))
    return total, torch.stack(products, 1) if products else None


@triton.jit(do_not_specialize=["nodes", "nnz", "sets_per_graph", "hops", "k"])
def _hop_kernel(
    now, row_ptr, column, value, weights, after, total, nodes, nnz, sets_per_graph, hops, k,
    SIZE: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Sum the neighbours of a few rows of one set, and add the sums to the average."""
    b = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    now += b * nodes * SIZE
    after += b * nodes * SIZE
    total += b * nodes * SIZE
    graph = b // sets_per_graph
    row_ptr += graph * (nodes + 1)
    column += graph * nnz
    value += graph * nnz
    # one entry of every row at a time; rows that have ended wait for the longest
    start = tl.load(row_ptr + row, row < nodes, 0)
    stop = tl.load(row_ptr + row + 1, row < nodes, 0)
    longest = tl.max(stop - start, 0)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for step in range(0, longest):
        entry = start + step
        here = entry < stop
        neighbour = tl.load(column + entry, here, 0)[:, None]
        share = tl.load(value + entry, here, 0.0)[:, None]
        mask = here[:, None] & (part < SIZE)
        sums += share * tl.load(now + neighbour * SIZE + part, mask, 0.0)
    index = row[:, None].to(tl.int64) * SIZE + part
    mask = (row < nodes)[:, None] & (part < SIZE)
    scale = tl.load(weights + b * hops + k)
    tl.store(after + index, sums, mask)
    tl.store(total + index, tl.load(total + index, mask, 0.0) + scale * sums, mask)
