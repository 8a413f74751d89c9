"""What the literal inverse covariance of Eq. 3 is worth, beside a scaled one.

The paper variant is trained twice on Cora, Citeseer and the published four-factor graph, with
``precision`` scaled and exact (the literal inverse, which is what the variant takes), all other
settings those of the standard cells' presets, which were found with the scaled one. Both are
searched for λ_space over five decades by the validation score of eight seeds; what is chosen is
trained with ten other seeds, beside the preset's λ_space, exact, the one that was tuned together
with the other settings, scaled, and none at all.

    python benchmarks/exact_precision.py --device cuda

needs torch and the numerical libraries only; from a checkout that is not installed, with
``PYTHONPATH=src``. ``$LGDGCN_DATA`` says where the graphs are. Finished trainings are kept in
``exact_precision.json`` of the folder ``--out``, from which a repeat goes on; the tables go to
``exact_precision.md`` there.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data import load
from lgdgcn.reproduce.cells import FULL
from lgdgcn.storage import write_json, write_text
from lgdgcn.train.targets import Targets
from lgdgcn.training import Epoch, Training, run

PRECISIONS = ("scaled", "exact")
SEARCHED, TRAINED = range(100, 108), range(10)  # seeds
COLLAPSED = 0.01  # above the best single answer for all nodes, a score is at least this much more
STEPS, DECADES = 3, 5  # values of λ_space in a decade
LONGER = 3  # decades that are added at most, one by one, while the best value is at an end


@dataclass(frozen=True)
class Place:
    """A graph, the preset of its standard cell, and where the search for λ_space begins."""

    graph: str
    preset: str
    tuned: float  # λ_space found together with the preset's other settings, scaled
    lowest: dict[str, int]  # power of ten, by precision


PLACES = (  # the exact inverse has a mean diagonal of about 80 on citation graphs, 1e4 on the other
    Place("cora", "cora", 0.02331, {"scaled": -4, "exact": -6}),
    Place("citeseer", "citeseer", 0.01638, {"scaled": -4, "exact": -6}),
    Place("lgd_syn_fac4", "synthetic", 0.003, {"scaled": -5, "exact": -9}),
)


class Book:
    """Trains what it does not know yet, and keeps the scores of every training in a file."""

    def __init__(self, file: Path, device: torch.device, epochs: int | None) -> None:
        self.file, self.device, self.epochs = file, device, epochs
        self.content: dict[str, Any] = {"epochs": epochs, "runs": {}}
        if file.exists():
            self.content = json.loads(file.read_text(encoding="utf-8"))
            if self.content["epochs"] != epochs:
                raise SystemExit(f"{file}: trained with --epochs {self.content['epochs']}")
        where = torch.cuda.get_device_name(device) if device.type == "cuda" else "a CPU"
        self.content |= {"torch": torch.__version__, "device": where}
        self.graphs: dict[str, Data] = {}

    def settings(self, place: Place, precision: str, weight: float) -> Settings:
        """Those of the standard cell, but for precision and λ_space."""
        own = {"precision": precision, "lambda_space": weight}
        described = {"graph": place.graph, "model": "lgdgcn", "variant": "paper",
                     "preset": place.preset, "settings": own, "seeds": "synthetic"}  # fmt: skip
        settings = FULL.cell(described).settings
        return settings if self.epochs is None else replace(settings, epochs=self.epochs)

    def preset_weight(self, place: Place) -> float:
        described = {"graph": place.graph, "model": "lgdgcn", "variant": "paper",
                     "preset": place.preset, "seeds": "synthetic"}  # fmt: skip
        return FULL.cell(described).settings.lambda_space

    def runs(
        self, place: Place, precision: str, weights: Sequence[float], seeds: Sequence[int]
    ) -> dict[float, list[dict[str, Any]]]:
        """The runs by λ_space; all that are missing are trained in one pass."""
        graph = self.graphs.get(place.graph)
        if graph is None:
            graph = self.graphs[place.graph] = load(place.graph)
        known = self.content["runs"]
        trainings = [
            Training("lgdgcn", self.settings(place, precision, weight), seed, graph)
            for weight in weights
            for seed in seeds
            if _key(place.graph, precision, weight, seed) not in known
        ]
        start = time.monotonic()
        self._train(trainings)
        if trainings:
            text = f"{len(trainings)} trainings in {time.monotonic() - start:.0f} s"
            print(f"{place.graph}, {precision}: {text}", flush=True)
        return {w: [known[_key(place.graph, precision, w, s)] for s in seeds] for w in weights}

    def _train(self, trainings: Sequence[Training]) -> None:
        """Train; score the best weights of every training and store them."""
        last: dict[Training, Epoch] = {}

        def on_epoch(epochs: Sequence[Epoch]) -> None:
            last.update({epoch.training: epoch for epoch in epochs})

        for result in run(trainings, self.device, on_epoch):
            if result.state is None:
                raise result.error
            one, state, task, graph = result.training, result.state, result.task, result.graph
            guess = task.constant_score(Targets.of([graph], "val_mask"))
            with torch.no_grad():
                logits = result.network().eval()(graph.x, graph.edge_index)
            val, test = (
                next(iter(task.scores(logits, graph.y, graph[f"{split}_mask"]).values()))
                for split in ("val", "test")
            )
            last_val = last[one].metrics[f"val_{task.metric}"]
            key = _key(one.graph.name, one.settings.precision, one.settings.lambda_space, one.seed)
            self.content["runs"][key] = {
                "val": val, "test": test, "epochs": state.epoch, "best_epoch": state.best_epoch,
                "last_val": last_val, "guess": guess, "diverged": state.diverged}  # fmt: skip
            write_json(self.file, self.content)


def _key(graph: str, precision: str, weight: float, seed: int) -> str:
    return f"{graph} {precision} {weight:.4g} {seed}"


def fell(run: dict[str, Any], which: str) -> bool:
    """Whether a run diverged, or is no better than one answer for all nodes.

    Args:
        run: The run.
        which: ``val``, of the weights that are kept, or ``last_val``, of the last epoch.
    """
    return run["diverged"] or run[which] < run["guess"] + COLLAPSED


def validation(runs: Sequence[dict[str, Any]]) -> float:
    """Mean validation score; a run that diverged counts as one answer for all nodes."""
    return fmean(run["guess"] if run["diverged"] else run["val"] for run in runs)


def search(book: Book, place: Place, precision: str) -> dict[float, list[dict[str, Any]]]:
    """The runs of all values of λ_space, with the best one inside the range if possible."""
    low, high = place.lowest[precision], place.lowest[precision] + DECADES
    for _ in range(LONGER + 1):
        weights = [
            float(f"{10 ** (step / STEPS):.3g}") for step in range(STEPS * low, STEPS * high + 1)
        ]
        found = book.runs(place, precision, weights, SEARCHED)
        best = best_of(found)
        if best == weights[0]:
            low -= 1
        elif best == weights[-1]:
            high += 1
        else:
            break
    at_end = "" if best not in (weights[0], weights[-1]) else ", at an end of the range"
    print(f"{place.graph}, {precision}: λ_space = {best:g} of {len(weights)} values from "
          f"{weights[0]:g} to {weights[-1]:g}, validation {100 * validation(found[best]):.2f}"
          f"{at_end}", flush=True)  # fmt: skip
    return found


def best_of(found: dict[float, list[dict[str, Any]]]) -> float:
    return max(found, key=lambda weight: validation(found[weight]))


def row(label: str, weight: float, runs: Sequence[dict[str, Any]]) -> str:
    """One line of the table of results."""

    def mean(name: str) -> str:
        scores = [100 * run[name] for run in runs if not run["diverged"]]
        if len(scores) < 2:
            return "–"
        return f"{fmean(scores):.2f} ± {stdev(scores):.2f}"

    epochs = f"{fmean(run['epochs'] for run in runs):.0f}"
    kept, last = (f"{sum(fell(run, which) for run in runs)}" for which in ("val", "last_val"))
    numbers = [f"{weight:g}", mean("val"), mean("test"), epochs, kept, last]
    return f"| {label} | {' | '.join(numbers)} |"


def curve(found: dict[float, list[dict[str, Any]]]) -> list[str]:
    """The search as a table."""
    lines = ["| λ_space | validation | test | collapsed in the end |", "| --- | --- | --- | --- |"]
    for weight, runs in found.items():
        fallen = sum(fell(run, "last_val") for run in runs)
        test = fmean(run["guess"] if run["diverged"] else run["test"] for run in runs)
        numbers = f"{100 * validation(runs):.2f} | {100 * test:.2f} | {fallen} of {len(runs)}"
        lines.append(f"| {weight:g} | {numbers} |")
    return lines


def tables(book: Book) -> str:
    """Train everything and make the Markdown."""
    lines = [
        "| Graph | Precision | λ_space | validation | test | epochs | collapsed | in the end |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    searches: list[str] = []
    for place in PLACES:
        preset = book.preset_weight(place)
        for precision in PRECISIONS:
            found = search(book, place, precision)
            best = best_of(found)
            known = {"tuned": place.tuned} if precision == "scaled" else {"the preset's": preset}
            named = {**known, "searched": best, "none": 0.0}
            runs = book.runs(place, precision, list(dict.fromkeys(named.values())), TRAINED)
            for name, weight in named.items():
                line = row(f"{place.graph} | {precision}, {name}", weight, runs[weight])
                print(line, flush=True)
                lines.append(line)
            searches += ["", f"**{place.graph}, {precision}**", "", *curve(found)]
    return "\n".join([*lines, "", "## The search", *searches]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/exact_precision"))
    parser.add_argument("--epochs", type=int, help="at most, to try this script")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    book = Book(chosen.out / "exact_precision.json", torch.device(chosen.device), chosen.epochs)
    write_text(chosen.out / "exact_precision.md", tables(book))
    print(f"done in {time.monotonic() - start:.0f} s: {chosen.out / 'exact_precision.md'}")


if __name__ == "__main__":
    main()
