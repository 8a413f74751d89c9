"""How good the default is: ours and the baselines on every development graph, alike in effort.

Every model has its own portfolio, which was chosen without the graph it is tried on
(``benchmarks/portfolio.json``), the same rounds of successive halving on validation, and the same
scaling of features; what is chosen is then trained to its end. ``train`` writes a file for every
graph and model; ``report`` puts them into ``suite.json``, which keeps what was measured before, and
makes ``docs/suite.md`` and its picture of that.

    python benchmarks/suite.py train runs/suite --device cuda --workers 14
    python benchmarks/suite.py report runs/suite
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch
from portfolio import GRAPHS, MODELS, RESULT, section
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from trainings import in_workers, scored, source_of

from lgdgcn.config import auto_scaling, default_variant, preset, resolve
from lgdgcn.search.choose import KEPT, RUNGS, choose
from lgdgcn.search.families import Candidate
from lgdgcn.storage import write_text
from lgdgcn.training import Training

SPLITS = 5
UNTUNED = "untuned"  # our default settings, without a search
NAMES = {"lgdgcn": "LGD-GCN", UNTUNED: "LGD-GCN, untuned", "mlp": "MLP", "gcn": "GCN",
         "appnp": "APPNP", "grand": "GRAND"}  # fmt: skip
REAL = tuple(graph for graph in GRAPHS if graph != "synthetic")
DOCS = Path(__file__).parents[1] / "docs"
NOW = ", ".join(f"{KEPT.get(rung, 1)} after {rung}" for rung in RUNGS)  # of the race, as text
MEASURED = Path(__file__).with_suffix(".json")  # mean, spread, splits and rounds of every cell


def candidates_of(graph: str, model: str, multi_label: bool) -> list[Candidate]:
    """What is tried of a model on a graph that its portfolio has not seen."""
    name = "lgdgcn" if model == UNTUNED else model
    base = preset("", name, multi_label=multi_label)
    entries: list[dict[str, Any]] = [{}]
    if model != UNTUNED:
        found = json.loads(RESULT.read_text())[section(model, multi_label)]
        entries = [{k: v for k, v in entry.items() if k != "kind"} for entry in found[graph]]
    variant = {"variant": default_variant(name)}
    return [Candidate(name, resolve(variant, base, auto_scaling(""), entry)) for entry in entries]


def train(task: tuple[str, str], folder: Path, device: str, end: float, splits: int) -> str:
    """Choose settings for every split and train with them; write the scores."""
    graph, model = task
    file = folder / f"{graph}-{model}.json"
    if file.exists() or time.time() > end:
        return ""
    where, start = torch.device(device), time.monotonic()
    data = [source_of(graph).load(split) for split in range(splits)]
    candidates = candidates_of(graph, model, data[0].y.dim() == 2)
    choices = [choose(candidates, one, where, seed=split) for split, one in enumerate(data)]
    searched = time.monotonic() - start
    trainings = []
    for split, (choice, one) in enumerate(zip(choices, data, strict=True)):
        best = choice.best
        trainings.append(Training(best.model, best.settings, split, one, choice.state))
    trained = {result.training.seed: row for result, row in scored(trainings, where)}
    rows = [{"split": split, "number": candidates.index(choice.best) + 1, **trained[split]}
            for split, choice in enumerate(choices)]  # fmt: skip
    seconds = [round(searched, 1), round(time.monotonic() - start, 1)]
    found = {"rows": rows, "seconds": seconds, "device": where.type}
    found["rounds"] = NOW if len(candidates) > 1 else ""
    write_text(file, json.dumps(found))
    return f"{file.stem} {seconds[1]:.0f} s"


def measured(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """All cells by graph and model: those of the folder, else what was measured before."""
    cells = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    for graph in GRAPHS:
        for model in NAMES:
            file = folder / f"{graph}-{model}.json"
            if file.exists():
                found = json.loads(file.read_text())
                tests = [100 * (row["test"] or 0.0) for row in found["rows"]]
                cells.setdefault(graph, {})[model] = {
                    "mean": fmean(tests), "std": stdev(tests), "splits": len(tests),
                    "device": found["device"], "rounds": found["rounds"]}  # fmt: skip
    write_text(MEASURED, json.dumps(cells, indent=1) + "\n")
    return {graph: cells[graph] for graph in GRAPHS if set(NAMES) <= set(cells.get(graph, {}))}


def shown(cell: dict[str, Any], best: float) -> str:
    """A cell of the table."""
    text = f"{cell['mean']:.1f} ± {cell['std']:.1f}"
    # a dagger: the search had other rounds than it has now
    is_old = cell["rounds"] not in ("", NOW)
    return (f"**{text}**" if cell["mean"] == best else text) + " †" * is_old


def report(folder: Path) -> None:
    """Write the table, the ranks and the picture."""
    cells = measured(folder)
    lines = ["| graph | splits | " + " | ".join(NAMES.values()) + " | ours below the best |",
             "| --- |" + " --- |" * (len(NAMES) + 2)]  # fmt: skip
    below = {}
    for graph, row in cells.items():
        best = max(cell["mean"] for cell in row.values())
        below[graph] = best - row["lgdgcn"]["mean"]
        splits = min(cell["splits"] for cell in row.values())
        text = " | ".join(shown(row[model], best) for model in NAMES)
        lines.append(f"| {graph} | {splits} | {text} | {below[graph]:.1f} |")
    tuned = [model for model in NAMES if model != UNTUNED]
    real = [graph for graph in cells if graph in REAL]
    table = np.array([[cells[graph][model]["mean"] for model in tuned] for graph in real])
    ranks = np.array([rankdata(-row) for row in table])
    mean_rank = dict(zip(tuned, ranks.mean(0), strict=True))
    near = [sum(value < limit for graph, value in below.items() if graph in real)
            for limit in (0.5, 1.5)]  # fmt: skip
    count = len(real)
    critical = studentized_range.ppf(0.95, len(tuned), np.inf) / np.sqrt(2)
    critical *= np.sqrt(len(tuned) * (len(tuned) + 1) / (6 * count))
    lines += ["", "Mean rank over the real graphs: "
              + ", ".join(f"{NAMES[m]} {rank:.2f}" for m, rank in
                          sorted(mean_rank.items(), key=lambda item: item[1])) + ". "
              f"Friedman test: p = {friedmanchisquare(*table.T).pvalue:.2g}; critical difference "
              f"(Nemenyi, 5 %): {critical:.2f}.",
              "", f"LGD-GCN is the best or within 0.5 points of it on {near[0]} of {count} real "
              f"graphs, and within 1.5 on {near[1]}."]  # fmt: skip
    draw(mean_rank, float(critical), DOCS / "figures" / "suite.png")
    text = (DOCS / "suite.md").read_text()
    head, _, rest = text.partition("<!-- table -->")
    _, _, tail = rest.partition("<!-- end -->")
    written = "\n".join(lines)
    write_text(DOCS / "suite.md", f"{head}<!-- table -->\n{written}\n<!-- end -->{tail}")
    print(*lines, sep="\n")


def draw(mean_rank: dict[str, float], critical: float, path: Path) -> None:
    """Draw mean ranks on a line; models that a bar joins do not differ significantly."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.4), layout="constrained")
    axes = figure.subplots()
    order = sorted(mean_rank, key=lambda model: mean_rank[model])
    axes.set(xlim=(0.8, len(order) + 0.2), ylim=(-len(order) * 0.5 - 0.6, 1.4), yticks=[])
    axes.xaxis.tick_top()
    axes.set_xlabel("mean rank (1 is the best)")
    axes.xaxis.set_label_position("top")
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    for place, model in enumerate(order):
        rank, height = mean_rank[model], -0.5 * place - 0.5
        axes.plot([rank, rank], [1.2, height], color="0.6", linewidth=1)
        axes.text(
            rank + 0.04,
            height,
            f"{NAMES[model]}  {rank:.2f}",
            va="center",
            weight="bold" if model == "lgdgcn" else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            zorder=3,
        )
    bars = []
    for model in order:
        together = [o for o in order if 0 <= mean_rank[o] - mean_rank[model] <= critical]
        span = (mean_rank[model], mean_rank[together[-1]])
        if len(together) > 1 and not any(bar[1] >= span[1] for bar in bars):
            bars.append(span)
    for place, (first, last) in enumerate(bars):
        axes.plot([first - 0.03, last + 0.03], [1.0 - 0.25 * place] * 2, color="black", linewidth=3)
    figure.savefig(path, dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("train", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--graphs", default=",".join(GRAPHS))
    parser.add_argument("--models", default=",".join((*MODELS, UNTUNED)))
    options = parser.parse_args()
    if options.what == "report":
        report(options.folder)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    tasks = [(graph, model) for graph in options.graphs.split(",")
             for model in options.models.split(",")]  # fmt: skip
    end = time.time() + 60 * options.minutes
    run = partial(
        train, folder=options.folder, device=options.device, end=end, splits=options.splits
    )
    in_workers(run, tasks, options.workers)


if __name__ == "__main__":
    main()
