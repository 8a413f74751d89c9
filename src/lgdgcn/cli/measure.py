"""``lgdgcn measure``: how well a run tells factors apart, beside two controls."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.console import plain
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Json, Quiet, Run

if TYPE_CHECKING:
    from lgdgcn.metrics.controls import Row
    from lgdgcn.runs.finished import FinishedRun

__all__ = ["measure"]

MOST_WHOLE = 200_000  # nodes of a graph in memory that is measured whole
ARROWS = {"higher": "↑", "lower": "↓", "none": ""}


def measure(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(help="JSON file to write.", show_default="measure.json in the run folder"),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure how well a run separates factors, beside an untrained and a permuted control.

    Where no model has factors, what is said of edges is measured of the reasons of edges.

    Examples:
        lgdgcn measure runs/cora-lgdgcn
        lgdgcn measure runs/mine --out mine.json
    """
    console.begin(quiet=quiet, as_json=as_json)
    load_libraries()
    from lgdgcn.cli.opened import OpenedRun, factors_of, graph_of, warnings_of
    from lgdgcn.metrics import controls
    from lgdgcn.metrics.sampled import Sample
    from lgdgcn.storage import write_json
    from lgdgcn.train.checks import usage_warning

    whole = OpenedRun(run, device)
    target = whole.files.target(out, whole.files.measures, whole.source)
    named = whole.run
    if named is None or (whole.has_reasons and not _has_factors(named)):
        with console.steps() as progress:
            progress("measures")
            explanation = whole.explanation
            found = controls.measure_reasons(explanation.reasons, whole.data)
        write_json(target, found)
        _print(f"{whole.source.name}: {len(explanation.reasons.names)} reasons", found)
        console.say(f"measures: {target}")
        if as_json:
            console.as_json({"measures": found, "notes": [], "warnings": [], "file": str(target)})
        return
    opened, whose = factors_of(named)
    graph, note = graph_of(opened), None
    with console.steps() as progress:
        progress("measures")
        if graph.packed is None and graph.rows.num_nodes <= MOST_WHOLE:
            rows, output = controls.measure(graph, graph.data), graph(graph.data)
        else:
            sample = Sample.of(graph)
            rows, output, note = sample.measure(), sample.output(), sample.note
    write_json(target, rows)
    _print(f"{opened.source.name}: {opened.trained.settings.factors} factors", rows)
    notes = [line for line in (note, whose) if line is not None]
    for line in notes:
        console.say(line)
    edge_factors = output.layers[-1].edge_factors if output.layers else None
    warnings, unsaid = warnings_of(opened, edge_factors, again=True)
    unused = usage_warning(opened.trained, output)
    if unused and unused not in warnings:
        warnings, unsaid = [*warnings, unused], [*unsaid, unused]
    for warning in unsaid:
        console.warn(warning)
    console.say(f"measures: {target}")
    if as_json:
        console.as_json(
            {"measures": rows, "notes": notes, "warnings": warnings, "file": str(target)}
        )


def _has_factors(run: "FinishedRun") -> bool:
    return bool(run.with_factors().trained.model.num_factors)


def _print(title: str, rows: "list[Row]") -> None:
    header = ["measure", "", "value", "95 % interval", "untrained", "permuted"]
    lines = [
        [
            row["title"],
            ARROWS[row["better"]],
            plain(row["value"]),
            f"{plain(row['low'])} to {plain(row['high'])}" if row["low"] is not None else "–",
            plain(row["untrained"]),
            plain(row["permuted"]),
        ]
        for row in rows
        if row["value"] is not None  # others need to know the true factors, or labels
    ]
    console.table(title, header, lines, text_columns=2)
