"""``lgdgcn reproduce``: the paper's tables and figures, ours beside them, and types of edges."""

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Quiet
from lgdgcn.errors import InputError, LGDWarning, StoppedError

if TYPE_CHECKING:
    import torch

    from lgdgcn.reproduce.exhibits import Exhibit
    from lgdgcn.reproduce.results import Results
    from lgdgcn.reproduce.runs import TrainingProgress

__all__ = ["reproduce"]

EDGES = "edges"


def reproduce(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHAT",
            help="table1 to table4, ours (our variant and its parts), fig-units, "
            "fig-correlation, fig-embedding, fig-lambda, fig-k, fig-factors, fig-ours, or all; "
            "edges (known types of edges, on two real graphs) or edges:GRAPH.",
            show_default="all",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two seeds and short trainings: minutes, not hours.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report and all results; what is there is not trained again.",
            show_default="runs/reproduce, runs/reproduce-quick",
        ),
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Train what the paper shows, and write a report with its numbers beside ours.

    Interrupted, it goes on where it stopped when the command is repeated.

    Examples:
        lgdgcn reproduce --quick
        lgdgcn reproduce table2 fig-k --device cuda --out runs/paper
    """
    console.begin(quiet=quiet)
    load_libraries()
    from lgdgcn.runtime import check_cpu, select_device

    path = out or Path("runs") / ("reproduce-quick" if quick else "reproduce")
    names = what or []
    about_edges = [name for name in names if name == EDGES or name.startswith(f"{EDGES}:")]
    where = select_device(device)
    if about_edges and len(about_edges) == len(names):
        check_cpu(device, "methods for edges are run")
    if about_edges:
        _reproduce_edges([name.partition(":")[2] for name in about_edges], path, quick=quick)
    paper = [name for name in names if name not in about_edges]
    if paper or not names:
        _reproduce_paper(paper, path, where, quick=quick)


def _reproduce_paper(
    names: Sequence[str], path: Path, where: "torch.device", *, quick: bool
) -> None:
    """Train what the exhibits need and is not there yet; write the report about them."""
    from lgdgcn.reproduce.cells import FULL, QUICK
    from lgdgcn.reproduce.exhibits import cells
    from lgdgcn.reproduce.exhibits import exhibits as described
    from lgdgcn.reproduce.graphs import data_tables
    from lgdgcn.reproduce.report import write_report
    from lgdgcn.reproduce.results import Results
    from lgdgcn.reproduce.runs import train_cells
    from lgdgcn.runtime import keep_freed_memory, set_threads, stop_on_signals
    from lgdgcn.storage import make_folder

    plan = QUICK if quick else FULL
    exhibits = described(names or ["all"], plan)
    if not names or "all" in names:
        exhibits = _with_data(exhibits)
    set_threads()
    keep_freed_memory()
    _check_folder(path)
    make_folder(path / "figures")
    results = Results(path / "cells")
    wanted = [cell for exhibit in exhibits for cell in cells(exhibit)]
    try:
        with stop_on_signals() as stop, console.progress("", tenths=True) as update:
            start = time.monotonic()

            def on_progress(done: "TrainingProgress") -> None:
                text = f"{done.finished} of {done.total} trainings"
                if done.share:
                    left = (time.monotonic() - start) * (1 - done.share) / done.share
                    text += f", about {console.duration(left)} left"
                update(done.share, f"{text}; {done.label}")

            train_cells(wanted, results, where, on_progress=on_progress, stop=stop)
    except StoppedError as error:
        message = f"{error}; finished ones are saved, repeat the command to go on"
        raise StoppedError(message, error.exit_code) from None
    shown = [one for one in described(["all"], plan) if one in exhibits or _done(one, results)]
    data = data_tables(None, {cell.graph for one in shown for cell in cells(one)})
    write_report(path, shown, data, results, quick=quick)
    _print(exhibits, results)
    console.say(f"report: {path / 'report.html'} and {path / 'report.md'}")


def _reproduce_edges(graphs: Sequence[str], path: Path, *, quick: bool) -> None:
    """Run all methods that tell types of edges, and write the table and the figure.

    Args:
        graphs: Data sets or folders; an empty name stands for both of ours.
        path: Folder to write to.
        quick: Two seeds instead of five.
    """
    from lgdgcn.reproduce.edge_report import write_edge_report
    from lgdgcn.reproduce.edges import GRAPHS, EdgeResult, load_typed, run_graph
    from lgdgcn.runtime import set_threads
    from lgdgcn.storage import check_target, make_folder

    results: list[EdgeResult] = []
    make_folder(path / "figures")
    for name in ("edges.md", "edges.json"):
        check_target(path / name)
    wanted = [name for graph in graphs for name in ([graph] if graph else GRAPHS)]
    loaded = [load_typed(name, None) for name in dict.fromkeys(wanted)]
    set_threads()
    seeds = range(2 if quick else 5)
    with console.steps(lines=True) as on_step:
        for data in loaded:  # a signal may come at any time: what is finished is on disk
            results += run_graph(data, path / "edges", seeds, on_progress=on_step)
    for file in write_edge_report(path, results):
        console.say(f"written: {file}")


def _check_folder(path: Path) -> None:
    """Refuse a folder whose report is not ours to replace, or cannot be written in the end."""
    from lgdgcn.storage import check_target

    for name in ("report.md", "report.html"):
        if (path / name).exists() and not (path / "cells").is_dir():
            raise InputError(
                f"{path / name} is not of this command, for there are no cells beside it: "
                "choose another --out"
            )
        if path.is_dir():
            check_target(path / name)


def _with_data(exhibits: "list[Exhibit]") -> "list[Exhibit]":
    """Leave out what needs graphs that are not there; what is asked for by name is refused."""
    from lgdgcn.data.catalogue import is_available
    from lgdgcn.reproduce.exhibits import cells

    absent = {
        one.name: {cell.graph for cell in cells(one) if not is_available(cell.graph)}
        for one in exhibits
    }
    without = [one.name for one in exhibits if absent[one.name]]
    if not without or len(without) == len(exhibits):
        return exhibits
    graphs = ", ".join(sorted(set().union(*absent.values())))
    warnings.warn(
        f"without {', '.join(without)}: {graphs} are in no folder of data sets "
        "(see: lgdgcn data list)",
        LGDWarning,
        stacklevel=2,
    )
    return [one for one in exhibits if one.name not in without]


def _done(exhibit: "Exhibit", results: "Results") -> bool:
    """Whether an earlier command has trained all of it, so that the report keeps it."""
    from lgdgcn.reproduce.exhibits import cells

    return all(not results.missing(cell) for cell in cells(exhibit))


def _print(exhibits: "Sequence[Exhibit]", results: "Results") -> None:
    from lgdgcn.reproduce.exhibits import cells
    from lgdgcn.reproduce.runs import merged

    rows = []
    for exhibit in exhibits:
        trained = merged(cells(exhibit))
        runs = [results.runs(cell)[seed] for cell in trained for seed in cell.seeds]
        diverged = sum(bool(run.diverged) for run in runs)
        seconds = sum(run.seconds for run in runs)
        numbers = [str(len(trained)), str(len(runs)), str(diverged), f"{seconds / 60:.1f}"]
        rows.append([exhibit.name, *numbers])
    header = ["exhibit", "configs", "trainings", "diverged", "minutes"]
    console.table("Reproduced; exhibits share trainings", header, rows)
