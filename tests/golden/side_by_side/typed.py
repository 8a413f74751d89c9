"""Types of the edges of two real graphs, without help and with 5 % of the types shown."""

from pathlib import Path
from typing import Any

import numpy as np

from . import outputs
from .graphs import typed_folder
from .jobs import RUN, Call, Job
from .spellings import Spelling
from .trees import data_folder

__all__ = ["edge_jobs"]

SHARES = (0.0, 0.05)
SETS = {"airlines": 12, "imdb_links": 2}  # and how many types each has


def edge_jobs(graphs: Path, *, quick: bool) -> list[Job]:
    """The types of every graph with every share shown; none without the benchmark graphs.

    Args:
        graphs: Folder for the graphs.
        quick: Only the smaller graph.
    """
    data = data_folder()
    if data is None:
        return []
    names = [*SETS][:1] if quick else [*SETS]
    return [_types(name, data / f"{name}.npz", share, graphs) for name in names for share in SHARES]


def _types(name: str, arrays: Path, share: float, graphs: Path) -> Job:
    graph = typed_folder(graphs / f"{name}-{share:g}", arrays, share)

    def calls(spelling: Spelling) -> list[Call]:
        more = [] if share else ["number of reasons"]
        about = {"graph": graph, "run": RUN, "seeds": 1, "number": SETS[name]}
        return [
            Call(spelling.command("edges", *more, **about), "train"),
            Call(spelling.command("predict", run=RUN), "predict"),
        ]

    def read(folder: Path, spelling: Spelling) -> dict[str, Any]:
        table = outputs.table(spelling.file(folder / RUN, "edges predicted"), spelling.renamed)
        held_back = outputs.described(spelling.file(folder / RUN, "result"), spelling.renamed)
        return {
            "assignments": table,
            "scores": _scores(table, arrays),
            "held back": held_back.get("held_back"),
        }

    return Job(f"{name}, {share:.0%} shown", calls, read)


def _scores(table: dict[str, Any], arrays: Path) -> dict[str, float]:
    """How well the likeliest type or reason of an edge tells its type, where it has one type."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import adjusted_mutual_info_score

    with np.load(arrays, allow_pickle=False) as graph:
        types, names = graph["edge_type"], [*graph["edge_type_names"]]
        types = types[graph["edge_index"][0] < graph["edge_index"][1]]
    columns = [key for key in table if key.startswith("p:")]
    order = np.lexsort((table["target"], table["source"]))  # that of the graph
    likeliest = np.stack([table[key] for key in columns], 1).argmax(1)[order]
    single = types.sum(1) == 1
    truth, found = types.argmax(1)[single], likeliest[single]
    counts = np.zeros((len(columns), len(names)), dtype=int)
    np.add.at(counts, (found, truth), 1)
    if columns == [f"p:{one}" for one in names]:
        pairs = (np.arange(len(names)), np.arange(len(names)))
    else:  # reasons have no names: the best match of one to one
        pairs = linear_sum_assignment(-counts)
    recall = counts[pairs] / np.maximum(1, counts.sum(0)[pairs[1]])
    return {
        "accuracy": float(counts[pairs].sum() / len(truth)),
        "balanced": float(recall.mean()),
        "adjusted mutual information": float(adjusted_mutual_info_score(truth, found)),
    }
