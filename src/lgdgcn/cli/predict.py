"""``lgdgcn predict``: labels, probabilities and factors as a table."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Json, Quiet, Run, is_of_edges
from lgdgcn.errors import InputError
from lgdgcn.progress import long_work

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from lgdgcn.cli.tables import Block
    from lgdgcn.data.source import GraphSource
    from lgdgcn.large.view import GraphView
    from lgdgcn.runs.finished import FinishedRun

__all__ = ["node_blocks", "predict"]

MANY = 1_000_000  # nodes from which a packed graph's predictions are a Parquet file
BLOCK = 1 << 16  # nodes, or edges, that are written at once


def predict(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: CSV, or Parquet if its name ends in .parquet.",
            show_default="predictions.csv in the run folder; .parquet from a million packed nodes",
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(help="Folder or data set to predict.", show_default="the run's own graph"),
    ] = None,
    edges: Annotated[
        bool,
        typer.Option(
            "--edges", help="Also write every edge's factors, to NAME-edges.csv or .parquet."
        ),
    ] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also write the probability of every class.")
    ] = False,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the predicted label, its probability and the factor behind it for every node.

    Beside them stand the true label and the split, where the graph knows them. Several labels of
    a node have | between them; a | or backslash within a name has a backslash before it. Feature
    columns are matched by name.

    Of a run of --task edges: the type or reason of every edge, its probability, the second best,
    and the type that was known. Where less than half of an edge is explained, it is unknown.

    Examples:
        lgdgcn predict runs/cora-lgdgcn --proba
        lgdgcn predict runs/mine --graph new-graph/ --edges --out predictions.csv
        lgdgcn predict runs/reasons
    """
    console.begin(quiet=quiet, as_json=as_json)
    if graph is not None and is_of_edges(run):
        raise InputError(
            "--graph: the reasons of a run are those of its own edges; train on the other graph "
            "with --task edges"
        )
    if graph is not None and out is None:
        raise InputError("--graph: name the file for another graph's predictions with --out")
    load_libraries()
    if is_of_edges(run):
        written = _predict_reasons(run, out, device, probabilities=proba)
    else:
        written = _predict_nodes(run, out, graph, device, edges=edges, probabilities=proba)
    if as_json:
        console.as_json(written)


def _predict_nodes(
    folder: Path,
    out: Path | None,
    other: str | None,
    device: str,
    *,
    edges: bool,
    probabilities: bool,
) -> dict[str, Any]:
    """Write a row for every node and, if asked for, for every edge; returns what was written."""
    from lgdgcn.cli.opened import factors_of, large_graph, warnings_of
    from lgdgcn.cli.tables import CSV, PARQUET, has_parquet, require_parquet, write_table
    from lgdgcn.cli.train_table import model_title
    from lgdgcn.large.view import GraphView
    from lgdgcn.runs.finished import open_run

    if out is not None and out.suffix == PARQUET:
        require_parquet()
    run = open_run(folder, device)
    files = run.files
    with_factors, whose = factors_of(run) if edges else (run, None)
    if edges and not with_factors.trained.model.num_factors:
        raise InputError(
            f"--edges: {model_title(run.result)} has no factors of edges; train --model "
            "lgdgcn, or leave --edges out"
        )
    source = run.source if other is None else run.source.elsewhere(other)
    graph = large_graph(run, source)
    if out is None:
        is_many = graph is not None and graph.rows.num_nodes >= MANY
        out = files.predictions.with_suffix(PARQUET if is_many and has_parquet() else CSV)
    suffix = PARQUET if out.suffix == PARQUET else CSV
    edge_file = out.with_name(f"{out.stem}-edges{suffix}") if edges else None
    files.target(out, files.predictions.with_suffix(suffix), graph=source)
    if edge_file is not None:
        files.target(edge_file, files.edge_predictions.with_suffix(suffix), graph=source)
    graph = graph or GraphView.in_memory(run.trained, _read(run, source))
    written = {"nodes": write_table(out, node_blocks(graph, probabilities)), "file": str(out)}
    console.say(f"{written['nodes']} nodes: {out}")
    warnings, unsaid = warnings_of(run, graph.edge_factors, again=other is not None)
    if edge_file is not None:
        view = graph if whose is None else _same_graph(graph, with_factors)
        written["edges"] = write_table(edge_file, _edge_blocks(view))
        written["edge_file"] = str(edge_file)
        console.say(f"{written['edges']} edges: {edge_file}")
        if whose is not None:
            console.say(whose)
            written["factors_of"] = whose
            more = warnings_of(with_factors, view.edge_factors, again=other is not None)
            warnings, unsaid = warnings + more[0], unsaid + more[1]
    for warning in unsaid:
        console.warn(warning)
    return written | {"warnings": warnings}


