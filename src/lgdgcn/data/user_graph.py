"""A user's own graph: a folder with a table of edges and a table of nodes."""

import warnings
from array import array
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from lgdgcn.data.labels import SPLITS
from lgdgcn.data.tables import (
    SUFFIXES,
    Table,
    find_table,
    is_number,
    read_npz,
    read_rows,
    read_table,
    where,
)
from lgdgcn.data.validate import canonical, with_features
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["read_graph"]

SOURCE = {"source", "src", "from", "u", "source_id", "node1", "citing"}
TARGET = {"target", "dst", "to", "v", "target_id", "node2", "cited", "dest", "destination"}
ID = ("id", "node_id", "node", "name")  # the first that is there; the others are features
LABEL = ("label", "class", "y")
SPLIT_NAMES = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2, "": -1}
CSR_PARTS = ("x_data", "x_indices", "x_indptr", "x_shape")


def read_graph(
    folder: str | Path, features: str | None = None, require_labels: bool = True
) -> Data:
    """Read ``edges.*`` and ``nodes.*`` (csv, csv.gz, tsv, tsv.gz, parquet or npz) from a folder.

    *Edges* have two columns, source and target; a header is optional, further columns are ignored.
    ``edges.npz`` holds ``edge_index`` [2, E] with node rows counted from 0.

    *Nodes* have a header. ``id`` (or node_id, node, name; else the row number from 0), ``label``
    (or class, y; or several 0/1 columns ``label:a``, ``label:b``; empty = unlabelled), ``split``
    (train, val, test or empty) are optional; every other column is a numeric feature (float32).
    ``nodes.npz`` holds ``x`` or its CSR parts ``x_data, x_indices, x_indptr, x_shape``, and
    optionally ``y``, ``classes``, ``y_factor``, ``ids``, and masks or indices such as
    ``train_mask`` or ``train_idx``. Without a nodes file the nodes are those the edges name.

    Args:
        folder: The folder.
        features: ``"degree"`` or ``"identity"`` makes features from the structure instead.
        require_labels: ``False`` also reads a graph without labels, to predict them.

    Returns:
        A graph in :func:`~lgdgcn.data.validate.canonical` form, with ``node_ids`` (the ids as
        text, in row order), ``name`` (of the folder) and, where the features are columns with
        names, ``feature_names``.

    Raises:
        InputError: Names the file, the line and what to do.
    """
    folder = Path(folder)
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {found}; give a folder with edges.csv and nodes.csv")
    edges, nodes = find_table(folder, "edges"), find_table(folder, "nodes")
    if edges is None:
        names = ", ".join(f"edges{suffix}" for suffix in SUFFIXES)
        raise InputError(f"{folder} has no edges file; add one of {names}")
    if nodes is None and require_labels:
        raise InputError(f"{folder} has no nodes file; add nodes.csv with id and label to train")
    values = _read_nodes(nodes) if nodes else {}
    values |= _read_edges(edges, values.get("node_ids"), nodes)
    if "node_ids" in values:
        values["num_nodes"] = len(values["node_ids"])
    graph = Data(**values, name=folder.resolve().name)
    try:
        graph = with_features(graph, features) if features else graph
        graph = canonical(graph, require_labels=require_labels)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    if "node_ids" not in graph:
        graph.node_ids = [str(i) for i in range(graph.x.shape[0])]
    return graph


def _read_nodes(path: Path) -> dict[str, Any]:
    """Everything the nodes file says, under the names :func:`canonical` knows."""
    if path.suffix == ".npz":
        return _nodes_from_arrays(path)
    columns: list[str] = []

    def text_columns(names: list[str]) -> set[str]:
        columns.extend(names)
        return set(chain(*_roles(names).values()))

    table = read_table(path, text_columns)
    roles = _roles([*table.text])
    values: dict[str, Any] = {"node_ids": _node_ids(table, roles["id"])}
    if table.numbers.shape[1]:
        values["x"] = table.numbers
        values["feature_names"] = [name for name in columns if name not in table.text]
    if roles["label"]:
        values["y"] = _label_values(table.text[roles["label"][0]])
    if roles["labels"]:
        values["y"] = _label_matrix(table, roles["labels"])
        values["classes"] = [name[len("label:") :] for name in roles["labels"]]
    if roles["split"]:
        values |= _split_masks(table, roles["split"][0])
    return values


