"""``lgdgcn train``: train, score, and leave a run folder behind."""

import os
import re
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn import __version__, tensor_file
from lgdgcn.commands.batching import (
    check_same_graph,
    follow,
    graph_loader,
    in_batches,
    several_ranks,
)
from lgdgcn.commands.console import (
    epoch_progress,
    out,
    print_warning,
)
from lgdgcn.commands.second_process import SecondSearch, can_share, half_of_the_threads
from lgdgcn.commands.train_table import print_notes, print_results
from lgdgcn.commands.verdict import find_verdict
from lgdgcn.config import (
    AUTO,
    Settings,
    auto_scaling,
    belongs,
    check_belongs,
    check_used,
    check_value,
    default_variant,
    from_toml,
    merge,
    preset,
    resolve,
    to_toml,
    with_fitting_width,
)
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.large.rows import rows_scaling
from lgdgcn.metrics import headline
from lgdgcn.metrics.routing import routing_warning
from lgdgcn.models import MODELS, NodeOutput
from lgdgcn.runs.checkpoint import Checkpoint, check_same
from lgdgcn.runs.files import read_config
from lgdgcn.runs.finished import finished_result, lost_to
from lgdgcn.runs.fit import fit, summary
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import (
    StopRequest,
    keep_freed_memory,
    set_threads,
    stop_on_signals,
)
from lgdgcn.search.candidates import BASELINES, candidates, seconds_of
from lgdgcn.search.factors import FOUND, find_factors
from lgdgcn.search.portfolio import Candidate, Choice, choose_settings
from lgdgcn.train.checks import usage_warning
from lgdgcn.train.ranks import Ranks, rank_timeout
from lgdgcn.train.task import choose_metric
from lgdgcn.train.trained import TrainedModel

__all__ = ["default_folder", "run_header", "train"]

Result = dict[str, Any]

OURS = 2 / 3  # share of the time for our settings, if baselines' are not tried in a second process
LONG = 60.0  # seconds; with more, the search goes on after the portfolio

# settings that comparisons share
SHARED = ("epochs", "patience", "checkpoint_every", "metric", "class_weights")
VARIANTS = tuple(f"lgdgcn-{variant}" for variant in ("paper", "released", "ours"))


def train(
    source: GraphSource,
    *,
    model: str,
    seeds: int,
    given: Result,
    config: Path | None,
    device: str,
    folder: Path | None,
    resume: bool,
    overwrite: bool,
    compare: list[str],
    budget: str | None,
) -> None:
    """Train a model and, on the same graph, those it is compared with; print the table."""
    for name, known in [(model, (*MODELS,)), *((one, (*MODELS, *VARIANTS)) for one in compare)]:
        if name not in known:
            raise InputError(f"model is {name!r}; choose from {', '.join(known)}")
    if twice := [name for name in compare if compare.count(name) > 1]:
        raise InputError(f"--compare names {twice[0]} twice; leave out one")
    seconds_of(budget)  # refuses what is no time
    if resume and overwrite:
        raise InputError("--resume and --overwrite exclude each other; leave out one of them")
    own = _own_settings(config, given, model, resume)
    set_threads()
    keep_freed_memory()  # on every rank: all wait for the slowest
    with several_ranks(device, own, compare) as (ranks, where):
        ranks.check_same({"settings": (own, model, seeds, __version__)})
        if not ranks.is_first:
            follow(graph_loader(source, own.get("batch_size", 0)), model, seeds, where)
            return
        if ranks.restarts:  # they go on, whatever the command says
            begun = _begun(folder, source.name, model, own.get("variant"))
            folder, resume, overwrite = begun or folder, begun is not None, False
        run = (folder, resume, overwrite)
        _lead(source, model, own, given, seeds, config, where, *run, compare, budget)


