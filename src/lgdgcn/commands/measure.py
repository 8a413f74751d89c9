"""``lgdgcn measure``: how well a run tells factors apart, beside two controls."""

from pathlib import Path

from lgdgcn.commands.console import out as console
from lgdgcn.commands.console import plain, print_table, print_warning, steps
from lgdgcn.commands.large import large_graph
from lgdgcn.large.view import GraphView
from lgdgcn.metrics.controls import Row, measure
from lgdgcn.metrics.routing import routing_warning, told_of_training
from lgdgcn.metrics.sampled import Sample
from lgdgcn.runs.finished import open_run
from lgdgcn.runs.folder import Run
from lgdgcn.storage import write_json
from lgdgcn.train.checks import usage_warning

__all__ = ["measure_run"]

MOST_WHOLE = 200_000  # nodes of a graph in memory that is measured whole
ARROWS = {"higher": "↑", "lower": "↓", "none": ""}


def measure_run(run: Path, out: Path | None, *, device: str) -> None:
    """Measure a run, print the table and write the rows as JSON."""
    finished = open_run(run, device)
    own = Run.open(run).measures
    target = finished.target(out or own, own)
    graph = large_graph(finished) or GraphView.in_memory(finished.trained, finished.data)
    note = None
    with steps() as progress:
        progress("measures")
        if graph.packed is None and graph.rows.num_nodes <= MOST_WHOLE:
            rows, output = measure(graph, graph.data), graph(graph.data)
        else:
            sample = Sample.of(graph)
            rows, output, note = sample.measure(), sample.output(), sample.note
    write_json(target, rows)
    settings = finished.trained.settings
    _print(f"{finished.source.name}: {settings.factors} factors", rows)
    if note is not None:
        console.print(note, soft_wrap=True)
    edge_factors = output.layers[-1].edge_factors if output.layers else None
    unrouted = routing_warning(edge_factors, settings)
    unused = usage_warning(finished.trained, output)
    for warning in dict.fromkeys([*told_of_training(finished.warnings), unrouted, unused]):
        if warning:
            print_warning(warning)
    console.print(f"measures: {target}", soft_wrap=True)


def _print(title: str, rows: list[Row]) -> None:
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
    print_table(title, header, lines, text_columns=2)
