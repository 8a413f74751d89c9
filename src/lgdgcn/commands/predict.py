"""``lgdgcn predict``: labels, probabilities and factors as CSV."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.commands.console import out as console
from lgdgcn.commands.console import print_warning
from lgdgcn.commands.finished_run import open_run
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.errors import InputError
from lgdgcn.metrics.attribution import both_directions, routing_entropy
from lgdgcn.models import NodeOutput
from lgdgcn.storage import write_csv
from lgdgcn.train.sanity import routing_warning
from lgdgcn.train.trained import TrainedModel

__all__ = ["joined", "predict"]


def predict(run: Path, out: Path, *, graph: str | None, edges: bool, device: str) -> None:
    """Predict every node of the run's graph or of another one."""
    finished = open_run(run, device)
    trained, source = finished.trained, finished.source
    if graph is not None:
        source = source.elsewhere(graph)
    finished.target(out, graph=source)
    if edges:
        finished.target(out.with_name(f"{out.stem}-edges.csv"), graph=source)
    data = source.load(require_labels=False, encoding=trained.encoding)
    of_one_graph = source.features == "identity" or trained.feature_names == SPECTRAL_NAMES
    if of_one_graph and source is not finished.source:
        _check_same_nodes(finished.source.load(require_labels=False), data)
    output = trained(data)
    if edges and not output.layers:
        raise InputError("--edges: only lgdgcn and disengcn know the factors of an edge")
    ids = _ids(data)
    factors = trained.dominant_factors(output)
    header = ["node", "label", "probability"] + ([] if factors is None else ["factor"])
    text = data.get("node_text") or {}  # what the nodes table says in words
    nodes = zip(_node_rows(trained, output, ids, factors), *text.values(), strict=True)
    write_csv(out, [*header, *text], ([*cells, *words] for cells, *words in nodes))
    console.print(f"{len(ids)} nodes: {out}", soft_wrap=True)
    if edges:
        path = out.with_name(f"{out.stem}-edges.csv")
        rows = list(_edge_rows(data, output, ids))
        count = trained.settings.num_factors
        write_csv(path, ["source", "target", "factor", *(f"p{m + 1}" for m in range(count))], rows)
        console.print(f"{len(rows)} edges: {path}", soft_wrap=True)
    if output.layers:
        entropy = routing_entropy(output.layers[-1].edge_factors)
        if unrouted := routing_warning(entropy, trained.settings):
            print_warning(unrouted)


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


def _node_rows(
    trained: TrainedModel, output: NodeOutput, ids: list[Any], factors: Tensor | None
) -> Iterator[list[Any]]:
    probabilities = trained.task.probabilities(output.logits).cpu()
    predicted = trained.task.predict(output.logits).cpu()
    for node, name in enumerate(ids):
        if trained.task.multi_label:
            chosen = predicted[node].nonzero().flatten().tolist()
            label: Any = joined(trained.classes[c] for c in chosen)
            probability = probabilities[node, chosen].min().item() if chosen else None
        else:
            label = trained.classes[int(predicted[node])]
            probability = probabilities[node].max().item()
        cells = [name, label, "" if probability is None else f"{probability:.6f}"]
        yield cells + ([] if factors is None else [int(factors[node]) + 1])


def _edge_rows(data: Data, output: NodeOutput, ids: list[Any]) -> Iterator[list[Any]]:
    pairs, mean = both_directions(data.edge_index, output.layers[-1].edge_factors.cpu())
    strongest = mean.argmax(1) + 1
    for (source, target), factor, row in zip(pairs.t().tolist(), strongest, mean, strict=True):
        yield [ids[source], ids[target], int(factor), *(f"{p:.6f}" for p in row.tolist())]
