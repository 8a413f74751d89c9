"""Between packed graphs and graphs in memory, for those that fit."""

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lgdgcn.data.encoding import Encoding
from lgdgcn.data.labels import SPLITS
from lgdgcn.data.names import COMMA
from lgdgcn.data.node_table import encoded_table
from lgdgcn.data.packed.manifest import Manifest
from lgdgcn.data.packed.reader import PackedGraph
from lgdgcn.data.packed.writer import UNKNOWN, PackedWriter, index_type
from lgdgcn.data.user_graph import finish_graph
from lgdgcn.errors import InputError
from lgdgcn.runtime import require_memory

__all__ = ["memory_of_whole", "read_packed", "write_arrays"]


def read_packed(
    graph: PackedGraph,
    features: str | None = None,
    require_labels: bool | None = True,
    encoding: Encoding | None = None,
) -> Data:
    """A packed graph in memory, as :func:`~lgdgcn.data.user_graph.read_graph` reads its folder.

    Args:
        graph: The graph.
        features: ``"spectral"``, ``"degree"`` or ``"identity"`` instead of its own features.
        require_labels: That of :func:`~lgdgcn.data.validate.canonical`.
        encoding: How the columns are to become features: that of the graph a model was trained on.
    """
    what = f"{graph.folder}, read whole,"
    require_memory(memory_of_whole(graph), what, "train in batches (--batch-size)")
    about = graph.manifest
    values: dict[str, Any] = {"node_ids": graph.ids(), "num_nodes": graph.num_nodes}
    if encoding is None or encoding == graph.encoding:
        values |= _features(graph)
    else:
        values |= encoded_table(graph.folder, text_columns(graph, encoding), encoding)
    if graph.y is not None:
        values |= {"y": _labels(graph), "classes": graph.classes}
    if graph.split is not None:
        values |= {f"{name}_mask": graph.split == i + 1 for i, name in enumerate(SPLITS)}
    if graph.has("y_factor"):
        values["y_factor"] = torch.from_numpy(np.array(graph.array("y_factor"), np.int64))
    source = np.repeat(np.arange(graph.num_nodes), np.diff(graph.row_ptr))
    values["edge_index"] = np.stack([source, graph.column.astype(np.int64)])
    if graph.weight is not None:
        values["edge_weight"] = np.array(graph.weight)
    if graph.edge_type is not None:
        values["edge_type"] = np.array(graph.edge_type)
        values["edge_type_names"] = list(about.edge_type_names)
    whole = finish_graph(values, about.name, graph.folder, features, require_labels)
    if about.listed_once:
        whole.listed_once = True
    return whole


def memory_of_whole(graph: PackedGraph) -> int:
    """Bytes that a packed graph takes in memory, at least: arrays are copied and checked."""
    files = graph.manifest.files
    features = sum(files[name].bytes for name in files if name[0] == "x")
    text = sum(entry.bytes for entry in files.values() if not entry.dtype)
    return 60 * graph.num_edges + 3 * features + 3 * text + 200 * graph.num_nodes


def text_columns(graph: PackedGraph, encoding: Encoding) -> dict[str, Any]:
    """The cells of a packed graph's columns, to encode them in another way.

    Raises:
        InputError: A column was packed as numbers, and the other encoding needs its text.
    """
    own = graph.encoding
    if own is None:
        raise InputError(f"{graph.folder} was packed from arrays, which have no columns to match")
    roles = {
        column.name: "numbers with a decimal comma" if column.written == COMMA else column.role
        for column in encoding.columns
    }
    kept = graph.manifest.columns
    columns: dict[str, Any] = {}
    start = 0
    for column in own.columns:
        width = len(column.feature_names)
        if column.name in kept:
            columns[column.name] = graph.text(column.name)
        elif roles.get(column.name, "number") == "number" and column.role == "number":
            numbers = np.array(graph.features(slice(None))[:, start], np.float32)
            if column.marked:
                numbers[graph.features(slice(None))[:, start + 1] > 0] = np.nan
            columns[column.name] = numbers
        else:
            raise InputError(
                f"{graph.folder}: column {column.name[:50]!r} was packed as numbers, the model "
                f"reads it as {roles[column.name]}; pack the graph with --like RUN"
            )
        start += width
    columns |= {name: graph.text(name) for name in own.text}
    for name in own.ignored:
        if name in roles and own.roles.get(name) == "ignore":
            raise InputError(
                f"{graph.folder}: column {name[:50]!r} was packed as one to ignore, the model "
                f"reads it as {roles[name]}; pack the graph with --like RUN"
            )
    blank = np.full(graph.num_nodes, np.nan, np.float32)  # nobody named them: they had no value
    return columns | {name: blank for name in own.ignored if name not in columns}


