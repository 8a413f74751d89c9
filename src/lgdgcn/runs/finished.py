"""Runs read back: model, graph and results, which are seen to belong together."""

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from lgdgcn import tensor_file
from lgdgcn.data.labels import IDENTIFIER
from lgdgcn.data.packed import is_packed
from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import CheckpointError, InputError, LGDNote, LGDWarning
from lgdgcn.runs.checkpoint import Checkpoint
from lgdgcn.runs.files import differences, read_config, read_result
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import select_device, set_threads
from lgdgcn.storage import check_target, plain_file
from lgdgcn.train.trained import MODEL, TrainedModel

__all__ = [
    "FinishedRun",
    "checked_target",
    "finished_result",
    "lost_to",
    "open_run",
    "source_of",
    "told_before",
]

_OF_A_SEED = re.compile(r"seed [0-9]+: ")


@contextmanager
def told_before() -> Iterator[None]:
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
        folder: The run folder.
        source: The graph it was trained on.
        trained: The model of the seed that did best on validation.
    """

    folder: Path
    source: GraphSource
    trained: TrainedModel

    @cached_property
    def result(self) -> dict[str, Any]:
        """What ``result.json`` says."""
        return read_result(Run.open(self.folder).result)

    @cached_property
    def best_run(self) -> dict[str, Any]:
        """The results of the seed whose model was kept: the first of those best on validation."""
        best: dict[str, Any] = max(self.result["runs"], key=lambda run: run["val"] or 0)
        return best

    @cached_property
    def other_seeds(self) -> list[TrainedModel]:
        """The models of the seeds that were not best, as far as they are kept."""
        run = Run.open(self.folder)
        seeds = [run["seed"] for run in self.result["runs"] if run != self.best_run]
        device = next(self.trained.model.parameters()).device
        kept = [file for seed in seeds if (file := run.seed_model(seed)).is_file()]
        return [TrainedModel.load(file, device) for file in kept]

    @cached_property
    def warnings(self) -> list[str]:
        """What ``result.json`` says a reader should know of the model that was kept.

        Of several seeds, whose sentences begin with the seed, only those of the kept one; and
        that a model beside it is better on validation.
        """
        try:
            told: list[str] = self.result.get("warnings", [])
        except InputError:  # a model needs no results to predict
            return []
        own = f"seed {self.best_run['seed']}: "
        found = [
            text.removeprefix(own) for text in told if not _OF_A_SEED.match(text.removeprefix(own))
        ]
        lost = lost_to(self.result, self.folder)
        return [*found, lost] if lost else found

    @cached_property
    def data(self) -> Data:
        """The run's own graph, with the split that the model was trained on."""
        seed = self.best_run["seed"] if self.source.varies_with_seed else 0
        with told_before():
            data = self.source.load(seed, encoding=self.trained.encoding)
        if self.best_run.get("data") not in (None, "", fingerprint(data)):
            warnings.warn(
                f"the data have changed since the run in {self.folder} was trained: what follows "
                "is of the model that was trained before",
                LGDWarning,
                stacklevel=2,
            )
        return data

    def target(self, out: Path, own: Path | None = None, graph: GraphSource | None = None) -> Path:
        """Check the file that a command writes, before its work: it is none that anybody reads.

        Args:
            out: The file.
            own: The file of this run that the command makes, and may replace.
            graph: The graph that is read, if it is not the run's.
        """
        return checked_target(self.folder, out, own, graph or self.source)


def checked_target(run: Path, out: Path, own: Path | None, graph: GraphSource) -> Path:
    """Check a file that a command on a run writes; see :meth:`FinishedRun.target`."""
    for file in (out, Path(os.path.realpath(out))):
        mine = own is not None and file.name == own.name and Run.open(run).owns(file)
        if mine:
            plain_file(file)
        elif _is_of_a_run(file):
            raise InputError(f"--out {out} is a file of a run; choose another name")
        if graph.is_folder and _is_of_a_graph(file, Path(graph.dataset)):
            raise InputError(f"--out {out} is a file of the graph; choose another name")
    return check_target(out)


def _is_of_a_run(file: Path) -> bool:
    for folder in (Run.open(file.parent), Run.open(file.parent.parent)):
        if folder.owns(file):
            try:
                read_config(folder.config)
                return True
            except InputError:  # not a run
                pass
    return False


