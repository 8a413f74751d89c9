"""Parts of a large graph: the nodes around some, samples that have edges, and their edges."""

import numpy as np
import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.large.rows import GraphRows

__all__ = ["around", "drawn_edges", "entries_between", "induced_edges", "linked_sample", "some_of"]

_ROWS = 1 << 16  # nodes whose neighbours are read at once
_FAN_OUT = 10  # neighbours of a node in a sample


def around(graph: GraphRows, seeds: Tensor, hops: int, most: int | None = None) -> Tensor:
    """All nodes within some hops of the seeds, ascending ``[n]``.

    Of the hop that makes them more than ``most``, nodes are drawn; the others are left out.
    """
    seen = torch.zeros(graph.num_nodes, dtype=torch.bool)
    seen[seeds] = True
    frontier = seen.nonzero().squeeze(1)
    count = len(frontier)
    for _ in range(hops):
        found = torch.zeros_like(seen)
        for rows in torch.split(frontier, _ROWS):
            _, entry = kernels.sample(graph.row_ptr, rows, 0, 0)
            found[graph.column[entry].long()] = True
        frontier = (found & ~seen).nonzero().squeeze(1)
        if most is not None and count + len(frontier) > most:
            frontier = some_of(frontier, most - count)
            seen[frontier] = True
            break
        seen[frontier] = True
        count += len(frontier)
        if not len(frontier):
            break
    return seen.nonzero().squeeze(1)


def some_of(nodes: Tensor, most: int, seed: int = 0) -> Tensor:
    """At most so many of the nodes, drawn at random and ascending; all if they are no more."""
    if len(nodes) <= most:
        return nodes
    chosen = np.random.default_rng(seed).choice(len(nodes), max(0, most), replace=False)
    return nodes[torch.from_numpy(np.sort(chosen))]


def linked_sample(
    graph: GraphRows, most: int, seed: int = 0, first: Tensor | None = None
) -> Tensor:
    """So many nodes, ascending: some drawn at random, and some neighbours of each.

    Nodes that are drawn one by one have hardly an edge in common where the graph is large. All
    nodes, if there are no more. Those in ``first``, no more than so many, are taken in any case;
    then come their neighbours, and others only if there is room left.
    """
    nodes = graph.num_nodes
    if nodes <= most:
        return torch.arange(nodes)
    order = np.random.default_rng(seed).choice(nodes, most, replace=False)
    drawn = torch.from_numpy(order.astype(np.int64))
    if first is not None:
        drawn, _ = kernels.renumber(first, drawn)
    ptr, entry = kernels.sample(graph.row_ptr, drawn, _FAN_OUT, seed)
    others = graph.column[entry].long()
    # each with its neighbours, until there are enough
    ranked = torch.empty(len(drawn) + len(entry), dtype=torch.long)
    place = torch.arange(len(drawn)) + ptr[:-1]
    is_drawn = torch.zeros(len(ranked), dtype=torch.bool)
    is_drawn[place] = True
    ranked[place], ranked[~is_drawn] = drawn, others
    kept, _ = kernels.renumber(ranked[:0] if first is None else first, ranked)
    return kept[:most].sort().values


def induced_edges(graph: GraphRows, nodes: Tensor) -> tuple[Tensor, Tensor]:
    """The edges between some nodes of a graph, which are ascending ``[n]``.

    Returns:
        The edges in the numbers of these nodes, sorted ``[2, e]``, and their entries in
        ``graph.column``.
    """
    source, target, entry = entries_between(graph, nodes, nodes)
    return torch.stack([source, target]), entry


def entries_between(
    graph: GraphRows, sources: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The edges from some nodes to others, both ascending.

    Returns:
        Where the ends of each edge are in ``sources`` and in ``targets``, and its entry in
        ``column``: ``[e]`` each.
    """
    ptr, entry = kernels.sample(graph.row_ptr, sources, 0, 0)
    other = graph.column[entry].long()
    place = torch.searchsorted(targets, other).clamp_max(max(0, len(targets) - 1))
    inside = targets[place] == other
    source = torch.repeat_interleave(ptr.diff(), output_size=len(entry))
    return source[inside], place[inside], entry[inside]


def drawn_edges(graph: GraphRows, most: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Undirected edges of a graph, each with the same probability; all if there are no more.

    Returns:
        Their ends, ascending ``[n]``, and both directions of the edges in the numbers of these,
        sorted ``[2, e]``.
    """
    if graph.num_edges <= 2 * most:
        entries = torch.arange(graph.num_edges)
    else:
        draw = np.random.default_rng(seed).integers(0, graph.num_edges, 2 * most)
        entries = torch.from_numpy(np.unique(draw))
    source = torch.searchsorted(graph.row_ptr, entries, right=True) - 1
    target, nodes = graph.column[entries].long(), graph.num_nodes
    codes = torch.unique(torch.minimum(source, target) * nodes + torch.maximum(source, target))
    ends = torch.stack([codes // nodes, codes % nodes])
    ends = ends[:, some_of(torch.arange(len(codes)), most, seed)]
    chosen, local = torch.unique(ends, return_inverse=True)
    both = torch.cat([local, local.flip(0)], 1)
    return chosen, both[:, (both[0] * len(chosen) + both[1]).argsort()]