def _features(graph: PackedGraph) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if graph.x is not None:
        values["x"] = np.array(graph.x)
    elif graph.x_csr is not None:
        row_ptr, column, value = (np.array(part) for part in graph.x_csr)
        shape = (graph.num_nodes, graph.num_features)
        values["x"] = scipy.sparse.csr_matrix((value, column, row_ptr), shape=shape)
    if graph.manifest.feature_names:
        values["feature_names"] = list(graph.manifest.feature_names)
    if graph.encoding is not None:
        values["encoding"] = graph.encoding
    if graph.manifest.text:
        values["node_text"] = {name: graph.text(name) for name in graph.manifest.text}
    return values


def _labels(graph: PackedGraph) -> Any:
    assert graph.y is not None
    if graph.y.ndim == 1:
        return graph.y.astype(np.int64)
    return np.where(graph.y == UNKNOWN, np.nan, graph.y.astype(np.float32))


def write_arrays(data: Data, writer: PackedWriter) -> Manifest:
    """Write the arrays of a graph in memory; returns what is to be said of them.

    Args:
        data: A graph from :func:`~lgdgcn.data.validate.canonical`.
        writer: Where to write.
    """
    nodes, edges = int(data.x.size(0)), int(data.edge_index.size(1))
    degree = np.bincount(data.edge_index[0].numpy(), minlength=nodes)
    _write(writer, "row_ptr", np.int64, np.concatenate([[0], degree.cumsum()]))
    _write(writer, "column", index_type(nodes), data.edge_index[1].numpy())
    if "edge_weight" in data:
        _write(writer, "weight", np.float32, data.edge_weight.numpy())
    if "edge_type" in data:
        _write(writer, "edge_type", np.uint8, data.edge_type.numpy())
    if data.x.layout == torch.sparse_csr:
        _write(writer, "x_row_ptr", np.int64, data.x.crow_indices().numpy())
        _write(writer, "x_column", index_type(data.x.size(1)), data.x.col_indices().numpy())
        _write(writer, "x_value", data.x.values().numpy().dtype, data.x.values().numpy())
    else:
        _write(writer, "x", data.x.numpy().dtype, data.x.numpy())
    y = data.y.numpy()
    if y.ndim == 1:
        _write(writer, "y", np.int32, y)
    else:
        _write(writer, "y", np.uint8, np.where(np.isnan(y), UNKNOWN, y))
    split = sum((i + 1) * data[f"{name}_mask"].byte() for i, name in enumerate(SPLITS))
    has_split = bool(torch.as_tensor(split).any())
    if has_split:
        _write(writer, "split", np.uint8, torch.as_tensor(split).numpy())
    if "y_factor" in data:
        _write(writer, "y_factor", np.int64, torch.as_tensor(data.y_factor).numpy())
    ids = list(data.get("node_ids") or [])
    if ids and ids != [str(i) for i in range(nodes)]:
        with writer.table("ids", ["id"]) as table:
            table.append([ids])
    text = data.get("node_text") or {}
    if text:
        with writer.table("columns", list(text)) as table:
            table.append(list(text.values()))
    encoding = data.get("encoding")
    return Manifest(
        str(data.get("name") or "graph"),
        nodes,
        edges,
        int(data.x.size(1)),
        tuple(data.classes),
        "single" if y.ndim == 1 else "multi",
        has_split,
        bool(data.get("listed_once")),
        tuple(data.get("feature_names") or ()),
        tuple(data.get("edge_type_names") or ()),
        tuple(text),
        tuple(text),
        None if encoding is None else encoding.as_dict(),
    )


def _write(writer: PackedWriter, name: str, dtype: Any, values: Any) -> None:
    with writer.array(name, dtype, *values.shape[1:]) as array:
        array.append(values)
