"""``lgdgcn train``: train, score, and leave a run folder behind."""

import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn.commands.console import (
    epoch_progress,
    out,
)
from lgdgcn.commands.train_table import print_notes, print_results
from lgdgcn.config import (
    AUTO,
    Settings,
    auto_scaling,
    check_value,
    default_variant,
    from_toml,
    parse_assignments,
    preset,
    resolve,
    to_toml,
    with_fitting_width,
)
from lgdgcn.data.scaling import fit_scaling
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.metrics import headline
from lgdgcn.models import MODELS, NodeOutput
from lgdgcn.runtime import (
    StopRequest,
    keep_freed_memory,
    select_device,
    set_threads,
    stop_on_signals,
)
from lgdgcn.train import checkpoint
from lgdgcn.train.auto_factors import FOUND, find_factors, least_factors
from lgdgcn.train.finished import finished_result, remove_checkpoints
from lgdgcn.train.memory import check_memory
from lgdgcn.train.metric import choose_metric
from lgdgcn.train.run_files import check_same, read_config
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.sanity import routing_warning, usage_warning
from lgdgcn.train.seeds import summary, train_seeds
from lgdgcn.train.trained import TrainedModel

__all__ = ["default_folder", "train"]

Result = dict[str, Any]

# settings that comparisons share
SHARED = ("epochs", "patience", "checkpoint_every", "metric", "class_weights")
VARIANTS = tuple(f"lgdgcn-{variant}" for variant in ("paper", "released", "sharp"))


def train(
    source: GraphSource,
    *,
    model: str,
    variant: str | None,
    seeds: int,
    assignments: list[str],
    config: Path | None,
    device: str,
    folder: Path | None,
    resume: bool,
    overwrite: bool,
    compare: list[str],
) -> None:
    """Train a model and, on the same graph, those it is compared with; print the table."""
    if seeds < 1:
        raise InputError(f"--seeds is {seeds}; give at least 1")
    for name, known in [(model, (*MODELS,)), *((one, (*MODELS, *VARIANTS)) for one in compare)]:
        if name not in known:
            raise InputError(f"model is {name!r}; choose from {', '.join(known)}")
    if resume and overwrite:
        raise InputError("--resume and --overwrite exclude each other; leave out one of them")
    own = {**(from_toml(config) if config else {}), **parse_assignments(assignments)}
    if variant is not None:
        own["variant"] = variant
    for name, value in own.items():
        check_value(name, value)
    path = folder or default_folder(source.name, model, own.get("variant"), resume)
    run = RunFolder(path, resume=resume, overwrite=overwrite)
    beside = {other: run.compared(other) for other in compare}
    for one in (run, *beside.values()):  # all of them before anything in any of them is touched
        if config is not None and not resume and one.config.is_file():
            _refuse_to_replace(config, one)
        one.check()
    where = select_device(device)
    set_threads()
    keep_freed_memory()
    shared = {key: value for key, value in own.items() if key in SHARED}
    read = lru_cache(maxsize=2)(source.load)

    def load(seed: int) -> Data:
        return read(seed if source.varies_with_seed else 0)

    # what cannot be used, or is too large, is refused before the run folder is touched
    multi_label = load(0).y.dim() == 2
    used = own.get("variant") or (_variant_of(run) if resume else None) or default_variant(model)
    shipped = preset(source.preset_name, model, used, multi_label=multi_label)
    unknown = auto_scaling(source.preset_name)
    settings = resolve({"variant": used}, shipped, unknown, with_fitting_width(shipped, own))
    if unknown:  # no model has a scaling that was chosen for this graph: all have the same
        shared = {"scaling": settings.feature_scaling, **shared}
    chosen = choose_metric(load(0), settings.metric)
    check_memory(load(0), [least_factors(settings, model)], model, where)
    if settings.scaling == AUTO:
        out.print(str(fit_scaling(AUTO, load(0).x, load(0).train_mask)), soft_wrap=True)
    results = []
    try:
        with stop_on_signals() as stop, run:
            results.append(_train_one(source, load, model, settings, seeds, where, run, stop))
            for name, inner in beside.items():
                other = name.partition("-")[0]
                found = _compared(source.preset_name, name, own.get("variant"), multi_label)
                others = resolve(found, shared)
                with inner:
                    result = _train_one(source, load, other, others, seeds, where, inner, stop)
                    results.append(result)
    except StoppedError as error:
        message = f"{error}; saved, repeat the command with --resume --out {path} to go on"
        raise StoppedError(message, error.exit_code) from None
    out.print(str(chosen), soft_wrap=True)
    print_results(source.name, results)
    if not own and source.dataset.lower() == source.name:
        print_notes(source.preset_name, results, multi_label)
    out.print(f"run folder: {path}", soft_wrap=True)


