"""Sparse structures that every backend shares: in-edges by target, list unions, sparse rows."""

from typing import NamedTuple

import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.kernels.remembered import Remembered

__all__ = ["CompressedRows", "Neighbours", "Union", "both_ways", "neighbours"]


class Neighbours(NamedTuple):
    """In-edges of every node in compressed rows, and the same edges by source.

    Attributes:
        row_ptr: `[N+1]`; the in-edges of node t are entries `row_ptr[t]:row_ptr[t+1]`.
        source: `[E]` source of each entry.
        order: `[E]` position of each entry in the given `edge_index`.
        out_ptr: `[N+1]`; the out-edges of node s are `out_entry[out_ptr[s]:out_ptr[s+1]]`.
        out_entry: `[E]` entries ordered by source, ascending within one source.
    """

    row_ptr: Tensor
    source: Tensor
    order: Tensor
    out_ptr: Tensor
    out_entry: Tensor


class Union(NamedTuple):
    """Undirected graph in compressed rows, both directions present.

    Attributes:
        row_ptr: `[n+1]` row boundaries.
        source: `[nnz]` neighbours.
        ends: `[nnz]` how many of an edge's two ends list it: 2, 1, or 0 for padding, which
            static shapes need and everybody else ignores.
    """

    row_ptr: Tensor
    source: Tensor
    ends: Tensor


class CompressedRows(NamedTuple):
    """Entries of a sparse matrix by row.

    Attributes:
        row_ptr: `[rows+1]` row boundaries.
        column: `[nnz]`.
        value: `[nnz]`.
        order: `[nnz]` position of each entry in the matrix it was made from.
    """

    row_ptr: Tensor
    column: Tensor
    value: Tensor
    order: Tensor


_remembered: Remembered[Neighbours] = Remembered()


def neighbours(edge_index: Tensor, num_nodes: int) -> Neighbours:
    """Sort edges by target, remembered for as long as `edge_index` lives unchanged.

    Args:
        edge_index: `[2, E]` integer pairs, source first.
        num_nodes: N.

    Returns:
        The in-edges of every node; edges of one target keep their order.

    Raises:
        InputError: If `edge_index` is not `[2, E]` integers within `0..N-1`.
    """
    return _remembered.get(edge_index, num_nodes, lambda: _build(edge_index, num_nodes))


def both_ways(x: Tensor) -> tuple[CompressedRows, CompressedRows]:
    """The rows of a `torch.sparse_csr` matrix and those of its transpose."""
    column, value = x.col_indices(), x.values().detach().contiguous()
    as_given = torch.arange(column.numel(), device=column.device)
    rows = CompressedRows(x.crow_indices(), column, value, as_given)
    row = torch.repeat_interleave(rows.row_ptr.diff(), output_size=column.numel())
    order = torch.argsort(column, stable=True)
    ends = _boundaries(column, x.size(1))
    return rows, CompressedRows(ends, row[order], value[order], order)


def _build(edge_index: Tensor, num_nodes: int) -> Neighbours:
    _check(edge_index, num_nodes)
    source, target = edge_index.detach().long()
    order = torch.argsort(target, stable=True)
    by_target = source[order]
    return Neighbours(
        row_ptr=_boundaries(target, num_nodes),
        source=by_target,
        order=order,
        out_ptr=_boundaries(source, num_nodes),
        out_entry=torch.argsort(by_target, stable=True),
    )


def _boundaries(ids: Tensor, num_nodes: int) -> Tensor:
    row_ptr = ids.new_zeros(num_nodes + 1)
    torch.cumsum(torch.bincount(ids, minlength=num_nodes), 0, out=row_ptr[1:])
    return row_ptr


def _check(edge_index: Tensor, num_nodes: int) -> None:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise InputError(f"edge_index has shape {tuple(edge_index.shape)}; it must be [2, E]")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise InputError(f"edge_index has dtype {edge_index.dtype}; it must hold integers")
    if edge_index.numel() == 0:
        return
    low, high = (int(bound) for bound in torch.aminmax(edge_index))
    if low < 0 or high >= num_nodes:
        bad = low if low < 0 else high
        raise InputError(f"edge_index names node {bad}; nodes are numbered 0 to {num_nodes - 1}")
