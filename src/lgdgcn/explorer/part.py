"""Which nodes of a graph the page shows: all, those around one, those of a class, or a sample."""

from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.errors import InputError
from lgdgcn.explorer.payload import MOST_EDGES, MOST_NODES
from lgdgcn.large.neighbourhood import around, linked_sample, some_of
from lgdgcn.large.view import GraphView

__all__ = ["shown_part"]


def shown_part(
    graph: GraphView, node: str | None = None, hops: int = 2, label: str | None = None
) -> tuple[Data, str | None]:
    """Choose what the page shows of a graph.

    Args:
        graph: The graph.
        node: Id of a node whose surroundings are shown.
        hops: How far they go.
        label: Known label of the nodes that are shown.

    Returns:
        The graph or a part of it in canonical form, and one line that says what the part is;
        ``None`` if it is the whole graph.

    Raises:
        InputError: There is no such node or label.
    """
    if node is not None and label is not None:
        raise InputError("--node and --class choose different nodes; leave out one of them")
    if hops < 1:
        raise InputError(f"--hops is {hops}; give at least 1")
    rows, asked = graph.rows, node is not None or label is not None
    whole = rows.num_nodes <= MOST_NODES and not asked
    if whole and graph.packed is None:
        return graph.data, None
    most = MOST_NODES
    while True:
        nodes, what = _chosen(graph, node, hops, label, most)
        part = graph.part(nodes)
        if part.edge_index.size(1) // 2 <= MOST_EDGES or len(nodes) < 2 or whole:
            break
        most = len(nodes) // 2
    note = None
    if len(nodes) < rows.num_nodes:
        note = f"{len(nodes):,} of {rows.num_nodes:,} nodes are shown: {what}"
    return part, note


def _chosen(
    graph: GraphView, node: str | None, hops: int, label: str | None, most: int
) -> tuple[Tensor, str]:
    """The nodes, ascending, and what they are."""
    if node is not None:
        seed = graph.find([node])
        nodes = around(graph.rows, seed, hops, most)
        reach = "1 hop" if hops == 1 else f"{hops} hops"
        drawn = " (as many as the page holds)" if len(nodes) == most else ""
        return nodes, f"those within {reach} of {node[:60]}{drawn}"
    if label is not None:
        everyone = _labelled(graph, label)
        nodes = some_of(everyone, most)
        drawn = f", {len(nodes):,} of {len(everyone):,}" if len(nodes) < len(everyone) else ""
        return nodes, f"those with the label {label[:60]}{drawn}"
    return linked_sample(graph.rows, most), "a sample of nodes and their neighbours"


def _labelled(graph: GraphView, label: str) -> Tensor:
    """All nodes with a known label."""
    y: Tensor = graph.data.y
    names = [str(name) for name in graph.data.classes]
    if label not in names:
        some = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        raise InputError(f"--class: no label is {label[:60]!r}; choose from {some}")
    number = names.index(label)
    nodes = ((y == number) if y.dim() == 1 else (y[:, number] > 0)).nonzero().squeeze(1)
    if not len(nodes):
        raise InputError(f"--class: no node has the label {label[:60]!r}")
    return nodes
