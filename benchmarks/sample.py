"""How good settings are that were chosen on a sample of a graph: beside those of the whole graph.

Large graphs have their settings chosen on a sample of 10,000 nodes. Here a graph that can be
searched whole gets a sample, too; what is chosen on it is trained on the whole graph to the end,
and stands beside the row of ``suite.json``, for which the same portfolio (chosen without this
graph), the same splits and the same rounds were used on the whole graph.

    python benchmarks/sample.py runs/sample --graphs amazon_photo --nodes 2000
"""

import argparse
import json
import time
from pathlib import Path
from statistics import fmean, stdev

import torch
from suite import MEASURED, candidates_of
from trainings import scored, source_of

from lgdgcn.search.choose import choose
from lgdgcn.search.sample import search_sample
from lgdgcn.storage import write_json
from lgdgcn.training import Training


def train(graph: str, split: int, nodes: int, file: Path) -> None:
    """Choose on a sample, train on the graph; write the score."""
    data, device = source_of(graph).load(split), torch.device("cpu")
    candidates = candidates_of(graph, "lgdgcn", data.y.dim() == 2)
    sample = search_sample(data, split, nodes)
    start = time.monotonic()
    choice = choose(candidates, sample, device, seed=split)
    seconds = time.monotonic() - start
    [(_, trained)] = scored(
        [Training(choice.best.model, choice.best.settings, split, data)], device
    )
    number = candidates.index(choice.best) + 1
    row = {"graph": graph, "split": split, "number": number, "nodes": sample.num_nodes}
    write_json(file, row | {"seconds": seconds, "test": trained["test"]})


def report(folder: Path) -> None:
    """Print a row for every graph."""
    rows = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    known = json.loads(MEASURED.read_text())
    print("| graph | nodes of the sample | splits | chosen on the sample | on the whole graph |")
    print("| --- | --- | --- | --- | --- |")
    for graph in dict.fromkeys(row["graph"] for row in rows):
        own = [row for row in rows if row["graph"] == graph]
        test = [100 * row["test"] for row in own]
        text = f"{fmean(test):.1f}" + (f" ± {stdev(test):.1f}" if len(test) > 1 else "")
        whole = known[graph]["lgdgcn"]
        compared = f"{whole['mean']:.1f} ± {whole['std']:.1f} ({whole['splits']} splits)"
        print(f"| {graph} | {own[0]['nodes']:,} | {len(own)} | {text} | {compared} |")


def main() -> None:
    """Train what is missing, then report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", default="amazon_photo")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=2000, help="of the sample")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for graph in args.graphs.split(","):
        for split in range(args.splits):
            file = args.folder / f"{graph}-{split}.json"
            if not file.exists():
                train(graph, split, args.nodes, file)
                print(file.read_text(), flush=True)
    report(args.folder)


if __name__ == "__main__":
    main()
