"""Graphs that a Python program has in memory: of networkx, of pandas, and parts of a graph."""

import csv
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import canonical_features
from lgdgcn.data.labels import SPLITS, canonical_labels, stratified_split
from lgdgcn.data.names import is_index
from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError, LGDNote

__all__ = [
    "MASKS",
    "edge_rows",
    "from_networkx",
    "from_pandas",
    "graph_to_fit",
    "node_numbers",
    "one_split",
    "training_part",
    "without",
]

MASKS = tuple(f"{part}_mask" for part in SPLITS)


def from_networkx(
    graph: Any, label: str = "label", *, words: Sequence[str] = (), like: Data | None = None
) -> Data:
    """Read a ``networkx`` graph as ``lgdgcn train`` reads a folder.

    Args:
        graph: Nodes are known by their names, written as text. Each attribute is a column, one of
            several numbers (a list, an array) a column for each of them; ``split`` is ``train``,
            ``val`` or ``test``. An attribute ``id`` is not read. Of the edges' attributes
            ``weight`` and ``type`` are, the latter where it is text or a list of texts.
        label: The attribute to predict.
        words: Attributes of text whose words become features.
        like: A graph of the same kind that a model was fitted on: attributes become the same
            features as there, also where other values, or blanks, are to be found.
    """
    names = {name: None for _, values in graph.nodes(data=True) for name in values}
    columns: dict[str, list[Any]] = {"id": [str(node) for node in graph]}
    for name in names:
        if name != "id":
            cells = [_cell(values.get(name)) for _, values in graph.nodes(data=True)]
            found = _columns(str(name), cells)
            if name == label and label not in found:  # a vector of 0 and 1: sets of labels
                found = {f"label:{i}": own for i, own in enumerate(found.values())}
            columns |= found
    read = [
        name
        for name in ("weight", "type")
        if any(values.get(name) is not None for _, _, values in graph.edges(data=True))
    ]
    edges = [
        (str(a), str(b), *(_edge_cell(values.get(name)) for name in read))
        for a, b, values in graph.edges(data=True)
    ]
    if graph.is_directed():
        warnings.warn("the graph is directed: made undirected", LGDNote, stacklevel=2)
    else:
        edges += [(b, a, *rest) for a, b, *rest in edges]
    with tempfile.TemporaryDirectory() as folder:
        place = _new_folder(folder)
        _write(place / "nodes.csv", [*columns], zip(*columns.values(), strict=True))
        _write(place / "edges.csv", ("source", "target", *read), edges)
        numbers = (name for name, cells in columns.items() if _are_numbers(cells))
        return _read(place, label if label in columns else None, words, like, numbers)


def from_pandas(
    nodes: Any,
    edges: Any,
    label: str = "label",
    *,
    id: str | None = None,
    ignore: Sequence[str] = (),
    words: Sequence[str] = (),
    like: Data | None = None,
) -> Data:
    """Read two tables of ``pandas`` as ``lgdgcn train`` reads ``nodes.csv`` and ``edges.csv``.

    Args:
        nodes: One row per node. Its column ``id`` names it, else the index of the table; ``split``
            is ``train``, ``val`` or ``test``.
        edges: The columns ``source`` and ``target`` name the ends of each edge, else the first two
            beside row numbers (``Unnamed: 0``, an index that was read from a file).
        label: The column to predict.
        id: The column whose values the edges name, where it is not called ``id``.
        ignore: Columns that are no features.
        words: Columns of text whose words become features.
        like: A graph of the same kind that a model was fitted on: columns become the same
            features as there, also where other values, or blanks, are to be found.
    """
    known = dict.fromkeys(ignore, "ignore") | ({} if id is None else {id: "id"})
    for name in known:
        if name not in nodes.columns:
            raise InputError(f"nodes has no column {name[:50]!r}; it has {_names(nodes.columns)}")
    if id is None and "id" not in nodes.columns:
        nodes = nodes.rename_axis("id").reset_index()
    edges = edges.loc[:, [not is_index(str(name)) for name in edges.columns]]
    if {"source", "target"} <= {*edges.columns}:
        first = ["source", "target"]
        edges = edges[first + [name for name in edges.columns if name not in first]]
    names = ["source", "target", *edges.columns[2:]]
    with tempfile.TemporaryDirectory() as folder:
        place = _new_folder(folder)
        _whole(nodes, ["id" if id is None else id, label]).to_csv(place / "nodes.csv", index=False)
        edges = _whole(edges.set_axis(names, axis=1), names[:2])
        edges.to_csv(place / "edges.csv", index=False)
        numbers = (str(name) for name, cells in nodes.items() if _are_numbers(cells.dropna()))
        own = label if label in nodes.columns else None
        return _read(place, own, words, like, numbers, known)


