"""The graphs that both trees read: written once as folders of CSV files, the same in every run."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["GRAPHS", "typed_folder", "write_graph"]

Columns = dict[str, Sequence[Any]]
CLASSES = ("red", "green", "blue")
WORDS = (("apple", "cherry", "plum"), ("fern", "moss", "reed"), ("iron", "steel", "zinc"))
NODES = 120


def write_graph(folder: Path, name: str) -> Path:
    """Write a graph of :data:`GRAPHS` below a folder, unless it is there; returns its folder."""
    return _written(folder / name, *GRAPHS[name]())


def typed_folder(folder: Path, arrays: Path, share: float) -> Path:
    """Write a graph with known types of edges as a folder that shows some of them.

    Args:
        folder: Folder to make.
        arrays: The ``.npz`` file of the graph.
        share: Of the edges that have one type, how many show it; all others show none.
    """
    with np.load(arrays, allow_pickle=False) as graph:
        ends, types = graph["edge_index"], graph["edge_type"]
        once = ends[0] < ends[1]
        ends, types, names = ends[:, once], types[once], graph["edge_type_names"]
        labels = [f"class {y}" if y >= 0 else "" for y in graph["y"]]
    single = np.flatnonzero(types.sum(1) == 1)
    shown = np.zeros(len(types), dtype=bool)
    drawn = np.random.default_rng(0).permutation(single)[: round(share * len(single))]
    shown[drawn] = True
    edges: Columns = {"source": ends[0], "target": ends[1]}
    if share:
        kinds = names[types.argmax(1)]
        edges["type"] = [kind if known else "" for kind, known in zip(kinds, shown, strict=True)]
    return _written(folder, {"id": range(len(labels)), "label": labels}, edges)


def _written(folder: Path, nodes: Columns, edges: Columns) -> Path:
    if not (folder / "edges.csv").is_file():  # which is written last
        folder.mkdir(parents=True, exist_ok=True)
        for name, columns in (("nodes.csv", nodes), ("edges.csv", edges)):
            part = folder / f"{name}.part"
            with part.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(zip(*columns.values(), strict=True))
            part.rename(folder / name)
    return folder


def _planted(nodes: int = NODES, degree: int = 6) -> tuple[Any, Any, Any, Any, Columns]:
    """Random numbers, two hidden groups of every node, the reason of every edge, and its ends."""
    rng = np.random.default_rng(7)
    groups = np.stack([np.arange(nodes) % 3, rng.integers(3, size=nodes)])
    pairs: dict[tuple[int, int], int] = {(0, 3): 0}  # the edge that is explained
    while len(pairs) < nodes * degree // 2:
        a, reason = int(rng.integers(nodes)), int(rng.integers(2))
        alike = np.flatnonzero(groups[reason] == groups[reason, a])
        b = int(rng.choice(alike)) if rng.random() < 0.9 else int(rng.integers(nodes))
        if a != b:
            pairs.setdefault((min(a, b), max(a, b)), reason)
    ends = np.array([*pairs])
    edges: Columns = {"source": [f"n{a}" for a in ends[:, 0]]}
    edges["target"] = [f"n{b}" for b in ends[:, 1]]
    return rng, groups, np.array([*pairs.values()]), ends, edges


def _nodes(rng: Any, groups: Any) -> Columns:
    count = groups.shape[1]
    columns: Columns = {"id": [f"n{i}" for i in range(count)]}
    for number in range(6):
        signal = (groups[number % 2] == number // 2) * 1.5
        columns[f"f{number}"] = np.round(rng.normal(size=count) + signal, 4)
    columns["label"] = [CLASSES[group] for group in groups[0]]
    columns["split"] = [("train", "val", "test")[i // 3 % 3] for i in range(count)]
    return columns


def _single_label() -> tuple[Columns, Columns]:
    rng, groups, _, _, edges = _planted()
    return _nodes(rng, groups), edges


def _multi_label() -> tuple[Columns, Columns]:
    rng, groups, _, _, edges = _planted()
    nodes = _nodes(rng, groups)
    second = rng.random(NODES) < 0.7
    nodes["label"] = [
        CLASSES[a] + (f"|tall {b}" if both else "")
        for a, b, both in zip(*groups, second, strict=True)
    ]
    return nodes, edges


def _weighted() -> tuple[Columns, Columns]:
    rng, groups, reasons, _, edges = _planted()
    return _nodes(rng, groups), edges | {"weight": np.round(rng.random(len(reasons)) + 0.1, 3)}


def _columns() -> tuple[Columns, Columns]:
    """Categories, numbers with gaps, dates and free text."""
    rng, groups, _, _, edges = _planted()
    plain = _nodes(rng, groups)
    nodes: Columns = {"id": plain["id"]}
    nodes["city"] = [("Oslo", "Rome", "Kyiv")[group] for group in groups[1]]
    ages = rng.integers(18, 80, size=NODES)
    nodes["age"] = ["" if i % 11 == 0 else age for i, age in enumerate(ages)]
    nodes["joined"] = [f"20{10 + i % 9}-0{1 + i % 7}-1{i % 10}" for i in range(NODES)]
    nodes["about"] = [_sentence(rng, group) for group in groups[0]]
    return nodes | {name: plain[name] for name in ("label", "split")}, edges


def _sentence(rng: Any, group: int) -> str:
    own = rng.choice(WORDS[group], size=4)
    other = rng.choice([word for words in WORDS for word in words], size=3)
    return " ".join(rng.permutation([*own, *other, "and", "the", "of"]))


def _edge_types() -> tuple[Columns, Columns]:
    rng, groups, reasons, _, edges = _planted()
    named = rng.random(len(reasons)) < 0.4
    types = [
        f"type {reason}" if known else "" for reason, known in zip(reasons, named, strict=True)
    ]
    return _nodes(rng, groups), edges | {"type": types}


def _cora_sized() -> tuple[Columns, Columns]:
    """2,708 nodes, 5,278 edges, 1,433 words of which a node has about 18, 7 classes."""
    rng = np.random.default_rng(7)
    count, words, classes = 2708, 1433, 7
    y = rng.integers(classes, size=count)
    own = np.arange(words) % classes == y[:, None]
    x = rng.random((count, words)) < np.where(own, 0.04, 0.0078)
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < 5278:
        a = int(rng.integers(count))
        alike = rng.random() < 0.81
        b = int(rng.choice(np.flatnonzero(y == y[a]))) if alike else int(rng.integers(count))
        if a != b:
            pairs.setdefault((min(a, b), max(a, b)))
    ends = np.array([*pairs])
    nodes: Columns = {"id": range(count)}
    nodes |= {f"w{number}": x[:, number].astype(int) for number in range(words)}
    return nodes | {"label": [f"c{one}" for one in y]}, {"source": ends[:, 0], "target": ends[:, 1]}


GRAPHS: dict[str, Callable[[], tuple[Columns, Columns]]] = {
    "single-label": _single_label,
    "multi-label": _multi_label,
    "weighted": _weighted,
    "columns": _columns,
    "edge-types": _edge_types,
    "cora-sized": _cora_sized,
}
