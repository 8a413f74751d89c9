"""Finished trainings, stored by the hash of their configuration, so that none is repeated."""

import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lgdgcn.reproduce.cells import Cell
from lgdgcn.storage import atomic_write, make_folder, write_json

__all__ = ["KeptUnits", "Results", "Run", "Scores"]

Scores = dict[str, dict[str, float | None]]  # by split, then by metric
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Run:
    """One finished training.

    Attributes:
        seed: Seed of weights, dropout and, for random splits, of the split.
        data: Fingerprint of the graph and its split.
        epochs: Number of epochs trained.
        seconds: Training time, its share of the population.
        scores: Scores on ``"val"`` and ``"test"`` by metric, e.g. ``scores["test"]["micro_f1"]``;
            ``None`` if there are no nodes to score.
        local_scores: The same with the latent graphs off at test time; empty without any.
        factors: The headline measures of disentanglement, see :mod:`lgdgcn.metrics`. Some need
            known factors, and earlier versions stored fewer.
        diverged: The first non-finite loss if training failed; such a run has no scores.
    """

    seed: int
    data: str
    epochs: int
    seconds: float
    scores: Scores
    local_scores: Scores = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    diverged: str = ""

    @property
    def validation(self) -> float | None:
        """Headline score on the validation nodes."""
        return next(iter(self.scores.get("val", {}).values()), None)


class KeptUnits(NamedTuple):
    """The units of one layer of a cell's best run, with what figures need beside them."""

    units: Array  # [N, M, d]
    y: Array
    test_mask: Array

    @property
    def on_test_nodes(self) -> Array:
        """Units of the test nodes."""
        chosen: Array = self.units[self.test_mask.astype(bool)]
        return chosen


class Results:
    """A folder with one JSON file of runs per configuration; every file is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = make_folder(folder)
        self._runs: dict[str, dict[int, Run]] = {}
        self._arrays: dict[str, dict[str, Array]] = {}

    def runs(self, cell: Cell) -> dict[int, Run]:
        """All finished runs of a configuration by seed, also of seeds the cell does not ask for."""
        if cell.key not in self._runs:
            self._runs[cell.key] = self._read_runs(cell)
        return self._runs[cell.key]

    def finished(self, cell: Cell) -> list[Run]:
        """The finished runs of the seeds that a cell asks for."""
        known = self.runs(cell)
        return [known[seed] for seed in cell.seeds if seed in known]

    def missing(self, cell: Cell) -> list[int]:
        """Seeds that are still to be trained."""
        return [seed for seed in cell.seeds if seed not in self.runs(cell)]

    def best(self, cell: Cell) -> Run | None:
        """The run with the highest validation score; the lowest seed if several have it."""
        scored = [run for run in self.finished(cell) if run.validation is not None]
        return max(scored, key=lambda run: (run.validation, -run.seed), default=None)

    def add(self, cell: Cell, runs: Iterable[Run]) -> None:
        """Store finished runs beside those in the file."""
        known = self._read_runs(cell) | {run.seed: run for run in runs}
        ordered = [asdict(known[seed]) for seed in sorted(known)]
        write_json(self._file(cell), {"configuration": cell.configuration, "runs": ordered})
        self._runs.pop(cell.key, None)

    def arrays(self, cell: Cell) -> dict[str, Array]:
        """The arrays stored by :meth:`keep_arrays`; none if there are none or they are damaged."""
        if cell.key not in self._arrays:
            try:
                with np.load(self._file(cell, ".npz"), allow_pickle=False) as file:
                    self._arrays[cell.key] = dict(file)
            except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
                self._arrays[cell.key] = {}
        return self._arrays[cell.key]

    def keep_arrays(self, cell: Cell, arrays: Mapping[str, Array]) -> None:
        """Store arrays of the best run.

        They are ``units_1`` .. ``units_L`` ``[N, M, d]``, ``y``, ``test_mask`` and, if the factors
        are known, ``y_factor``; ``seed`` and ``data`` say which run they are from.
        """
        named: dict[str, Any] = dict(arrays)
        atomic_write(self._file(cell, ".npz"), lambda file: np.savez_compressed(file, **named))
        self._arrays.pop(cell.key, None)

    def units(self, cell: Cell, layer: int = 0) -> KeptUnits | None:
        """The units of a layer (0 is the last); ``None`` if they are missing or not finite."""
        arrays = self.arrays(cell)
        layers = [int(name[6:]) for name in arrays if name.startswith("units_")]
        wanted = layer or max(layers, default=0)
        if wanted not in layers or not np.isfinite(arrays[f"units_{wanted}"]).all():
            return None
        return KeptUnits(arrays[f"units_{wanted}"], arrays["y"], arrays["test_mask"])

    def _read_runs(self, cell: Cell) -> dict[int, Run]:
        try:
            content = json.loads(self._file(cell).read_text(encoding="utf-8"))
            if content["configuration"] != json.loads(json.dumps(cell.configuration)):
                return {}
            return {run["seed"]: Run(**run) for run in content["runs"]}
        except (OSError, ValueError, KeyError, TypeError):
            return {}  # absent or damaged: it is trained again

    def _file(self, cell: Cell, ending: str = ".json") -> Path:
        return self.folder / f"{cell.key}{ending}"