def _own_settings(config: Path | None, given: Result, model: str, resume: bool) -> Result:
    """What the user gives of the model's settings, in a file and, before it, on the command line.

    A file may hold all settings there are: those that the model does not have are left out where
    they have their defaults.
    """
    of_file = from_toml(config) if config else {}
    own = merge(of_file, given)
    for name, value in (*of_file.items(), *given.items()):
        check_value(name, value)
    # which variant a run that is resumed has, its folder says later
    variant = own.get("variant") or (None if resume else default_variant(model))
    usual = Settings().as_dict()
    check_belongs({k: v for k, v in of_file.items() if v != usual[k]}, model, variant)
    check_belongs(given, model, variant)
    return {name: value for name, value in own.items() if belongs(name, model, variant)}


def _begun(folder: Path | None, name: str, model: str, variant: str | None) -> Path | None:
    """The folder of the run that was begun before a restart, if it has got so far."""
    try:
        path = folder or default_folder(name, model, variant, resume=True)
    except InputError:
        return None
    return path if Run.open(path).config.is_file() else None


def _lead(
    source: GraphSource,
    model: str,
    own: Result,
    given: Result,
    seeds: int,
    config: Path | None,
    where: torch.device,
    folder: Path | None,
    resume: bool,
    overwrite: bool,
    compare: list[str],
    budget: str | None,
) -> None:
    """Train as the only process, or as the one that writes the run folder.

    Of its own settings, ``given`` are those of the command line; others are of a file.
    """
    path = folder or default_folder(source.name, model, own.get("variant"), resume)
    run = Run.create(path, resume=resume, overwrite=overwrite)
    beside = {other: run.compared(other) for other in compare}
    for one in (run, *beside.values()):  # all of them before anything in any of them is touched
        if config is not None and not resume and one.config.is_file():
            _refuse_to_replace(config, one)
        one.check()
    shared = {key: value for key, value in own.items() if key in SHARED}
    load = graph_loader(source, own.get("batch_size", 0))
    check_same_graph(load)

    # what cannot be used, or is too large, is refused before the run folder is touched
    multi_label = load(0).y.dim() == 2
    used = own.get("variant") or (_variant_of(run) if resume else None) or default_variant(model)
    shipped = preset(source.preset_name, model, used, multi_label=multi_label)

    def to_try(name: str, given: Result, variant: str | None = None) -> list[Candidate]:
        graph = source.preset_name
        return candidates(graph, name, given, variant=variant, multi_label=multi_label)

    every = to_try(model, with_fitting_width(shipped, own), used)
    limit = seconds_of(budget)
    most = 1 if limit is None else None  # without a budget, the first only
    settings = every[0].settings
    if auto_scaling(source.preset_name):  # nobody chose one for this graph: all have the same
        shared = {"scaling": settings.feature_scaling, **shared}
    chosen = choose_metric(load(0), settings.metric)
    tried = in_batches(every[:most], load(0), model, where)
    for named in (given, own):  # a file may say that a part is off, and then how the rest stands
        check_used(named, [one.settings for one in tried], model, multi_label=multi_label)
    if settings.scaling == AUTO:
        out.print(str(rows_scaling(load(0), AUTO)), soft_wrap=True)
    others = {}
    for name in beside:
        found = _compared(source.preset_name, name, own.get("variant"), multi_label)
        others[name] = to_try(name.partition("-")[0], shared, found.get("variant"))[:most]
    if budget is not None and limit and max(map(len, (every, *others.values()))) == 1:
        raise InputError(
            f"--budget {budget} has nothing to choose from, as {model} has one set of settings for "
            f"{source.name}; leave it out"
        )
    others = _each_once(every[:most], others)
    whole = _loader_of_whole(source, next(iter(others))) if others else load
    rivals: list[Candidate] = []
    is_unknown = len(every) > 1 and not tried[0].settings.batch_size
    wants_baseline = is_unknown and not others and model == "lgdgcn"
    if wants_baseline and limit is not None:
        rivals = [one for name in BASELINES for one in to_try(name, shared)]
    results, folders = [], [run, *(beside[name] for name in others)]
    try:
        with stop_on_signals() as stop, run, ExitStack() as also:
            common = (source, load, seeds, where, stop)
            second = None
            is_new = not run.config.is_file()
            if rivals and limit is not None and is_new and can_share(load(0), where):
                second = also.enter_context(SecondSearch(rivals, load(0), limit))
            results.append(_train_one(*common, tried, run, limit, 1.0 if second else OURS))
            for name, asked in others.items():
                with beside[name] as inner:
                    inputs = (source, whole, seeds, where, stop)
                    results.append(_train_one(*inputs, asked, inner, limit))
            if rivals and limit is not None:
                results.append(_best_baseline(common, run, rivals, limit, second))
                folders.append(run.compared(results[-1]["model"]))
            if len(results) > 1:
                results[0]["verdict"] = find_verdict(results, folders, whole, where)
                run.write_result(results[0])
    except StoppedError as error:
        message = f"{error}; saved, repeat the command with --resume --out {path} to go on"
        raise StoppedError(message, error.exit_code) from None
    out.print(str(chosen), soft_wrap=True)
    print_results(source.name, results)
    if lost := lost_to(results[0], path):
        print_warning(lost)
    elif verdict := results[0].get("verdict"):
        out.print(verdict["sentence"], soft_wrap=True)
    if not own and source.dataset.lower() == source.name:
        print_notes(source.preset_name, results, multi_label)
    if wants_baseline and limit is None:
        said = "no baseline stands beside it; --budget 1m trains the best of several"
        out.print(f"{said}, --compare gcn the one you name", soft_wrap=True)
    out.print(f"run folder: {path}", soft_wrap=True)


