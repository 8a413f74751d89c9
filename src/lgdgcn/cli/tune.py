"""``lgdgcn tune``: search for a model's best settings and leave them as a preset."""

import os
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgdgcn.cli import console
from lgdgcn.cli.libraries import load_libraries
from lgdgcn.cli.options import Device, Graph, GraphOptions, Metric, Model, Quiet, Sets, assigned
from lgdgcn.config import model_and_variant, preset
from lgdgcn.errors import InputError, LGDWarning, StoppedError

if TYPE_CHECKING:
    import optuna

    from lgdgcn.runtime import StopRequest
    from lgdgcn.search.tuning import SearchProblem
    from lgdgcn.search.winner import Finalist

__all__ = ["tune"]

LEAST_SEEDS = 3
SHOWN = 5  # finalists beside each other
COLUMNS = ("trial", "state", "validation")  # the first of trials.csv


def tune(
    graph: Graph,
    model: Model = "lgdgcn",
    trials: Annotated[int, typer.Option(help="Settings to try, by all workers together.")] = 200,
    seeds: Annotated[int, typer.Option(help="Trainings per trial, at least 3.")] = LEAST_SEEDS,
    space: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with the ranges to search.",
            show_default="that of the model",
        ),
    ] = None,
    sets: Sets = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="SQLite file of the study, or a URL such as postgresql://user@host/studies.",
            show_default="study.db in the output folder",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a study, or join others in it.")
    ] = False,
    device: Device = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for preset, plots and table.", show_default="runs/tune/GRAPH-MODEL"
        ),
    ] = None,
    metric: Metric = None,
    quiet: Quiet = False,
    worker: Annotated[bool, typer.Option("--worker", hidden=True)] = False,
    *,
    reading: GraphOptions,
) -> None:
    """Search for a model's best settings on validation and leave them as a preset.

    What --set gives is not searched.

    Examples:
        lgdgcn tune cora --model lgdgcn-released --trials 200
        lgdgcn tune my-graph/ --set factors=3
        lgdgcn tune my-graph/ --model gcn --trials 50 --space my-space.toml
        lgdgcn tune cora --storage postgresql://user@host/studies --resume
    """
    console.begin(quiet=quiet or worker)
    kind, variant = model_and_variant(model)
    if seeds < LEAST_SEEDS:
        raise InputError(
            f"--seeds is {seeds}; one lucky seed must not win, give at least {LEAST_SEEDS}"
        )
    for option, value in (("trials", trials), ("workers", workers)):
        if value < 1:
            raise InputError(f"--{option} is {value}; give at least 1")
    given = assigned(sets, metric=metric)
    source = reading.source(graph)
    load_libraries()
    from lgdgcn.runtime import keep_freed_memory, select_device, set_threads, stop_on_signals
    from lgdgcn.search import tuning, winner
    from lgdgcn.search.space import read_space, space_of
    from lgdgcn.search.study import database_faults, open_study, storage_url
    from lgdgcn.storage import check_folder, make_folder, write_text

    where, own = select_device(device), None if space is None else read_space(space)
    name = winner.search_name(source, model)
    folder = out or Path("runs") / "tune" / name
    url = storage_url(storage or folder / "study.db")
    check_folder(folder)
    _refuse_strangers(folder, name)
    set_threads()
    keep_freed_memory()
    data = source.load()
    if not bool(data.val_mask.any()):
        raise InputError(f"{graph} has no validation nodes to choose settings by; mark some")
    about: Any = {"multi_label": data.y.dim() == 2}
    shipped = preset(source.preset_name, kind, variant, **about)
    ranges = space_of(kind, variant, source.preset_name, given, own, **about)
    problem = tuning.SearchProblem(source, kind, ranges, seeds, where)
    console.say(str(problem.metric(data)))
    if not resume:
        make_folder(folder)  # where the study lies
    with database_faults(url), stop_on_signals() as stop:
        drawn = tuning.sampler(None if resume else 0)
        study = open_study(name, url, problem.describe(), resume=resume, sampler=drawn)
        make_folder(folder)  # of a study that goes on in a database elsewhere
        if worker:
            with suppress(StoppedError):  # the first process says so
                tuning.search(problem, study, trials, with_others=True, stop=stop)
            return
        tuning.fail_lost(study)
        tuning.enqueue(study, (ranges.inside(shipped), *ranges.starts))
        finalists = _search(problem, study, trials, workers, stop)
        _write_trials(folder / "trials.csv", study)
        about_graph = [graph, *winner.graph_options(source), "--model", model]
        command = ["lgdgcn", "tune", *about_graph, "--trials", str(trials), "--seeds", str(seeds)]
        command += ["--space", space.name] if space else []
        command += [word for text in sets or [] for word in ("--set", text)]
        command += ["--metric", metric] if metric else []
        file = folder / f"{name}.toml"
        write_text(
            file, winner.preset_text(problem, study, finalists, shlex.join(command), shipped)
        )
        winner.draw(study, folder)
        _print(name, study, finalists)
    console.say(f"preset: {file}")
    use = ["lgdgcn", "train", *about_graph, "--config", str(file)]
    console.say(f"use it: {shlex.join(use)}")


