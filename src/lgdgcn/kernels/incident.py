"""Edges of every node by either end, which every compiled backend gathers gradients from."""

from typing import NamedTuple

import torch
from torch import Tensor

from lgdgcn.kernels.remembered import Remembered
from lgdgcn.kernels.structure import Neighbours, neighbours

__all__ = ["Incident", "incident"]


class Incident(NamedTuple):
    """Edges at every node in compressed rows: first those that come in, then those that go out.

    Attributes:
        lists: The in-edges alone.
        target: `[E]` target of each in-edge.
        row_ptr: `[N+1]`; the edges at node v are entries `row_ptr[v]:row_ptr[v+1]`.
        other: `[2E]` the node at the other end; a self loop is there twice.
        edge: `[2E]` position of each entry in the given `edge_index`.
    """

    lists: Neighbours
    target: Tensor
    row_ptr: Tensor
    other: Tensor
    edge: Tensor


_remembered: Remembered[Incident] = Remembered()


def incident(edge_index: Tensor, num_nodes: int) -> Incident:
    """Join in-edges and out-edges, remembered for as long as `edge_index` lives unchanged.

    Raises:
        InputError: If `edge_index` is not `[2, E]` integers within `0..N-1`.
    """
    return _remembered.get(edge_index, num_nodes, lambda: _build(edge_index, num_nodes))


def _build(edge_index: Tensor, num_nodes: int) -> Incident:
    lists = neighbours(edge_index, num_nodes)
    target, source = _row_of(lists.row_ptr, lists.order), _row_of(lists.out_ptr, lists.order)
    position = torch.arange(target.numel(), device=target.device)
    # a row begins where the rows before it, of both kinds, end
    coming, going = position + lists.out_ptr[target], position + lists.row_ptr[source + 1]
    other, edge = (target.new_empty(2 * target.numel()) for _ in range(2))
    other[coming], other[going] = lists.source, target[lists.out_entry]
    edge[coming], edge[going] = lists.order, lists.order[lists.out_entry]
    return Incident(lists, target, lists.row_ptr + lists.out_ptr, other, edge)


def _row_of(row_ptr: Tensor, entries: Tensor) -> Tensor:
    """The row of every entry."""
    return torch.repeat_interleave(row_ptr.diff(), output_size=entries.numel())
