r"""Random propagation: nodes are dropped, and what is left is averaged over several hops.

.. math:: \bar{X} = \sum_{k=0}^{K} w_k \hat{A}^k (\epsilon \odot X), \qquad
    \hat{A} = D^{-1/2} (A + I) D^{-1/2}

A view of the graph drops whole nodes (:math:`\epsilon_i \in \{0, 1\}`), so a node sees another
random half of its neighbourhood in every view, and must say the same of itself in all of them
(Feng et al. 2020, "Graph random neural networks"). Everything here is a pure function.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.kernels.graph import TensorCache, edge_weights
from lgdgcn.nn.dropout import dropout

__all__ = [
    "Propagator",
    "SampledPropagator",
    "average_neighbours",
    "drop_nodes",
    "mean_of_hops",
    "normalized_adjacency",
    "propagate",
    "weights_of_one_hop",
]


class Propagator(NamedTuple):
    """Symmetric normalised adjacency matrices with self loops, in compressed rows.

    All sets of vectors have the same matrix, or each member its own: all tensors then have a
    leading axis of R members.

    Attributes:
        row_ptr: Row boundaries ``[*, N + 1]``.
        column: Columns ``[*, nnz]``; one may stand in a row several times.
        value: Entries ``[*, nnz]``.
    """

    row_ptr: Tensor
    column: Tensor
    value: Tensor


class SampledPropagator(NamedTuple):
    """A matrix whose rows were drawn, so that it is not symmetric, and its transpose.

    Attributes:
        row_ptr: Row boundaries ``[n + 1]``.
        column: Columns ``[nnz]``.
        value: Entries ``[nnz]``.
        column_ptr: Boundaries of the columns ``[n + 1]``.
        row: Rows of the entries, column by column ``[nnz]``.
        by_column: The entries in that order ``[nnz]``.
    """

    row_ptr: Tensor
    column: Tensor
    value: Tensor
    column_ptr: Tensor
    row: Tensor
    by_column: Tensor


_plain: TensorCache[Propagator] = TensorCache()


def normalized_adjacency(
    edge_index: Tensor, num_nodes: int, weight: Tensor | None = None
) -> Propagator:
    r"""Return :math:`D^{-1/2} (A + I) D^{-1/2}`, where D sums the rows of :math:`A + I`.

    Args:
        edge_index: Both directions of every edge, without self loops. Shape ``[*, 2, E]``.
        num_nodes: Number of nodes N.
        weight: Weights of the edges, at least 0 and the same in both directions; by default those
            of the graph, or 1. Shape ``[*, E]``.
    """
    if weight is None:
        own = edge_weights(edge_index)
        if own is None:
            own = torch.ones(edge_index.size(-1), device=edge_index.device)
        return _plain.get(
            edge_index, num_nodes, lambda: normalized_adjacency(edge_index, num_nodes, own)
        )
    # 1. all entries, the self loops among them, row by row
    lead = weight.shape[:-1]
    node = torch.arange(num_nodes, device=weight.device).expand(*lead, num_nodes)
    source, target = edge_index.expand(*lead, 2, -1).unbind(-2)
    source, target = torch.cat([source, node], -1), torch.cat([target, node], -1)
    order = torch.argsort(target * num_nodes + source, stable=True)
    source, target = source.gather(-1, order), target.gather(-1, order)
    entry = torch.cat([weight, weight.new_ones(*lead, num_nodes)], -1).gather(-1, order)
    # 2. each divided by the roots of both degrees, which are at least 1, of the node itself
    degree = weight.new_zeros(*lead, num_nodes).scatter_add(-1, target, entry)
    root = degree.rsqrt()
    count = target.new_zeros(*lead, num_nodes).scatter_add(-1, target, torch.ones_like(target))
    row_ptr = torch.cat([count.new_zeros(*lead, 1), count.cumsum(-1)], -1)
    return Propagator(row_ptr, source, entry * root.gather(-1, target) * root.gather(-1, source))


def mean_of_hops(hops: int, like: Tensor) -> Tensor:
    """Return the weights of hops 0 to K that give their mean, ``[K + 1]``."""
    return torch.full((hops + 1,), 1 / (hops + 1), dtype=like.dtype, device=like.device)


def weights_of_one_hop(like: Tensor) -> Tensor:
    """Return the weights 0 and 1 of hops 0 and 1."""
    return torch.arange(2, dtype=like.dtype, device=like.device)


def drop_nodes(x: Tensor, rate: Tensor, training: bool) -> Tensor:
    """Set the rows of whole nodes to zero in training; shrink all rows to the same mean otherwise.

    Unlike dropout, rows that stay are not scaled up: a classifier sees sums of fewer neighbours
    in training, and as many of smaller ones afterwards.

    Args:
        x: Rows of the nodes in V views. Shape ``[*, V, N, C]``.
        rate: Probability to drop a node, one for each member ``[*]``.
        training: Whether nodes are dropped.
    """
    if not training:
        return x * (1 - rate.to(x.dtype)).view(*rate.shape, 1, 1, 1)
    ones = torch.ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
    return x * (dropout(ones, rate, training) != 0)


def propagate(x: Tensor, graph: Propagator | SampledPropagator, weights: Tensor) -> Tensor:
    r"""Average the hops 0 to K of every node's vector, :math:`\sum_k w_k \hat{A}^k x`.

    Args:
        x: Vectors of the nodes in any number of sets. Shape ``[*, N, C]``; with a matrix for each
            member ``[R, V, N, C]``.
        graph: The adjacency matrix, or one for each member.
        weights: Weights of the hops, for all sets or for each. Shape ``[K + 1]`` or
            ``[*, K + 1]``; with a matrix for each member ``[K + 1]`` or ``[R, 1, K + 1]``.

    Returns:
        The averages ``[*, N, C]``.

    Example:
        >>> graph = normalized_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> propagate(torch.tensor([[1.0], [3.0]]), graph, torch.tensor([0.5, 0.5])).tolist()
        [[1.5], [2.5]]
    """
    sets = x.reshape(-1, *x.shape[-2:])
    own = weights.expand(*x.shape[:-2], -1).reshape(len(sets), -1)
    if isinstance(graph, SampledPropagator):
        out: Tensor = _Sampled.apply(sets, own, *graph)  # type: ignore[no-untyped-call]
        return out.view(x.shape)
    row_ptr, column, value = (p if p.dim() == 2 else p.unsqueeze(0) for p in graph)
    return kernels.propagate(sets, row_ptr, column, value, own).view(x.shape)


def average_neighbours(h: Tensor, graph: Propagator) -> Tensor:
    r"""Return :math:`\hat{A} h`, one hop of every node's vector ``[N, C]``, also inside ``vmap``.

    Example:
        >>> graph = normalized_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> average_neighbours(torch.tensor([[1.0], [3.0]]), graph).round().tolist()
        [[2.0], [2.0]]
    """
    hop: Tensor = _Hop.apply(h.unsqueeze(0), *graph)  # type: ignore[no-untyped-call]
    return hop.squeeze(0)


class _Sampled(torch.autograd.Function):
    """The hops of sets of vectors ``[B, n, C]`` along a matrix that is not symmetric."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, *graph: Tensor) -> Tensor:
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, weights, *graph)
        return kernels.propagate(x, *_as_one(graph[:3], x), weights)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # the gradient goes along the transpose; that of weight k is <x, (A^T)^k grad>
        x, weights, *graph = ctx.saved_tensors
        transpose = _as_one(graph[3:], grad)
        products = None
        if x is not None:
            hop, one_hop = grad.contiguous(), weights_of_one_hop(grad).expand(len(grad), 2)
            found = [(hop * x).sum((-1, -2))]
            for _ in range(weights.size(1) - 1):
                hop = kernels.propagate(hop, *transpose, one_hop)
                found.append((hop * x).sum((-1, -2)))
            products = torch.stack(found, -1)
        back = kernels.propagate(grad.contiguous(), *transpose, weights)
        return back, products, *[None] * 6


def _as_one(graph: Sequence[Tensor], like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One matrix for all sets, as kernels want it."""
    row_ptr, column, value = (part.unsqueeze(0) for part in graph)
    return row_ptr, column, value.to(like.dtype)


class _Hop(torch.autograd.Function):
    """One hop of sets of vectors ``[B, N, C]``; inside ``vmap`` members are more such sets."""

    @staticmethod
    def forward(h: Tensor, row_ptr: Tensor, column: Tensor, value: Tensor) -> Tensor:
        one_hop = weights_of_one_hop(h).expand(len(h), 2)
        row_ptr, column, value = (part.unsqueeze(0) for part in (row_ptr, column, value))
        return kernels.propagate(h.contiguous(), row_ptr, column, value.to(h.dtype), one_hop)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # the matrix is symmetric: its transpose is itself
        own: Tensor = _Hop.apply(grad, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return own, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], h: Tensor, *graph: Tensor
    ) -> tuple[Tensor, int]:
        assert in_dims[0] is not None
        sets = h.movedim(in_dims[0], 0)  # [R, B, N, C]
        hop: Tensor = _Hop.apply(sets.flatten(0, 1), *graph)  # type: ignore[no-untyped-call]
        return hop.view(sets.shape), 0
