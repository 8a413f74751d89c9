"""Trains the cells that the results do not have yet, many at once, and stores what comes out.

This is the only module of the package that knows :mod:`lgdgcn.train`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lgdgcn.errors import InputError, StoppedError
from lgdgcn.metrics import headline
from lgdgcn.models import MODELS
from lgdgcn.nn import Disentangled
from lgdgcn.reproduce.cells import Cell
from lgdgcn.reproduce.graphs import Graphs
from lgdgcn.reproduce.results import Results, Run, Scores
from lgdgcn.runs.folder import only_process
from lgdgcn.runtime import StopRequest
from lgdgcn.storage import remove_leftovers
from lgdgcn.training import Epoch, Result, Training, run

__all__ = ["TrainingProgress", "merged", "train_cells"]


@dataclass(frozen=True, eq=False)
class _Seed:
    """One seed of a cell; ``for_units`` repeats a finished one whose units a figure needs."""

    cell: Cell
    seed: int
    for_units: bool = False


@dataclass(frozen=True)
class TrainingProgress:
    """How far all trainings are.

    Attributes:
        share: Share of the work that is done, by a rough estimate of its cost.
        finished: Finished trainings.
        total: Number of trainings.
        label: What is being trained.
    """

    share: float
    finished: int
    total: int
    label: str


OnProgress = Callable[[TrainingProgress], None]


def train_cells(
    cells: Iterable[Cell],
    results: Results,
    device: torch.device,
    *,
    root: str | None = None,
    on_progress: OnProgress = lambda progress: None,
    stop: StopRequest | None = None,
) -> int:
    """Train every seed of every cell that is not in the results yet, on the same data.

    A run that diverges is stored as such, without scores.

    Args:
        cells: What is wanted; equal configurations are trained once.
        results: Has the finished runs, and gets each new one soon after it is finished.
        device: Where to train. On a GPU all cells of an architecture are trained together, on a
            CPU one cell after the other, so that a kill loses little.
        root: Folder to look for data sets in.
        on_progress: Called at the start and after every epoch.
        stop: Becomes true when a signal asks to stop.

    Returns:
        Number of models trained.

    Raises:
        StoppedError: ``stop`` became true; all finished runs are stored.
        InputError: Another process trains in the folder, or a graph cannot be read.
    """
    wanted = merged(cells)
    with only_process(results.folder):
        remove_leftovers(results.folder)
        trainer = _CellTrainer(results, Graphs(root), device, on_progress, stop)
        trainer.train([one for cell in wanted for one in trainer.missing(cell)])
        trainer.train([one for cell in wanted for one in trainer.without_units(cell)])
        return trainer.trained


def merged(cells: Iterable[Cell]) -> list[Cell]:
    """Each configuration once, with the seeds of all cells that have it."""
    found: dict[str, Cell] = {}
    for cell in cells:
        other = found.get(cell.key, cell)
        seeds = tuple(dict.fromkeys((*other.seeds, *cell.seeds)))
        keeps_units = other.keeps_units or cell.keeps_units
        found[cell.key] = replace(cell, seeds=seeds, keeps_units=keeps_units)
    return list(found.values())


class _CellTrainer:
    """Trains seeds of cells in populations and stores their runs."""

    def __init__(
        self,
        results: Results,
        graphs: Graphs,
        device: torch.device,
        on_progress: OnProgress,
        stop: StopRequest | None,
    ) -> None:
        self.results, self.graphs, self.device = results, graphs, device
        self.on_progress, self.stop = on_progress, stop
        self.work = _Work([], graphs)
        self.trained = 0

    def missing(self, cell: Cell) -> list[_Seed]:
        """Seeds without a run, or with a run on other data."""
        known = self.results.runs(cell)
        prints = {seed: self.graphs.fingerprint(cell, seed) for seed in cell.seeds}
        wrong = [s for s in cell.seeds if s not in known or known[s].data != prints[s]]
        return [_Seed(cell, seed) for seed in wrong]

    def without_units(self, cell: Cell) -> list[_Seed]:
        """The best run of a cell whose units are wanted but not stored."""
        best = self.results.best(cell) if cell.keeps_units else None
        if best is None:
            return []
        arrays = self.results.arrays(cell)
        origin = [arrays[key].item() for key in ("seed", "data") if key in arrays]
        stored = origin == [best.seed, best.data]
        return [] if stored else [_Seed(cell, best.seed, for_units=True)]

    def train(self, seeds: Sequence[_Seed]) -> None:
        """Train all of them, and store each as soon as it is finished."""
        self.work = _Work(seeds, self.graphs)
        if seeds:
            self.on_progress(self.work.progress(seeds[0]))
        together: dict[Hashable, dict[Training, _Seed]] = {}
        for one in seeds:
            cell = one.cell
            key = (cell.graph, cell.split) if _cells_together(self.device) else cell.key
            graph = self.graphs.graph(cell, one.seed)
            training = Training(cell.model, cell.settings, one.seed, graph)
            together.setdefault(key, {})[training] = one
        for known in together.values():
            for result in run(list(known), self.device, partial(self._on_epoch, known)):
                self._store(known[result.training], result)
            self._check_stop()

    def _on_epoch(self, known: Mapping[Training, _Seed], epochs: Sequence[Epoch]) -> None:
        """Count the work, and stop if a signal asks for it; what is finished is stored first."""
        for epoch in epochs:
            self.work.count(known[epoch.training], epoch)
        self.on_progress(self.work.progress(known[epochs[0].training]))
        if not any(epoch.finished for epoch in epochs):
            self._check_stop()

    def _check_stop(self) -> None:
        if self.stop:
            done = f"{len(self.work.finished)} of {len(self.work.cost)} trainings"
            raise StoppedError(f"stopped after {done}", self.stop.exit_code)

    def _store(self, one: _Seed, result: Result) -> None:
        """Score the best weights of a training and store its run and units."""
        if result.state is None:
            raise InputError(f"{_label(one)}: {result.error}")
        self.trained += 1
        data, state = self.graphs.fingerprint(one.cell, one.seed), result.state
        unscored = Run(one.seed, data, state.epoch, round(state.seconds, 3), scores={})
        if result.error is not None:
            if not one.for_units:
                self.results.add(one.cell, [replace(unscored, diverged=str(result.error))])
            return
        output = _Output.of(result)
        found = output.scored(unscored)
        if not one.for_units:
            self.results.add(one.cell, [found])
        best = self.results.best(one.cell)
        if one.cell.keeps_units and best is not None and best.seed == one.seed:
            origin = {"seed": np.array(one.seed), "data": np.array(data)}
            self.results.keep_arrays(one.cell, {**output.arrays(), **origin})


def _cells_together(device: torch.device) -> bool:
    """Whether cells of one architecture are trained together; only a GPU gains by it."""
    return device.type == "cuda"


def _label(one: _Seed) -> str:
    return f"{MODELS[one.cell.model].title} on {one.cell.graph}"


class _Work:
    """Counts the work of trainings: the numbers their layers touch, in all epochs."""

    def __init__(self, trainings: Sequence[_Seed], graphs: Graphs) -> None:
        self.cost = {one: self._cost(one, graphs) for one in trainings}
        self.done = dict.fromkeys(trainings, 0.0)
        self.total = sum(self.cost.values())
        self.total_done = 0.0
        self.finished: set[_Seed] = set()

    def count(self, one: _Seed, epoch: Epoch) -> None:
        """Count an epoch; a training that stops early has done all its work."""
        share = 1.0 if epoch.finished else epoch.state.epoch / one.cell.settings.epochs
        done = share * self.cost[one]
        self.total_done += done - self.done[one]
        self.done[one] = done
        if epoch.finished:
            self.finished.add(one)

    def progress(self, one: _Seed) -> TrainingProgress:
        """The progress while ``one`` is trained."""
        share = self.total_done / self.total
        return TrainingProgress(share, len(self.finished), len(self.cost), _label(one))

    @staticmethod
    def _cost(one: _Seed, graphs: Graphs) -> float:
        data, settings = graphs.graph(one.cell, one.seed), one.cell.settings
        nodes, edges = data.x.size(0), data.edge_index.size(1)
        touched = settings.hidden_channels * (16 * settings.num_layers * nodes + edges)
        return float(settings.epochs * touched)


@dataclass(frozen=True)
class _Output:
    """What the best weights of a training give on its graph."""

    result: Result
    logits: Tensor  # [N, C]
    local_logits: Tensor | None  # with the latent graphs off; None without any
    layers: list[Disentangled]

    @classmethod
    @torch.no_grad()
    def of(cls, result: Result) -> Self:
        network, graph = result.network().eval(), result.graph
        output = network.disentangle(graph.x, graph.edge_index)
        local_network = network.without_latent_graphs()
        local = None if local_network is None else local_network(graph.x, graph.edge_index)
        return cls(result, output.logits, local, list(output.layers))

    def scored(self, run: Run) -> Run:
        """The run with its scores and its measures of disentanglement."""
        local, factors = {}, {}
        if self.local_logits is not None:
            local = self._scores(self.local_logits)
        if self.layers:
            graph = self.result.graph
            factors = headline(self.layers[-1], graph.edge_index, graph.get("y_factor"))
        scores = self._scores(self.logits)
        return replace(run, scores=scores, local_scores=local, factors=factors)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The units of every layer and what figures colour them by."""
        arrays = {
            f"units_{depth}": layer.units.cpu().numpy().astype(np.float32)
            for depth, layer in enumerate(self.layers, start=1)
        }
        for name in ("y", "test_mask", "y_factor"):
            if name in self.result.graph:
                arrays[name] = self.result.graph[name].cpu().numpy()
        return arrays

    def _scores(self, logits: Tensor) -> Scores:
        graph, task = self.result.graph, self.result.task
        assert task is not None
        return {
            split: task.scores(logits, graph.y, graph[f"{split}_mask"]) for split in ("val", "test")
        }