def _same_graph(graph: "GraphView", run: "FinishedRun") -> "GraphView":
    """The graph that another model of the same columns predicts."""
    from lgdgcn.large.batch_input import check_batchable
    from lgdgcn.large.view import GraphView

    if graph.packed is None:
        return GraphView.in_memory(run.trained, graph.data)
    check_batchable(run.trained.settings, run.trained.name)
    return GraphView.mapped(run.trained, graph.packed)


def _read(run: "FinishedRun", source: "GraphSource") -> "Data":
    """Read the graph that is predicted; of the run's, whatever is left of it."""
    from lgdgcn.data.spectral import SPECTRAL_NAMES

    if source is run.source:
        try:
            return run.data  # with its split
        except InputError:  # labels or results are gone
            return source.load(require_labels=False, encoding=run.trained.encoding)
    data = source.load(require_labels=False, encoding=run.trained.encoding)
    of_one_graph = source.features == "identity" or run.trained.feature_names == SPECTRAL_NAMES
    if of_one_graph and _ids(run.source.load(require_labels=False)) != _ids(data):
        raise InputError(
            "--graph: the run was trained with features made from its own structure, which say "
            "nothing of the nodes of another graph; train with --features degree instead"
        )
    return data


def _ids(data: "Data") -> list[Any]:
    return list(data.get("node_ids") or range(data.x.size(0)))


def node_blocks(graph: "GraphView", probabilities: bool) -> Iterator["Block"]:
    """What is predicted and known of every node, with all its neighbours, block by block."""
    import torch

    from lgdgcn.cli import tables

    count = graph.rows.num_nodes
    known = tables.known_columns(graph.about(slice(None)))
    if graph.packed is not None:
        _ = graph.table  # which shows how far it is
    with long_work("predicting nodes", "nodes") as advance:
        for low in range(0, count, BLOCK):
            high = min(low + BLOCK, count)
            nodes = range(low, high)
            output = graph.output(torch.arange(low, high))
            block: Block = {"node": graph.ids(nodes)} | tables.node_columns(graph, output)
            block |= tables.known_of(graph.about(slice(low, high)), known)
            if probabilities:
                block |= tables.all_probabilities(graph, output)
            yield tables.with_text(block, graph.text(nodes))
            advance(high, high / count)


def _edge_blocks(graph: "GraphView") -> Iterator["Block"]:
    """Every edge once with its factors, the end with the smaller number first."""
    import torch

    from lgdgcn.cli.tables import edge_columns

    rows, factors, done = graph.rows, graph.edge_factors, 0
    assert factors is not None
    parts = [(0, rows.num_nodes)] if graph.packed is None else graph.ranges()
    yield edge_columns([], [], factors[:0])  # the header
    with long_work("predicting edges", "edges") as advance:
        for low, high in parts:
            ends = torch.stack(rows.edges(low, high))
            ends = ends[:, ends[0] < ends[1]]
            for first in range(0, ends.size(1), BLOCK):
                part = ends[:, first : first + BLOCK]
                source, target = (graph.ids(end) for end in part)
                yield edge_columns(source, target, _factors(graph, part))
                done += part.size(1)
                advance(done, 2 * done / rows.num_edges)


def _factors(graph: "GraphView", ends: "Tensor") -> "Tensor":
    """The factors of edges ``[2, e]``, the mean of both directions ``[e, M]``."""
    if graph.packed is not None:
        return graph.table.edge_factors(*ends)  # alike in both
    nobody = ends.new_zeros(0)
    there, back = (graph.output(nobody, edges).layers[-1] for edges in (ends, ends.flip(0)))
    return (there.edge_factors + back.edge_factors) / 2


def _predict_reasons(
    folder: Path, out: Path | None, device: str, *, probabilities: bool
) -> dict[str, Any]:
    """Write every edge of a run of ``--task edges`` once; returns what was written."""
    from lgdgcn.cli.opened import open_reasons
    from lgdgcn.cli.tables import PARQUET, reason_columns, require_parquet, write_table
    from lgdgcn.runs.folder import Run

    if out is not None and out.suffix == PARQUET:
        require_parquet()
    run = Run.open(folder)
    target = run.target(out, run.edge_predictions)
    found = open_reasons(run, device)
    count = write_table(target, [reason_columns(found.ids, found.reasons, probabilities)])
    console.say(f"{count} edges: {target}")
    return {"edges": count, "edge_file": str(target), "warnings": []}
