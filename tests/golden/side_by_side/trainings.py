"""Small trainings: metrics of every epoch, scores and weights."""

from pathlib import Path
from typing import Any

from . import outputs
from .graphs import write_graph
from .jobs import RUN, Call, Job
from .spellings import Spelling
from .trees import data_folder

__all__ = ["read_run", "training_jobs"]

MODELS = ("paper", "released", "ours", "gcn", "grand")
SEEDS = 3
EPOCHS, LONG = 20, 90  # of a training; of one that is interrupted
BATCH = 40  # nodes


def training_jobs(graphs: Path, *, quick: bool) -> list[Job]:
    """Every model with one and several seeds, and every other way to train.

    Args:
        graphs: Folder for the graphs.
        quick: Train models with several seeds on sets of labels only, and none on Cora.
    """
    small = str(write_graph(graphs, "single-label"))
    pairs = [("single label", 1), ("sets of labels", SEEDS)]
    if not quick:
        known = [("cora", seeds) for seeds in (1, SEEDS) if data_folder()]
        pairs = [("single label", 1), ("single label", SEEDS), ("sets of labels", 1), pairs[1]]
        pairs += known
    return [
        *(_training(model, name, seeds, small) for model in MODELS for name, seeds in pairs),
        *(_population(variant, small) for variant in ("paper", "ours")),
        _interrupted(small),
        *(_batches(way, small) for way in ("table", "drawn", "structure")),
        _batches("drawn", small, ranks=2),
    ]


def read_run(run: Path, spelling: Spelling) -> dict[str, Any]:
    """Metrics and weights of a run folder, and its scores where it has any."""
    files = {"best": spelling.file(run, "weights")}
    for seed in range(SEEDS):
        files[f"seed {seed}"] = spelling.file(run, "weights of a seed", seed=seed)
    renamed, scores = spelling.renamed, spelling.file(run, "result")
    return {
        "metrics": outputs.metrics(spelling.file(run, "metrics"), renamed),
        "weights": outputs.weights(files, renamed),
        **({"scores": outputs.result(scores, renamed)} if scores.is_file() else {}),
    }


def _read(folder: Path, spelling: Spelling) -> dict[str, Any]:
    return read_run(folder / RUN, spelling)


def _training(model: str, name: str, seeds: int, small: str) -> Job:
    def calls(spelling: Spelling) -> list[Call]:
        graphs = {"single label": small, "cora": "cora"}
        graph = graphs.get(name) or spelling.command("synthetic", nodes=150)[0]
        about = {"graph": graph, "run": RUN, "seeds": seeds, "epochs": EPOCHS}
        return [Call(spelling.command("train", model, **about), "train")]

    return Job(f"{model}, {name}, {seeds} seed{'s' * (seeds > 1)}", calls, _read)


def _population(variant: str, small: str) -> Job:
    """Members with settings of their own, trained in one pass."""

    def calls(spelling: Spelling) -> list[Call]:
        about = {"graph": small, "run": RUN, "epochs": EPOCHS}
        own = spelling.command(f"population of {variant}", **about)
        return [Call(own, "train")]

    return Job(f"population, {variant}", calls, _read)


def _interrupted(small: str) -> Job:
    """A run that a signal ends halfway, and that is resumed then."""

    def calls(spelling: Spelling) -> list[Call]:
        about = {"graph": small, "run": RUN, "seeds": SEEDS, "epochs": LONG}
        log = str(spelling.file(RUN, "metrics"))
        first = Call(
            spelling.command("train", "ours", **about),
            "interrupted",
            stop=(log, SEEDS * LONG // 3),
            code=130,
        )
        return [first, Call(spelling.command("train", "ours", "resume", **about), "resumed")]

    return Job("resumed", calls, _read)


def _batches(way: str, small: str, ranks: int = 1) -> Job:
    def calls(spelling: Spelling) -> list[Call]:
        about = {"graph": small, "run": RUN, "seeds": 1, "epochs": EPOCHS, "size": BATCH}
        names = ["train", "ours", "batches", way, *["two parts"] * (ranks > 1)]
        return [Call(spelling.command(*names, **about), "train", ranks=ranks)]

    return Job(f"batches, {way}{f', {ranks} ranks' * (ranks > 1)}", calls, _read)