def _names(columns: Iterable[Any]) -> str:
    """The first few names of columns, for a message."""
    found = [repr(str(name)[:50]) for name in columns]
    return ", ".join(found[:10]) + (", …" if len(found) > 10 else "")


def _whole(table: Any, names: list[str]) -> Any:
    """Write 3.0 as 3 in some columns: beside a blank, pandas keeps whole numbers as floats."""
    floats = [name for name in names if name in table.columns and table[name].dtype.kind == "f"]
    whole = [name for name in floats if (table[name].dropna() % 1 == 0).all()]
    return table.astype(dict.fromkeys(whole, "Int64"))


def _are_numbers(cells: Iterable[Any]) -> bool:
    return all(cell is None or isinstance(cell, Number) for cell in cells)


def _cell(value: Any) -> Any:
    """An attribute; NaN and the ``NA`` of pandas are blanks."""
    is_blank = type(value).__name__ == "NAType" or (isinstance(value, Number) and value != value)
    return None if is_blank else value


def _edge_cell(value: Any) -> Any:
    return ";".join(map(str, value)) if isinstance(value, (list, tuple, set)) else value


def _columns(name: str, cells: Sequence[Any]) -> dict[str, list[Any]]:
    """One column, or one for each number of attributes that are vectors."""
    vectors = [None if cell is None else np.asarray(cell) for cell in cells]
    shapes = {vector.shape for vector in vectors if vector is not None}
    if shapes == {()}:
        return {name: list(cells)}
    if len(shapes) != 1 or len(shape := shapes.pop()) != 1:
        found = "differ in their lengths" if len(shapes) else f"have shape {list(shape)}"
        raise InputError(f"node attributes {name!r} {found}; give each node as many numbers")
    table = [[None] * shape[0] if vector is None else vector.tolist() for vector in vectors]
    return {f"{name}_{i}": [row[i] for row in table] for i in range(shape[0])}


def _new_folder(folder: str) -> Path:
    place = Path(folder) / "graph"  # its name is the graph's
    place.mkdir()
    return place


def _write(path: Path, header: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _read(
    folder: Path,
    label: str | None,
    words: Sequence[str],
    like: Data | None,
    numbers: Iterable[str],
    known: Mapping[str, str] | None = None,
) -> Data:
    """Read the tables, of which one column has the labels and others have known roles.

    Columns of ``numbers`` are no text, and have a decimal point in the files.

    Messages name the tables without the folder, which the user never sees, and arguments in the
    place of options.
    """
    hidden = f"{folder.parent}/"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            learnt = None if like is None else like.get("encoding")
            encoding = None if learnt is None else learnt.with_points({*numbers})
            roles = dict(known or {}) | dict.fromkeys(words, "words")
            roles |= {} if label is None else {label: "label"}
            graph = read_graph(folder, require_labels=False, roles=roles, encoding=encoding)
        except InputError as error:
            said = str(error).replace(hidden, "")
            raise type(error)(said.replace("--id makes it the id", "id=… names it")) from None
    if learnt is not None and "encoding" in graph:
        graph.encoding = learnt
    for one in caught:
        said = str(one.message).replace(hidden, "")
        said = said.replace("--features text:COLUMN makes", "words=[COLUMN] makes")
        said = said.replace("(--id names another)", "(id=… names another)")
        warnings.warn(said, one.category, stacklevel=3)
    if not any(graph[mask].any() for mask in MASKS):  # none is named: fit makes a split
        for mask in MASKS:
            del graph[mask]
    return graph


def one_split(data: Data, split: int) -> Data:
    """The graph with one of its splits, where masks have shape ``[N, splits]``.

    Example:
        >>> masks = torch.tensor([[True, False], [False, True]])
        >>> one_split(Data(train_mask=masks), 1).train_mask.tolist()
        [False, True]
    """
    masks = {key: data[key] for key in MASKS if data.get(key) is not None}
    several = {key: mask for key, mask in masks.items() if np.ndim(mask) == 2}
    for key, mask in several.items():
        count = mask.shape[1]
        if type(split) is not int or not 0 <= split < count:
            raise InputError(f"split is {split!r}; {key} has {count} splits, 0 to {count - 1}")
    if not several:
        return data
    return Data(**data.to_dict() | {key: mask[:, split] for key, mask in several.items()})


def node_numbers(nodes: Any, num_nodes: int, ids: Sequence[str] | None = None) -> Tensor:
    """Find nodes by their ids or, where these are no whole numbers, by their numbers, too.

    Args:
        nodes: ``[n]`` or ``[n, 1]``, as scikit-learn hands them over.
        num_nodes: N.
        ids: The ids of all nodes, if the graph has ids.
    """
    array = np.asarray(nodes)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iuUO"):
        raise InputError(
            f"X has shape {list(array.shape)} and type {array.dtype}; give a graph, node numbers "
            "or ids, or features together with edge_index"
        )
    if ids is not None and array.size:
        number = {str(name): index for index, name in enumerate(ids)}
        found = [number.get(str(name), -1) for name in array.tolist()]
        if array.dtype.kind in "UO" or max(found) >= 0:
            if -1 in found:
                unknown = str(array[found.index(-1)])[:50]
                raise InputError(f"X names node {unknown!r}; ids of the graph are {_names(ids)}")
            return torch.tensor(found)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"X names node {str(array[0])[:50]!r}, but the graph has no ids")
    if array.size and (array.min() < 0 or array.max() >= num_nodes):
        wrong = int(array.min() if array.min() < 0 else array.max())
        raise InputError(f"X names node {wrong}; the graph has nodes 0 to {num_nodes - 1}")
    return torch.from_numpy(array.astype(np.int64))


