"""A user's own graph: a folder with a table of edges and a table of nodes."""

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from lgdgcn.data.columns import ColumnSummary
from lgdgcn.data.edge_list import UnknownNodeError, read_edges, some_ends
from lgdgcn.data.encoding import Encoding
from lgdgcn.data.graph_file import merged_roles, read_graph_file
from lgdgcn.data.labels import SPLITS
from lgdgcn.data.node_table import node_ids, read_nodes, summaries
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.data.tables import SUFFIXES, TEXT_BYTES, Table, find_table, read_npz, read_table
from lgdgcn.data.validate import canonical, with_features
from lgdgcn.errors import InputError, LGDNote, LGDWarning, UnlabelledError
from lgdgcn.runtime import require_memory

__all__ = ["NO_LABELS", "column_summaries", "finish_graph", "read_graph"]

NO_LABELS = (
    "has no labels; call a column label, class or y, or name it with --label or in graph.toml"
)
CSR_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")


def read_graph(
    folder: str | Path,
    features: str | None = None,
    require_labels: bool | None = True,
    roles: Mapping[str, str] | None = None,
    encoding: Encoding | None = None,
) -> Data:
    """Read ``edges.*`` and ``nodes.*`` (csv, csv.gz, tsv, tsv.gz, parquet or npz) from a folder.

    *Edges* have two columns, source and target; a header is optional (see
    :func:`~lgdgcn.data.edge_list.read_edges`) and may name a column ``weight`` and a column
    ``type`` (of the edge; blank where it is not known); further columns are ignored.
    ``edges.npz`` holds ``edge_index`` [2, E] with node rows counted from 0, and optionally
    ``edge_weight``, ``edge_type`` and ``edge_type_names``.

    *Nodes* have a header. ``id`` (or node_id, node, name; else the row number from 0; but
    another column where edges name its cells, and not those of this one), ``label``
    (or class, y; or several 0/1 columns ``label:a``, ``label:b``; empty = unlabelled), ``split``
    (train, val, test or empty) are optional; every other column is read by its role, given or
    guessed: see :mod:`~lgdgcn.data.columns` and :mod:`~lgdgcn.data.encoding`.
    Ids and labels are text and come back as they are written; labels of plain digits come back as
    integers (see :func:`~lgdgcn.data.names.label_values`).
    ``nodes.npz`` holds ``x`` or its CSR parts ``x_data, x_indices, x_indptr, x_shape``, and
    optionally ``y``, ``classes``, ``y_factor``, ``ids``, and masks or indices such as
    ``train_mask`` or ``train_idx``. Without a nodes file the nodes are those the edges name.

    Args:
        folder: The folder.
        features: ``"spectral"``, ``"degree"`` or ``"identity"`` makes features from the structure
            instead. A graph without features gets spectral ones.
        require_labels: ``False`` also reads a graph without labels, to predict them; ``None``
            too, but what labels there are must be fit for training.
        roles: The roles of columns of the nodes table, by name; ``graph.toml`` may name others.
        encoding: How the columns are to become features: that of the graph a model was trained on.

    Returns:
        A graph in :func:`~lgdgcn.data.validate.canonical` form, with ``node_ids`` (the ids as
        text, in row order), ``name`` (of the folder); where the features are columns of a table,
        ``feature_names`` and ``encoding``; and where it has free text, ``node_text``.

    Raises:
        InputError: Names the file, the line and what to do.
    """
    folder = _checked_folder(folder)
    edges, nodes = find_table(folder, "edges"), find_table(folder, "nodes")
    if edges is None:
        names = ", ".join(f"edges{suffix}" for suffix in SUFFIXES)
        raise InputError(f"{folder} has no edges file; add one of {names}")
    if nodes is None and require_labels:
        raise UnlabelledError(
            f"{folder} has no nodes file; add nodes.csv with id and label to train"
        )
    written = read_graph_file(folder)
    given = merged_roles(written.roles, roles or {})
    ends = some_ends(edges, written.delimiter) if nodes else set()
    values = _read_nodes(nodes, given, encoding, written.delimiter, ends) if nodes else {}
    if require_labels and "y" not in values:
        raise UnlabelledError(f"{nodes} {NO_LABELS}")
    try:
        values |= read_edges(edges, values.get("node_ids"), nodes, written.delimiter)
    except UnknownNodeError as error:
        raise InputError(f"{error}{_id_hint(nodes, error.name, written.delimiter)}") from None
    if "node_ids" in values:
        values["num_nodes"] = len(values["node_ids"])
    graph = finish_graph(values, folder.resolve().name, folder, features, require_labels)
    if "node_ids" not in graph:
        graph.node_ids = [str(i) for i in range(graph.x.shape[0])]
    return graph


def finish_graph(
    values: dict[str, Any],
    name: str,
    folder: Path,
    features: str | None,
    require_labels: bool | None,
) -> Data:
    """Bring what the files of a folder say to canonical form, with features where there are none.

    Args:
        values: Under the names :func:`~lgdgcn.data.validate.canonical` knows.
        name: Of the graph.
        folder: Where it is from, for messages.
        features: See :func:`read_graph`.
        require_labels: See :func:`read_graph`.
    """
    graph = Data(**values, name=name)
    try:
        if features is None and "x" not in values:
            _warn_of_no_features(graph)
            features = "spectral"
        graph = with_features(graph, features) if features else graph
        return canonical(graph, require_labels=require_labels, listed_once=True)
    except InputError as error:
        raise type(error)(f"{folder}: {error}") from None


