"""A graph that is read by the rows of some nodes at a time, from memory or from mapped files."""

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn import kernels
from lgdgcn.config import Settings
from lgdgcn.data.features import csr_tensor
from lgdgcn.data.labels import SPLITS, check_trainable, is_labelled, label_pieces, stratified_split
from lgdgcn.data.node_arrays import node_array, nodes_of
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.scaling import Scaling, fit_scaling
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.kernels.graph import edge_weights
from lgdgcn.train.prepared import prepared

__all__ = [
    "GraphRows",
    "as_tensor",
    "feature_rows",
    "mapped_data",
    "mapped_graph",
    "prepared_rows",
    "rows_scaling",
]

Array = np.ndarray[Any, Any]

_PIECE = 1 << 20  # nodes that are read at a time
_LOOKED_AT = 100_000  # training nodes, and others, whose features decide how all are scaled
_UNKNOWN = 255  # in a row of label sets of a packed graph


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
        if weight is not None:
            weight = weight[lists.order].to(x.dtype)
        features = partial(feature_rows, x)
        return cls(lists.row_ptr, lists.source, weight, features, x.size(1), x.dtype)

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.row_ptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges E, both directions counted."""
        return len(self.column)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays but for the features."""
        weight = 0 if self.weight is None else self.weight.nbytes
        return self.row_ptr.nbytes + self.column.nbytes + weight

    def to(self, device: torch.device) -> "GraphRows":
        """The same neighbours on a device; features are still the host's to read."""
        weight = None if self.weight is None else self.weight.to(device)
        row_ptr, column = self.row_ptr.to(device), self.column.to(device)
        return replace(self, row_ptr=row_ptr, column=column, weight=weight)

    def edges(self, low: int, high: int) -> tuple[Tensor, Tensor]:
        """Both ends of all edges that begin at nodes ``low`` to ``high - 1``, in order."""
        ptr = self.row_ptr[low : high + 1]
        target = self.column[int(ptr[0]) : int(ptr[-1])].long()
        source = torch.repeat_interleave(torch.arange(low, high), ptr.diff())
        return source, target

    def degrees(self, nodes: Tensor) -> Tensor:
        """Weighted degrees of some nodes, with the loop at each ``[n]``."""
        if self.weight is None:
            return (self.row_ptr[nodes + 1] - self.row_ptr[nodes] + 1).to(self.dtype)
        ptr, entry = kernels.sample(self.row_ptr, nodes, 0, 0)
        return kernels.row_sums(self.weight[entry], ptr) + 1


