"""How well the types of edges are predicted, by every method and with every level of help.

Five seeds each; a seed draws which types are shown and starts the method. What is finished is in
``edges/GRAPH.LEVEL.METHOD.json`` and is not run again, unless the graph or its types have changed.
"""

import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.data.in_memory import without
from lgdgcn.data.labels import UntrainableError
from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, LGDWarning
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.scores import edge_type_scores, reliability_curve, single_types
from lgdgcn.reasons.shown import shown_types
from lgdgcn.reproduce.edge_methods import LEVELS, METHODS, EdgeMethod, Level
from lgdgcn.storage import make_folder, write_json

__all__ = ["GRAPHS", "EdgeResult", "load_typed", "run_graph", "run_method"]

GRAPHS = ("airlines", "imdb_links")
EdgeResult = dict[str, Any]  # ready for JSON


def load_typed(address: str, root: str | None = None) -> Data:
    """A graph whose edges have known types: a data set by name, or a user's folder.

    Raises:
        InputError: No edge has exactly one type, or all have the same one.
    """
    source = GraphSource(address, root)
    try:
        data = source.load(require_labels=None)
    except UntrainableError:  # labels that no model can be trained on are no help
        data = without(source.load(require_labels=False), "y", "classes")
        data.y = torch.full((data.num_nodes,), -1)
    types = single_types(data.edge_type.numpy()) if "edge_type" in data else torch.empty(0).numpy()
    if len(set(types[types >= 0].tolist())) < 2:
        raise InputError(
            f"{address} has no edges with two known types; give edges.csv a column 'type'"
        )
    return data


def run_graph(
    data: Data,
    folder: Path,
    seeds: Sequence[int],
    methods: Sequence[EdgeMethod] = METHODS,
    on_progress: Callable[[str], None] = lambda text: None,
) -> Iterator[EdgeResult]:
    """Run all methods with all levels of help on one graph; those in the folder are read.

    Args:
        data: A graph from :func:`load_typed`.
        folder: Where results are kept.
        seeds: One run each.
        methods: The rows of the table.
        on_progress: Called with a line about what comes next.
    """
    make_folder(folder)
    types = hashlib.sha256(data.edge_type.numpy().tobytes()).hexdigest()
    key = {"data": fingerprint(data), "types": types, "seeds": list(seeds)}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(data.name))
    for level in LEVELS:
        if level.labels and not (data.y >= 0).any():
            continue
        for method in methods:
            if level.id not in method.levels:
                continue
            file = folder / f"{name}.{level.id}.{method.id}.json"
            result = _stored(file, key)
            if result is None:
                on_progress(f"{data.name}, {level.title}: {method.title}")
                runs = [run_method(data, method, level, seed) for seed in seeds]
                about = {"graph": str(data.name), "level": level.id, "method": method.id}
                result = {**about, "title": method.title, "kind": method.kind, **key, "runs": runs}
                write_json(file, result)
            yield result


def run_method(data: Data, method: EdgeMethod, level: Level, seed: int) -> EdgeResult:
    """One run: all measures on the pairs whose types are hidden, and how long it took.

    The method never sees ``edge_type``, and labels of nodes only at the level that gives them.
    """
    if level.share is None:
        shown = data.edge_type
    else:
        shown = shown_types(data.edge_index, data.edge_type, level.share, seed)
    hidden = ["edge_type", "edge_type_names", *([] if level.labels else ["y", "classes"])]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        probability = method.run(without(data, *hidden), shown, seed)
    seconds = time.perf_counter() - start
    types = Edges.of_graph(data).once(data.edge_type)
    scored = torch.ones(len(types), dtype=torch.bool).numpy()
    if level.share is not None:
        scored = Edges.of_graph(data).once(shown).sum(1) == 0
    scores = edge_type_scores(probability, types, named=level.named, scored=scored)
    result: EdgeResult = {"seed": seed, "seconds": round(seconds, 3), **scores._asdict()}
    if level.named:
        single = scored & (types.sum(1) == 1)
        curve = reliability_curve(probability[single], types[single].argmax(1))
        result["reliability"] = {key: one.tolist() for key, one in curve._asdict().items()}
    return result


def _stored(file: Path, key: dict[str, Any]) -> EdgeResult | None:
    """A finished result of the same graph, types and seeds."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    same = isinstance(found, dict) and all(found.get(name) == value for name, value in key.items())
    return found if same else None
