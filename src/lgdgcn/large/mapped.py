"""A packed graph to train on without reading it: its arrays stay mapped files."""

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import csr_tensor
from lgdgcn.data.labels import SPLITS, check_trainable, is_labelled, label_pieces, stratified_split
from lgdgcn.data.packed import PackedGraph
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.large.graph_rows import GraphRows, feature_rows
from lgdgcn.large.scratch import node_array

__all__ = ["mapped_graph", "mapped_labels", "mapped_rows"]

_PIECE = 1 << 20  # rows that are read at a time
_UNKNOWN = 255  # in a row of label sets


def mapped_graph(packed: PackedGraph) -> Data:
    """Return a graph whose labels, splits, features and neighbours are in mapped files.

    It has no ``edge_index``; its ``rows`` (:class:`~lgdgcn.large.graph_rows.GraphRows`) stand for
    it. Sparse features and the weights of edges are read.

    Raises:
        InputError: It has no features or no labels.
    """
    y, masks = mapped_labels(packed, make_split=packed.y is not None)
    if not any(len(piece) for piece in label_pieces(y)):
        raise InputError(f"{packed.folder} has no labels; training needs some")
    x, rows = mapped_rows(packed)
    classes = packed.classes
    check_trainable(y, classes, masks)
    graph = Data(x=x, y=y, classes=classes, **masks)
    graph.rows = rows
    graph.own_fingerprint = cache(lambda: _fingerprint(packed, graph))
    if packed.manifest.feature_names:
        graph.feature_names = list(packed.manifest.feature_names)
    if packed.encoding is not None:
        graph.encoding = packed.encoding
    return graph


def mapped_labels(packed: PackedGraph, make_split: bool) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the labels of a packed graph and its masks, of many nodes in mapped files.

    Args:
        packed: The graph.
        make_split: Whether labelled nodes are split where no split was given, with a warning.
    """
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
            "no split was given: labelled nodes are split 60/20/20 by class", LGDWarning, 3
        )
        masks = stratified_split(y)
    return y, masks


def mapped_rows(packed: PackedGraph) -> tuple[Tensor, GraphRows]:
    """Return the features and the rows of a packed graph, which need no labels.

    Raises:
        InputError: It has no features.
    """
    x = _features(packed)
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    weight = None
    if packed.weight is not None:  # of mean 1, as the weight of the loop at every node is
        weight = _tensor(packed.weight).to(dtype)
        weight = weight / weight.mean()
    return x, GraphRows(
        _tensor(packed.row_ptr),
        _tensor(packed.column),
        weight,
        lambda nodes: feature_rows(x, nodes).to(dtype),
        packed.num_features,
        dtype,
    )


def _fingerprint(packed: PackedGraph, graph: Data) -> str:
    """That of the same graph in memory (:func:`~lgdgcn.data.validate.fingerprint`), in pieces."""
    digest = hashlib.sha256()

    def add(key: str, dtype: type, shape: tuple[int, ...], pieces: Iterable[Any]) -> None:
        digest.update(f"{key} {np.dtype(dtype).str} {shape}\n".encode())
        for piece in pieces:
            digest.update(np.ascontiguousarray(piece, dtype).reshape(-1).view(np.uint8).data)

    def rows(array: Any) -> Iterator[Any]:
        return (array[low : low + _PIECE] for low in range(0, len(array), _PIECE))

    nodes, edges = packed.num_nodes, packed.num_edges
    if packed.x is not None:
        kind = np.float64 if packed.x.dtype == np.float64 else np.float32
        add("x", kind, packed.x.shape, rows(packed.x))
    else:
        x = graph.x
        for part in (x.crow_indices(), x.col_indices(), x.values()):
            array = part.numpy()
            add("x", array.dtype.type, array.shape, rows(array))
    sources = (
        np.repeat(
            np.arange(low, min(low + _PIECE, nodes)),
            np.diff(packed.row_ptr[low : low + _PIECE + 1]),
        )
        for low in range(0, nodes, _PIECE)
    )
    add("edge_index", np.int64, (2, edges), chain(sources, rows(packed.column)))
    for key in ("y", *(f"{split}_mask" for split in SPLITS)):
        array = graph[key].numpy()
        add(key, array.dtype.type, array.shape, rows(array))
    if packed.weight is not None:
        add("edge_weight", np.float32, packed.weight.shape, rows(packed.weight))
    digest.update(repr(list(graph.classes)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _features(packed: PackedGraph) -> Tensor:
    """Features ``[N, F]``: a mapped matrix, or a sparse one in memory."""
    if packed.x is not None:
        return _tensor(packed.x)
    if packed.x_csr is None:
        raise InputError(f"{packed.folder} has no features; pack it with some")
    row_ptr, column, value = (_tensor(part) for part in packed.x_csr)
    size = (packed.num_nodes, packed.num_features)
    return csr_tensor(row_ptr.long(), column.long(), value.float(), size)


def _tensor(array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> Tensor:
    """The same numbers as a tensor, which nobody writes to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it cannot be written to
        return torch.from_numpy(np.asarray(array))
