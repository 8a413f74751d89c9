"""Runs read back: model, graph and results, which are seen to belong together."""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from lgdgcn import tensor_file
from lgdgcn.data.labels import IDENTIFIER
from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import CheckpointError, InputError, LGDNote, LGDWarning
from lgdgcn.reasons import EdgeReasons
from lgdgcn.runs.checkpoint import Checkpoint, differences
from lgdgcn.runs.files import no_run, read_config, read_result
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import select_device, set_threads
from lgdgcn.train.trained import MODEL, TrainedModel

__all__ = [
    "FinishedRun",
    "finished_result",
    "kept_seed",
    "lost_to",
    "open_run",
    "without_training_notes",
]


@contextmanager
def without_training_notes() -> Iterator[None]:
    """Read a run's own graph without a word on how: its training has said all that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDNote)
        warnings.filterwarnings("ignore", "no split was given", LGDWarning)
        warnings.filterwarnings("ignore", IDENTIFIER, LGDWarning)  # the run says it
        yield


@dataclass(frozen=True)
class FinishedRun:
    """What ``lgdgcn train`` has left behind.

    Attributes:
        trained: The model of the seed that did best on validation.
    """

    files: Run
    source: GraphSource
    trained: TrainedModel

    @property
    def _device(self) -> torch.device:
        return next(self.trained.model.parameters()).device

    @cached_property
    def result(self) -> dict[str, Any]:
        """What ``result.json`` says."""
        return read_result(self.files.result)

    @cached_property
    def best_run(self) -> dict[str, Any]:
        """The results of the seed whose model was kept."""
        return kept_seed(self.result)

    @cached_property
    def other_seeds(self) -> list[TrainedModel]:
        """The models of the seeds that were not best, as far as they are kept."""
        if not self.trained.model.num_factors:  # of which only the best is kept
            return []
        others = (run["seed"] for run in self.result["runs"] if run != self.best_run)
        files = [self.files.seed_model(seed) for seed in others]
        kept = [file for file in files if file.is_file()]
        if kept != files:
            lost = next(file for file in files if file not in kept)
            text = f"{lost} is missing: of {len(files) + 1} seeds {len(kept) + 1} "
            text += "is looked at" if not kept else "are compared"
            warnings.warn(text, LGDWarning, stacklevel=2)
        return [TrainedModel.load(file, self._device) for file in kept]

    @cached_property
    def warnings(self) -> list[str]:
        """What ``result.json`` says a reader should know of the model that was kept.

        Of several seeds, whose sentences begin with the seed, only those of the kept one; and
        that a model beside it is better on validation.
        """
        try:
            said: list[str] = self.result.get("warnings", [])
        except InputError:  # a model needs no results to predict
            return []
        kept = f"seed {self.best_run['seed']}: "
        found = [text.removeprefix(kept) for text in said]
        found = [text for text in found if not re.match(r"seed [0-9]+: ", text)]
        lost = lost_to(self.result, self.files.path)
        return [*found, lost] if lost else found

    @cached_property
    def data(self) -> Data:
        """The run's own graph, with the split that the model was trained on."""
        seed = self.best_run["seed"] if self.source.varies_with_seed else 0
        with without_training_notes():
            data = self.source.load(seed, encoding=self.trained.encoding)
        self.check_same(data)
        if self.files.reasons.is_file():
            EdgeReasons.load(self.files.reasons, data).attach(data)
        return data

    def check_same(self, data: Data) -> None:
        """Say so if a graph is not what the model was trained on."""
        if self.best_run["data"] != fingerprint(data):
            text = f"the data have changed since the run in {self.files.path} was trained: "
            text += "what follows is of the model that was trained before"
            warnings.warn(text, LGDWarning, stacklevel=3)

    def with_factors(self) -> "FinishedRun":
        """This run or, where its model has no factors, that of LGD-GCN beside it, if any is."""
        beside = self.files.compared("lgdgcn")
        if self.trained.model.num_factors or not beside.model.is_file():
            return self
        return open_run(beside.path, str(self._device))


def open_run(folder: Path, device: str) -> FinishedRun:
    """Read the configuration and the model of what ``lgdgcn train`` has left in a folder.

    Raises:
        InputError: There is no finished run, or it is damaged.
    """
    files = Run.open(folder)
    if files.reasons.is_file() and not files.model.is_file():
        raise InputError(
            f"{folder} holds reasons of edges, but no model of nodes: see them with lgdgcn explain "
            f"{folder}, explore or predict"
        )
    if not files.model.is_file():
        raise InputError(no_run(folder))
    source = files.source
    set_threads()
    trained = TrainedModel.load(files.model, select_device(device))
    _check_is_of_result(files)
    return FinishedRun(files, source, trained)


def kept_seed(result: Mapping[str, Any]) -> dict[str, Any]:
    """The results of the seed whose model was kept: the first of those best on validation."""
    best: dict[str, Any] = max(result["runs"], key=lambda run: run["val"] or 0)
    return best


def lost_to(result: Mapping[str, Any], folder: Path) -> str | None:
    """What a reader of a run should know if a model beside it is better on validation."""
    verdict = result.get("verdict")
    if verdict is None or verdict["better"] is None:
        return None
    where = Run.open(folder).compared(verdict["better"]).path
    return f"{verdict['sentence']}; the better run is in {where}"


def finished_result(
    run: Run, load: Callable[[int], Data], what: Mapping[str, Any], seeds: Sequence[int]
) -> dict[str, Any]:
    """Return the result of a finished run, once its data and its model are known to be the same.

    A kill may have come before its checkpoint was removed. The result must say ``what``, such as
    its ``model``, of these seeds.
    """
    result = read_result(run.result)
    rows = result["runs"]
    known = {key: result.get(key) for key in what}
    if known != what or [row["seed"] for row in rows] != list(seeds):
        raise InputError(f"{run.result} is of another run; restore it or train elsewhere")
    if [row["data"] for row in rows] != [fingerprint(load(seed)) for seed in seeds]:
        raise CheckpointError(
            f"the data have changed since the run in {run.path} was trained: restore them, or "
            "train again with --overwrite or another --out"
        )
    try:
        _, meta = tensor_file.load(run.model, MODEL)
        config = read_config(run.config)
        about = {"model": config["run"]["model"], "settings": config["settings"]}
        if found := differences({key: meta.get(key) for key in about}, about):
            raise CheckpointError(f"{run.model} is of another run: {'; '.join(found)}")
    except CheckpointError as error:
        cause = str(error).removesuffix("; restore it")
        raise CheckpointError(f"{cause}; restore it, or train again with --overwrite") from None
    _check_is_of_result(run)
    epochs = sum(row["epochs"] for row in rows)
    lines = run.metrics.read_bytes().count(b"\n") if run.metrics.is_file() else 0
    if lines != epochs:
        text = f"{run.metrics} has {lines} of {epochs} epochs, the others are lost; "
        warnings.warn(text + "the model and its result are whole", LGDWarning, stacklevel=2)
    Checkpoint(run.checkpoint).remove()
    return result


def _check_is_of_result(run: Run) -> None:
    """Refuse a model that is whole, but not the one whose scores ``result.json`` has."""
    try:
        expected = read_result(run.result)["model_sha256"]
    except InputError:  # a model needs no results to predict; whoever needs them will say so
        return
    found = tensor_file.digest(run.model)
    if expected != found:
        raise CheckpointError(
            f"{run.model} is not the model that {run.result.name} is of: its sha256 is "
            f"{found[:12]}..., not {expected[:12]}...; restore it, or train again with --overwrite"
        )
