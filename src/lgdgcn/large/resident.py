"""A graph and its features in the memory of a GPU, which then reads its batches by itself.

Drawing neighbours and gathering rows are small random reads, for which a GPU's memory is some ten
times as fast as that of its host, and nothing has to be copied. So what batches are read from is
moved to the GPU if it takes no more than half of the free memory there; otherwise the host reads
batches and copies them.
"""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from lgdgcn.large.batch_input import BatchInput
from lgdgcn.large.hops import HopTable, row_ranges
from lgdgcn.large.rows import GraphRows, feature_rows
from lgdgcn.runtime import available_memory

__all__ = ["make_resident"]

_SHARE = 0.5  # of the free memory that a graph may take


def make_resident(source: BatchInput, device: torch.device) -> BatchInput:
    """Move what batches are read from to a GPU if there is room for it.

    Args:
        source: Where batches are read from, in main memory or in mapped files.
        device: Where they are computed on.

    Returns:
        The same with all tensors on the device, or ``source`` itself.
    """
    if device.type == "cpu" or not _has_room(source, device):
        return source
    graph = _moved(source.graph, device)
    along = graph if source.along is source.graph else _moved(source.along, device)
    variance = None if source.variance is None else source.variance.to(device)
    table = None
    if source.table is not None:
        table = HopTable(source.table.hops.to(device))
        features = table.rows
    else:
        features = partial(feature_rows, _all_features(source.graph, device))
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # another stream will read it
    return replace(
        source, graph=graph, along=along, table=table, variance=variance, features=features
    )


def _has_room(source: BatchInput, device: torch.device) -> bool:
    """Whether all of it takes little enough of the device's memory."""
    graphs = [source.graph] if source.along is source.graph else [source.graph, source.along]
    tensors = [part for graph in graphs for part in _tensors(graph)]
    size = 0
    if source.table is not None:
        tensors.append(source.table.hops)
    else:
        graph = source.graph
        if graph.features(torch.arange(min(1, graph.num_nodes))).layout != torch.strided:
            return False  # sparse features are read by the host
        # while they are put together there are two copies
        size = 2 * graph.num_nodes * graph.num_features * graph.dtype.itemsize
    if source.variance is not None:
        tensors.append(source.variance)
    size += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return size < _SHARE * available_memory(device)


def _tensors(graph: GraphRows) -> list[Tensor]:
    """The arrays of a graph but for its features."""
    weight = [] if graph.weight is None else [graph.weight]
    return [graph.row_ptr, graph.column, *weight]


def _moved(graph: GraphRows, device: torch.device) -> GraphRows:
    """The same rows on a device; its features are still the host's to read."""
    weight = None if graph.weight is None else graph.weight.to(device)
    return replace(
        graph, row_ptr=graph.row_ptr.to(device), column=graph.column.to(device), weight=weight
    )


def _all_features(graph: GraphRows, device: torch.device) -> Tensor:
    """The scaled features of all nodes ``[N, F]``, read some rows at a time."""
    cuts = row_ranges(graph.row_ptr.numpy(), graph.num_features)
    rows = [graph.features(torch.arange(low, high)).to(device) for low, high in pairwise(cuts)]
    return torch.cat(rows)
