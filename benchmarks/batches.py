"""What mini-batches cost in accuracy: the same trainings on all nodes at once, and in batches.

Both have the same settings, seeds and splits, as if a user adds ``--batch-size`` to a command. So
they end by the same rule, too: validation has not improved for ``PATIENCE`` epochs, or ``EPOCHS``
are over. An epoch is one step on all nodes at once, and several in batches. Settings are the first
of the portfolio for a graph without a preset, and those of its preset on the four-factor graph.

    python benchmarks/batches.py train runs/batches --graphs pubmed,amazon_photo --seeds 5
    python benchmarks/batches.py report runs/batches
"""

import argparse
import json
import time
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from trainings import scored

from lgdgcn.config import auto_scaling, portfolio, preset, resolve
from lgdgcn.data.source import GraphSource
from lgdgcn.metrics.attribution import edge_attribution
from lgdgcn.storage import write_json
from lgdgcn.training import Result, Training

PLANTED = "lgd_syn_fac4"  # whose edges have known factors
BATCH_SIZES = {PLANTED: 256, "pubmed": 4096, "amazon_photo": 1024, "tolokers": 2048}
EPOCHS, PATIENCE = 400, 100
FULL = "full batch"


def train(graph: str, way: str, seed: int, file: Path) -> None:
    """Train once; write its scores."""
    data = GraphSource(graph).load(seed)
    multi_label, size = data.y.dim() == 2, BATCH_SIZES[graph]
    steps = 1 if way == FULL else -(-data.num_nodes // size)
    limits: dict[str, Any] = {"epochs": EPOCHS, "patience": PATIENCE}
    if way != FULL:
        limits |= {"batch_size": size, "fan_out": int(way.rpartition(" ")[2])}
    if graph == PLANTED:
        own = [preset(graph, "lgdgcn", multi_label=multi_label)]
    else:
        first = portfolio("lgdgcn", multi_label=multi_label)[0]
        own = [preset("", "lgdgcn", multi_label=multi_label), auto_scaling(""), first]
    settings = resolve(*own, limits)
    start = time.perf_counter()
    [(result, row)] = scored([Training("lgdgcn", settings, seed, data)], torch.device("cpu"))
    row |= {"graph": graph, "way": way, "seed": seed, "steps": steps * row["epochs"]}
    row["attribution"] = attribution(result)
    write_json(file, row | {"seconds": time.perf_counter() - start})


@torch.no_grad()
def attribution(result: Result) -> float | None:
    """How many edges the model attributes to the factor that made them, where that is known."""
    graph = result.graph
    if graph.get("y_factor") is None:
        return None
    output = result.network().cpu().eval().disentangle(graph.x, graph.edge_index)
    return edge_attribution(graph.edge_index, output.layers[-1].edge_factors, graph.y_factor)


def report(folder: Path) -> None:
    """Print a row for every graph and way."""
    rows = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    print("| graph | seeds | trained | validation | test | difference | attribution | steps |")
    print("| --- |" + " --- |" * 7)
    for graph in BATCH_SIZES:
        found = [row for row in rows if row["graph"] == graph]
        ways = sorted({row["way"] for row in found}, key=lambda way: (way != FULL, way))
        seeds = set.intersection(*({r["seed"] for r in found if r["way"] == w} for w in ways))
        full: list[float] = []
        for way in ways:
            chosen = sorted((r for r in found if r["way"] == way), key=lambda r: r["seed"])
            chosen = [r for r in chosen if r["seed"] in seeds]
            test = [100 * r["test"] for r in chosen]
            full = full or test
            gap = [ours - other for ours, other in zip(test, full, strict=True)]
            shared = [100 * r["attribution"] for r in chosen if r.get("attribution") is not None]
            cells = [graph, str(len(chosen)), way, spread([100 * r["val"] for r in chosen])]
            cells += [spread(test), spread(gap) if way != FULL else ""]
            cells += [spread(shared), f"{fmean(r['steps'] for r in chosen):.0f}"]
            print("| " + " | ".join(cells) + " |")


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else ""
    return f"{fmean(values):.1f} ± {stdev(values):.1f}"


def main() -> None:
    """Train what is missing, or report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("train", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", default=",".join(BATCH_SIZES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fan-out", default="4,8", help="of the trainings in batches")
    args = parser.parse_args()
    if args.what == "report":
        report(args.folder)
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    ways = [FULL, *(f"batches, fan_out {number}" for number in args.fan_out.split(","))]
    for seed in range(args.seeds):  # all graphs before the next seed
        for graph in args.graphs.split(","):
            for number, way in enumerate(ways):
                file = args.folder / f"{graph}-{number}-{seed}.json"
                if not file.exists():
                    train(graph, way, seed, file)
                    print(file.name, json.loads(file.read_text()), flush=True)


if __name__ == "__main__":
    main()