def feature_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Rows of features, dense or sparse ``[N, F] -> [n, F]``."""
    if x.layout != torch.sparse_csr:
        return x[nodes]
    ptr, entry = kernels.sample(x.crow_indices(), nodes, 0, 0)  # whole rows
    return csr_tensor(ptr, x.col_indices()[entry], x.values()[entry], (len(nodes), x.size(1)))


# Graphs to train on: their features scaled, read when they are needed


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
    """How the features of a canonical graph are scaled; of a mapped one some nodes decide."""
    if graph.edge_index is not None:
        return fit_scaling(kind, graph.x, graph.train_mask)
    train = int(graph.train_mask.count_nonzero())
    sizes = {True: train, False: len(graph.train_mask) - train}
    chosen = [
        nodes_of(graph.train_mask, value, every=max(1, -(-size // _LOOKED_AT)))
        for value, size in sizes.items()
    ]
    nodes = torch.cat(chosen).sort().values.long()
    return fit_scaling(kind, graph.rows.features(nodes), graph.train_mask[nodes])


def mapped_graph(packed: PackedGraph) -> Data:
    """Return a packed graph to train on, whose arrays stay mapped files.

    Raises:
        InputError: It has no features or no labels.
    """
    graph = mapped_data(packed, make_split=packed.y is not None)
    if not any(len(piece) for piece in label_pieces(graph.y)):
        raise InputError(f"{packed.folder} has no labels; training needs some")
    masks = {f"{name}_mask": graph[f"{name}_mask"] for name in SPLITS}
    check_trainable(graph.y, graph.classes, masks)
    whole = copy(graph)
    if packed.weight is not None:
        whole.edge_weight = as_tensor(packed.weight)
    edges = partial(_edge_pieces, packed)
    graph.own_fingerprint = cache(lambda: fingerprint(whole, (packed.num_edges, edges())))
    return graph


def mapped_data(packed: PackedGraph, *, make_split: bool) -> Data:
    """Return a graph whose labels, splits, features and neighbours are in mapped files.

    It has no ``edge_index``; its ``rows`` (:class:`GraphRows`) stand for it. Sparse features and
    the weights of edges are read. Where no split was given, one may be made, with a warning.

    Raises:
        InputError: It has no features.
    """
    y, masks = _labels(packed, make_split)
    x = _features(packed)
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    weight = None
    if packed.weight is not None:  # of mean 1, as the weight of the loop at every node is
        weight = as_tensor(packed.weight).to(dtype)
        weight = weight / weight.mean()
    rows = GraphRows(
        as_tensor(packed.row_ptr),
        as_tensor(packed.column),
        weight,
        lambda nodes: feature_rows(x, nodes).to(dtype),
        packed.num_features,
        dtype,
    )
    graph = Data(x=x, y=y, classes=packed.classes, rows=rows, **masks)
    if packed.manifest.feature_names:
        graph.feature_names = list(packed.manifest.feature_names)
    if packed.encoding is not None:
        graph.encoding = packed.encoding
    return graph


def _labels(packed: PackedGraph, make_split: bool) -> tuple[Tensor, dict[str, Tensor]]:
    """The labels of a packed graph and its masks, of many nodes in mapped files."""
    nodes = packed.num_nodes
    is_set = packed.y is not None and packed.y.ndim == 2
    size = packed.y.shape if packed.y is not None else (nodes,)
    y = node_array(size, torch.float32 if is_set else torch.int64)
    masks = {f"{name}_mask": node_array((nodes,), torch.bool) for name in SPLITS}
    step = max(1, _PIECE // max(1, y[:1].numel()))
    for low in range(0, nodes, step):
        piece = slice(low, low + step)
        y[piece] = -1 if packed.y is None else torch.from_numpy(np.array(packed.y[piece]))
        if is_set:
            unknown = (y[piece] == _UNKNOWN).any(1, keepdim=True)
            y[piece] = y[piece].masked_fill(unknown, torch.nan)
        if packed.split is not None:
            split = torch.from_numpy(np.array(packed.split[piece]))
            for i, mask in enumerate(masks.values()):
                mask[piece] = (split == i + 1) & is_labelled(y[piece])
    if packed.split is None and make_split:
        warnings.warn(
            "no split was given: labelled nodes are split 60/20/20 by class", LGDWarning, 4
        )
        masks = stratified_split(y)
    return y, masks


def _features(packed: PackedGraph) -> Tensor:
    """Features ``[N, F]``: a mapped matrix, or a sparse one in memory."""
    if packed.x is not None:
        return as_tensor(packed.x)
    if packed.x_csr is None:
        raise InputError(f"{packed.folder} has no features; pack it with some")
    row_ptr, column, value = (as_tensor(part) for part in packed.x_csr)
    size = (packed.num_nodes, packed.num_features)
    return csr_tensor(row_ptr.long(), column.long(), value.float(), size)


def _edge_pieces(packed: PackedGraph) -> Iterator[Array]:
    """The rows of ``edge_index``, int64, some entries at a time."""
    for low in range(0, packed.num_nodes, _PIECE):
        degree = np.diff(packed.row_ptr[low : low + _PIECE + 1])
        yield np.repeat(np.arange(low, low + len(degree)), degree)
    for low in range(0, packed.num_edges, _PIECE):
        yield packed.column[low : low + _PIECE].astype(np.int64)


def as_tensor(array: Array) -> Tensor:
    """The same numbers as a tensor, which nobody writes to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it cannot be written to
        return torch.from_numpy(np.asarray(array))
