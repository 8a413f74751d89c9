"""The model of edges beside references and controls on planted graphs: a Markdown table.

``python benchmarks/edge_types.py [GRAPH ...] [--help-levels none chosen 0.05 0.2] [--seeds N]``;
from a checkout that is not installed, with ``PYTHONPATH=src``. Every result is a line of JSON on
stderr, too. "none" gives the number of types, "chosen" does not, a number is the share shown.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from statistics import mean
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from typed_graphs import GRAPHS, Typed

from lgdgcn.reasons import controls, fit_edges, references
from lgdgcn.reasons.controls import Method
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.scores import edge_type_scores
from lgdgcn.reasons.shown import shown_types

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


def ours(data: Data, shown: Tensor, seed: int, chosen: bool = False) -> tuple[Any, dict[str, Any]]:
    """Probabilities of the pairs and what was chosen."""
    more: dict[str, Any] = {"x": data.get("features"), "y": data.get("labels")}
    if bool(shown.any()):
        more["shown"] = shown
    elif not chosen:
        more["num_factors"] = shown.size(1)
    found = fit_edges(data.edge_index, data.num_nodes, seed=seed, **more)
    choice = found.about["choice"]
    return found.probability, {"cliques": choice["cliques"], "count": choice["num_factors"]}


def score(data: Data, level: str, seed: int, method: str, run: Callable[..., Any]) -> dict:
    """One run of one method, with its scores and seconds."""
    share = float(level) if level not in ("none", "chosen") else 0.0
    shown = shown_types(data.edge_index, data.edge_type, share, seed)
    started, told = time.perf_counter(), {}
    found = run(data, shown, seed)
    if isinstance(found, tuple):
        found, told = found
    seconds = time.perf_counter() - started
    types, hidden = (Edges.of_graph(data).once(v) for v in (data.edge_type, ~shown.any(1)))
    scores = edge_type_scores(found, types, named=share > 0, scored=hidden)
    names = ("accuracy", "balanced", "information", "calibration_error")
    kept = {name: getattr(scores, name) for name in names}
    return {"level": level, "seed": seed, "method": method, **kept, "seconds": seconds, **told}


def run_graph(name: str, data: Data, levels: list[str], seeds: int) -> list[dict]:
    """All methods at all levels."""
    found = []
    for level in levels:
        methods: dict[str, Callable[..., Any]] = {}
        if level != "chosen":
            methods |= WITHOUT if level == "none" else WITH
        if data.edge_index.size(1) > 2 * SLOW:
            methods.pop("link communities", None)
        methods["ours"] = lambda *given, chosen=level == "chosen": ours(*given, chosen=chosen)
        for method, run in methods.items():
            for seed in range(seeds if method == "ours" else 1):
                found.append({"graph": name, **score(data, level, seed, method, run)})
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
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
    parser.add_argument("--levels", nargs="+", default=["none", "chosen", "0.05", "0.2"])
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    print("| graph | help | ours | best reference | which | control | ECE | seconds | reasons |")
    print("|" + " --- |" * 9)
    for name in given.graphs:
        data = as_data(GRAPHS[name](np.random.default_rng(0)))
        found = run_graph(name, data, given.levels, given.seeds)
        for level in given.levels:
            print(row(name, level, [r for r in found if r["level"] == level]), flush=True)


if __name__ == "__main__":
    main()
