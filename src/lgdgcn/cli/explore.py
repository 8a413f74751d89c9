"""``lgdgcn explore``: one HTML file to walk through a run."""

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Quiet, Run
from lgdgcn.errors import InputError

if TYPE_CHECKING:
    from lgdgcn.cli.opened import OpenedRun
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
    """Write one HTML page to walk through a run: graph, reasons, predictions and measures.

    Of more than 20,000 nodes a sample is shown, or those that --node or --class choose.

    Examples:
        lgdgcn explore runs/cora-lgdgcn --open
        lgdgcn explore runs/mine --out mine.html
        lgdgcn explore runs/mine --node alice --hops 2
    """
    console.begin(quiet=quiet)
    if hops is not None and node is None:
        raise InputError("--hops says how far from --node to look; add --node, or leave it out")
    load_libraries()
    from lgdgcn.cli.opened import OpenedRun
    from lgdgcn.explorer.page import to_page
    from lgdgcn.explorer.payload import payload
    from lgdgcn.storage import write_text

    opened = OpenedRun(run, device)
    target = opened.files.target(out, opened.files.page, opened.source)
    explanation, note = _chosen(opened, node, 2 if hops is None else hops, label)
    notes = [*([note] if note else []), *opened.notes.values()]
    for line in notes:
        console.say(line)
    with console.steps() as progress:
        about = _about(opened, explanation, progress)
        about["warnings"] = notes + ([] if opened.run is None else opened.run.warnings)
        content = payload(explanation, dataset=opened.source.name, progress=progress, **about)
        progress("page")
        text = to_page(content)
        write_text(target, text)
    console.say(f"{target} ({len(text) / 1e6:.1f} MB)")
    if show:
        webbrowser.open(target.resolve().as_uri())


def _chosen(
    opened: "OpenedRun", node: str | None, hops: int, label: str | None
) -> tuple["Explanation", str | None]:
    """What the page shows: the graph or a part of it, and one line that says which part."""
    from lgdgcn.explorer.part import shown_part
    from lgdgcn.explorer.payload import check_size
    from lgdgcn.reasons import Explanation

    graph = opened.graph
    if graph is None:
        for option, value in (("node", node), ("class", label)):
            if value is not None:
                raise InputError(f"--{option} needs a run that predicts labels; leave it out")
        check_size(opened.data)
        return opened.explanation, None
    data, note = shown_part(graph, node, hops, label)
    check_size(data)
    if graph.packed is not None:
        return Explanation.of_factors(graph, data), note
    return opened.explanation.part(data) if "part_nodes" in data else opened.explanation, note


def _about(
    opened: "OpenedRun", explanation: "Explanation", progress: Callable[[str], None]
) -> dict[str, Any]:
    """Scores of types and of the model, and what the page says of its training."""
    run, graph = opened.run, opened.graph
    scores = _held_back(explanation.reasons.about.get("held_back", []))
    if run is None or graph is None:
        return {"scores": scores}
    measures = []
    if explanation.noun == "factor" and run.trained.model.num_factors:
        measures = _measures(opened.files.measures, graph, progress)
    return {"log": _log(run.files.metrics), "scores": _scores(run) | scores, "measures": measures}


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
