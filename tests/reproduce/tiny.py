"""A graph and settings that train in a moment."""

from typing import Any

from lgdgcn.config import Settings
from lgdgcn.reproduce.cells import Cell

GRAPH = "synthetic:nodes=60,classes=3,factors=2,average_degree=8"


def cell(
    model: str = "lgdgcn",
    seeds: tuple[int, ...] = (0, 1),
    *,
    graph: str = GRAPH,
    split: str = "standard",
    keeps_units: bool = False,
    **settings: Any,
) -> Cell:
    tiny = {"factors": 2, "hidden_channels": 8, "iterations": 2, "epochs": 4, "lr": 0.05}
    return Cell(graph, model, Settings(**{**tiny, **settings}), seeds, split, keeps_units)
