"""Inner products along edges on the CPU, and their gradient."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from lgdgcn.kernels import reference
from lgdgcn.kernels.cpu_arrays import row_cuts, to_numpy
from lgdgcn.kernels.incident import Incident, incident
from lgdgcn.kernels.numba_agreement import gather_gradients, inner_products
from lgdgcn.kernels.numba_shapes import Shape, shape_of
from lgdgcn.kernels.threads import in_parallel

__all__ = ["edge_agreement"]

_FEWEST, _STEP = 16, 64  # vectors are filled up to a power of two, or to a multiple of the step
_MOST = 128  # numbers at a time: their sums stay in registers


def edge_agreement(q: Tensor, edge_index: Tensor) -> Tensor:
    """See `lgdgcn.kernels.edge_agreement`."""
    if q.numel() == 0:
        return reference.edge_agreement(q, edge_index)
    graph = incident(edge_index, q.size(1))
    step = min(_STEP, max(_FEWEST, 1 << (q.size(2) - 1).bit_length()))
    fill = -q.size(2) % step
    padded = functional.pad(q, (0, fill)) if fill else q
    out: Tensor = _EdgeAgreement.apply(padded, graph)  # type: ignore[no-untyped-call]
    return out


class _EdgeAgreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, graph: Incident) -> Tensor:
        ctx.save_for_backward(q)
        ctx.graph = graph
        members, nodes, width = q.shape
        out = q.new_empty(members, graph.target.numel())
        lists = [to_numpy(part) for part in graph.lists[:3]]
        cuts = row_cuts(lists[0], 0, members * nodes)
        in_parallel(inner_products, cuts, to_numpy(q), *lists, out.numpy(), _shape(width))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (q,) = ctx.saved_tensors
        members, nodes, width = q.shape
        grad = torch.empty_like(q, memory_format=torch.contiguous_format)
        rows = [to_numpy(part) for part in ctx.graph[2:]]
        arrays = to_numpy(q), *rows, to_numpy(grads[0]), grad.numpy()
        cuts = row_cuts(rows[0], 0, members * nodes)
        in_parallel(gather_gradients, cuts, *arrays, _shape(width))
        return grad, None


def _shape(width: int) -> Shape:
    """As many numbers at a time as divide the width, a power of two."""
    return shape_of(1, min(width & -width, _MOST))
