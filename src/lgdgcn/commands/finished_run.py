"""A run folder read back: its model, its graph and its results."""

import json
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from lgdgcn.data.source import GraphSource
from lgdgcn.errors import InputError
from lgdgcn.runtime import select_device, set_threads
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.trained import TrainedModel

__all__ = ["FinishedRun", "open_run"]


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
        file = RunFolder(self.folder).result
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(result, dict) and isinstance(result["runs"], list):
                return result
        except (OSError, ValueError, KeyError, RecursionError):
            pass
        raise InputError(f"{file} is missing or damaged; train again with --overwrite")

    @cached_property
    def best_run(self) -> dict[str, Any]:
        """The results of the seed whose model was kept: the first of those best on validation."""
        try:
            best: dict[str, Any] = max(self.result["runs"], key=lambda run: run["val"] or 0)
            if isinstance(best["seed"], int) and isinstance(best["scores"], dict):
                return best
        except (KeyError, TypeError, ValueError):
            pass
        raise InputError(f"{RunFolder(self.folder).result} names no seed with scores; train again")

    @cached_property
    def data(self) -> Data:
        """The run's own graph, with the split that the model was trained on."""
        return self.source.load(self.best_run["seed"] if self.source.varies_with_seed else 0)


def open_run(folder: Path, device: str) -> FinishedRun:
    """Read a run's configuration and model.

    Args:
        folder: A run folder of ``lgdgcn train``.
        device: Where the model is to run: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        InputError: There is no finished run, or it is damaged.
    """
    files = RunFolder(folder)
    if not files.model.is_file():
        message = f"{folder} holds no finished run; train one with: lgdgcn train --out {folder}"
        raise InputError(message)
    source = _source(files.config)
    set_threads()
    return FinishedRun(folder, source, TrainedModel.load(files.model, select_device(device)))


def _source(config: Path) -> GraphSource:
    try:
        saved = tomllib.loads(config.read_text(encoding="utf-8"))["run"]
        values = [saved["dataset"], saved.get("root"), saved["split"], saved.get("features")]
        if not all(isinstance(value, str | None) for value in values):
            raise TypeError
        return GraphSource(*values)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError):
        raise InputError(f"{config} is missing or not a run's configuration") from None
