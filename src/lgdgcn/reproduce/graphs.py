"""The graphs of the cells, read once each, and the paper's two tables of their statistics."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.reproduce.cells import Cell
from lgdgcn.reproduce.exhibits import read_toml

__all__ = ["DataTable", "Graphs", "connection_probabilities", "data_tables"]

CITATION_ROWS = {  # by the name in paper/statistics.toml
    "nodes": "nodes",
    "neighbours": "average neighbours",
    "features": "features",
    "classes": "classes",
    "train": "training nodes",
    "validation": "validation nodes",
    "test": "test nodes",
}


class Graphs:
    """Reads graphs; splits of one graph share its features and edges.

    Args:
        root: Folder to look for data sets in first.
    """

    def __init__(self, root: str | None = None) -> None:
        self.root = root
        self._graphs: dict[tuple[str, str, int], Data] = {}
        self._fingerprints: dict[tuple[str, str, int], str] = {}

    def graph(self, cell: Cell, seed: int) -> Data:
        """The canonical graph of a training, on the CPU."""
        key = self._key(cell, seed)
        if key not in self._graphs:
            graph = GraphSource(cell.graph, self.root, cell.split).load(seed)
            for (name, _, _), other in self._graphs.items():
                if name == cell.graph:  # only the split differs
                    graph.x, graph.edge_index = other.x, other.edge_index
                    break
            self._graphs[key] = graph
        return self._graphs[key]

    def fingerprint(self, cell: Cell, seed: int) -> str:
        """Hash of the graph and split of a training."""
        key = self._key(cell, seed)
        if key not in self._fingerprints:
            self._fingerprints[key] = fingerprint(self.graph(cell, seed))
        return self._fingerprints[key]

    def _key(self, cell: Cell, seed: int) -> tuple[str, str, int]:
        varies = GraphSource(cell.graph, self.root, cell.split).varies_with_seed
        return cell.graph, cell.split, seed if varies else 0


@dataclass(frozen=True)
class DataTable:
    """A table of plain text; the first cell of every row names it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def data_tables(root: str | None = None, graphs: Collection[str] | None = None) -> list[DataTable]:
    """Describe the data: every number of the paper beside that of our graphs.

    Args:
        root: Folder to look for data sets in.
        graphs: Names of the graphs that matter; all of the paper's by default. Graphs that have
            nothing to do with them are left out, and not read.
    """
    described = read_toml("statistics")
    names = None if graphs is None else {graph.partition(":")[0] for graph in graphs}

    def wanted(graph: str) -> bool:
        return names is None or graph.partition(":")[0] in names

    tables = []
    real, synthetic = described["real"], described["synthetic"]
    if columns := [index for index, graph in enumerate(real["graphs"]) if wanted(graph)]:
        tables.append(_citation_graphs(real, columns, root))
    kinds = {"published": "published graphs", "generated": "our generator"}
    shown = {kind: name for kind, name in kinds.items() if any(map(wanted, synthetic[kind]))}
    if shown:
        tables.append(_synthetic_graphs(synthetic, shown, root))
    return tables


def _citation_graphs(table: dict[str, Any], columns: list[int], root: str | None) -> DataTable:
    header, counts = [""], {}
    for index in columns:
        header += [f"{table['columns'][index]}, {whose}" for whose in ("paper", "here")]
        data = GraphSource(table["graphs"][index], root).load()
        counts[index] = {
            "nodes": data.x.size(0),
            "neighbours": f"{_average_degree(data):.1f}",
            "features": data.x.size(1),
            "classes": int(data.y.max()) + 1,
            "train": int(data.train_mask.sum()),
            "validation": int(data.val_mask.sum()),
            "test": int(data.test_mask.sum()),
        }
    rows = []
    for key, name in CITATION_ROWS.items():
        pairs = [(table[key][index], str(counts[index][key])) for index in columns]
        rows.append([name, *(number for pair in pairs for number in pair)])
    return DataTable(table["title"], header, rows)


def _synthetic_graphs(table: dict[str, Any], kinds: dict[str, str], root: str | None) -> DataTable:
    measured: dict[str, list[dict[str, str]]] = {kind: [] for kind in kinds}
    for kind, found in measured.items():
        for graph in table[kind]:
            data = GraphSource(graph, root).load()
            p, q = connection_probabilities(data.edge_index, data.y_factor)
            neighbours = f"{_average_degree(data):.1f}"
            found.append({"p": f"{p:.3f}", "q": f"{q:.1e}", "neighbours": neighbours})
    rows = []
    for key, paper, here in (
        ("p", "p, paper", "p, measured in {}"),
        ("q", "q, paper", "q, measured in {}"),
        ("neighbours", "average neighbours, paper", "average neighbours, {}"),
    ):
        rows.append([paper, *table[key]])
        for kind, found in measured.items():
            rows.append([here.format(kinds[kind]), *(one[key] for one in found)])
    header = ["", *(f"{factors} factors" for factors in table["factors"])]
    return DataTable(table["title"], header, rows)


def _average_degree(data: Data) -> float:
    return float(data.edge_index.size(1) / data.x.size(0))


def connection_probabilities(edge_index: Tensor, y_factor: Tensor) -> tuple[float, float]:
    """Estimate p and q of a graph that is the union of one random graph per factor.

    Args:
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        y_factor: Class of every node in every factor. Shape ``[N, F]``.

    Returns:
        Probability that a factor connects two nodes of its same class (p), of different ones (q).
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
    return p, q