def _is_of_a_graph(file: Path, folder: Path) -> bool:
    table = file.name.partition(".")[0] in ("nodes", "edges") or is_packed(folder)
    return table and os.path.realpath(file.parent) == os.path.realpath(folder)


def open_run(folder: Path, device: str) -> FinishedRun:
    """Read a run's configuration and model.

    Args:
        folder: A run folder of ``lgdgcn train``.
        device: Where the model is to run: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        InputError: There is no finished run, or it is damaged.
    """
    files = Run.open(folder)
    if files.reasons.is_file():
        raise InputError(
            f"{folder} holds reasons of edges, not a model of nodes: see them with lgdgcn explain "
            f"{folder}, explore, or predict --edges, or train without --task edges"
        )
    if not files.model.is_file():
        raise InputError(_no_run(folder))
    source = source_of(files.config)
    set_threads()
    trained = TrainedModel.load(files.model, select_device(device))
    _check_is_of_result(files)
    return FinishedRun(folder, source, trained)


def _no_run(folder: Path) -> str:
    """What to do where no finished run is; a graph may have been given in place of its run."""
    if is_packed(folder) or any(any(folder.glob(name)) for name in ("edges.*", "nodes.*")):
        run = Path("runs") / GraphSource(f"{folder}/").name
        return f"{folder} is a graph, not a run; train one with: lgdgcn train {folder}/ --out {run}"
    return f"{folder} holds no finished run; train one with: lgdgcn train GRAPH --out {folder}"


def source_of(config: Path) -> GraphSource:
    """The graph that a run's ``config.toml`` names."""
    saved = read_config(config)["run"]
    options = {key: saved.get(key) for key in ("root", "features", "label", "id")}
    ignore = saved.get("ignore", [])
    if not all(isinstance(value, str | None) for value in options.values()):
        raise InputError(f"{config}: {', '.join(options)} in [run] must be text; restore it")
    if not isinstance(ignore, list) or not all(isinstance(name, str) for name in ignore):
        raise InputError(f"{config}: ignore in [run] is no list of names; restore it")
    return GraphSource(saved["dataset"], split=saved["split"], ignore=tuple(ignore), **options)


def lost_to(result: Mapping[str, Any], folder: Path) -> str | None:
    """What a reader of a run should know if a model beside it is better on validation."""
    verdict = result.get("verdict")
    if verdict is None or verdict["better"] is None:
        return None
    where = Run.open(folder).compared(verdict["better"]).path
    return f"{verdict['sentence']}; the better run is in {where}"


def finished_result(
    run: Run, load: Callable[[int], Data], what: Mapping[str, Any], seeds: int
) -> dict[str, Any]:
    """Return the result of a finished run, once its data and its model are known to be the same.

    A kill may have come before its checkpoint was removed.

    Args:
        run: The run.
        load: Returns the graph of a seed.
        what: What its result must say, such as its ``model``.
        seeds: How many seeds it must have.
    """
    result = read_result(run.result)
    rows = result["runs"]
    known = {key: result.get(key) for key in what}
    if known != what or [row["seed"] for row in rows] != list(range(seeds)):
        raise InputError(f"{run.result} is of another run; restore it or train elsewhere")
    if [row["data"] for row in rows] != [fingerprint(load(seed)) for seed in range(seeds)]:
        raise CheckpointError(
            f"the data have changed since the run in {run.path} was trained: restore them, or "
            "train again with --overwrite or another --out"
        )
    _check_model(run)
    epochs = sum(row["epochs"] for row in rows)
    lines = run.metrics.read_bytes().count(b"\n") if run.metrics.is_file() else 0
    if lines != epochs:
        warnings.warn(
            f"{run.metrics} has {lines} of {epochs} epochs, the others are lost; the model and "
            "its result are whole",
            LGDWarning,
            stacklevel=2,
        )
    Checkpoint(run.checkpoint).remove()
    return result


def _check_model(run: Run) -> None:
    """See that the model of a finished run is whole, and is of this run."""
    try:
        _, meta = tensor_file.load(run.model, MODEL)
        config = read_config(run.config)
        about = {"model": config["run"]["model"], "settings": config["settings"]}
        if found := differences({key: meta.get(key) for key in about}, about):
            raise CheckpointError(f"{run.model} is of another run: {'; '.join(found)}")
    except CheckpointError as error:
        raise CheckpointError(f"{error}; restore it, or train again with --overwrite") from None
    _check_is_of_result(run)


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