def _num_nodes(data: Data) -> int:
    return int(canonical_features(data.get("x")).shape[0])


def training_part(data: Data, nodes: Tensor, y: Any, seed: int) -> Data:
    """The graph with labels of some nodes only, a fifth of them (by class) for validation.

    Args:
        data: A graph with ``x`` and ``edge_index``.
        nodes: Node numbers ``[n]``, each once.
        y: Their labels ``[n]`` or ``[n, L]``; the graph's own if ``None``.
        seed: Of the choice of validation nodes.
    """
    total = _num_nodes(data)
    if len({*nodes.tolist()}) < len(nodes):
        raise InputError("X names a node twice; give every node number once")
    if y is None:
        own, classes = canonical_labels(data.get("y"), total, data.get("classes"))
        y = own[nodes]
    else:
        y, classes = canonical_labels(y, len(nodes))
    everywhere = torch.full((total, *y.shape[1:]), torch.nan if y.is_floating_point() else -1)
    everywhere = everywhere.to(y.dtype)
    everywhere[nodes] = y
    masks = stratified_split(everywhere, seed)
    masks["train_mask"] |= masks.pop("test_mask")
    hidden = {"y", "classes", *MASKS, *(f"{part}_idx" for part in SPLITS)}
    rest = {key: value for key, value in data.to_dict().items() if key not in hidden}
    return Data(**rest, y=everywhere, classes=classes, **masks)


def graph_to_fit(X: Any, y: Any, edge_index: Any, bound: Data | None, seed: int) -> Data:
    """The graph whose training and validation nodes are fitted; ``bound`` where X is none."""
    if edge_index is not None:
        return Data(x=X, edge_index=edge_index, y=y)
    if X is not None and not isinstance(X, Data):
        if bound is None:
            raise InputError(
                "fit needs the edges: give a torch_geometric.data.Data, features with edge_index, "
                "or node numbers to LGDClassifier(graph=data)"
            )
        nodes = node_numbers(X, _num_nodes(without(bound)), bound.get("node_ids"))
        return training_part(bound, nodes, y, seed)
    if X is None and bound is None:
        raise InputError("there is no graph; call fit(data), or LGDClassifier(graph=data).fit()")
    data = without(bound if X is None else X)
    if y is not None:
        data = without(data, "y", "classes")
        data.y = y
    return data


def edge_rows(graph: Data, values: Tensor, wanted: Any) -> Tensor:
    """Look up the rows of some edges among those of a canonical graph; NaN where absent.

    Args:
        graph: A canonical graph.
        values: A row for each of its edges ``[E, M]``.
        wanted: Other edges ``[2, W]``.

    Returns:
        ``[W, M]``.
    """
    nodes = graph.x.size(0)
    keys = graph.edge_index[0] * nodes + graph.edge_index[1]
    ends = torch.as_tensor(wanted).cpu().long().reshape(2, -1)
    asked = ends[0] * nodes + ends[1]
    index = torch.searchsorted(keys, asked).clamp(max=max(keys.numel() - 1, 0))
    found = keys[index] == asked if keys.numel() else torch.zeros_like(asked, dtype=torch.bool)
    rows = torch.full((asked.numel(), values.size(1)), torch.nan, dtype=values.dtype)
    rows[found] = values[index[found]]
    return rows


def without(data: Data, *keys: str) -> Data:
    """Copy a graph, but not its tensors, leaving some attributes out."""
    if not isinstance(data, Data):
        raise InputError(f"expected a torch_geometric.data.Data, found {type(data).__name__}")
    return Data(**{key: value for key, value in data.to_dict().items() if key not in keys})
