"""The graphs of all cells, read once each."""

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.reproduce.cell import Cell
from lgdgcn.train.trained import prepared_alike

__all__ = ["Graphs", "NamedGraph"]


class NamedGraph(GraphSource):
    """A data set by name, even where a folder of that name lies in the working folder."""

    @property
    def is_folder(self) -> bool:
        """Whether the address is a path."""
        return "/" in self.dataset


class Graphs:
    """Reads graphs; splits of one graph share its features and edges.

    Args:
        root: Folder to look for data sets in first.
    """

    def __init__(self, root: str | None = None) -> None:
        self.root = root
        self._read: dict[tuple[str, str, int], Data] = {}
        self._prints: dict[tuple[str, str, int], str] = {}

    def graph(self, cell: Cell, seed: int) -> Data:
        """The canonical graph of a training, on the CPU."""
        key = self._key(cell, seed)
        if key not in self._read:
            graph = NamedGraph(cell.graph, self.root, cell.split).load(seed)
            for (address, _, _), other in self._read.items():
                if address == cell.graph:  # only the split differs
                    graph.x, graph.edge_index = other.x, other.edge_index
                    break
            self._read[key] = graph
        return self._read[key]

    def fingerprint(self, cell: Cell, seed: int) -> str:
        """Hash of a training's graph and split."""
        key = self._key(cell, seed)
        if key not in self._prints:
            self._prints[key] = fingerprint(self.graph(cell, seed))
        return self._prints[key]

    def ready(
        self, jobs: list[tuple[Cell, int]], settings: Settings, device: torch.device
    ) -> list[Data]:
        """The graphs of trainings on one graph, on the device, its features held once."""
        return prepared_alike([self.graph(cell, seed) for cell, seed in jobs], settings, device)

    def _key(self, cell: Cell, seed: int) -> tuple[str, str, int]:
        varies = NamedGraph(cell.graph, self.root, cell.split).varies_with_seed
        return cell.graph, cell.split, seed if varies else 0
