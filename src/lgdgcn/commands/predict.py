"""``lgdgcn predict``: labels, probabilities and factors as CSV."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.commands.console import out as console
from lgdgcn.commands.console import print_warning
from lgdgcn.commands.finished_run import FinishedRun, open_run
from lgdgcn.data.labels import SPLITS, is_labelled
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.errors import InputError
from lgdgcn.metrics.attribution import both_directions, routing_entropy
from lgdgcn.models import NodeOutput
from lgdgcn.storage import write_csv
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.sanity import routing_warning, told_of_training
from lgdgcn.train.trained import TrainedModel

__all__ = ["joined", "predict"]


def predict(
    run: Path,
    out: Path | None,
    *,
    graph: str | None,
    edges: bool,
    probabilities: bool,
    device: str,
) -> None:
    """Predict every node of the run's graph or of another one."""
    if graph is not None and out is None:
        raise InputError("--graph: name the file for another graph's predictions with --out")
    finished = open_run(run, device)
    trained, source = finished.trained, finished.source
    if graph is not None:
        source = source.elsewhere(graph)
    own = RunFolder(run).predictions
    out = finished.target(out or own, own, graph=source)
    edge_file = out.with_name(f"{out.stem}-edges.csv")
    if edges:
        finished.target(edge_file, RunFolder(run).edge_predictions, graph=source)
    if graph is None:
        data = _own_graph(finished)
    else:
        data = source.load(require_labels=False, encoding=trained.encoding)
    of_one_graph = source.features == "identity" or trained.feature_names == SPECTRAL_NAMES
    if of_one_graph and source is not finished.source:
        _check_same_nodes(finished.source.load(require_labels=False), data)
    output = trained(data)
    if edges and not output.layers:
        raise InputError("--edges: only lgdgcn and disengcn know the factors of an edge")
    ids = _ids(data)
    columns = _columns(trained, output) | _known(data)
    if probabilities:
        columns |= _all_probabilities(trained, output)
    columns |= data.get("node_text") or {}  # what the nodes table says in words
    write_csv(out, ["node", *columns], zip(ids, *columns.values(), strict=True))
    console.print(f"{len(ids)} nodes: {out}", soft_wrap=True)
    if edges:
        rows = list(_edge_rows(data, output, ids))
        count = trained.settings.num_factors
        header = ["source", "target", "factor", *(f"p{m + 1}" for m in range(count))]
        write_csv(edge_file, header, rows)
        console.print(f"{len(rows)} edges: {edge_file}", soft_wrap=True)
    for warning in told_of_training(finished.warnings):
        print_warning(warning)
    if output.layers:
        entropy = routing_entropy(output.layers[-1].edge_factors)
        if unrouted := routing_warning(entropy, trained.settings):
            print_warning(unrouted)


def _own_graph(finished: FinishedRun) -> Data:
    """The run's graph with its split; where labels or results are gone, what is left of it."""
    try:
        return finished.data
    except InputError:
        return finished.source.load(require_labels=False, encoding=finished.trained.encoding)


def _ids(data: Data) -> list[Any]:
    return list(getattr(data, "node_ids", range(data.x.size(0))))


def _check_same_nodes(own: Data, other: Data) -> None:
    """Refuse a graph of other nodes for a model whose features are the nodes themselves."""
    if _ids(own) != _ids(other):
        raise InputError(
            "--graph: the run was trained with features made from its own structure, which say "
            "nothing of the nodes of another graph; train with --features degree instead"
        )


def joined(names: Iterable[Any]) -> str:
    r"""Names of labels in one cell, ``|`` between them; within a name it is ``\|``.

    A backslash is written twice, so that what was joined can be taken apart.

    Example:
        >>> print(joined(["a", "b|c", "d"]))
        a|b\|c|d
    """
    return "|".join(str(name).replace("\\", "\\\\").replace("|", "\\|") for name in names)


def _columns(trained: TrainedModel, output: NodeOutput) -> dict[str, list[Any]]:
    """What the model says of every node, by the name of the column."""
    probabilities = trained.task.probabilities(output.logits).cpu()
    predicted = trained.task.predict(output.logits).cpu()
    if trained.task.multi_label:
        labels = _label_sets(predicted, trained.classes)
        chosen = probabilities.masked_fill(~predicted.bool(), torch.inf).amin(1)
    else:
        labels = [trained.classes[number] for number in predicted.tolist()]
        chosen = probabilities.amax(1)
    shown = ["" if math.isinf(one) else f"{one:.6f}" for one in chosen.tolist()]
    columns = {"label": labels, "probability": shown}
    factors = trained.dominant_factors(output)
    return columns if factors is None else columns | {"factor": [f + 1 for f in factors.tolist()]}


def _known(data: Data) -> dict[str, list[Any]]:
    """What the graph itself says of every node: columns are left out where it says nothing."""
    columns: dict[str, list[Any]] = {}
    labelled = is_labelled(data.y)
    if labelled.any():
        if data.y.dim() == 2:
            names = _label_sets(data.y > 0, data.classes)
        else:
            names = [data.classes[number] for number in data.y.tolist()]
        known = zip(names, labelled.tolist(), strict=True)
        columns["true_label"] = [name if has_label else "" for name, has_label in known]
    masks = {split: data[f"{split}_mask"] for split in SPLITS}
    if any(mask.any() for mask in masks.values()):
        columns["split"] = [""] * len(data.y)
        for split, mask in masks.items():
            for node in mask.nonzero().flatten().tolist():
                columns["split"][node] = split
    return columns


def _all_probabilities(trained: TrainedModel, output: NodeOutput) -> dict[str, list[Any]]:
    """A column ``p:NAME`` for every class or label."""
    by_class = trained.task.probabilities(output.logits).cpu().t().tolist()
    return {
        f"p:{name}": [f"{one:.6f}" for one in column]
        for name, column in zip(trained.classes, by_class, strict=True)
    }


def _label_sets(chosen: Tensor, names: list[Any]) -> list[str]:
    """The names of each node's labels, joined."""
    return [joined(name for name, is_one in zip(names, row, strict=True) if is_one)
            for row in chosen.tolist()]  # fmt: skip


def _edge_rows(data: Data, output: NodeOutput, ids: list[Any]) -> Iterator[list[Any]]:
    pairs, mean = both_directions(data.edge_index, output.layers[-1].edge_factors.cpu())
    strongest = mean.argmax(1) + 1
    for (source, target), factor, row in zip(pairs.t().tolist(), strongest, mean, strict=True):
        yield [ids[source], ids[target], int(factor), *(f"{p:.6f}" for p in row.tolist())]
