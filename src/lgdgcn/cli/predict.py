"""``lgdgcn predict``: labels, probabilities and factors as a table."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Json, Quiet, Run
from lgdgcn.errors import InputError
from lgdgcn.progress import long_work

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from lgdgcn.cli.opened import OpenedRun
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
        typer.Option("--edges", help="Write edges also of a graph that is not read whole."),
    ] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also write the probability of every class and reason.")
    ] = False,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the predicted label and its probability for every node, and a reason for every edge.

    Beside a label stand the true label and the split, where the graph knows them. Several labels of
    a node have | between them; a | or backslash within a name has a backslash before it. Feature
    columns are matched by name.

    Edges are in a second file, NAME-edges.csv: the likeliest reason or type, its probability, the
    second, whether so little is explained that it is unknown (1), and the type that was known.

    Examples:
        lgdgcn predict runs/cora-lgdgcn --proba
        lgdgcn predict runs/mine --graph new-graph/ --out predictions.csv
    """
    console.begin(quiet=quiet, as_json=as_json)
    if graph is not None and out is None:
        raise InputError("--graph: name the file for another graph's predictions with --out")
    load_libraries()
    from lgdgcn.cli.tables import PARQUET, require_parquet

    if out is not None and out.suffix == PARQUET:
        require_parquet()
    written = _predict(run, out, graph, device, edges=edges, probabilities=proba)
    if as_json:
        console.as_json(written)


def _predict(
    folder: Path,
    out: Path | None,
    other: str | None,
    device: str,
    *,
    edges: bool,
    probabilities: bool,
) -> dict[str, Any]:
    """Write a row for every node and one for every edge; returns what was written."""
    from lgdgcn.cli.opened import OpenedRun, large_graph, warnings_of
    from lgdgcn.cli.tables import CSV, PARQUET, has_parquet, write_table
    from lgdgcn.large.view import GraphView

    opened = OpenedRun(folder, device)
    files, run = opened.files, opened.run
    if run is None:
        if other is not None:
            raise InputError(
                "--graph: reasons of edges are those of the run's own graph; train on the other one"
            )
        edge_file = files.target(out, files.edge_predictions)
        return _write_edges(opened, edge_file, probabilities) | {"warnings": []}
    source = run.source if other is None else run.source.elsewhere(other)
    graph = large_graph(run, source)
    if out is None:
        is_many = graph is not None and graph.rows.num_nodes >= MANY
        out = files.predictions.with_suffix(PARQUET if is_many and has_parquet() else CSV)
    suffix = PARQUET if out.suffix == PARQUET else CSV
    files.target(out, files.predictions.with_suffix(suffix), graph=source)
    edge_file = out.with_name(f"{out.stem}-edges{suffix}")
    files.target(edge_file, files.edge_predictions.with_suffix(suffix), graph=source)
    is_whole = graph is None
    if graph is None:
        graph = GraphView.in_memory(run.trained, _read(run, source))
    if other is None:
        opened.graph = graph
    written: dict[str, Any] = {"nodes": write_table(out, node_blocks(graph, probabilities))}
    written["file"] = str(out)
    console.say(f"{written['nodes']} nodes: {out}")
    warnings, unsaid = warnings_of(run, graph.edge_factors, again=other is not None)
    if is_whole and other is None and (opened.has_reasons or _has_factors(opened)):
        written |= _write_edges(opened, edge_file, probabilities)
    elif not opened.has_reasons and run.trained.model.num_factors and (is_whole or edges):
        written["edges"] = write_table(edge_file, _edge_blocks(graph, probabilities))
        written["edge_file"] = str(edge_file)
        console.say(f"{written['edges']} edges: {edge_file}")
    elif not is_whole and not edges:
        console.say("edges of a graph that is not read whole are written with --edges")
    else:
        console.say("edges are not written: there are no reasons of the edges of this graph")
    for warning in unsaid:
        console.warn(warning)
    return written | {"warnings": warnings}


def _has_factors(opened: "OpenedRun") -> bool:
    """Whether the model of a run, or the one beside it, has factors of edges."""
    from lgdgcn.cli.opened import factors_of

    return opened.run is not None and bool(factors_of(opened.run)[0].trained.model.num_factors)


def _write_edges(opened: "OpenedRun", file: Path, probabilities: bool) -> dict[str, Any]:
    """Write every edge of a graph in memory once."""
    from lgdgcn.cli.tables import edge_columns, write_table

    reasons, names = opened.reasons, opened.data.get("node_ids")
    ids = names or range(opened.data.x.size(0))
    source, target = ([ids[node] for node in end] for end in reasons.edges.ends.tolist())
    block = edge_columns(
        source,
        target,
        reasons.names,
        reasons.probability,
        unknown=reasons.unknown,
        known=reasons.known,
        probabilities=probabilities,
    )
    count = write_table(file, [block])
    for note in ("", *opened.notes.values()):
        console.say(note or f"{count} edges: {file}")
    return {"edges": count, "edge_file": str(file), **opened.notes}


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
    _bring_labels(run, source, data)
    return data


def _bring_labels(run: "FinishedRun", source: "GraphSource", data: "Data") -> None:
    """Let labels that a model was trained with be those of the same nodes in another graph."""
    import torch

    from lgdgcn.models import AlongReasons

    model = run.trained.model
    if not isinstance(model, AlongReasons):
        return
    own = {name: number for number, name in enumerate(_ids(run.data))}
    numbers = torch.tensor([own.get(name, -1) for name in _ids(data)])
    run.trained.model = moved = model.for_nodes(numbers)
    if not bool((moved.labels >= 0).any()):
        console.warn(
            f"{source.dataset} has none of the nodes whose labels the model was trained with: no "
            "label travels there, and features alone predict"
        )


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


def _edge_blocks(graph: "GraphView", probabilities: bool) -> Iterator["Block"]:
    """Every edge once with its factors, the end with the smaller number first."""
    import torch

    from lgdgcn.cli.tables import edge_columns

    rows, factors, done = graph.rows, graph.edge_factors, 0
    assert factors is not None
    parts = [(0, rows.num_nodes)] if graph.packed is None else graph.ranges()
    names = [f"factor {number + 1}" for number in range(factors.size(1))]
    more: dict[str, Any] = {"probabilities": probabilities}
    yield edge_columns([], [], names, factors[:0].cpu().numpy(), **more)  # the header
    with long_work("predicting edges", "edges") as advance:
        for low, high in parts:
            ends = torch.stack(rows.edges(low, high))
            ends = ends[:, ends[0] < ends[1]]
            for first in range(0, ends.size(1), BLOCK):
                part = ends[:, first : first + BLOCK]
                source, target = (graph.ids(end) for end in part)
                shares = _factors(graph, part).cpu().numpy()
                yield edge_columns(source, target, names, shares, **more)
                done += part.size(1)
                advance(done, 2 * done / rows.num_edges)


def _factors(graph: "GraphView", ends: "Tensor") -> "Tensor":
    """The factors of edges ``[2, e]``, the mean of both directions ``[e, M]``."""
    if graph.packed is not None:
        return graph.table.edge_factors(*ends)  # alike in both
    nobody = ends.new_zeros(0)
    there, back = (graph.output(nobody, edges).layers[-1] for edges in (ends, ends.flip(0)))
    return (there.edge_factors + back.edge_factors) / 2