def _roles(names: list[str]) -> dict[str, list[str]]:
    """Which columns are the id, the label or labels, and the split."""
    lower = {name.lower(): name for name in reversed(names)}

    def first(candidates: tuple[str, ...]) -> list[str]:
        return [lower[name] for name in candidates if name in lower][:1]

    label = first(LABEL)
    labels = [name for name in names if name.lower().startswith(("label:", "label_"))]
    if labels and label and label[0].lower() == "label":
        raise InputError(f"has both {label[0]!r} and {labels[0]!r}; keep one kind of label")
    return {
        "id": first(ID),
        "label": [] if labels else label,
        "labels": labels,
        "split": first(("split",)),
    }


def _node_ids(table: Table, column: list[str]) -> list[str]:
    if not column:
        return [str(i) for i in range(len(table.lines))]
    seen: dict[str, int] = {}
    for row, name in enumerate(table.text[column[0]]):
        if name == "":
            raise InputError(f"{table.where(row)}: the id is empty; give every node an id")
        if seen.setdefault(name, row) != row:
            raise InputError(
                f"{table.where(row)}: id {name!r} is already on line {table.lines[seen[name]]}; "
                "ids must be unique"
            )
    return list(seen)


def _label_values(cells: list[str]) -> Any:
    """Integers or whole floats if every label is one, else the text itself."""
    present = [cell for cell in cells if cell]
    if any(len(cell) > 1 and cell[0] == "0" and cell.isdigit() for cell in present):
        return cells  # 007 is a name
    try:
        return np.array([int(cell) if cell else -1 for cell in cells], dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return cells


def _label_matrix(table: Table, columns: list[str]) -> np.ndarray[Any, Any]:
    known = {"0": 0.0, "0.0": 0.0, "1": 1.0, "1.0": 1.0, "": np.nan, "-1": np.nan, "-1.0": np.nan}
    matrix = np.empty((len(table.lines), len(columns)), dtype=np.float32)
    for j, name in enumerate(columns):
        for row, cell in enumerate(table.text[name]):
            if cell not in known:
                raise InputError(
                    f"{table.where(row)}: column {name!r} holds {cell[:50]!r}; use 0, 1 or nothing"
                )
            matrix[row, j] = known[cell]
    return matrix


def _split_masks(table: Table, column: str) -> dict[str, Any]:
    numbers = np.empty(len(table.lines), dtype=np.int64)
    for row, cell in enumerate(table.text[column]):
        if cell.lower() not in SPLIT_NAMES:
            raise InputError(
                f"{table.where(row)}: split is {cell[:50]!r}; use train, val, test or nothing"
            )
        numbers[row] = SPLIT_NAMES[cell.lower()]
    return {f"{split}_mask": numbers == i for i, split in enumerate(SPLITS)}


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
            size = tuple(int(n) for n in shape)
            values["x"] = scipy.sparse.csr_matrix((data, indices, indptr), shape=size)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{path}: x_data … x_shape make no CSR matrix ({error})") from None
    if "ids" in arrays:
        ids = arrays.pop("ids")
        if ids.ndim != 1 or ids.dtype.kind not in "iuU":
            raise InputError(f"{path}: ids has shape {ids.shape}, type {ids.dtype}; give N names")
        column = [str(name) for name in ids.tolist()]
        lines = list(range(len(column)))
        table = Table(path, {"id": column}, np.zeros((len(column), 0), np.float32), lines)
        values["node_ids"] = _node_ids(table, ["id"])
    if "classes" in arrays:
        values["classes"] = arrays.pop("classes").ravel().tolist()
    wanted = {"x", "y", "y_factor", *(f"{s}_{kind}" for s in SPLITS for kind in ("mask", "idx"))}
    values |= {key: array for key, array in arrays.items() if key in wanted}
    counted = [values[key] for key in ("x", "y", *(f"{s}_mask" for s in SPLITS)) if key in values]
    if "node_ids" not in values:
        if not counted or not counted[0].shape:
            raise InputError(f"{path} has {sorted(arrays)} but none of x, y, ids; add x or ids")
        values["node_ids"] = [str(i) for i in range(counted[0].shape[0])]
    ignored = sorted(set(arrays) - wanted)
    if ignored:
        warnings.warn(f"{path}: ignored arrays {', '.join(ignored)}", LGDWarning, stacklevel=2)
    return values


def _read_edges(path: Path, ids: list[str] | None, nodes: Path | None) -> dict[str, Any]:
    """``edge_index``, and ``node_ids`` if the edges are what names the nodes."""
    if path.suffix == ".npz":
        arrays = read_npz(path)
        if "edge_index" not in arrays:
            raise InputError(f"{path} has {sorted(arrays)} but no edge_index; add it, [2, E]")
        return {"edge_index": arrays["edge_index"]}
    rows = read_rows(path)
    head = [row for row in (next(rows, None), next(rows, None)) if row is not None]
    numbers = {name: i for i, name in enumerate(ids)} if ids is not None else {}
    first, second = 0, 1
    if head and _is_header(path, [cells for _, cells in head], numbers):
        first, second = _columns(head.pop(0)[1])
    flat, extra = array("q"), False
    for line, cells in chain(head, rows):
        try:
            flat.extend((numbers[cells[first]], numbers[cells[second]]))
        except (IndexError, KeyError):
            pair = cells[first : first + 1] + cells[second : second + 1]
            if len(pair) < 2 or "" in pair:
                raise InputError(
                    f"{where(path, line)}: {len(cells)} cells ({', '.join(cells)[:50]!r}); "
                    "an edge needs a source and a target"
                ) from None
            if ids is not None:
                unknown = next(name for name in pair if name not in numbers)
                raise InputError(
                    f"{where(path, line)}: unknown node {unknown[:50]!r}; "
                    f"add it to {nodes.name if nodes else 'the nodes'} or remove the edge"
                ) from None
            flat.extend([numbers.setdefault(name, len(numbers)) for name in pair])
        extra = extra or len(cells) > 2
    if extra:
        message = f"{path}: columns beyond source and target are ignored (weights are not used)"
        warnings.warn(message, LGDWarning, stacklevel=3)
    edge_index = np.array(flat, dtype=np.int64).reshape(-1, 2).T
    return {"edge_index": edge_index, "node_ids": list(numbers)}


def _columns(names: list[str]) -> tuple[int, int]:
    """Where a header puts source and target; the first two columns if it does not say."""
    lower = [name.lower() for name in names]
    first = next((i for i, name in enumerate(lower) if name in SOURCE), None)
    second = next((i for i, name in enumerate(lower) if name in TARGET), None)
    return (0, 1) if first is None or second is None else (first, second)


def _is_header(path: Path, head: list[list[str]], numbers: dict[str, int]) -> bool:
    """Whether the first row names columns rather than nodes."""
    cells = head[0]
    if path.suffix == ".parquet":
        return True
    known = [cell in numbers for cell in cells[:2]]
    if len(known) < 2 or all(known):
        return False
    lower = {cell.lower() for cell in cells}
    if lower & SOURCE and lower & TARGET:
        return True
    if any(known) or any(map(is_number, cells[:2])):
        return False
    if not numbers:  # no nodes file: words above numbers
        return len(head) > 1 and all(map(is_number, head[1][:2]))
    if not all(map(is_number, islice(numbers, 100))):
        message = f"{path}: neither {cells[0]!r} nor {cells[1]!r} is a node: taken as a header"
        warnings.warn(message, LGDWarning, stacklevel=4)
    return True
