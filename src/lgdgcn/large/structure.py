"""What a network propagates along, found for all nodes of a graph of any size.

The same as :mod:`lgdgcn.nn.ours.structure` finds of a graph in memory: edges by how much their
ends agree, and latent neighbours. It begins with the plain edges and is found anew twice, so it
depends on the graph and the weights alone, and whoever has these finds it again to the bit.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.data.node_arrays import new_array, node_array
from lgdgcn.errors import InputError
from lgdgcn.large.hops import row_ranges, table_folder
from lgdgcn.large.rows import GraphRows
from lgdgcn.large.steps import NodeSteps
from lgdgcn.models import ClassUnitGCN
from lgdgcn.nn.ours.structure import REFRESHES
from lgdgcn.progress import long_work

__all__ = ["check_structure_size", "joined_rows", "structure_rows"]

Array = np.ndarray[Any, Any]

MOST_NODES = 10_000_000  # whose latent neighbours are found by comparing all of them
_EDGES = 1 << 16  # whose ends are compared at once


def check_structure_size(nodes: int) -> None:
    """Refuse latent neighbours of so many nodes that comparing all of them would take days."""
    if nodes > MOST_NODES:
        raise InputError(
            f"latent neighbours are found of at most {MOST_NODES:,} nodes, and the graph has "
            f"{nodes:,}; set structure to local or none"
        )


def _latent_neighbours(hidden: Tensor, k: int, device: torch.device) -> Tensor:
    """The k nearest other nodes of every node by their hidden vectors, ``[N, C] -> [N, k]``."""
    with long_work("looking for neighbours"):
        found, _ = kernels.nearest(hidden.to(device).unsqueeze(0), k)
    return found.squeeze(0).cpu()


@torch.no_grad()
def structure_rows(graph: GraphRows, network: ClassUnitGCN) -> GraphRows:
    """Return what a single network propagates along on a graph, with weights of its own.

    Without a structure that is the graph itself; before the first refresh of a training its plain
    edges, whose own weights a structure does not know.
    """
    own, encoder = network.propagation_graph, network.encoder
    if own is None or encoder is None:
        return graph
    along = graph if graph.weight is None else replace(graph, weight=None)
    past = network.past()
    if past is None or not encoder.hops + len(encoder.deeper):  # or nothing is propagated
        return along
    k, device = min(own.neighbours, graph.num_nodes - 1), own.gamma.device
    if k:
        check_structure_size(graph.num_nodes)  # before any work
    for _ in range(REFRESHES):
        steps = NodeSteps(graph, past, along)
        hidden = steps.hidden()
        parts = _parts(steps, past, steps.units(hidden)) if own.is_local else None
        found = _latent_neighbours(hidden, k, device) if k else None
        del steps, hidden  # tables, before there is one structure more
        along = joined_rows(graph, parts, found, float(own.gamma))
    return along


def _parts(steps: NodeSteps, network: ClassUnitGCN, units: Tensor) -> Tensor:
    """What all nodes agree in ``[N, D]``."""

    def rows(nodes: Tensor) -> Tensor:
        own = units[nodes].view(len(nodes), network.num_factors, -1)
        return network.agreement_parts(own.to(steps.device))

    return steps.table(rows(torch.arange(0, 1)).size(1), rows, "classes")


def joined_rows(
    graph: GraphRows, parts: Tensor | None, neighbours: Tensor | None, gamma: float
) -> GraphRows:
    r"""Join weighed edges and latent neighbours, some rows at a time.

    .. math:: W_{ij} = a_{ij} [ij \in E]
        + \tfrac{\gamma}{2} ([j \in \mathrm{kNN}(i)] + [i \in \mathrm{kNN}(j)])

    Args:
        graph: The graph. Weights of its edges do not count.
        parts: What nodes agree in: a is the inner product of the ends' ``[N, D]``; 1 if ``None``.
        neighbours: Nodes that each node is most alike, itself where it has no more ``[N, k]``.
        gamma: Weight of a neighbour that is one in both directions.

    Returns:
        The same nodes with other neighbours; a pair that is both an edge and alike stands once.
    """
    nodes, width = graph.num_nodes, 0 if neighbours is None else neighbours.size(1)
    alike = None if neighbours is None else _alike(neighbours.numpy())
    row_ptr = graph.row_ptr.numpy()
    index = torch.int32 if nodes < 2**31 else torch.int64
    most = graph.num_edges + 2 * nodes * width
    folder = table_folder(most * (index.itemsize + graph.dtype.itemsize))
    # one more, as no file of length 0 can be mapped
    column, weight = (new_array((most + 1,), dtype, folder) for dtype in (index, graph.dtype))
    ptr, done = node_array((nodes + 1,), torch.int64).numpy(), 0
    with long_work("joining edges and neighbours", "nodes") as advance:
        for low, high in pairwise(row_ranges(row_ptr, 2 * width + 1)):
            rows = _edges(graph, parts, low, high, row_ptr)
            if alike is not None:
                rows = rows + alike[low:high].astype(rows.dtype) * (gamma / 2)
            rows.sort_indices()
            ptr[low + 1 : high + 1] = done + rows.indptr[1:]
            end = int(ptr[high])
            column[done:end], weight[done:end] = rows.indices, rows.data
            done = end
            advance(high, high / nodes)
    return replace(
        graph,
        row_ptr=torch.from_numpy(ptr),
        column=torch.from_numpy(column[:done]),
        weight=torch.from_numpy(weight[:done]),
    )


def _edges(graph: GraphRows, parts: Tensor | None, low: int, high: int, row_ptr: Array) -> Any:
    """The edges of some nodes by the agreement of their ends, ``[high - low, N]``."""
    first, last = int(row_ptr[low]), int(row_ptr[high])
    weight = torch.ones(last - first, dtype=graph.dtype)
    if parts is not None:
        source, target = graph.edges(low, high)
        for start in range(0, len(target), _EDGES):
            some = slice(start, start + _EDGES)
            weight[some] = (parts[source[some]] * parts[target[some]]).sum(1)
    column = graph.column[first:last].numpy().copy()  # which is sorted in its place
    entries = (weight.numpy(), column, row_ptr[low : high + 1] - first)
    return csr_array(entries, shape=(high - low, graph.num_nodes))


def _alike(listed: Array) -> Any:
    """How often any two nodes list each other, 1 or 2, from the lists ``[N, k]``: ``[N, N]``."""
    nodes, k = listed.shape
    counts = (listed != np.arange(nodes)[:, None]).astype(np.int8)  # a node that lists itself: 0
    parts = (counts.reshape(-1), listed.reshape(-1), np.arange(0, nodes * k + 1, k))
    lists = csr_array(parts, shape=(nodes, nodes))
    both = lists + lists.T.tocsr()
    both.eliminate_zeros()
    return both
