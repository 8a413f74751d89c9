"""``lgdgcn explore``: one HTML file to walk through a run."""

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Quiet, Run, is_of_edges
from lgdgcn.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lgdgcn.large.view import GraphView
    from lgdgcn.reasons import Explanation
    from lgdgcn.runs.finished import FinishedRun

__all__ = ["explore"]


def explore(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write.", show_default="explore.html in the run folder"),
    ] = None,
    node: Annotated[
        str | None, typer.Option(metavar="ID", help="Show only the surroundings of this node.")
    ] = None,
    hops: Annotated[
        int | None, typer.Option(help="How far from --node to look.", show_default="2")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--class", metavar="NAME", help="Show only nodes with this known label."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write one HTML page to walk through a run: graph, factors, predictions and measures.

    Of more than 20,000 nodes a sample is shown, or those that --node or --class choose.

    Examples:
        lgdgcn explore runs/cora-lgdgcn --open
        lgdgcn explore runs/mine --out mine.html
        lgdgcn explore runs/mine --node alice --hops 2
    """
    console.begin(quiet=quiet)
    if is_of_edges(run):
        for option, value in (("node", node), ("class", label), ("hops", hops)):
            if value is not None:
                raise InputError(
                    f"--{option} is for runs of nodes, and {run} is of --task edges; leave it out"
                )
    if hops is not None and node is None:
        raise InputError("--hops says how far from --node to look; add --node, or leave it out")
    load_libraries()
    if is_of_edges(run):
        target, text = _page_of_edges(run, out, device)
    else:
        target, text = _page_of_nodes(run, out, device, node, 2 if hops is None else hops, label)
    console.say(f"{target} ({len(text) / 1e6:.1f} MB)")
    if show:
        webbrowser.open(target.resolve().as_uri())


def _page_of_nodes(
    folder: Path, out: Path | None, device: str, node: str | None, hops: int, label: str | None
) -> tuple[Path, str]:
    """Write the page of a run, or of the part of its graph that is chosen."""
    from lgdgcn.cli.opened import graph_of, open_factors
    from lgdgcn.explorer.page import to_page
    from lgdgcn.explorer.part import shown_part
    from lgdgcn.explorer.payload import check_size, payload
    from lgdgcn.runs.folder import Run
    from lgdgcn.storage import write_text

    run, whose = open_factors(folder, device)
    named = Run.open(folder)
    target = named.target(out, named.page, run.source)
    graph = graph_of(run)
    data, note = shown_part(graph, node, hops, label)
    check_size(data)
    notes = [line for line in (note, whose) if line is not None]
    for line in notes:
        console.say(line)
    with console.steps() as progress:
        content = payload(
            _explained(graph, data, run),
            dataset=run.source.name,
            log=_log(run.files.metrics),
            scores=_scores(run),
            measures=_measures(named.measures, graph, progress),
            warnings=[*notes, *run.warnings],
            progress=progress,
        )
        progress("page")
        text = to_page(content)
        write_text(target, text)
    return target, text


def _explained(graph: "GraphView", data: "Data", run: "FinishedRun") -> "Explanation":
    """What the page shows of a graph, or of a part of it."""
    from lgdgcn.reasons import Explanation

    if graph.packed is not None:
        return Explanation.of_factors(graph, data)
    if "part_nodes" in data:
        return Explanation.of_factors(graph, graph.data).part(data)
    return Explanation.of_factors(graph, data, run.other_seeds)


def _page_of_edges(folder: Path, out: Path | None, device: str) -> tuple[Path, str]:
    from lgdgcn.cli.opened import open_reasons
    from lgdgcn.explorer.page import to_page
    from lgdgcn.explorer.payload import payload
    from lgdgcn.runs.folder import Run
    from lgdgcn.storage import write_text

    run = Run.open(folder)
    source = run.source
    target = run.target(out, run.page, source)
    with console.steps() as progress:
        progress("reasons")
        explanation = open_reasons(run, device)
        scores = _held_back(explanation.reasons.about["held_back"])
        content = payload(explanation, dataset=source.name, scores=scores, progress=progress)
        text = to_page(content)
        write_text(target, text)
    return target, text


def _held_back(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Mean scores on known types that were held back, if any were."""
    names = ("accuracy", "balanced", "calibration_error")
    return {
        f"held-back types: {name}": sum(row[name] for row in rows) / len(rows)
        for name in names
        if rows and all(isinstance(row[name], float) for row in rows)
    }


def _log(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []


def _scores(run: "FinishedRun") -> dict[str, float | None]:
    """Scores of the model that is shown and, of several seeds, the mean."""
    result = run.result
    names = {"val": "validation", "test": "test"}
    kept = run.best_run["scores"]
    scores = {
        f"{title} {name}": value
        for part, title in names.items()
        for name, value in kept.get(part, {}).items()
    }
    if len(result["runs"]) > 1:
        mean = f"test {result.get('metric')}, mean of {len(result['runs'])} seeds"
        scores[mean] = result.get("mean")
    return scores


def _measures(
    file: Path, graph: "GraphView", progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The rows that ``lgdgcn measure`` has written, or else new ones."""
    from lgdgcn.explorer.payload import MOST_NODES
    from lgdgcn.metrics.controls import measure
    from lgdgcn.metrics.sampled import Sample

    if file.is_file():
        try:
            rows = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
                return rows
        except (OSError, ValueError, RecursionError):
            pass
        raise InputError(f"{file} is damaged; write it again with: lgdgcn measure")
    progress("measures")
    if graph.packed is None and graph.rows.num_nodes <= MOST_NODES:
        return [dict(row) for row in measure(graph, graph.data)]
    return [dict(row) for row in Sample.of(graph).measure()]
