"""A graph that is read by the rows of some nodes at a time, from memory or from mapped files."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn import kernels
from lgdgcn.config import Settings
from lgdgcn.data.features import csr_tensor
from lgdgcn.data.scaling import Scaling, fit_scaling
from lgdgcn.kernels.graph import edge_weights
from lgdgcn.large.scratch import nodes_of
from lgdgcn.train.trained import prepared

__all__ = ["GraphRows", "feature_rows", "prepared_rows", "rows_scaling"]


_LOOKED_AT = 100_000  # training nodes, and others, whose features decide how all are scaled


@dataclass(frozen=True)
class GraphRows:
    """Neighbours and features of nodes, by row.

    Attributes:
        row_ptr: The neighbours of node i are entries ``row_ptr[i]:row_ptr[i + 1]``. ``[N + 1]``.
        column: Neighbours ``[E]``, both directions of every edge.
        weight: Weights of the edges ``[E]``; 1 if ``None``.
        features: Returns the scaled features of some nodes, dense or sparse ``[n, F]``.
        num_features: F.
        dtype: Their type.
    """

    row_ptr: Tensor
    column: Tensor
    weight: Tensor | None
    features: Callable[[Tensor], Tensor]
    num_features: int
    dtype: torch.dtype

    @classmethod
    def of(cls, graph: Data) -> "GraphRows":
        """Read the rows of a prepared graph, which may come with rows of its own."""
        known: GraphRows | None = graph.get("rows")
        if known is not None:
            return known
        x, lists = graph.x, kernels.neighbours(graph.edge_index, graph.x.size(0))
        weight = edge_weights(graph.edge_index)
        return cls(
            lists.row_ptr,
            lists.source,
            None if weight is None else weight[lists.order].to(x.dtype),
            lambda nodes: feature_rows(x, nodes),
            x.size(1),
            x.dtype,
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.row_ptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges E, both directions counted."""
        return len(self.column)

    def degrees(self, nodes: Tensor) -> Tensor:
        """Weighted degrees of some nodes, with the loop at each ``[n]``."""
        low, high = self.row_ptr[nodes], self.row_ptr[nodes + 1]
        if self.weight is None:
            return (high - low + 1).to(self.dtype)
        ptr, entry = kernels.sample(self.row_ptr, nodes, 0, 0)
        return kernels.row_sums(self.weight[entry], ptr) + 1


def feature_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Rows of features, dense or sparse ``[N, F] -> [n, F]``."""
    if x.layout != torch.sparse_csr:
        return x[nodes]
    ptr, entry = kernels.sample(x.crow_indices(), nodes, 0, 0)  # whole rows
    return csr_tensor(ptr, x.col_indices()[entry], x.values()[entry], (len(nodes), x.size(1)))


def prepared_rows(graph: Data, settings: Settings) -> Data:
    """Return a canonical graph whose features are scaled when they are read, if it is mapped."""
    if graph.edge_index is not None:
        return prepared(graph, settings, torch.device("cpu"))
    scaling = rows_scaling(graph, settings.feature_scaling)
    ready = copy(graph)
    ready.scaling = scaling
    ready.rows = replace(graph.rows, features=lambda nodes: scaling(graph.rows.features(nodes)))
    return ready


def rows_scaling(graph: Data, kind: str) -> Scaling:
    """How the features of a canonical graph are scaled; of a mapped one some nodes decide.

    Args:
        graph: The graph, not scaled yet.
        kind: As in :func:`~lgdgcn.data.scaling.fit_scaling`.
    """
    if graph.edge_index is not None:
        return fit_scaling(kind, graph.x, graph.train_mask)
    some = _some_nodes(graph.train_mask)
    return fit_scaling(kind, graph.rows.features(some), graph.train_mask[some])


def _some_nodes(train_mask: Tensor) -> Tensor:
    """All nodes, or of very many some training nodes and some others, evenly chosen."""
    train = int(train_mask.count_nonzero())
    chosen = [
        nodes_of(train_mask, value, every=max(1, -(-count // _LOOKED_AT)))
        for value, count in ((True, train), (False, len(train_mask) - train))
    ]
    return torch.cat(chosen).sort().values.long()
