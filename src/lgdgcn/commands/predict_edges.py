"""``lgdgcn predict --edges`` of a run of ``--task edges``: the type of every edge as CSV."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.cli.train_edges import check_edges_device, load_edges
from lgdgcn.commands.console import out as console
from lgdgcn.edges import EdgeReasons
from lgdgcn.edges.of_graph import known_types, unknown_edges
from lgdgcn.edges.store import load_reasons
from lgdgcn.errors import InputError
from lgdgcn.runs.finished import checked_target, source_of, told_before
from lgdgcn.runs.folder import Run
from lgdgcn.storage import write_csv

__all__ = ["predict_edges"]


def predict_edges(
    run: Path, out: Path | None, *, graph: str | None, probabilities: bool, device: str
) -> None:
    """Write every edge of the run's graph once, with its likeliest type or reason."""
    check_edges_device(device)
    if graph is not None:
        raise InputError(
            "--graph: the reasons of a run are those of its own edges; train on the other graph "
            "with --task edges"
        )
    files = Run.open(run)
    source = source_of(files.config)
    own = files.edge_predictions
    target = checked_target(run, out or own, own, source)
    with told_before():
        data = load_edges(source)
    reasons = load_reasons(files.reasons, data)
    rows = list(_rows(data, reasons, probabilities))
    typed = known_types(data) is not None
    header = ["source", "target", "type" if typed else "reason", "probability", "second"]
    header += ["second_probability", *(["known"] if typed else [])]
    header += [f"p:{name}" for name in reasons.names] if probabilities else []
    write_csv(target, header, rows)
    console.print(f"{len(rows)} edges: {target}", soft_wrap=True)


def _rows(data: Data, reasons: EdgeReasons, probabilities: bool) -> Iterator[list[Any]]:
    """A row for each edge; of an unknown one no type is named."""
    ids = data.get("node_ids") or range(data.x.size(0))
    names, types = reasons.names, known_types(data)
    unknown = unknown_edges(reasons, data).tolist()
    likeliest = reasons.probability.sort(dim=1, descending=True, stable=True)
    once = (data.edge_index[0] < data.edge_index[1]).nonzero().flatten()
    for edge in once.tolist():
        source, target = data.edge_index[:, edge].tolist()
        row = [ids[source], ids[target]]
        if unknown[edge]:
            row += ["unknown", "", "", ""]
        else:
            order = likeliest.indices[edge, :2].tolist()
            shown = [f"{value:.6f}" for value in likeliest.values[edge, :2].tolist()]
            best = [(names[number], one) for number, one in zip(order, shown, strict=True)]
            row += [cell for pair in [*best, ("", "")][:2] for cell in pair]
        if types is not None:  # several have ; between them, as in edges.csv
            row.append(";".join(names[number] for number in torch.nonzero(types[edge]).flatten()))
        if probabilities:
            row += [f"{value:.6f}" for value in reasons.probability[edge].tolist()]
        yield row
