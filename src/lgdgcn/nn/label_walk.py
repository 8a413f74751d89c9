r"""Labels that travel along weighted edges to nodes without one.

.. math:: f_i = \frac{\sum_j a_{ij} f_j}{1 + \sum_j a_{ij}}, \qquad
    f_i = y_i \text{ where the label is observed}

So :math:`f_i` says where a random walk from node i ends that stops at the first observed label, and
before every step with a chance of :math:`1 / (1 + \sum_j a_{ij})` nowhere (after Zhu, Ghahramani,
Lafferty, 2003, "Semi-supervised learning using Gaussian fields and harmonic functions"). Weights
have gradients.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lgdgcn import kernels
from lgdgcn.kernels.graph import Neighbours
from lgdgcn.nn.propagation import weights_of_one_hop

__all__ = ["carry_labels", "sum_neighbours"]


def carry_labels(
    labels: Tensor, observed: Tensor, weight: Tensor, edges: Neighbours, steps: int
) -> Tensor:
    """Let observed labels travel for some steps; returns what arrives ``[*, V, N, C]``.

    What arrives at an observed node is what its neighbours make of it, its own label's echo
    included.

    Args:
        labels: Observed labels. Shape ``[*, 1, N, C]``.
        observed: Whose label is observed, in V views. Shape ``[*, V, N, 1]``.
        weight: Of every entry of ``edges``, the same in both directions. Shape ``[*, E]``.
        edges: The graph.
        steps: How many edges a label can travel.
    """
    start = torch.where(observed, labels, 0)
    degree = sum_neighbours(torch.ones_like(start[..., :1]), weight, edges)
    now = arrived = start
    for _ in range(steps):
        arrived = sum_neighbours(now, weight, edges) / (degree + 1)
        now = torch.where(observed, start, arrived)
    return arrived


def sum_neighbours(x: Tensor, weight: Tensor, edges: Neighbours) -> Tensor:
    r"""Return :math:`\sum_j a_{ij} x_j` of every node i, with gradients of both.

    Args:
        x: Vectors of the nodes in V views. Shape ``[*, V, N, C]``.
        weight: Of every entry of ``edges``, the same in both directions. Shape ``[*, E]``.
        edges: The graph.
    """
    out: Tensor = _Sum.apply(x, weight, edges.row_ptr, edges.source)  # type: ignore[no-untyped-call]
    return out


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, row_ptr: Tensor, column: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, row_ptr, column)
        return _sum(x, weight, row_ptr, column)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, row_ptr, column = ctx.saved_tensors
        # the matrix is symmetric; the gradient of an entry is <grad_i, x_j>
        back = _sum(grad, weight, row_ptr, column) if ctx.needs_input_grad[0] else None
        of_weight = None
        if ctx.needs_input_grad[1]:
            row = torch.repeat_interleave(row_ptr.diff(), output_size=column.numel())
            ends = grad.index_select(-2, row), x.index_select(-2, column)  # [*, V, E, C]
            of_weight = (ends[0] * ends[1]).sum((-1, -3))
        return back, of_weight, None, None


def _sum(x: Tensor, weight: Tensor, row_ptr: Tensor, column: Tensor) -> Tensor:
    members = weight if weight.dim() == 2 else weight.unsqueeze(0)  # [R, E]
    sets = x.reshape(-1, *x.shape[-2:]).contiguous()  # [R V, N, C]
    rows, columns = (part.expand(len(members), -1).contiguous() for part in (row_ptr, column))
    one_hop = weights_of_one_hop(x).expand(len(sets), 2)
    return kernels.propagate(sets, rows, columns, members.to(x.dtype), one_hop).view(x.shape)
