"""``lgdgcn tune``: search for a model's best settings and leave them as a preset."""

import re
import shlex
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna

from lgdgcn.cli.trial_table import SHOWN, rows_of_settings, trial_progress
from lgdgcn.commands.console import out, percent, print_table
from lgdgcn.config import (
    AUTO,
    auto_scaling,
    belongs,
    check_belongs,
    check_used,
    default_variant,
    parse_assignments,
    preset,
    resolve,
)
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.metrics.catalogue import HEADLINE, MEASURES
from lgdgcn.models import MODELS
from lgdgcn.runtime import select_device, stop_on_signals
from lgdgcn.search.database import StudyAddress, database_faults, default_storage, study_lock
from lgdgcn.search.processes import SearchJob, configure_worker, share_threads, spawn_workers
from lgdgcn.search.space import Space, default_space, read_space
from lgdgcn.search.study import LONGEST_NAME
from lgdgcn.search.tuning import Finalist, SearchProblem, search, train_finalists
from lgdgcn.search.winner import graph_options, plot_history, plot_importance, write_preset
from lgdgcn.storage import check_folder, check_target, make_folder, write_csv
from lgdgcn.train.task import choose_metric

__all__ = ["tune"]

LEAST_SEEDS = 3
TRIAL_COLUMNS = ("trial", "state", "validation")  # the first of trials.csv


def tune(
    source: GraphSource,
    *,
    model: str,
    variant: str | None,
    trials: int,
    seeds: int,
    space: Path | None,
    assignments: list[str],
    storage: str | None,
    workers: int,
    resume: bool,
    device: str,
    folder: Path | None,
) -> None:
    """Search, train the finalists again, write the preset and the plots, print the table."""
    if model not in MODELS:
        raise InputError(f"model is {model!r}; choose from {', '.join(MODELS)}")
    if folder is not None:
        check_folder(folder)
    if storage is not None:
        StudyAddress.read(storage)  # refuses what is mistyped before any folder is made
    where = select_device(device)
    configure_worker()
    share_threads(workers)
    data = source.load()
    multi_label = data.y.dim() == 2
    given = parse_assignments(assignments)
    own = None if space is None else read_space(space)
    named = given if own is None else {**given, **own.settings, **own.ranges}
    if variant is not None:
        check_belongs({"variant": variant}, model)
    chosen = _space(space, model, variant, multi_label, given)
    variant = chosen.settings.get("variant")
    _refuse_unused(named, chosen, model, multi_label)
    chosen = _scaled(chosen, source.preset_name, {*named})
    problem = SearchProblem(source, model, chosen, seeds, where)
    problem.check(data)
    out.print(str(choose_metric(data, chosen.settings.get("metric", AUTO))), soft_wrap=True)
    name = _study_name(source, model, variant)
    path = folder or Path("runs") / "tune" / name
    if not resume:
        _check_belongs(path)
    check_target(make_folder(path) / "trials.csv")
    job = SearchJob(problem, name, storage or default_storage(path), trials, not resume)
    with database_faults(job.storage):
        study = job.open(resume=resume)
        with study_lock(job.storage, name)():  # another machine may join at the same time
            shipped = preset(source.preset_name, model, variant, multi_label=multi_label)
            _enqueue_starts(study, chosen, shipped)
        finalists = _search(job, study, workers)
        command = _command(source, model, variant, trials, seeds, space, assignments)
        file = write_preset(path, problem, study, finalists, command, multi_label=multi_label)
        plot_history(study, path / "history")
        plot_importance(study, path / "importance")
        _write_trials(path / "trials.csv", study)
        _print(name, study, finalists)
    out.print(f"preset: {file}", soft_wrap=True)
    use = ["train", source.dataset, *graph_options(source), "--model", model]
    use += ["--config", str(file)]
    out.print(f"use it: lgdgcn {shlex.join(use)}", soft_wrap=True)


def _check_belongs(folder: Path) -> None:
    """Refuse a folder with files under our names and no sign that a search has made them."""
    studies = ("study.db", "study.log")  # the latter of earlier versions
    if any((folder / name).exists() for name in studies) or _is_ours(folder / "trials.csv"):
        return
    pictures = [f"{name}.{kind}" for name in ("history", "importance") for kind in ("png", "svg")]
    for name in ("trials.csv", *pictures):
        if (folder / name).exists():
            raise InputError(
                f"{folder / name} is not of a search, for there is no study beside it: "
                "choose another --out"
            )


def _is_ours(table: Path) -> bool:
    try:
        with table.open("rb") as file:
            start = ",".join(TRIAL_COLUMNS).encode()
            return file.read(len(start)) == start
    except OSError:
        return False


def _search(job: SearchJob, study: "optuna.Study", workers: int) -> list[Finalist]:
    """Search with all workers, then train the best again in this process."""
    with stop_on_signals() as stop, trial_progress(study, job.trials) as on_change:
        with spawn_workers(job, workers - 1), job.worker(study) as worker:
            search(job.problem, study, worker, on_change, stop)

        def on_epoch() -> None:
            on_change("the best again on fresh seeds")
            stop.check("stopped among the finalists; go on with --resume")

        return train_finalists(job.problem, study, on_epoch)


