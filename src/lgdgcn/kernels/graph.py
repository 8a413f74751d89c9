"""Graph structures that every backend shares, all in compressed sparse rows (CSR).

Row i of such a structure has the entries `row_ptr[i]:row_ptr[i+1]` of arrays with one number per
entry. Building one sorts the edges, so the results are cached for as long as the tensor they were
made from lives and does not change.
"""

from collections.abc import Callable, Hashable, MutableMapping
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from lgdgcn.errors import InputError

__all__ = [
    "CompressedRows",
    "IncidentEdges",
    "Neighbours",
    "TensorCache",
    "UndirectedGraph",
    "edge_reasons",
    "edge_weights",
    "incident_edges",
    "neighbours",
    "rows_and_transpose",
    "set_edge_reasons",
    "set_edge_weights",
]

T = TypeVar("T")


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


class IncidentEdges(NamedTuple):
    """Edges at every node in compressed rows: first those that come in, then those that go out.

    Gradients of a function of both ends of an edge are gathered from these rows.

    Attributes:
        lists: The in-edges only.
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


class UndirectedGraph(NamedTuple):
    """Undirected graph in compressed rows, both directions present.

    Attributes:
        row_ptr: `[n+1]` row boundaries.
        source: `[nnz]` neighbours.
        ends: `[nnz]` how many of an edge's two ends list it: 2 or 1. Entries with 0 are padding
            that the GPU's static shapes need, and count nowhere.
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


class TensorCache(Generic[T]):
    """Keeps one result per tensor, for as long as that tensor lives unchanged.

    In-place operations are noticed by the tensor's version counter; writes through `.data` or a
    NumPy view are not, because torch does not count them.
    """

    def __init__(self) -> None:
        self._known: MutableMapping[Tensor, tuple[int, Hashable, T]] = WeakTensorKeyDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, tensor: Tensor, key: Hashable, build: Callable[[], T]) -> T:
        """Return what `build` made of the tensor for the same key, calling it if necessary."""
        # inference tensors have no version counter, so a change could not be seen
        version = -1 if tensor.is_inference() else tensor._version
        known = self._known.get(tensor)
        if known is not None and version >= 0 and known[:2] == (version, key):
            return known[2]
        built = build()
        self._known[tensor] = (version, key, built)
        return built


_edge_weights: MutableMapping[Tensor, Tensor] = WeakTensorKeyDictionary()


def set_edge_weights(edge_index: Tensor, weight: Tensor) -> None:
    """Let weights go along with edges, so that every function that is given these finds them.

    Args:
        edge_index: `[2, E]`; the weights are known as long as this very tensor lives.
        weight: `[E]` above 0, the same for both directions of an edge.
    """
    _edge_weights[edge_index] = weight


def edge_weights(edge_index: Tensor) -> Tensor | None:
    """The weights `[E]` of edges that have some."""
    return _edge_weights.get(edge_index)


_edge_reasons: MutableMapping[Tensor, Tensor] = WeakTensorKeyDictionary()


def set_edge_reasons(edge_index: Tensor, reasons: Tensor) -> None:
    """Let probabilities of reasons go along with edges, as weights do.

    Args:
        edge_index: `[2, E]`; the reasons are known as long as this very tensor lives.
        reasons: `[E, R]` at least 0, the same for both directions of an edge.
    """
    _edge_reasons[edge_index] = reasons


def edge_reasons(edge_index: Tensor) -> Tensor | None:
    """The probabilities of reasons `[E, R]` of edges that have some."""
    return _edge_reasons.get(edge_index)


_neighbours: TensorCache[Neighbours] = TensorCache()
_incident: TensorCache[IncidentEdges] = TensorCache()


def neighbours(edge_index: Tensor, num_nodes: int) -> Neighbours:
    """Sort edges by target; cached for as long as `edge_index` lives unchanged.

    Args:
        edge_index: `[2, E]` integer pairs, source first.
        num_nodes: N.

    Returns:
        The in-edges of every node; edges of one target keep their order.

    Raises:
        InputError: If `edge_index` is not `[2, E]` integers within `0..N-1`.
    """
    return _neighbours.get(edge_index, num_nodes, lambda: _sort_edges(edge_index, num_nodes))


def incident_edges(edge_index: Tensor, num_nodes: int) -> IncidentEdges:
    """Join in-edges and out-edges; cached for as long as `edge_index` lives unchanged.

    Raises:
        InputError: If `edge_index` is not `[2, E]` integers within `0..N-1`.
    """
    return _incident.get(edge_index, num_nodes, lambda: _join_edges(edge_index, num_nodes))


def rows_and_transpose(x: Tensor) -> tuple[CompressedRows, CompressedRows]:
    """The rows of a `torch.sparse_csr` matrix and those of its transpose."""
    column, value = x.col_indices(), x.values().detach().contiguous()
    as_given = torch.arange(column.numel(), device=column.device)
    rows = CompressedRows(x.crow_indices(), column, value, as_given)
    row = _row_of_entries(rows.row_ptr, column)
    order = torch.argsort(column, stable=True)
    row_ptr = _row_boundaries(column, x.size(1))
    return rows, CompressedRows(row_ptr, row[order], value[order], order)


def _sort_edges(edge_index: Tensor, num_nodes: int) -> Neighbours:
    _check(edge_index, num_nodes)
    source, target = edge_index.detach().long()
    order = torch.argsort(target, stable=True)
    by_target = source[order]
    return Neighbours(
        row_ptr=_row_boundaries(target, num_nodes),
        source=by_target,
        order=order,
        out_ptr=_row_boundaries(source, num_nodes),
        out_entry=torch.argsort(by_target, stable=True),
    )


def _join_edges(edge_index: Tensor, num_nodes: int) -> IncidentEdges:
    lists = neighbours(edge_index, num_nodes)
    target = _row_of_entries(lists.row_ptr, lists.order)
    source = _row_of_entries(lists.out_ptr, lists.order)
    position = torch.arange(target.numel(), device=target.device)
    # a row begins where the rows before it, of both kinds, end
    incoming, outgoing = position + lists.out_ptr[target], position + lists.row_ptr[source + 1]
    other, edge = (target.new_empty(2 * target.numel()) for _ in range(2))
    other[incoming], other[outgoing] = lists.source, target[lists.out_entry]
    edge[incoming], edge[outgoing] = lists.order, lists.order[lists.out_entry]
    return IncidentEdges(lists, target, lists.row_ptr + lists.out_ptr, other, edge)


def _row_boundaries(ids: Tensor, num_rows: int) -> Tensor:
    """`row_ptr [rows+1]` of entries that are sorted by these row numbers."""
    row_ptr = ids.new_zeros(num_rows + 1)
    torch.cumsum(torch.bincount(ids, minlength=num_rows), 0, out=row_ptr[1:])
    return row_ptr


def _row_of_entries(row_ptr: Tensor, entries: Tensor) -> Tensor:
    """The row of every entry; how many there are is read from a tensor of that length."""
    return torch.repeat_interleave(row_ptr.diff(), output_size=entries.numel())


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
