"""Reasons of edges for models that propagate along them."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.kernels.graph import TensorCache
from lgdgcn.progress import long_work
from lgdgcn.reasons.edges import Edges

__all__ = ["MOST_EDGES", "attach_reasons"]

MOST_EDGES = 50_000  # of a graph whose reasons are found within half a minute or so

_found: TensorCache[tuple[Tensor, list[str]]] = TensorCache()


def attach_reasons(data: Data) -> None:
    """Let a graph know the reasons of its edges: ``edge_reasons`` ``[2 E, R]``, ``reason_names``.

    They are found once for all splits of a graph: the types, where all are known, else agreements
    of the ends. No label of a node is read. A graph that is too large, or without edges, stays as
    it is.

    Args:
        data: A graph from :func:`~lgdgcn.data.validate.canonical`.
    """
    index = data.edge_index
    if "edge_reasons" not in data and index is not None and 0 < index.size(1) <= 2 * MOST_EDGES:
        data.edge_reasons, data.reason_names = _found.get(index, "", lambda: _find(data))


def _find(data: Data) -> tuple[Tensor, list[str]]:
    from lgdgcn.reasons.agreement import fit_agreement  # whose loops are compiled
    from lgdgcn.reasons.of_graph import known_types

    types = known_types(data)
    if types is not None and bool(types.any(1).all()):
        probability, names = types / types.sum(1, keepdim=True), list(data.edge_type_names)
        return probability.to(data.x.dtype), names
    with long_work("finding reasons of edges"):
        found = fit_agreement(data)
    both = Edges.of_graph(data).both(found.probability)
    return torch.as_tensor(both, dtype=data.x.dtype), found.names