def column_summaries(folder: str | Path, roles: Mapping[str, str]) -> list[ColumnSummary]:
    """What each column of a folder's nodes table is taken for; none if it has no table.

    Args:
        folder: The folder.
        roles: Roles that the user names, beside those in ``graph.toml``.
    """
    folder = _checked_folder(folder)
    nodes, written = find_table(folder, "nodes"), read_graph_file(folder)
    if nodes is None or nodes.suffix == ".npz":
        return []
    edges = find_table(folder, "edges")
    ends = some_ends(edges, written.delimiter) if edges else set()
    return summaries(nodes, merged_roles(written.roles, roles), written.delimiter, ends)


def _checked_folder(folder: str | Path) -> Path:
    folder = Path(folder)
    if not os.path.isdir(folder):  # Path.is_dir raises where a name is too long
        found = "is a file" if os.path.exists(folder) else "does not exist"
        raise InputError(f"{str(folder)[:200]} {found}; give a folder with edges.csv and nodes.csv")
    return folder


def _id_hint(nodes: Path | None, name: str, delimiter: str) -> str:
    """Name the column that has a node which is no id, if there is one."""
    if nodes is None or nodes.suffix == ".npz":
        return ""
    table = read_table(nodes, set, delimiter)
    columns = [column for column in table.names if name in table.text[column]]
    return f"; column {columns[0][:50]!r} has it: --id makes it the id" if columns else ""


def _warn_of_no_features(graph: Data) -> None:
    source, target = np.asarray(graph.edge_index).reshape(2, -1)
    if (source == target).all():  # also where there is none
        raise InputError(
            "the graph has neither features nor edges to make some from; add columns to the nodes"
        )
    warnings.warn(
        f"{graph.name} has no features: they are made from the structure, "
        f"{len(SPECTRAL_NAMES) - 1} eigenvectors of the Laplacian and the degree "
        "(--features spectral; degree and identity make others)",
        LGDNote,
        stacklevel=3,
    )


def _read_nodes(
    path: Path,
    roles: Mapping[str, str],
    encoding: Encoding | None,
    delimiter: str,
    ends: Collection[str],
) -> dict[str, Any]:
    """Everything the nodes file says, under the names :func:`canonical` knows."""
    if path.suffix != ".npz":
        return read_nodes(path, roles, encoding, delimiter, ends)
    if roles:
        raise InputError(f"{path} has arrays, no columns such as {next(iter(roles))[:50]!r}")
    return _nodes_from_arrays(path)


def _nodes_from_arrays(path: Path) -> dict[str, Any]:
    arrays = read_npz(path)
    values: dict[str, Any] = {}
    if any(part in arrays for part in CSR_PARTS):
        missing = [part for part in CSR_PARTS if part not in arrays]
        if missing or "x" in arrays:
            found = f"no {missing[0]}" if missing else "also x"
            raise InputError(f"{path} has CSR parts of x but {found}; give all four or x alone")
        data, indices, indptr, shape = (arrays.pop(part) for part in CSR_PARTS)
        try:
            for name, array in (("x_indices", indices), ("x_indptr", indptr), ("x_shape", shape)):
                if array.dtype.kind not in "iu":
                    raise TypeError(f"{name} has type {array.dtype}, not whole numbers")
            size = tuple(int(n) for n in shape)
            values["x"] = scipy.sparse.csr_matrix((data, indices, indptr), shape=size)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: x_data … x_shape make no CSR matrix ({error})") from None
    if "ids" in arrays:
        ids = arrays.pop("ids")
        if ids.ndim != 1 or ids.dtype.kind not in "iuU":
            raise InputError(f"{path}: ids has shape {ids.shape}, type {ids.dtype}; give N names")
        _require_room(path, len(ids))
        column = [str(name) for name in ids.tolist()]
        lines = list(range(len(column)))
        table = Table(path, ["id"], {"id": column}, np.zeros((len(column), 0), np.float32), lines)
        values["node_ids"] = node_ids(table, ["id"])
    if "classes" in arrays:
        values["classes"] = arrays.pop("classes").ravel().tolist()
    wanted = {"x", "y", "y_factor", *(f"{s}_{kind}" for s in SPLITS for kind in ("mask", "idx"))}
    values |= {key: array for key, array in arrays.items() if key in wanted}
    counted = [values[key] for key in ("x", "y", *(f"{s}_mask" for s in SPLITS)) if key in values]
    if "node_ids" not in values:
        if not counted or not counted[0].shape:
            raise InputError(f"{path} has {sorted(arrays)[:9]} but none of x, y, ids; add x or ids")
        _require_room(path, counted[0].shape[0])
        values["node_ids"] = [str(i) for i in range(counted[0].shape[0])]
    ignored = sorted(key[:50] for key in set(arrays) - wanted)[:20]
    if ignored:
        warnings.warn(f"{path}: ignored arrays {', '.join(ignored)}", LGDWarning, stacklevel=2)
    return values


def _require_room(path: Path, nodes: int) -> None:
    """Arrays of empty rows or text name any number of nodes in a file of a few bytes."""
    what = f"{path}: the ids of {nodes:,} nodes"
    require_memory(2 * TEXT_BYTES * nodes, what, "use a smaller graph")
