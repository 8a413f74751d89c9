"""Multiplex reconstruction: which of two layers is an edge of, where a share of them is known.

The protocol of Kaiser, Patwardhan and Radicchi (Phys. Rev. E 107, 024309, 2023): edges in both
layers are deleted, each other edge is shown with probability θ, nodes without edges go. Accuracy
and area under the ROC curve (AUC) on the hidden edges, mean over draws; the published figures are
the better of their method and that of Wu et al. (Commun. Phys., 2022). The control is a logistic
regression on 32 spectral vectors of both nodes and their degrees.

    PYTHONPATH=src python benchmarks/multiplex.py --data FOLDER [--pairs london-2-3 ...]
        [--theta 0.1 0.3 0.5] [--draws 10] [--jobs 16]

Every draw is a line of JSON on stderr, too.
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
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: a process has one core

import numpy as np

Array = Any
THETA = (0.1, 0.3, 0.5)
# AUC and accuracy at each share
PUBLISHED = {
    "arxiv-2-6": ((0.868, 0.935, 0.963), (0.869, 0.917, 0.940)),
    "arxiv-2-7": ((0.840, 0.911, 0.939), (0.920, 0.952, 0.966)),
    "arxiv-6-7": ((0.855, 0.933, 0.960), (0.864, 0.922, 0.945)),
    "drosophila-1-2": ((0.804, 0.918, 0.950), (0.929, 0.942, 0.963)),
    "drosophila-2-3": ((0.580, 0.631, 0.665), (0.592, 0.615, 0.643)),
    "celegans-1-2": ((0.571, 0.611, 0.646), (0.657, 0.663, 0.672)),
    "celegans-2-3": ((0.581, 0.656, 0.691), (0.809, 0.813, 0.825)),
    "london-1-2": ((0.800, 0.934, 0.971), (0.872, 0.940, 0.960)),
    "london-2-3": ((0.964, 0.982, 0.996), (0.926, 0.955, 0.975)),
}


def two_layers(folder: Path, pair: str) -> tuple[Array, Array]:
    """Edges ``[2, E]`` of two layers, and whether each is of the second one ``[E]``."""
    name, *layers = pair.split("-")
    with np.load(folder / f"multiplex_{name}.npz", allow_pickle=False) as file:
        edges, layer = file["edges"].astype(np.int64), file["layer"]
    nodes = edges.max() + 1
    first, second = (edges[layer == int(one)] @ [nodes, 1] for one in layers)
    both = np.intersect1d(first, second)
    kept = [np.setdiff1d(codes, both) for codes in (first, second)]
    codes = np.sort(np.concatenate(kept))
    _, ends = np.unique(np.divmod(codes, nodes), return_inverse=True)
    return ends.reshape(2, -1), np.isin(codes, kept[1])


@cache
def structure_of(folder: Path, pair: str) -> Any:
    """What the graph of both layers says of its edges: once for all shares and draws."""
    from lgdgcn.reasons.edges import Edges
    from lgdgcn.reasons.structure import describe_edges

    return describe_edges(Edges.of(two_layers(folder, pair)[0]), 2)


def control(ends: Array, layer: Array, shown: Array) -> Array:
    """Probability of the second layer from spectral vectors and degrees ``[E]``."""
    import scipy.sparse
    from scipy.sparse.linalg import eigsh
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    degree = np.bincount(ends.ravel()).astype(float)
    half = scipy.sparse.csr_matrix((np.ones(len(layer)), tuple(ends)), (len(degree),) * 2)
    scale = scipy.sparse.diags(1 / np.sqrt(degree + degree.mean()))
    matrix = (scale @ (half + half.T) @ scale).tocsr()
    vectors = eigsh(matrix, min(32, len(degree) - 1), which="LA", v0=np.ones(len(degree)))[1]
    first, second = vectors[ends]
    parts = [first * second, first + second, np.abs(first - second)]
    columns = np.hstack([*parts, np.log(np.sort(degree[ends], axis=0)).T])
    if len(np.unique(layer[shown])) < 2:
        return np.full(len(layer), layer[shown].mean() if shown.any() else 0.5)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(columns[shown], layer[shown]).predict_proba(columns)[:, 1]


def one_draw(task: tuple[Path, str, float, int]) -> dict[str, Any]:
    """Scores of one draw."""
    from sklearn.metrics import roc_auc_score

    from lgdgcn.reasons.typed import fit_types

    warnings.filterwarnings("ignore")
    folder, pair, theta, draw = task
    ends, layer = two_layers(folder, pair)
    shown = np.random.default_rng(draw).random(len(layer)) < theta
    started = time.process_time()
    structure = structure_of(folder, pair)
    described = time.process_time() - started
    types = np.eye(2)[layer.astype(int)] * shown[:, None]
    ours = fit_types(structure, types, draw).probability[:, 1]
    row = {"pair": pair, "theta": theta, "draw": draw, "edges": len(layer)}
    row |= {"described": described, "seconds": time.process_time() - started - described}
    for name, found in (("ours", ours), ("control", control(ends, layer, shown))):
        row[f"{name} AUC"] = float(roc_auc_score(layer[~shown], found[~shown]))
        row[f"{name} accuracy"] = float(((found > 0.5) == layer)[~shown].mean())
    return row


def table(rows: list[dict[str, Any]]) -> None:
    """Print means over draws beside the published figures, and how often ours are above."""
    names = ["pair", "θ", "AUC published", "ours", "control"]
    names += ["accuracy published", "ours", "control", "CPU seconds"]
    print("| " + " | ".join(names) + " |\n|" + " --- |" * len(names))
    leads, ahead, counted = [], [0, 0], 0
    for pair, theta in dict.fromkeys((row["pair"], row["theta"]) for row in rows):
        draws = [row for row in rows if (row["pair"], row["theta"]) == (pair, theta)]
        keys = [f"{who} {what}" for what in ("AUC", "accuracy") for who in ("ours", "control")]
        auc, auc_control, right, right_control, seconds = (
            float(np.mean([row[key] for row in draws])) for key in (*keys, "seconds")
        )
        best, cells = (None, None), ["–", "–"]
        if pair in PUBLISHED and theta in THETA:
            best = tuple(figures[THETA.index(theta)] for figures in PUBLISHED[pair])
            cells = [f"{value:.3f}" for value in best]
            rival = max(best[0], auc_control)
            leads.append(auc - rival)
            ahead[0] += auc > rival
            ahead[1] += right > best[1]
            counted += 1
        print(
            f"| {pair} | {theta} | {cells[0]} | {auc:.3f} | {auc_control:.3f} | {cells[1]} "
            f"| {right:.3f} | {right_control:.3f} | {seconds:.0f} |"
        )
    if counted:
        print(
            f"\nAUC above the published and the control in {ahead[0]} of {counted}, mean lead "
            f"{np.mean(leads):.3f}; accuracy above the published in {ahead[1]} of {counted}."
        )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of multiplex_*.npz")
    parser.add_argument("--pairs", nargs="+", default=list(PUBLISHED))
    parser.add_argument("--theta", nargs="+", type=float, default=list(THETA))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    tasks = [
        (given.data, pair, theta, draw)
        for pair in given.pairs
        for theta in given.theta
        for draw in range(given.draws)
    ]
    rows = []
    with get_context("spawn").Pool(given.jobs) as pool:
        for row in pool.imap(one_draw, tasks):
            print(json.dumps(row), file=sys.stderr, flush=True)
            rows.append(row)
    table(rows)


if __name__ == "__main__":
    main()