def _loader_of_whole(source: GraphSource, name: str) -> Callable[[int], Data]:
    """Return what reads the graph for models that need all nodes, whatever ours is trained in."""
    load = graph_loader(source, 0)
    if load(0).edge_index is None:
        raise InputError(
            f"--compare {name} needs all nodes at once, and {source.dataset} does not fit into "
            "memory; leave it out"
        )
    return load


def _each_once(
    own: list[Candidate], beside: dict[str, list[Candidate]]
) -> dict[str, list[Candidate]]:
    """What is trained beside ours, without what is ours or another's; that is said."""
    kept: dict[str, list[Candidate]] = {}
    for name, asked in beside.items():
        if asked in (own, *kept.values()):
            said = f"--compare {name}: the same is trained already, so not again"
            out.print(said, soft_wrap=True)
        else:
            kept[name] = asked
    return kept


def _best_baseline(
    common: tuple[GraphSource, Callable[[int], Data], int, torch.device, StopRequest],
    run: Run,
    rivals: list[Candidate],
    limit: float,
    second: SecondSearch | None,
) -> Result:
    """Train the baseline that does best on validation; one that was chosen before stays it."""
    _, load, _, where, stop = common
    known = [name for name in BASELINES if run.resume and run.compared(name).config.is_file()]
    choice = None
    if known:
        rivals = [candidate for candidate in rivals if candidate.model == known[0]]
    else:
        choice = second.result(stop) if second else None
    if choice is None and not known:
        # with as many threads as a second process has, so that the choice is the same
        with half_of_the_threads() if can_share(load(0), where) else nullcontext():
            share = limit * (1 - OURS)
            choice = choose_settings(rivals, load(0), where, seconds=share, stop=stop)
    best = rivals[0] if choice is None else choice.best
    with (folder := run.compared(best.model)):
        return _train_one(*common, rivals, folder, limit, choice=choice)


def _refuse_to_replace(config: Path, folder: Run) -> None:
    if os.path.samefile(config, folder.config):
        raise InputError(
            f"--config {config} would be replaced by the run in {folder.path}: copy it elsewhere "
            "or choose another --out"
        )


def _variant_of(folder: Run) -> str | None:
    """The variant of the run in a folder: it stays that one where the default is another by now."""
    if not folder.config.is_file():
        return None
    variant: str | None = read_config(folder.config)["settings"].get("variant")
    return variant


