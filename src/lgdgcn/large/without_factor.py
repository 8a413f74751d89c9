"""What a model says of a node of a large graph without any edge of a factor."""

import tempfile
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.large.graph_rows import GraphRows
from lgdgcn.large.large_graph import LargeGraph, edges_of_range
from lgdgcn.large.neighbourhood import around
from lgdgcn.large.unit_table import unit_table
from lgdgcn.models import ClassUnitGCN
from lgdgcn.nn import ClassUnitConv

__all__ = ["depth_of", "scores_without"]

_ROWS = 1 << 14  # nodes whose edges are looked at together


def depth_of(network: ClassUnitGCN) -> int:
    """How many hops away a node can be and still have a part in another's scores."""
    votes = sum(cast("ClassUnitConv", layer).iterations for layer in network.layers)
    encoder = network.encoder
    return votes + (0 if encoder is None else encoder.hops + len(encoder.deeper))


def scores_without(graph: LargeGraph, nodes: Tensor, factor: int) -> Tensor:
    """Class scores of some nodes on the graph without the edges of a factor ``[n, C]``.

    An edge belongs to its likeliest factor. Only the nodes that have a part in the scores are
    looked at, and their neighbours, as degrees count: often that is most of the graph, and of a
    network with a structure all of it.

    Args:
        graph: The graph.
        nodes: The nodes, ascending ``[n]``.
        factor: Number of the factor, from 0.
    """
    network, rows = graph.table.network, graph.rows
    if network.propagation_graph is None:
        near = around(rows.row_ptr, rows.column, nodes, depth_of(network) + 1)
    else:  # latent neighbours may be anywhere, and are found anew
        near = torch.arange(rows.num_nodes)
    table = unit_table(_without(graph, near, factor), network)
    return table.logits(table.rows(torch.searchsorted(near, nodes)))


def _without(graph: LargeGraph, nodes: Tensor, factor: int) -> GraphRows:
    """The graph of some nodes without the edges of a factor, its neighbours in a mapped file."""
    rows = graph.rows
    degree, kind = [], np.int32 if len(nodes) < 2**31 else np.int64
    scale = 1.0 if rows.weight is None else _mean_weight(graph, factor)
    weights: list[Tensor] = []
    with tempfile.TemporaryFile(dir=Path(tempfile.gettempdir())) as file:
        for some in torch.split(nodes, _ROWS):
            ptr, entry = kernels.sample(rows.row_ptr, some, 0, 0)
            row = torch.repeat_interleave(ptr.diff(), output_size=len(entry))
            target = rows.column[entry].long()
            place = torch.searchsorted(nodes, target).clamp_max(len(nodes) - 1)
            stays = nodes[place] == target
            stays &= graph.table.edge_factors(some[row], target).argmax(1) != factor
            degree.append(torch.bincount(row[stays], minlength=len(some)))
            cast("Any", place[stays].numpy().astype(kind)).tofile(file)
            if rows.weight is not None:
                weights.append(rows.weight[entry[stays]] / scale)
        column = _mapped(file, kind)
    row_ptr = torch.cat([torch.zeros(1, dtype=torch.long), torch.cat(degree).cumsum(0)])
    return GraphRows(
        row_ptr,
        column,
        torch.cat(weights) if weights else None,
        lambda chosen: rows.features(nodes[chosen]),
        rows.num_features,
        rows.dtype,
    )


def _mapped(file: BinaryIO, kind: Any) -> Tensor:
    """All numbers of a file, which the map keeps."""
    file.flush()
    if not file.seek(0, 2):
        return torch.zeros(0, dtype=torch.int32)
    return torch.from_numpy(np.memmap(file, kind, "r+"))


def _mean_weight(graph: LargeGraph, factor: int) -> float:
    """Mean weight of the edges of all other factors, which a network divides weights by."""
    rows, total, count = graph.rows, 0.0, 0
    assert rows.weight is not None
    for low, high in graph.ranges():
        ends = edges_of_range(rows, low, high)
        stays = graph.table.edge_factors(*ends).argmax(1) != factor
        weight = rows.weight[int(rows.row_ptr[low]) : int(rows.row_ptr[high])][stays]
        total, count = total + float(weight.double().sum()), count + len(weight)
    return total / max(1, count)
