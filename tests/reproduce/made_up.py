"""Exhibits with made-up runs: nothing is trained."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from lgdgcn.config import resolve
from lgdgcn.reproduce.cells import Cell
from lgdgcn.reproduce.exhibits import Entry, ResultRow, ResultTable, RowGroup
from lgdgcn.reproduce.results import Results, Run


def cell(graph: str = "cora", model: str = "lgdgcn", *, seeds: int = 10, **settings: Any) -> Cell:
    split = settings.pop("split", "standard")
    keeps_units = settings.pop("keeps_units", False)
    return Cell(graph, model, resolve(settings), tuple(range(seeds)), split, keeps_units)


def fill(
    results: Results,
    cell: Cell,
    scores: dict[str, float],
    *,
    std: float = 0.5,
    only: Sequence[int] | None = None,
    local: dict[str, float] | None = None,
    factors: dict[str, float] | None = None,
) -> Cell:
    """Finish the cell's seeds with scores in per cent around the given means."""
    rng = random.Random(cell.key)
    seeds = list(cell.seeds if only is None else only)
    waves = [rng.gauss(0, 1) for _ in seeds]
    middle = sum(waves) / len(waves) if waves else 0.0
    size = (sum((wave - middle) ** 2 for wave in waves) / max(len(waves) - 1, 1)) ** 0.5 or 1.0
    runs = []
    for seed, wave in zip(seeds, waves, strict=True):
        shift = std * (wave - middle) / size  # exactly this mean and deviation
        test = {name: (value + shift) / 100 for name, value in scores.items()}
        off = {name: (value + shift) / 100 for name, value in (local or {}).items()}
        runs.append(
            Run(
                seed,
                "data",
                100,
                1.0,
                {"test": dict(test), "val": dict(test)},
                {"test": dict(off), "val": dict(off)} if local else {},
                factors or {},
            )
        )
    results.add(cell, runs)
    return cell


def accuracy_row(
    results: Results,
    name: str,
    cells: Sequence[Cell],
    means: Sequence[float | None],
    paper: Sequence[tuple[float, float | None] | None],
    std: float = 0.5,
) -> ResultRow:
    """A row of finished cells; ``METHOD (variant)`` is a variant of METHOD."""
    entries = []
    for one, mean, printed in zip(cells, means, paper, strict=True):
        if mean is not None:
            fill(results, one, {"accuracy": mean}, std=std)
        entries.append(Entry(one, "accuracy", printed))
    return ResultRow(name, name, tuple(entries), name.partition(" (")[0])


def table(
    columns: Sequence[str],
    *rows: ResultRow,
    name: str = "table2",
    group: str = "standard",
    note: str = "",
) -> ResultTable:
    """A table of one group."""
    own = RowGroup(group, f"The {group} group", tuple(rows))
    return ResultTable(name, f"Title of {name}", tuple(columns), (own,), note)


def units(
    nodes: int = 300, factors: int = 4, channels: int = 8, layers: int = 2, strength: float = 1.0
) -> dict[str, Any]:
    """Units whose channels share a wave inside each factor: the stronger, the more block-wise."""
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for layer in range(1, layers + 1):
        wave = rng.normal(size=(nodes, factors, 1))
        noise = rng.normal(size=(nodes, factors, channels))
        center = 3 * rng.normal(size=(1, factors, channels))
        arrays[f"units_{layer}"] = (center + strength * wave + noise).astype(np.float32)
    arrays["y"] = rng.integers(-1, 6, nodes)
    arrays["test_mask"] = rng.random(nodes) < 0.3
    arrays["y_factor"] = rng.integers(0, 16, (nodes, factors))
    return arrays
