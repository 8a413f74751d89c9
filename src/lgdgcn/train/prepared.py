"""Graphs as networks read them: on a device, features scaled, weights along with the edges."""

from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.features import sparse_if_mostly_zero
from lgdgcn.data.scaling import Scaling, fit_scaling
from lgdgcn.errors import InputError
from lgdgcn.kernels.graph import edge_weights, set_edge_reasons, set_edge_weights

__all__ = ["attach_edge_weights", "hold_once", "prepared", "prepared_alike"]


def prepared(
    data: Data,
    settings: Settings,
    device: torch.device,
    dtype: torch.dtype | None = None,
    scaling: Scaling | None = None,
) -> Data:
    """Bring a canonical graph to the device, with its features scaled, and sparse if that pays.

    Features keep their type unless one is named. How they are scaled is learnt from the graph if no
    ``scaling`` is given; the result has it.
    """
    if scaling is None:
        scaling = fit_scaling(settings.feature_scaling, data.x, data.train_mask)
    x = sparse_if_mostly_zero(scaling(data.x))
    result = copy(data)
    result.x = x if dtype is None else x.to(dtype)
    result.scaling = scaling
    result = _moved(result, device)
    attach_edge_weights(result)
    return result


def _moved(data: Data, device: torch.device) -> Data:
    """Bring the tensors of a graph to a device; names and texts, which can be many, stay."""
    return data.to(device, *(key for key, value in data if isinstance(value, Tensor)))


def attach_edge_weights(graph: Data) -> None:
    """Let a graph's weights and reasons go along with its edges, whose copies do not have them.

    Whatever a network is given passes here, so that no copy of the edges loses them in silence.
    """
    if "edge_weight" in graph and edge_weights(graph.edge_index) is None:
        # of mean 1, as the weight of the loop at every node is
        set_edge_weights(graph.edge_index, graph.edge_weight / graph.edge_weight.mean())
    if "edge_reasons" in graph:
        set_edge_reasons(graph.edge_index, graph.edge_reasons)


def prepared_alike(graphs: Sequence[Data], settings: Settings, device: torch.device) -> list[Data]:
    """The same for several splits of one graph, whose features and edges are held once.

    Where features are standardised, the splits have the same training nodes.
    """
    graphs = hold_once(graphs)
    first = prepared(graphs[0], settings, device)
    ready = {id(graphs[0]): first}
    for graph in graphs:
        if id(graph) not in ready:
            other = copy(graph)
            other.x, other.edge_index, other.scaling = first.x, first.edge_index, first.scaling
            ready[id(graph)] = _moved(other, device)
    return [ready[id(graph)] for graph in graphs]


def hold_once(graphs: Sequence[Data]) -> list[Data]:
    """Return splits of one graph that share its features and edges.

    Raises:
        InputError: They are not of one graph.
    """
    shared_keys = ("x", "edge_index", "edge_weight")
    first, shared = graphs[0], []
    for graph in graphs:
        if graph.x is not first.x or graph.edge_index is not first.edge_index:
            if not all(_is_same(graph.get(key), first.get(key)) for key in shared_keys):
                raise InputError("the seeds' graphs differ; only their splits may")
            graph = copy(graph)
            graph.x, graph.edge_index = first.x, first.edge_index
        shared.append(graph)
    return shared


def _is_same(a: Tensor | None, b: Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.layout != b.layout or a.shape != b.shape:
        return False
    if a.layout == torch.sparse_csr:
        parts = ((t.crow_indices(), t.col_indices(), t.values()) for t in (a, b))
        return all(map(torch.equal, *parts))
    return torch.equal(a, b)
