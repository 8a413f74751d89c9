"""Finished trainings, kept by the hash of their configuration, so that nothing is trained twice."""

import json
import math
import statistics
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lgdgcn.reproduce.cell import Cell
from lgdgcn.storage import atomic_write, make_folder, write_json

__all__ = ["Mean", "Results", "Run"]

Scores = dict[str, dict[str, float | None]]  # by part of the split, then by metric
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Run:
    """One finished training.

    Attributes:
        seed: Seed of weights, dropout and, for random splits, of the split.
        data: Fingerprint of the graph and its split.
        epochs: How many were trained.
        seconds: How long that took, its share of the population.
        scores: Scores on ``"val"`` and ``"test"`` by metric, e.g. ``scores["test"]["micro_f1"]``;
            ``None`` where there is nothing to score.
        local_scores: The same with the latent graphs off at test time; empty without any.
        factors: The headline measures of disentanglement, see :mod:`lgdgcn.metrics`, as far as
            they exist: some need known factors. Earlier versions kept fewer.
        diverged: Which loss was no number, where training failed; such a run has no scores.
    """

    seed: int
    data: str
    epochs: int
    seconds: float
    scores: Scores
    local_scores: Scores = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    diverged: str = ""


@dataclass(frozen=True)
class Mean:
    """Mean and sample standard deviation of a score in per cent, over ``count`` seeds."""

    mean: float
    std: float
    count: int

    @classmethod
    def of(cls, shares: Iterable[float]) -> "Mean":
        """Summarise shares between 0 and 1."""
        values = [100 * share for share in shares]
        std = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.fmean(values), std, len(values))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.std / math.sqrt(self.count)


class Results:
    """A folder with one file per configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = make_folder(folder)

    def runs(self, cell: Cell) -> dict[int, Run]:
        """The finished runs of a cell's configuration by seed, also of seeds nobody asks for."""
        try:
            content = json.loads(self._file(cell).read_text(encoding="utf-8"))
            if content["configuration"] != json.loads(json.dumps(cell.configuration)):
                return {}
            return {run["seed"]: Run(**run) for run in content["runs"]}
        except (OSError, ValueError, KeyError, TypeError):
            return {}  # absent or damaged: it is trained again

    def add(self, cell: Cell, runs: Iterable[Run]) -> None:
        """Keep finished runs beside those that are there."""
        known = self.runs(cell) | {run.seed: run for run in runs}
        ordered = [asdict(known[seed]) for seed in sorted(known)]
        write_json(self._file(cell), {"configuration": cell.configuration, "runs": ordered})

    def missing(self, cell: Cell) -> list[int]:
        """Seeds that are still to be trained."""
        known = self.runs(cell)
        return [seed for seed in cell.seeds if seed not in known]

    def best(self, cell: Cell) -> Run | None:
        """The run with the highest headline score on validation, of equal ones the first."""
        known = self.runs(cell)
        runs = [known[seed] for seed in cell.seeds if seed in known]
        scored = [run for run in runs if _validation(run) is not None]
        return max(scored, key=lambda run: (_validation(run), -run.seed), default=None)

    def units(self, cell: Cell) -> dict[str, npt.NDArray[Any]] | None:
        """The arrays kept of a cell's best run, see :meth:`keep_units`; ``None`` if damaged."""
        try:
            with np.load(self._file(cell, ".npz"), allow_pickle=False) as file:
                return dict(file)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            return None

    def keep_units(self, cell: Cell, arrays: Arrays) -> None:
        """Keep ``units_1`` .. ``units_L`` ``[N, M, d]``, ``y``, ``test_mask`` and ``y_factor``.

        Where the factors are not known there is no ``y_factor``. ``seed`` and ``data`` say which
        run they are from.
        """
        named: dict[str, Any] = dict(arrays)
        atomic_write(self._file(cell, ".npz"), lambda file: np.savez_compressed(file, **named))

    def _file(self, cell: Cell, ending: str = ".json") -> Path:
        return self.folder / f"{cell.key}{ending}"


def _validation(run: Run) -> float | None:
    return next(iter(run.scores.get("val", {}).values()), None)