def _refuse_unused(named: dict[str, Any], space: Space, model: str, multi_label: bool) -> None:
    """Refuse what no trial would use of the settings that the user names."""
    check_belongs(named, model, space.settings.get("variant"))
    if "checkpoint_every" in named:
        raise InputError("checkpoint_every is for lgdgcn train: a search keeps none; leave it out")
    check_used(named, space.examples(), model, multi_label=multi_label)


def _space(
    file: Path | None,
    model: str,
    variant: str | None,
    multi_label: bool,
    given: dict[str, Any],
) -> Space:
    """What to search; its settings stand on the model's preset for any graph.

    The variant is among them where the model has any; what is given is not searched.
    """
    default = default_variant(model)
    if file is None:
        space = default_space(model, multi_label, variant or default)
    else:
        space = read_space(file)
    if "variant" in space.ranges:
        raise InputError(f"{file}: variant cannot be searched; search twice, with --variant")
    if "metric" in space.ranges:
        raise InputError(f"{file}: metric cannot be searched, for trials are compared by it")
    if "variant" in given:
        raise InputError("--set variant: choose it with --variant")
    space = space.fixing(given)
    settings = {k: v for k, v in space.settings.items() if k != "variant"}
    if belongs("variant", model):
        settings["variant"] = variant or space.settings.get("variant", default)
        resolve({"variant": settings["variant"]})
    shipped = preset("", model, settings.get("variant"), multi_label=multi_label)
    fixed = {name: value for name, value in shipped.items() if name not in space.ranges}
    return replace(space, settings={**fixed, **settings})


def _scaled(space: Space, graph: str, named: set[str]) -> Space:
    """Scale features by what they are, if no preset is of this graph and nobody names a scaling."""
    unknown = auto_scaling(graph)
    if not unknown or named & {"scaling", "normalize_features"}:
        return space
    others = {key: value for key, value in space.settings.items() if key != "normalize_features"}
    return replace(space, settings={**others, **unknown})


def _study_name(source: GraphSource, model: str, variant: str | None) -> str:
    """``GRAPH-MODEL[-VARIANT]``; a long name of a graph is cut, and told apart by its hash."""
    graph = re.sub(r"[^A-Za-z0-9._-]+", "_", source.preset_name or source.name)
    ending = f"-{model}" + (f"-{variant}" if variant else "")
    if len(graph + ending) > LONGEST_NAME:
        mark = f"_{zlib.crc32(graph.encode()):08x}"
        graph = graph[: LONGEST_NAME - len(ending + mark)] + mark
    return graph + ending


def _enqueue_starts(study: "optuna.Study", space: Space, shipped: dict[str, Any]) -> None:
    """Try the shipped settings and the space's own starting points first; once per study."""
    if study.user_attrs.get("starts_queued"):
        return
    for start in (space.inside(shipped), *space.starts):
        if start:
            study.enqueue_trial(start, skip_if_exists=True)
    study.set_user_attr("starts_queued", True)  # last: killed before, the rest is queued then


def _command(
    source: GraphSource,
    model: str,
    variant: str | None,
    trials: int,
    seeds: int,
    space: Path | None,
    assignments: list[str],
) -> str:
    parts = ["lgdgcn", "tune", source.dataset, *graph_options(source), "--model", model]
    parts += ["--variant", variant] if variant else []
    parts += ["--trials", str(trials)]
    parts += ["--seeds", str(seeds)] if seeds != LEAST_SEEDS else []
    parts += ["--space", space.name] if space else []
    for assignment in assignments:
        parts += ["--set", assignment]
    return shlex.join(parts)


def _write_trials(path: Path, study: "optuna.Study") -> None:
    names = sorted({name for trial in study.trials for name in trial.params})
    rows = [
        [t.number, t.state.name.lower(), t.value, *(t.params.get(name) for name in names)]
        for t in study.trials
    ]
    write_csv(path, [*TRIAL_COLUMNS, *names], rows)


def _print(name: str, study: "optuna.Study", finalists: list[Finalist]) -> None:
    first = {trial.number: trial.value for trial in study.trials}
    best = finalists[:SHOWN]
    rows = [
        [f"{len(best[0].scores)} fresh seeds", *(percent(one.mean) for one in best)],
        ["±", *(percent(one.std) for one in best)],
        ["in the search", *(percent(first[one.number]) for one in best)],
        *_factor_rows(best),
        *rows_of_settings([one.params for one in best]),
    ]
    title = f"{name}: validation in %, the best first"
    print_table(title, ["trial", *(str(one.number) for one in best)], rows)


def _factor_rows(finalists: list[Finalist]) -> list[list[str]]:
    """Rows of the headline measures that finalists have; not in per cent, nor searched for."""
    known = [name for name in HEADLINE if any(name in one.factors for one in finalists)]
    return [
        [
            MEASURES[name].title,
            *(f"{one.factors[name]:.3f}" if name in one.factors else "–" for one in finalists),
        ]
        for name in known
    ]
