"""Runs that are finished: whether result, data and model still belong together."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from torch_geometric.data import Data

from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.runs.files import differences, read_config, read_result, with_defaults
from lgdgcn.runs.folder import RunFolder
from lgdgcn.train import checkpoint

__all__ = ["check_model_is_of_result", "finished_result", "remove_checkpoints"]


def finished_result(
    folder: RunFolder, load: Callable[[int], Data], what: Mapping[str, Any], seeds: int
) -> dict[str, Any]:
    """Return the result of a finished run, once its data and its model are known to be the same.

    A kill may have come before its checkpoints were removed.

    Args:
        folder: The run.
        load: Returns the graph of a seed.
        what: Model and variant that it must be of.
        seeds: How many seeds it must have.
    """
    result = read_result(folder.result)
    runs = result["runs"]
    known = {key: result[key] for key in what}
    if known != what or [run["seed"] for run in runs] != list(range(seeds)):
        raise InputError(f"{folder.result} is of another run; restore it or train elsewhere")
    prints = [run.get("data") for run in runs]
    if not all(prints):
        warnings.warn(
            f"{folder.result} does not say what data it is of, as runs of earlier versions do "
            "not: that the data are the same is not checked",
            LGDWarning,
            stacklevel=2,
        )
    elif prints != [fingerprint(load(seed)) for seed in range(seeds)]:
        raise CheckpointError(
            f"the data have changed since the run in {folder.path} was trained: restore them, or "
            "train again with --overwrite or another --out"
        )
    _check_model(folder)
    check_model_is_of_result(folder)
    epochs = sum(run["epochs"] for run in runs)
    lines = folder.metrics.read_bytes().count(b"\n") if folder.metrics.is_file() else 0
    if lines != epochs:
        warnings.warn(
            f"{folder.metrics} has {lines} of {epochs} epochs, the others are lost; the model and "
            "its result are whole",
            LGDWarning,
            stacklevel=2,
        )
    remove_checkpoints(folder, seeds)
    return result


def _check_model(folder: RunFolder) -> None:
    """See that the model of a finished run is whole, and is of this run."""
    try:
        _, meta = checkpoint.load_weights(folder.model)
        config = read_config(folder.config)
        about = with_defaults({"model": config["run"]["model"], "settings": config["settings"]})
        if found := differences(with_defaults({key: meta.get(key) for key in about}), about):
            raise CheckpointError(f"{folder.model} is of another run: {'; '.join(found)}")
    except CheckpointError as error:
        raise CheckpointError(f"{error}; restore it, or train again with --overwrite") from None


def remove_checkpoints(folder: RunFolder, seeds: int) -> None:
    """Remove the checkpoints of a run that has its result."""
    for seed in range(seeds):
        checkpoint.remove(folder.checkpoint(seed))


def check_model_is_of_result(files: RunFolder) -> None:
    """Refuse a model that is whole, but not the one whose scores ``result.json`` has.

    Results of earlier versions do not say which it is, and a model needs no results to predict.
    """
    try:
        expected = read_result(files.result).get("model_sha256")
    except InputError:  # whoever needs the results will say so
        return
    found = checkpoint.weights_sha256(files.model)
    if expected not in (None, found):
        raise CheckpointError(
            f"{files.model} is not the model that {files.result.name} is of: its sha256 is "
            f"{found[:12]}..., not {str(expected)[:12]}...; restore it, "
            "or train again with --overwrite"
        )