def _compared(graph: str, name: str, variant: str | None, multi_label: bool) -> Result:
    """The preset of a model beside another.

    Args:
        graph: Name that presets go by.
        name: The model, with its own variant behind it as in ``lgdgcn-paper``, or without.
        variant: What the command names, for models without their own. No model but LGD-GCN has
            presets for our variant: others have one of the paper's or the released one.
        multi_label: Whether nodes have sets of labels.
    """
    model, _, own = name.partition("-")
    variants = [own or variant or default_variant(model)]
    if not own and variant in (None, "ours"):
        variants += ["paper", "released"]
    presets = (preset(graph, model, one, multi_label=multi_label) for one in variants)
    return next(filter(None, presets), {"variant": variants[0]})


def default_folder(dataset: str, model: str, variant: str | None, resume: bool) -> Path:
    """``runs/DATASET-MODEL``, with the variant where it is not the default, numbered.

    So nothing is overwritten. Resuming takes the newest unfinished one.
    """
    is_default = variant in (None, default_variant(model))
    name = f"{dataset}-{model}" + ("" if is_default else f"-{variant}")
    name = re.sub(r"[^A-Za-z0-9._]+", "-", name)[:64]
    number = 1
    taken: list[Path] = []
    while (path := Path("runs") / (name if number == 1 else f"{name}-{number}")).exists():
        taken.append(path)
        number += 1
    unfinished = [old for old in taken if not _is_finished(old)]
    if resume and not unfinished:
        raise InputError(f"no unfinished run of {name} in runs; name its folder with --out")
    return unfinished[-1] if resume else path


def run_header(source: GraphSource, model: str, seeds: int) -> Result:
    """What ``config.toml`` says in its table ``[run]``: all that is needed to read the graph."""
    header = {"dataset": source.address, "model": model, "seeds": seeds, "split": source.split}
    header |= {"root": source.root} if source.root else {}
    return header | {key: value for key, value in source.options.items() if key != "split"}


def _is_finished(folder: Path) -> bool:
    """Whether nothing is left to do, not even checkpoints to remove."""
    runs = [Run.open(run) for run in (folder, *(folder / "compared").glob("*"))]
    return all(run.is_finished for run in runs)


