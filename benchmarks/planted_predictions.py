"""What reasons add to predictions on planted graphs, whose labels follow one reason of edges.

    python benchmarks/planted.py predictions [GRAPH ...] [--seeds 5] [--jobs 2]

Each graph has its labelled nodes split 60/20/20, and validation decides everything. Columns: the
best model of the race without the family "reasons"; that family with one reason for all edges,
which is label propagation beside features; the race of all, which is the default of `lgdgcn train`;
and the family with the true reason of every edge.
"""

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = ("without reasons", "one reason", "default", "true reasons")


def prediction_table(names: Sequence[str], seeds: int, jobs: int) -> None:
    """Print test accuracy by graph, in %, and the means over all."""
    os.environ["OMP_NUM_THREADS"] = "1"  # of the workers
    tasks = [(name, seed) for name in names for seed in range(seeds)]
    rows: dict[tuple[str, int], list[float]] = {}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as workers:
        waiting = {workers.submit(_scores, *task): task for task in tasks}
        for done in as_completed(waiting):
            rows[waiting[done]], about = done.result()
            print(*waiting[done], *rows[waiting[done]], about, file=sys.stderr, flush=True)
    print("| graph | " + " | ".join(COLUMNS) + " | default by seed |")
    print("|" + " --- |" * (len(COLUMNS) + 2))
    for name in names:
        table = np.array([rows[name, seed] for seed in range(seeds)])
        cells = [f"{value:.1f}" for value in table.mean(0)]
        by_seed = " ".join(f"{value:.0f}" for value in table[:, 2])
        print("| " + " | ".join([name, *cells, by_seed]) + " |")
    means = np.array(list(rows.values())).mean(0)
    print("| mean | " + " | ".join(f"{value:.1f}" for value in means) + " | |", flush=True)


def _scores(name: str, seed: int) -> tuple[list[float], str]:
    """Test accuracy by column, and what was chosen."""
    import torch
    from planted import GENERATORS

    from lgdgcn.reasons.edges import Edges
    from lgdgcn.search.families import candidates

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    drawn = GENERATORS[name](seed)
    every = candidates(name, None, {"metric": "accuracy"}, multi_label=False)
    along = [one for one in every if one.model == "reasons"]
    others = [one for one in every if one.model != "reasons"]
    known = np.unique(drawn.reasons, return_inverse=True)[1]
    edges = Edges.of_graph(_graph(drawn))
    true = torch.tensor(edges.both(np.eye(known.max() + 1, dtype=np.float32)[known]))
    one = torch.ones(len(true), 1)
    started, found, about = time.perf_counter(), [], []
    for tried, reasons in ((others, None), (along, one), (every, None), (along, true)):
        score, said = _chosen(_graph(drawn), tried, reasons)
        found.append(score)
        about.append(f"{said} {time.perf_counter() - started:.0f}s")
    return found, "; ".join(about)


def _graph(drawn: Any) -> Any:
    from lgdgcn.data.source import GraphSource

    with tempfile.TemporaryDirectory() as place:
        folder = drawn.write(Path(place) / drawn.name)
        return GraphSource(str(folder), label=drawn.label).load()


def _chosen(graph: Any, tried: Sequence[Any], reasons: Any) -> tuple[float, str]:
    """Test accuracy of what a race chooses, in %, and what it is."""
    import torch

    from lgdgcn.runs.fit import fit
    from lgdgcn.search.choose import choose

    if reasons is not None:
        graph.edge_reasons = reasons
    cpu = torch.device("cpu")
    choice = choose(tried, graph, cpu)
    best = choice.best
    [result], _ = fit(lambda seed: graph, best.settings, best.model, [0], cpu, begun=choice.state)
    weights = "" if result.reasons is None else str(result.reasons)
    return 100 * result.scores["test"]["accuracy"], f"{best.model} {100 * result.val:.0f} {weights}"
