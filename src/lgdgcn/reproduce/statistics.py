"""The paper's two tables of data statistics, each value beside what our graphs have."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.reproduce.exhibits import Facts
from lgdgcn.reproduce.graphs import NamedGraph
from lgdgcn.reproduce.paper import read
from lgdgcn.train.task import Task

__all__ = ["Probabilities", "connection_probabilities", "statistics"]


def statistics(root: str | None = None, graphs: Collection[str] | None = None) -> list[Facts]:
    """Describe the data.

    Args:
        root: Folder to look for data sets in.
        graphs: Addresses of the graphs that matter; all of the paper's by default. What none of
            them has to do with is left out, and not read.
    """
    described = read("statistics")
    names = None if graphs is None else {graph.partition(":")[0] for graph in graphs}

    def asked(address: str) -> bool:
        return names is None or address.partition(":")[0] in names

    tables = [
        _real(described["real"], root, asked),
        _synthetic(described["synthetic"], root, asked),
    ]
    return [table for table in tables if table is not None]


def _real(table: dict[str, Any], root: str | None, asked: Callable[[str], bool]) -> Facts | None:
    places = [place for place, graph in enumerate(table["graphs"]) if asked(graph)]
    if not places:
        return None
    header = [""]
    for place in places:
        header += [f"{table['columns'][place]}, {whose}" for whose in ("paper", "here")]
    columns = {place: _counts(NamedGraph(table["graphs"][place], root).load()) for place in places}
    names = {
        "nodes": "nodes",
        "neighbours": "average neighbours",
        "features": "features",
        "classes": "classes",
        "train": "training nodes",
        "validation": "validation nodes",
        "test": "test nodes",
    }
    rows = []
    for key, name in names.items():
        row = [name]
        for place in places:
            row += [table[key][place], columns[place][key]]
        rows.append(row)
    return Facts(table["title"], header, rows)


def _counts(data: Data) -> dict[str, str]:
    numbers = {
        "nodes": data.x.size(0),
        "features": data.x.size(1),
        "classes": Task.of(data).outputs,
        "train": int(data.train_mask.sum()),
        "validation": int(data.val_mask.sum()),
        "test": int(data.test_mask.sum()),
    }
    neighbours = f"{_average_degree(data):.1f}"
    return {"neighbours": neighbours, **{key: str(value) for key, value in numbers.items()}}


def _synthetic(
    table: dict[str, Any], root: str | None, asked: Callable[[str], bool]
) -> Facts | None:
    names = {"published": "published graphs", "generated": "our generator"}
    measured = {
        name: [_measured(NamedGraph(graph, root).load()) for graph in table[kind]]
        for kind, name in names.items()
        if any(map(asked, table[kind]))
    }
    if not measured:
        return None
    rows = [["p, paper", *table["p"]]]
    for name, graphs in measured.items():
        rows.append([f"p, measured in {name}", *(f"{p:.3f}" for p, _, _ in graphs)])
    rows.append(["q, paper", *table["q"]])
    for name, graphs in measured.items():
        rows.append([f"q, measured in {name}", *(f"{q:.1e}" for _, q, _ in graphs)])
    rows.append(["average neighbours, paper", *table["neighbours"]])
    for name, graphs in measured.items():
        rows.append([f"average neighbours, {name}", *(f"{degree:.1f}" for *_, degree in graphs)])
    header = ["", *(f"{factors} factors" for factors in table["factors"])]
    return Facts(table["title"], header, rows)


def _measured(data: Data) -> tuple[float, float, float]:
    p, q = connection_probabilities(data.edge_index, data.y_factor)
    return p, q, _average_degree(data)


def _average_degree(data: Data) -> float:
    return float(data.edge_index.size(1) / data.x.size(0))


class Probabilities(NamedTuple):
    """How likely a factor connects a pair of one class (p) and of different classes (q)."""

    p: float
    q: float


def connection_probabilities(edge_index: Tensor, y_factor: Tensor) -> Probabilities:
    """Estimate p and q of a graph that is the union of one random graph per factor.

    Args:
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        y_factor: Class of every node in every factor. Shape ``[N, F]``.
    """
    factors = y_factor.size(1)
    shared = (y_factor.unsqueeze(0) == y_factor.unsqueeze(1)).sum(-1)  # [N, N]
    pairs = torch.ones_like(shared, dtype=torch.bool).triu(1)
    edges = torch.zeros_like(pairs)
    edges[edge_index[0], edge_index[1]] = True
    none = edges[pairs & (shared == 0)].double().mean().item()  # of all factors together
    q = 1 - (1 - none) ** (1 / factors)
    one = edges[pairs & (shared == 1)].double().mean().item()
    p = 1 - (1 - one) / (1 - q) ** (factors - 1)
    return Probabilities(p, q)