def _train_one(
    source: GraphSource,
    load: Callable[[int], Data],
    seeds: int,
    device: torch.device,
    stop: StopRequest,
    tried: list[Candidate],
    folder: Run,
    limit: float | None,
    share: float = OURS,
    choice: Choice | None = None,
) -> Result:
    """Choose settings where there are several to try, then train all seeds with them."""
    model, settings = (choice.best if choice else tried[0]).model, tried[0].settings
    header = run_header(source, model, seeds)
    variant = settings.variant if model in ("lgdgcn", "disengcn") else None
    what = {"model": model, "variant": variant}
    found: Result = {}
    if folder.config.is_file():  # the run is resumed, or else the folder would be empty
        saved = read_config(folder.config)
        if "portfolio" in saved:
            found["portfolio"] = saved["portfolio"]
            settings = _chosen_before(tried, saved, folder)
        if "auto_factors" in saved and settings.factors == AUTO:
            found["auto_factors"] = saved["auto_factors"]
            sizes = {key: saved["settings"].get(key) for key in FOUND}
            settings = resolve(settings.as_dict(), sizes)
        check_same(saved, {"run": header, "settings": settings.as_dict()})
        if folder.result.is_file():
            Ranks.current().from_first(None)
            return finished_result(folder, load, what, seeds)
    else:
        settings, factors = find_factors(settings, load(0), model, 0, device, stop)
        if factors is not None:
            out.print(str(factors), soft_wrap=True)
            found["auto_factors"] = factors.as_dict()
            sizes = {key: value for key, value in settings.as_dict().items() if key in FOUND}
            tried = [Candidate(one.model, resolve(one.settings.as_dict(), sizes)) for one in tried]
        if len(tried) > 1 and limit is not None:
            choice = choice or _search(tried, load(0), device, limit, share, stop)
            out.print(f"{MODELS[model].title}: {choice}", soft_wrap=True)
            settings, found["portfolio"] = choice.best.settings, choice.as_dict()
        config = {"run": header, "settings": settings.as_dict(), **found}
        folder.write_config("\n".join(to_toml(table, values) for table, values in config.items()))
        for metrics in choice.log if choice else ():  # the search has trained these epochs
            folder.append_metrics({"seed": 0, **metrics})
    Ranks.current().from_first(settings)
    with epoch_progress(MODELS[model].title, seeds) as on_epoch:
        runs, trained = fit(
            load,
            settings,
            model,
            range(seeds),
            device,
            folder,
            on_epoch=on_epoch,
            stop=stop,
            begun=choice.state if choice else None,
        )
    folder.files()  # refuses links that were made meanwhile
    trained.save(folder.model)
    data = load(0)
    # of a graph that is not read whole, only the scores are known
    whole = data.edge_index is not None
    output = trained(data) if whole else NodeOutput(torch.empty(0), [])
    result: Result = {
        "dataset": source.dataset,
        **what,
        "metric": trained.task.metric,
        **summary(runs),
        "factors": _factor_scores(trained, data, output, source.name, folder),
        **found,
        "model_sha256": tensor_file.digest(folder.model),
    }
    edge_factors = output.layers[-1].edge_factors if output.layers else None
    unrouted = routing_warning(edge_factors, settings)
    both = (unrouted, usage_warning(trained, output))
    result["warnings"] += [warning for warning in both if warning]
    folder.write_result(result)
    Checkpoint(folder.checkpoint).remove()
    return result


def _search(
    tried: list[Candidate],
    data: Data,
    device: torch.device,
    limit: float,
    share: float,
    stop: StopRequest,
) -> Choice:
    """Choose from the portfolio; with more than the usual time, search on from there.

    All of the time is for us where a second process has half of the cores.
    """
    if Ranks.current().size > 1 and limit > rank_timeout() / 2:  # the others wait for the choice
        limit = rank_timeout() / 2
        out.print(f"settings are searched for {limit:.0f} s, as other ranks wait", soft_wrap=True)
    end = time.monotonic() + limit * share
    with half_of_the_threads() if share == 1 else nullcontext():
        choice = choose_settings(tried, data, device, seconds=limit * share, stop=stop)
    if limit <= LONG or not bool(data.val_mask.any()):
        return choice
    from lgdgcn.commands.search_on import search_on

    return search_on(choice, data, device, end, stop)


def _chosen_before(tried: list[Candidate], saved: Result, folder: Run) -> Settings:
    """The settings that a run which is resumed has chosen; in what all try alike it agrees."""
    every = [candidate.settings.as_dict() for candidate in tried]
    alike = {key: value for key, value in every[0].items() if all(e[key] == value for e in every)}
    found = saved["settings"]
    if saved["portfolio"].get("searched"):
        alike = {key: alike[key] for key in SHARED if key in alike}
    later = {key: every[0][key] for key in FOUND if every[0]["factors"] == AUTO}  # found by itself
    if all(key in later or found.get(key) == value for key, value in alike.items()):
        return resolve(every[0], found, later)
    raise InputError(
        f"{folder.config}: settings were chosen from others than are tried now; repeat the "
        "command as it was given first, or start again with --overwrite"
    )


def _factor_scores(
    trained: TrainedModel, data: Data, output: NodeOutput, name: str, folder: Run
) -> Result:
    """Measure and draw what the best model knows of the factors."""
    if not output.layers:
        return {}
    from lgdgcn.plots import plot_units

    last = output.layers[-1]
    title = f"{MODELS[trained.name].title} on {name}: {trained.settings.factors} factors"
    plot_units(last.units, folder.figure, title)
    return headline(last, data.edge_index, data.get("y_factor"))
