"""What a trained model says of six small graphs: predictions, explanations, measures."""

from pathlib import Path
from typing import Any

from . import outputs
from .graphs import write_graph
from .jobs import RUN, Call, Job
from .spellings import Spelling
from .trainings import read_run

__all__ = ["answer_jobs"]

NAMES = ("single-label", "multi-label", "weighted", "columns", "edge-types", "packed")
EPOCHS, SEEDS, BATCH = 30, 2, 40
PACKED = Path("packed.lgd")
EXPLAINED = {
    "factors": ([], {}),
    "node": (["of a node"], {"node": "n1"}),
    "edge": (["of an edge"], {"source": "n0", "target": "n3"}),
}


def answer_jobs(graphs: Path) -> list[Job]:
    """A run of every graph, and all that is asked of it."""
    return [_answers(name, graphs) for name in NAMES]


def _answers(name: str, graphs: Path) -> Job:
    graph = str(write_graph(graphs, "single-label" if name == "packed" else name))

    def calls(spelling: Spelling) -> list[Call]:
        about = {"graph": graph, "run": RUN, "seeds": SEEDS, "epochs": EPOCHS}
        if name == "edge-types":
            made = [Call(spelling.command("edges", **about), "train")]
        elif name == "packed":
            packing = spelling.command("pack", graph=graph, packed=PACKED)
            about |= {"graph": PACKED, "size": BATCH}
            made = [Call(packing, "pack")]
            made += [Call(spelling.command("train", "ours", "batches", **about), "train")]
        else:
            made = [Call(spelling.command("train", "ours", **about), "train")]
        asked = [Call(spelling.command("predict", run=RUN), "predict")]
        for what, (more, values) in EXPLAINED.items():
            words = spelling.command("explain", *more, run=RUN, **values)
            asked.append(Call(words, f"explain-{what}"))
        if name != "edge-types":  # whose run has no units to measure
            asked.append(Call(spelling.command("measure", run=RUN), "measure"))
        return [*made, *asked]

    def read(folder: Path, spelling: Spelling) -> dict[str, Any]:
        run, renamed = folder / RUN, spelling.renamed
        found: dict[str, Any] = {
            f"explain {what}": outputs.described(folder / f"explain-{what}.out", renamed)
            for what in EXPLAINED
        }
        edges = spelling.file(run, "edges predicted")
        found["edges"] = outputs.table(edges, renamed)
        if name != "edge-types":
            found |= read_run(run, spelling)
            found["nodes"] = outputs.table(spelling.file(run, "nodes predicted"), renamed)
            measures = outputs.described(spelling.file(run, "measures"), renamed)
            found["measures"] = {one["name"]: one for one in measures}
        return found

    return Job(name, calls, read)
