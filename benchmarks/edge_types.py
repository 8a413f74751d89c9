"""The model of edges beside references and controls on graphs with known types: a table.

    PYTHONPATH=src python benchmarks/edge_types.py [GRAPH ...] [--data FOLDER]
        [--levels none chosen 0.05 0.2] [--seeds N] [--jobs N] [--no-references]

Graphs are those of ``typed_graphs.py`` and, from a folder with the files, airlines and imdb_links.
Every result is a line of JSON on stderr, too. "none" gives the number of types, "chosen" does not,
a number is the share shown.
"""

import argparse
import json
import os
import sys
import time
import warnings
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: a process has one core

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from typed_graphs import GRAPHS, Typed

from lgdgcn.reasons import controls, fit_edges, references
from lgdgcn.reasons.controls import Method
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.fit import known_labels
from lgdgcn.reasons.scores import edge_type_scores
from lgdgcn.reasons.shown import shown_types
from lgdgcn.reasons.structure import Structure, describe_edges

SLOW = 20_000  # pairs above which references that take minutes are left out
WITHOUT: dict[str, Method] = {
    "random node vectors": controls.random_node_vectors(),
    "line spectral, 0": references.line_spectral(regularised=False),
    "line spectral, mean": references.line_spectral(regularised=True),
    "common neighbours": references.shape_clusters,
    "link communities": references.link_communities,
}
WITH: dict[str, Method] = {
    "majority": controls.majority,
    "link communities": references.link_communities,
    "naive Bayes": references.naive_bayes,
    "regression": references.logistic_regression(),
    "boosting": references.boosting(),
}
CONTROLS = ("random node vectors", "majority")


def as_data(graph: Typed) -> Data:
    """The graph with both directions of each pair, sorted."""
    ends = torch.from_numpy(np.concatenate([graph.ends, graph.ends[::-1]], 1))
    order = (ends[0] * graph.nodes + ends[1]).argsort()
    types = torch.from_numpy(graph.types).repeat(2, 1)[order]
    data = Data(edge_index=ends[:, order], edge_type=types, num_nodes=graph.nodes)
    data.features, data.labels = graph.x, graph.y
    return data


def real_graph(folder: Path, name: str) -> Data:
    """A graph of EDGE_TYPES.md, with its node labels where a node has one."""
    with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
        data = Data(
            edge_index=torch.from_numpy(file["edge_index"]),
            edge_type=torch.from_numpy(file["edge_type"].astype(np.float64)),
            num_nodes=len(file["y"]),
        )
        data.labels = file["y"] if file["y"].ndim == 1 else None
    return data


@cache
def graph_of(folder: Path | None, name: str) -> Data:
    """A planted graph or, from a folder, a real one."""
    if folder is not None and (folder / f"{name}.npz").exists():
        return real_graph(folder, name)
    return as_data(GRAPHS[name](np.random.default_rng(0)))


@cache
def structure_of(folder: Path | None, name: str) -> Structure:
    """What a graph says of its edges: once for all shares and seeds."""
    data = graph_of(folder, name)
    labels = known_labels(data.get("labels"), data.num_nodes)
    edges, count = Edges.of_graph(data), data.edge_type.size(1)
    return describe_edges(edges, count, x=data.get("features"), labels=labels)


def ours(
    data: Data, shown: Tensor, seed: int, structure: Structure | None, chosen: bool
) -> tuple[Any, dict[str, Any]]:
    """Probabilities of the edges and what was chosen."""
    more: dict[str, Any] = {"y": data.get("labels"), "structure": structure}
    if structure is not None:
        more["shown"] = shown
    elif not chosen:
        more["num_factors"] = shown.size(1)
    found = fit_edges(data.edge_index, data.num_nodes, seed=seed, **more)
    choice = found.about["choice"]
    return found.probability, {"cliques": choice["cliques"], "count": choice["num_factors"]}


def score(task: tuple[Path | None, str, str, str, int]) -> dict[str, Any]:
    """One run of one method, with its scores and seconds."""
    warnings.filterwarnings("ignore")
    folder, name, level, method, seed = task
    data = graph_of(folder, name)
    share = float(level) if level not in ("none", "chosen") else 0.0
    shown = shown_types(data.edge_index, data.edge_type, share, seed)
    chosen: dict[str, Any] = {}
    if method == "ours":
        structure = structure_of(folder, name) if share else None
        started = time.process_time()
        found, chosen = ours(data, shown, seed, structure, level == "chosen")
    else:
        started = time.process_time()
        found = (WITHOUT | WITH)[method](data, shown, seed)
    seconds = time.process_time() - started
    edges = Edges.of_graph(data)
    types, hidden = edges.once(data.edge_type), ~edges.once(shown).any(1)
    scores = edge_type_scores(found, types, named=share > 0, scored=hidden)
    names = ("accuracy", "balanced", "information", "calibration_error")
    kept = {one: getattr(scores, one) for one in names}
    about = {"graph": name, "level": level, "seed": seed, "method": method}
    return {**about, **kept, "seconds": seconds, **chosen}


def tasks_of(
    folder: Path | None, name: str, levels: list[str], seeds: int, references: bool
) -> list[tuple[Path | None, str, str, str, int]]:
    """All methods at all levels."""
    found = []
    for level in levels:
        methods: list[str] = []
        if level != "chosen" and references:
            methods += WITHOUT if level == "none" else WITH
        if graph_of(folder, name).edge_index.size(1) > 2 * SLOW:
            methods = [method for method in methods if method != "link communities"]
        found += [(folder, name, level, method, 0) for method in methods]
        found += [(folder, name, level, "ours", seed) for seed in range(seeds)]
    return found


def row(name: str, level: str, found: list[dict]) -> str:
    """Ours, the best reference and the control, as accuracy / balanced / AMI."""

    def told(results: list[dict]) -> str:
        if not results:
            return "–"
        keys = ("accuracy", "balanced", "information")
        return " / ".join(f"{mean(r[key] for r in results):.2f}" for key in keys)

    mine = [r for r in found if r["method"] == "ours"]
    control = [r for r in found if r["method"] in CONTROLS]
    others = [r for r in found if r["method"] != "ours" and r not in control]
    by = "information" if level == "none" else "accuracy"
    best = max(others, key=lambda r: r[by], default=None)
    errors = [r["calibration_error"] for r in mine if r["calibration_error"] is not None]
    cells = [
        name, level, told(mine), told([best] if best else []), best["method"] if best else "–",
        told(control), f"{mean(errors):.2f}" if errors else "–",
        f"{mean(r['seconds'] for r in mine):.0f}", ", ".join(str(r["count"]) for r in mine),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=list(GRAPHS))
    parser.add_argument("--data", type=Path, help="folder of airlines.npz and imdb_links.npz")
    parser.add_argument("--levels", nargs="+", default=["none", "chosen", "0.05", "0.2"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--no-references", action="store_true", help="run ours only")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    tasks = [
        task
        for name in given.graphs
        for task in tasks_of(given.data, name, given.levels, given.seeds, not given.no_references)
    ]
    found = []
    with get_context("spawn").Pool(given.jobs) as pool:
        for result in pool.imap(score, tasks):
            print(json.dumps(result), file=sys.stderr, flush=True)
            found.append(result)
    print("| graph | help | ours | best reference | which | control | ECE | CPU s | reasons |")
    print("|" + " --- |" * 9)
    for name in given.graphs:
        for level in given.levels:
            print(row(name, level, [r for r in found if (r["graph"], r["level"]) == (name, level)]))


if __name__ == "__main__":
    main()
