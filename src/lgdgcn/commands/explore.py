"""``lgdgcn explore``: one HTML file to walk through a run."""

import json
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lgdgcn.commands.console import out as console
from lgdgcn.commands.console import steps
from lgdgcn.commands.explain import open_reasons
from lgdgcn.commands.large import large_graph
from lgdgcn.errors import InputError
from lgdgcn.explorer.page import to_page
from lgdgcn.explorer.part import shown_part
from lgdgcn.explorer.payload import MOST_NODES, check_size, payload
from lgdgcn.explorer.reasons import reason_payload
from lgdgcn.large.view import GraphView
from lgdgcn.runs.finished import FinishedRun, checked_target, open_run, source_of
from lgdgcn.runs.folder import Run
from lgdgcn.storage import write_text

__all__ = ["explore"]


def explore(
    run: Path,
    out: Path | None,
    *,
    node: str | None,
    hops: int | None,
    label: str | None,
    show: bool,
    device: str,
) -> None:
    """Write the page of a run, or of the part of its graph that is chosen."""
    if Run.open(run).reasons.is_file():
        for option, value in (("node", node), ("class", label), ("hops", hops)):
            if value is not None:
                raise InputError(
                    f"--{option} is for runs of nodes, and {run} is of --task edges; leave it out"
                )
        _explore_reasons(run, out, device, show=show)
        return
    if hops is not None and node is None:
        raise InputError("--hops says how far from --node to look; add --node, or leave it out")
    finished = open_run(run, device)
    own = Run.open(run).page
    target = finished.target(out or own, own)
    graph = large_graph(finished) or GraphView.in_memory(finished.trained, finished.data)
    data, note = shown_part(graph, node, 2 if hops is None else hops, label)
    check_size(graph, data)
    if note is not None:
        console.print(note, soft_wrap=True)
    with steps() as progress:
        content = payload(
            graph,
            data,
            dataset=finished.source.name,
            log=_log(run),
            scores=_scores(finished),
            measures=_measures(finished, graph, progress),
            warnings=[*([note] if note else []), *finished.warnings],
            others=[] if "part_nodes" in data else finished.other_seeds,
            progress=progress,
        )
        progress("page")
        text = to_page(content)
        write_text(target, text)
    _finish(target, text, show)


def _explore_reasons(run: Path, out: Path | None, device: str, *, show: bool) -> None:
    """Write the page of a run of ``--task edges``."""
    files = Run.open(run)
    source = source_of(files.config)
    target = checked_target(run, out or files.page, files.page, source)
    with steps() as progress:
        progress("reasons")
        explained = open_reasons(run, device)
        check_size(None, explained.data)
        progress("layout of the graph")
        scores = _held_back(files)
        text = to_page(reason_payload(explained, dataset=source.name, scores=scores))
        write_text(target, text)
    _finish(target, text, show)


def _held_back(files: Run) -> dict[str, float | None]:
    """Mean scores on known types that were held back, if any were."""
    try:
        rows = json.loads(files.result.read_text(encoding="utf-8"))["held_back"]
        names = ("accuracy", "balanced", "calibration_error")
        return {
            f"held-back types: {name}": sum(row[name] for row in rows) / len(rows)
            for name in names
            if rows and all(isinstance(row[name], float) for row in rows)
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}  # the reasons need no scores to be shown


def _finish(target: Path, text: str, show: bool) -> None:
    console.print(f"{target} ({len(text) / 1e6:.1f} MB)", soft_wrap=True)
    if show:
        webbrowser.open(target.resolve().as_uri())


def _log(run: Path) -> list[str]:
    file = Run.open(run).metrics
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []


def _scores(finished: FinishedRun) -> dict[str, float | None]:
    """Scores of the model that is shown and, of several seeds, the mean."""
    result = finished.result
    names = {"val": "validation", "test": "test"}
    kept = finished.best_run["scores"]
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
    finished: FinishedRun, graph: GraphView, progress: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The rows that ``lgdgcn measure`` has written, or else new ones."""
    file = Run.open(finished.folder).measures
    if file.is_file():
        try:
            rows = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
                return rows
        except (OSError, ValueError, RecursionError):
            pass
        raise InputError(f"{file} is damaged; write it again with: lgdgcn measure")
    from lgdgcn.metrics.controls import measure
    from lgdgcn.metrics.sampled import Sample

    progress("measures")
    if graph.packed is None and graph.rows.num_nodes <= MOST_NODES:
        return [dict(row) for row in measure(graph, graph.data)]
    return [dict(row) for row in Sample.of(graph).measure()]