def _search(
    problem: "SearchProblem", study: "optuna.Study", trials: int, workers: int, stop: "StopRequest"
) -> "list[Finalist]":
    """Search with all workers, then train the best again in this process."""
    from lgdgcn.search.tuning import fail_lost, finished, search
    from lgdgcn.search.winner import train_finalists

    with console.progress(study.study_name, tenths=True) as update:

        def on_trial() -> None:
            done = finished(study)
            best = max((t.value for t in done if t.state.name == "COMPLETE"), default=None)
            text = f"{len(done)} of {trials} trials, best validation {console.percent(best)}"
            update(min(1.0, len(done) / trials), text)

        how: Any = {"on_trial": on_trial, "stop": stop}
        with _further_workers(workers - 1, stop):
            search(problem, study, trials, with_others=True, **how)
        fail_lost(study)
        search(problem, study, trials, **how)  # what a killed worker has left
        update(None, "the best again on fresh seeds")
        return train_finalists(problem, study, stop)


def _refuse_strangers(folder: Path, name: str) -> None:
    """Refuse a folder with files under our names that are not of a search, as its table says."""
    table, head = folder / "trials.csv", ",".join(COLUMNS).encode()
    with suppress(OSError), table.open("rb") as file:
        if file.read(len(head)) == head:
            return
    for other in ("trials.csv", f"{name}.toml", "history.png", "importance.png"):
        if (folder / other).exists():
            raise InputError(f"{folder / other} is not of a search: choose another --out")


@contextmanager
def _further_workers(count: int, stop: "StopRequest") -> Iterator[None]:
    """Run the same command so many times more; none of them is left when the context ends."""
    import torch

    environment = dict(os.environ)
    if count and "OMP_NUM_THREADS" not in environment:  # each has its share of the cores
        threads = max(1, torch.get_num_threads() // (count + 1))
        torch.set_num_threads(threads)
        environment["OMP_NUM_THREADS"] = str(threads)
    words = [word for word in sys.argv[2:] if word != "--resume"]
    command = [sys.executable, "-m", "lgdgcn", "tune", "--resume", "--worker", *words]
    others: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):  # a terminal's Ctrl-C is not for them: this process ends them
            others.append(subprocess.Popen(command, env=environment, start_new_session=True))
        yield
        while any(other.poll() is None for other in others):
            stop.check("stopped; what is finished is kept, go on with --resume")
            time.sleep(0.1)
        if any(other.returncode for other in others):
            warnings.warn("a worker ended early, its trials are lost", LGDWarning, stacklevel=2)
    finally:
        for other in others:
            other.terminate()
            other.wait()


def _write_trials(path: Path, study: "optuna.Study") -> None:
    from lgdgcn.storage import write_csv

    trials = study.get_trials(deepcopy=False)
    names = sorted({name for trial in trials for name in trial.params})
    rows = [
        [t.number, t.state.name.lower(), t.value, *(t.params.get(name) for name in names)]
        for t in trials
    ]
    write_csv(path, [*COLUMNS, *names], rows)


def _print(name: str, study: "optuna.Study", finalists: "list[Finalist]") -> None:
    """Print the best finalists beside each other: scores, measures of factors, settings."""
    from lgdgcn.metrics.catalogue import MEASURES

    best = finalists[:SHOWN]
    first = {trial.number: trial.value for trial in study.get_trials(deepcopy=False)}
    rows = [
        [f"{len(best[0].scores)} fresh seeds", *(console.percent(one.mean) for one in best)],
        ["±", *(console.percent(one.std) for one in best)],
        ["in the search", *(console.percent(first[one.number]) for one in best)],
    ]
    for measure in best[0].factors:
        values = (console.plain(one.factors.get(measure), 3) for one in best)
        rows.append([MEASURES[measure].title, *values])
    for setting in best[0].params:
        rows.append([setting, *(_shown(one.params[setting]) for one in best)])
    title = f"{name}: validation in %, the best first"
    console.table(title, ["trial", *(str(one.number) for one in best)], rows)


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