def _refuse_to_replace(config: Path, folder: RunFolder) -> None:
    if os.path.samefile(config, folder.config):
        raise InputError(
            f"--config {config} would be replaced by the run in {folder.path}: copy it elsewhere "
            "or choose another --out"
        )


def _variant_of(folder: RunFolder) -> str | None:
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
            presets for the sharp variant: others have one of the paper's or the released one.
        multi_label: Whether nodes have sets of labels.
    """
    model, _, own = name.partition("-")
    variants = [own or variant or default_variant(model)]
    if not own and variant in (None, "sharp"):
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


def _is_finished(folder: Path) -> bool:
    """Whether nothing is left to do, not even checkpoints to remove."""
    runs = [RunFolder(run) for run in (folder, *(folder / "compared").glob("*"))]
    left = (file for run in runs for file in run.checkpoints.glob("seed-*.safetensors"))
    return all(run.result.exists() for run in runs) and not any(left)


def _train_one(
    source: GraphSource,
    load: Callable[[int], Data],
    model: str,
    settings: Settings,
    seeds: int,
    device: torch.device,
    folder: RunFolder,
    stop: StopRequest,
) -> Result:
    header = {"dataset": source.address, "model": model, "seeds": seeds, "split": source.split}
    header |= {"root": source.root} if source.root else {}
    header |= {key: value for key, value in source.options.items() if key != "split"}
    variant = settings.variant if model in ("lgdgcn", "disengcn") else None
    what = {"model": model, "variant": variant}
    found: Result = {}
    if folder.config.is_file():  # the run is resumed, or else the folder would be empty
        saved = read_config(folder.config)
        if "auto_factors" in saved and settings.factors == AUTO:
            found = {"auto_factors": saved["auto_factors"]}
            sizes = {key: saved["settings"].get(key) for key in FOUND}
            settings = resolve(settings.as_dict(), sizes)
        check_same(saved, {"run": header, "settings": settings.as_dict()})
        if folder.result.is_file():
            return finished_result(folder, load, what, seeds)
    else:
        settings, factors = find_factors(settings, load(0), model, 0, device, stop)
        if factors is not None:
            out.print(str(factors), soft_wrap=True)
            found = {"auto_factors": factors.as_dict()}
        config = {"run": header, "settings": settings.as_dict(), **found}
        folder.write_config("\n".join(to_toml(table, values) for table, values in config.items()))
    with epoch_progress(MODELS[model].title, seeds) as on_epoch:
        runs, trained = train_seeds(
            load, settings, model, range(seeds), device, folder, on_epoch=on_epoch, stop=stop
        )
    folder.files()  # refuses links that were made meanwhile
    trained.save(folder.model)
    data = load(0)
    output = trained(data)
    result: Result = {
        "dataset": source.dataset,
        **what,
        "metric": trained.task.metric,
        **summary(runs),
        "factors": _factor_scores(trained, data, output, source.name, folder),
        **found,
        "model_sha256": checkpoint.weights_sha256(folder.model),
    }
    unrouted = routing_warning(result["factors"].get("routing_entropy"), settings)
    both = (unrouted, usage_warning(trained, output))
    result["warnings"] += [warning for warning in both if warning]
    folder.write_result(result)
    remove_checkpoints(folder, seeds)
    return result


def _factor_scores(
    trained: TrainedModel, data: Data, output: NodeOutput, name: str, folder: RunFolder
) -> Result:
    """Measure and draw what the best model knows of the factors."""
    if not output.layers:
        return {}
    from lgdgcn.plots import plot_units

    last = output.layers[-1]
    title = f"{MODELS[trained.name].title} on {name}: {trained.settings.factors} factors"
    plot_units(last.units, folder.figure, title)
    return headline(last, data.edge_index, data.get("y_factor"))
