"""The many valid ways to write a graph down as a folder."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

from attack.graphs import Graph, hostile_name
from attack.rules import ID, LABEL, SOURCE, SPLIT, TARGET, as_features, is_number, labels_of
from attack.text_files import draw_style, write_text_table

__all__ = ["Written", "write_edges_alone", "write_graph"]


@dataclass
class Written:
    """A graph in a folder, as a reader must see it.

    Attributes:
        graph: With the ids that count: row numbers where the file names none.
        x: Features in the type they must come back in; ``None`` where none were written.
        plain: Where x is not known as a whole, those of its columns that are plain numbers.
        excuses: Why this folder, though valid, may be refused.
    """

    graph: Graph
    x: np.ndarray | None
    excuses: list[str] = field(default_factory=list)
    plain: dict[str, np.ndarray] = field(default_factory=dict)


def write_graph(folder: Path, graph: Graph, random: Random) -> Written:
    """Write a graph in a random dialect."""
    nodes = random.choice(["text", "text", "text", "parquet", "npz"])
    written = _NODES[nodes](folder, graph, random)
    edges = random.choice(["text", "text", "text", "parquet", "npz"])
    _EDGES[edges](folder, written, random)
    return written


# Nodes


def _node_columns(graph: Graph, random: Random) -> tuple[Graph, list[tuple[str, list[Any]]]]:
    """The columns of a nodes table in any order, under any of their names; the graph in that order.

    A column is its name and its cells: text, or numbers for a feature.
    """
    columns: list[tuple[str, list[Any]]] = []
    if not _counted(graph.ids) or random.random() < 0.5:
        columns.append((_cased(random.choice(ID), random), graph.ids))
    if graph.labels is not None:
        columns.append((_cased(random.choice(LABEL), random), graph.labels))
    if graph.splits is not None:
        cells = [random.choice([n for n, s in SPLIT.items() if s == part] or [""])
                 for part in graph.splits]  # fmt: skip
        columns.append((_cased("split", random), [_cased(cell, random) for cell in cells]))
    taken = {name.lower() for name, _ in columns}
    names = {}  # of the label sets, by the list of their cells
    for name, cells in (graph.label_sets or {}).items():
        names[id(cells)] = name
        columns.append((random.choice(["label:", "Label:"]) + name, cells))
    columns += [(_feature_name(taken, random), cells) for cells in graph.x.T.tolist()]
    ordered = random.sample(columns, len(columns))
    graph = replace(
        graph,
        x=np.array([cells for _, cells in ordered if not isinstance(cells[0], str)]).T,
        label_sets={names[id(cells)]: cells for _, cells in ordered if id(cells) in names} or None,
    )
    return graph, ordered


def _counted(ids: list[str]) -> bool:
    """Whether rows are named by their numbers, so that no id column is needed."""
    return ids == [str(i) for i in range(len(ids))]


def _feature_name(taken: set[str], random: Random) -> str:
    """A name that is neither taken nor one of those with a meaning."""
    meanings = {*ID, *LABEL, "split"}
    while True:
        name = hostile_name(random) if random.random() < 0.5 else f"f{len(taken)}"
        lower = name.strip().lower()
        if lower not in taken | meanings and not lower.startswith(("label:", "label_")):
            taken.add(lower)
            return name


def _nodes_text(folder: Path, graph: Graph, random: Random) -> Written:
    graph, columns = _node_columns(graph, random)
    if all(is_number(name) for name, _ in columns):  # a header of numbers alone is refused
        columns = [(f"f {name}", cells) for name, cells in columns]
    if len(columns) == 1:  # a semicolon in it would divide cells
        columns = [(name.replace(";", ":"), cells) for name, cells in columns]
    header = [name for name, _ in columns]
    cells = [[_number_text(cell, random) for cell in column] for _, column in columns]
    rows = [list(row) for row in zip(*cells, strict=True)]
    style = draw_style(random)
    if len(header) == 1:  # neither blank lines nor tabs can tell cells apart
        style = replace(style, suffix=style.suffix.replace("tsv", "csv"), blank_lines=0)
    write_text_table(folder / "nodes", [header, *rows], style, random)
    return Written(graph, as_features(graph.x.tolist()))


def _number_text(cell: str | float, random: Random) -> str:
    if isinstance(cell, str):
        return cell
    forms = [repr(cell), f"{cell:.17g}", f"{cell:.17e}", f"{cell:+.17g}", f"{cell:.17G}"]
    if cell == int(cell):
        forms += [str(int(cell)), f"{int(cell)}."]
    return random.choice(forms)


def _nodes_parquet(folder: Path, graph: Graph, random: Random) -> Written:
    graph, columns = _node_columns(graph, random)
    arrays = [_arrow(cells, random) for _, cells in columns]
    table = pa.Table.from_arrays(arrays, names=[name for name, _ in columns])
    _write_parquet(table, folder / "nodes.parquet", random)
    return Written(graph, as_features(graph.x.tolist()))


def _arrow(cells: list[Any], random: Random) -> pa.Array:
    """A column in any type that holds its cells exactly; nothing and null mean the same."""
    if not all(isinstance(cell, str) for cell in cells):
        whole = all(cell == int(cell) and abs(cell) < 2**53 for cell in cells)
        kinds = [pa.float64()] + [pa.int64()] * whole
        return pa.array([int(c) if whole else c for c in cells], random.choice(kinds))
    values = [None if cell == "" and random.random() < 0.5 else cell for cell in cells]
    plain = [cell for cell in cells if cell]
    if plain and all(map(_is_whole, plain)) and random.random() < 0.5:
        return pa.array([int(cell) if cell else None for cell in cells], pa.int64())
    array = pa.array(values, random.choice([pa.string(), pa.large_string()]))
    return array.dictionary_encode() if random.random() < 0.2 else array


def _is_whole(cell: str) -> bool:
    return re.fullmatch("0|[1-9][0-9]{0,17}", cell) is not None


def _write_parquet(table: pa.Table, path: Path, random: Random) -> None:
    how = random.choice(["none", "snappy", "gzip"])
    pq.write_table(table, path, compression=how, row_group_size=random.choice([1, 3, 1000]))


def _nodes_npz(folder: Path, graph: Graph, random: Random) -> Written:
    arrays: dict[str, Any] = {}
    x = graph.x.astype(random.choice([np.float32, np.float64]))
    if (x == x.round()).all() and np.abs(x).max() < 2**53 and random.random() < 0.5:
        arrays["x"], x = x.astype(np.int64), x.astype(np.float32)
    elif random.random() < 0.4:
        csr = scipy.sparse.csr_matrix(x)
        parts = {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr, "shape": csr.shape}
        arrays |= {f"x_{name}": part for name, part in parts.items()}
    else:
        arrays["x"] = x
    if not _counted(graph.ids) or random.random() < 0.5:
        arrays["ids"] = np.array(graph.ids)
    arrays |= _npz_labels(graph, random)
    if graph.splits is not None:
        for split in ("train", "val", "test"):
            mask = np.array([part == split for part in graph.splits])
            as_index = random.random() < 0.5
            name, value = ("idx", mask.nonzero()[0]) if as_index else ("mask", mask)
            arrays[f"{split}_{name}"] = value
    save = random.choice([np.savez, np.savez_compressed])
    save(folder / "nodes.npz", **arrays)
    return Written(graph, x)


def _npz_labels(graph: Graph, random: Random) -> dict[str, Any]:
    if graph.label_sets is not None:
        number = {"": random.choice([np.nan, -1]), "-1": -1, "0": 0, "1": 1}
        y = [[number[cell] for cell in row] for row in graph.label_rows]
        return {"y": np.array(y), "classes": np.array(list(graph.label_sets))}
    if graph.labels is None:
        return {}
    labels = labels_of(graph.labels)
    if all(isinstance(label, int | None) for label in labels):
        return {"y": np.array([-1 if label is None else label for label in labels])}
    names = sorted({label for label in labels if label is not None})
    if random.random() < 0.3:
        y = [-1 if label is None else names.index(label) for label in labels]
        return {"y": np.array(y), "classes": np.array(names)}
    return {"y": np.array([label or "" for label in labels])}


# Edges


def _edges_text(folder: Path, written: Written, random: Random) -> None:
    rows, style = _edge_rows(written.graph, random), draw_style(random)
    weights = _weights(rows)
    if any(name.startswith("#") for name in written.graph.ids):
        style = replace(style, comments=())  # a line that begins with a node is none
    header = _edge_header(written, rows, random)
    written.graph.weights = None if header is None else weights
    hash_first = False
    if header is None and rows and rows[0][0].startswith("#"):
        hash_first = random.random() < 0.5
        if hash_first:
            written.excuses.append("a headerless edge list that begins with #")
    table = rows if header is None else [header, *rows]
    write_text_table(folder / "edges", table, style, random, hash_first=hash_first)


def write_edges_alone(folder: Path, graph: Graph, random: Random) -> Written:
    """Without a nodes file the nodes are those the edges name, in their order."""
    order = list(dict.fromkeys(end for edge in graph.edges for end in edge))
    place = {node: i for i, node in enumerate(order)}
    ids = [graph.ids[node] for node in order]
    edges = [(place[a], place[b]) for a, b in graph.edges]
    header = [random.choice(SOURCE), random.choice(TARGET)]
    rows = [header, *([ids[a], ids[b]] for a, b in edges)]
    write_text_table(folder / "edges", rows, draw_style(random), random)
    return Written(Graph(ids, np.zeros((len(ids), 0)), edges), None)


def _edge_rows(graph: Graph, random: Random) -> list[list[str]]:
    """Source, target and perhaps a weight."""
    extra = random.random() < 0.2
    pairs = [[graph.ids[a], graph.ids[b]] for a, b in graph.edges]
    return [[*pair, f"{random.random():.3g}"] if extra else pair for pair in pairs]


def _weights(rows: list[list[str]]) -> list[float] | None:
    return [float(row[2]) for row in rows] if rows and len(rows[0]) > 2 else None


def _edge_header(written: Written, rows: list[list[str]], random: Random) -> list[str] | None:
    """Names of the columns, whose order it may change, or none."""
    ids, width = set(written.graph.ids), len(rows[0]) if rows else 2
    kind = random.choice(["words", "words", "none", "other"])
    words = [_cased(random.choice(SOURCE), random), _cased(random.choice(TARGET), random)]
    if kind == "none":
        first = [cell.lower() for cell in rows[0]] if rows else []
        if set(first) & set(SOURCE) and set(first) & set(TARGET):
            written.excuses.append("a first edge that reads like a header")
        return None
    if kind == "other":
        words = ["who", "whom"]
        while ids & set(words):
            words = [word + "_" for word in words]
    header = [*words, "weight"][:width]
    if ids >= set(header[:2]):
        written.excuses.append("a header whose words are nodes")
    if kind == "words" and random.random() < 0.3:
        order = random.sample(range(width), width)
        header = [header[i] for i in order]
        rows[:] = [[row[i] for i in order] for row in rows]
        if ids >= set(header[:2]):
            written.excuses.append("a header whose words are nodes")
    return header


def _edges_parquet(folder: Path, written: Written, random: Random) -> None:
    rows = _edge_rows(written.graph, random)
    written.graph.weights = _weights(rows)
    header = [random.choice(SOURCE), random.choice(TARGET), "weight"]
    if random.random() < 0.3:
        header[:2] = ["who", "whom"]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], []]
    arrays = [_arrow(column, random) if column else pa.array([], pa.string()) for column in columns]
    table = pa.Table.from_arrays(arrays, names=header[: len(columns)])
    _write_parquet(table, folder / "edges.parquet", random)


def _edges_npz(folder: Path, written: Written, random: Random) -> None:
    kind = random.choice([np.int64, np.int32, np.uint8])
    pairs = np.array(written.graph.edges, dtype=kind).reshape(-1, 2).T
    np.savez(folder / "edges.npz", edge_index=pairs)


def _cased(name: str, random: Random) -> str:
    return random.choice([name, name, name.upper(), name.title()])


_NODES = {"text": _nodes_text, "parquet": _nodes_parquet, "npz": _nodes_npz}
_EDGES = {"text": _edges_text, "parquet": _edges_parquet, "npz": _edges_npz}
