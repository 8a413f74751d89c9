"""``lgdgcn reproduce``: the paper's tables and figures, ours beside them, and types of edges."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lgdgcn.commands.console import out, print_table
from lgdgcn.data.catalogue import is_available
from lgdgcn.errors import InputError, LGDWarning, StoppedError
from lgdgcn.reproduce.cells import FULL, QUICK
from lgdgcn.reproduce.exhibits import Exhibit, cells
from lgdgcn.reproduce.exhibits import exhibits as described
from lgdgcn.reproduce.graphs import data_tables
from lgdgcn.reproduce.report import write_report
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.runs import TrainingProgress, merged, train_cells
from lgdgcn.runtime import check_cpu, keep_freed_memory, select_device, set_threads, stop_on_signals
from lgdgcn.storage import check_target, make_folder

__all__ = ["reproduce"]

EDGES = "edges"


def reproduce(
    names: Sequence[str], *, quick: bool, folder: Path | None, device: str, root: str | None
) -> None:
    """Train what the exhibits need and is not there yet; write the report about them."""
    about_edges = [name for name in names if name == EDGES or name.startswith(f"{EDGES}:")]
    where = select_device(device)
    if about_edges and len(about_edges) == len(names):
        check_cpu(device, "methods for edges are run")
    if about_edges:
        graphs = [name.partition(":")[2] for name in about_edges]
        _reproduce_edges(graphs, quick=quick, folder=folder, root=root)
        names = [name for name in names if name not in about_edges]
        if not names:
            return
    plan = QUICK if quick else FULL
    exhibits = described(names or ["all"], plan)
    if not names or "all" in names:
        exhibits = _with_data(exhibits, root)
    set_threads()
    keep_freed_memory()
    path = folder or _usual_folder(quick)
    _check_folder(path)
    make_folder(path / "figures")
    results = Results(path / "cells")
    wanted = [cell for exhibit in exhibits for cell in cells(exhibit)]
    try:
        with stop_on_signals() as stop, _progress() as on_progress:
            train_cells(wanted, results, where, root=root, on_progress=on_progress, stop=stop)
    except StoppedError as error:
        message = f"{error}; finished ones are saved, repeat the command to go on"
        raise StoppedError(message, error.exit_code) from None
    shown = [one for one in described(["all"], plan) if one in exhibits or _done(one, results)]
    data = data_tables(root, {cell.graph for one in shown for cell in cells(one)})
    write_report(path, shown, data, results, quick=quick)
    _print(exhibits, results)
    out.print(f"report: {path / 'report.html'} and {path / 'report.md'}", soft_wrap=True)


def _usual_folder(quick: bool) -> Path:
    return Path("runs") / ("reproduce-quick" if quick else "reproduce")


def _reproduce_edges(
    graphs: Sequence[str], *, quick: bool, folder: Path | None, root: str | None
) -> None:
    """Run all methods that tell types of edges, and write the table and the figure.

    Args:
        graphs: Data sets or folders; an empty name stands for both of ours.
        quick: Two seeds instead of five.
        folder: Where to write.
        root: Folder of data sets.
    """
    from lgdgcn.reproduce.edge_report import write_edge_report
    from lgdgcn.reproduce.edges import GRAPHS, EdgeResult, load_typed, run_graph

    path = folder or _usual_folder(quick)
    results: list[EdgeResult] = []
    make_folder(path / "figures")
    for name in ("edges.md", "edges.json"):
        check_target(path / name)
    wanted = [name for graph in graphs for name in ([graph] if graph else GRAPHS)]
    loaded = [load_typed(name, root) for name in dict.fromkeys(wanted)]
    set_threads()
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def on_progress(text: str) -> None:
        console.print(text, soft_wrap=True)

    for data in loaded:  # a signal may come at any time: what is finished is on disk
        seeds = range(2 if quick else 5)
        results += run_graph(data, path / "edges", seeds, on_progress=on_progress)
    for file in write_edge_report(path, results):
        out.print(f"written: {file}", soft_wrap=True)


def _check_folder(path: Path) -> None:
    """Refuse a folder whose report is not ours to replace, or cannot be written in the end."""
    for name in ("report.md", "report.html"):
        if (path / name).exists() and not (path / "cells").is_dir():
            raise InputError(
                f"{path / name} is not of this command, for there are no cells beside it: "
                "choose another --out"
            )
        if path.is_dir():
            check_target(path / name)


def _with_data(exhibits: list[Exhibit], root: str | None) -> list[Exhibit]:
    """Leave out what needs graphs that are not there; what is asked for by name is refused."""
    absent = {
        one.name: {cell.graph for cell in cells(one) if not is_available(cell.graph, root)}
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


def _done(exhibit: Exhibit, results: Results) -> bool:
    """Whether an earlier command has trained all of it, so that the report keeps it."""
    return all(not results.missing(cell) for cell in cells(exhibit))


def _print(exhibits: Sequence[Exhibit], results: Results) -> None:
    rows = []
    for exhibit in exhibits:
        own = merged(cells(exhibit))
        runs = [results.runs(cell)[seed] for cell in own for seed in cell.seeds]
        diverged = sum(bool(run.diverged) for run in runs)
        seconds = sum(run.seconds for run in runs)
        numbers = [str(len(own)), str(len(runs)), str(diverged), f"{seconds / 60:.1f}"]
        rows.append([exhibit.name, *numbers])
    header = ["exhibit", "configs", "trainings", "diverged", "minutes"]
    print_table("Reproduced; exhibits share trainings", header, rows)


@contextmanager
def _progress() -> Iterator[Callable[[TrainingProgress], None]]:
    """Show a bar on a terminal's standard error, else a line for every tenth of the work."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    hidden = not console.is_terminal
    start, said = time.monotonic(), 0
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=1.0)

        def on_progress(progress: TrainingProgress) -> None:
            nonlocal said
            text = f"{progress.finished} of {progress.total} trainings"
            if progress.share:
                left = (time.monotonic() - start) * (1 - progress.share) / progress.share
                text += f", about {timedelta(seconds=round(left))} left"
            text += f"; {progress.label}"
            bar.update(task, completed=progress.share, description=text)
            if hidden and (tenth := int(10 * progress.share)) > said:
                said = tenth
                console.print(f"{10 * tenth} %: {text}", soft_wrap=True)

        yield on_progress
