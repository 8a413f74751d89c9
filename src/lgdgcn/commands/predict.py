"""``lgdgcn predict``: labels, probabilities and factors as CSV or Parquet."""

from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.commands.console import out as console
from lgdgcn.commands.console import print_warning
from lgdgcn.commands.large import large_graph
from lgdgcn.commands.predict_edges import predict_edges
from lgdgcn.commands.predict_large import write_large
from lgdgcn.commands.predicted_columns import (
    all_probabilities,
    edge_columns,
    known_columns,
    known_of,
    node_columns,
    with_text,
)
from lgdgcn.commands.table_file import (
    CSV,
    PARQUET,
    Block,
    check_format,
    large_format,
    write_blocks,
)
from lgdgcn.data.source import GraphSource
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.errors import InputError
from lgdgcn.metrics.attribution import both_directions
from lgdgcn.metrics.routing import routing_warning, told_of_training
from lgdgcn.runs.finished import FinishedRun, open_run
from lgdgcn.runs.folder import Run

__all__ = ["predict"]

MANY = 1_000_000  # nodes from which a packed graph's predictions are a Parquet file


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
    if edges and Run.open(run).reasons.is_file():
        return predict_edges(run, out, graph=graph, probabilities=probabilities, device=device)
    if graph is not None and out is None:
        raise InputError("--graph: name the file for another graph's predictions with --out")
    if out is not None:
        check_format(out)
    finished = open_run(run, device)
    trained, source = finished.trained, finished.source
    if graph is not None:
        source = source.elsewhere(graph)
    large = large_graph(finished, source)
    files = Run.open(run)
    if out is None:
        many = large is not None and large.rows.num_nodes >= MANY
        out = files.predictions.with_suffix(large_format() if many else CSV)
        if many and out.suffix == CSV:
            said = "written as CSV, as Parquet needs pyarrow (pip install 'lgdgcn[parquet]')"
            console.print(said, soft_wrap=True)
    suffix = PARQUET if out.suffix == PARQUET else CSV
    edge_file = out.with_name(f"{out.stem}-edges{suffix}") if edges else None
    finished.target(out, files.predictions.with_suffix(suffix), graph=source)
    if edge_file is not None:
        finished.target(edge_file, files.edge_predictions.with_suffix(suffix), graph=source)
    if large is not None:
        write_large(large, out, edge_file, probabilities)
        edge_factors: Tensor | None = large.edge_factors
    else:
        edge_factors = _write_whole(finished, source, out, edge_file, probabilities)
    for warning in told_of_training(finished.warnings):
        print_warning(warning)
    if unrouted := routing_warning(edge_factors, trained.settings):
        print_warning(unrouted)


def _write_whole(
    finished: FinishedRun,
    source: GraphSource,
    out: Path,
    edge_file: Path | None,
    probabilities: bool,
) -> Tensor | None:
    """Predict a graph in memory; returns the factors of its edges, if the model has any."""
    trained = finished.trained
    if source is finished.source:
        data = _own_graph(finished)
    else:
        data = source.load(require_labels=False, encoding=trained.encoding)
    of_one_graph = source.features == "identity" or trained.feature_names == SPECTRAL_NAMES
    if of_one_graph and source is not finished.source:
        _check_same_nodes(finished.source.load(require_labels=False), data)
    output = trained(data)
    if edge_file is not None and not output.layers:
        raise InputError("--edges: only lgdgcn and disengcn know the factors of an edge")
    ids = _ids(data)
    columns: Block = {"node": ids}
    columns |= node_columns(trained, output) | known_of(data, known_columns(data))
    if probabilities:
        columns |= all_probabilities(trained, output)
    write_blocks(out, [with_text(columns, data.get("node_text") or {})])
    console.print(f"{len(ids)} nodes: {out}", soft_wrap=True)
    if not output.layers:
        return None
    edge_factors = output.layers[-1].edge_factors
    if edge_file is not None:
        pairs, mean = both_directions(data.edge_index, edge_factors.cpu())
        ends = [[ids[node] for node in end] for end in pairs.tolist()]
        count = write_blocks(edge_file, [edge_columns(ends[0], ends[1], mean)])
        console.print(f"{count} edges: {edge_file}", soft_wrap=True)
    return edge_factors


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
