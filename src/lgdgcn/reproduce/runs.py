"""Trains the cells that the results do not have yet, many at once, and stores what comes out.

This is the only module of the package that knows :mod:`lgdgcn.train`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import PER_MEMBER_SETTINGS
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.metrics import headline
from lgdgcn.models import MODELS
from lgdgcn.models.population import stack
from lgdgcn.nn import Disentangled
from lgdgcn.reproduce.cells import Cell
from lgdgcn.reproduce.graphs import Graphs
from lgdgcn.reproduce.results import Results, Run, Scores
from lgdgcn.runs.folder import only_process
from lgdgcn.runtime import StopRequest
from lgdgcn.storage import remove_leftovers
from lgdgcn.train.jobs import Job, JobObserver, run_jobs
from lgdgcn.train.state import EpochReport, Member
from lgdgcn.train.task import Task
from lgdgcn.train.trainer import Trainer

__all__ = ["TrainingProgress", "architecture", "merged", "train_cells"]


@dataclass(frozen=True, eq=False)
class Training:
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


def architecture(cell: Cell) -> str:
    """What cells must have in common to be trained in one population."""
    shared = cell.configuration
    shared["settings"] = {
        k: v for k, v in shared["settings"].items() if k not in PER_MEMBER_SETTINGS
    }
    return json.dumps(shared, sort_keys=True)


class _CellTrainer(JobObserver):
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
        self.trainings: dict[Job, Training] = {}
        self.due: list[EpochReport] = []  # finished members that are not stored yet
        self.trained = 0

    def missing(self, cell: Cell) -> list[Training]:
        """Seeds without a run, or with a run on other data."""
        known = self.results.runs(cell)
        prints = {seed: self.graphs.fingerprint(cell, seed) for seed in cell.seeds}
        wrong = [s for s in cell.seeds if s not in known or known[s].data != prints[s]]
        return [Training(cell, seed) for seed in wrong]

    def without_units(self, cell: Cell) -> list[Training]:
        """The best run of a cell whose units are wanted but not stored."""
        best = self.results.best(cell) if cell.keeps_units else None
        if best is None:
            return []
        arrays = self.results.arrays(cell)
        origin = [arrays[key].item() for key in ("seed", "data") if key in arrays]
        stored = origin == [best.seed, best.data]
        return [] if stored else [Training(cell, best.seed, for_units=True)]

    def train(self, trainings: Sequence[Training]) -> None:
        """Train all of them."""
        self.work = _Work(trainings, self.graphs)
        if trainings:
            self.on_progress(self.work.progress(trainings[0]))
        self.trainings = {self._job(one): one for one in trainings}
        run_jobs(list(self.trainings), self.device, self)

    def _job(self, one: Training) -> Job:
        key = architecture(one.cell) if _cells_together(self.device) else one.cell.key
        graph = self.graphs.graph(one.cell, one.seed)
        return Job(one.cell.model, Member(one.cell.settings, one.seed), graph, key)

    def on_epoch(
        self, jobs: Sequence[Job], trainer: Trainer, reports: Sequence[EpochReport]
    ) -> None:
        """Count the work, store what is finished, and stop if a signal asks for it."""
        for report in reports:
            self.work.count(self.trainings[jobs[report.index]], report)
        self.due += [report for report in reports if report.finished]
        self.on_progress(self.work.progress(self.trainings[jobs[0]]))
        # on a GPU many members are scored in one pass; on a CPU each as soon as it is finished
        many = 4 * len(self.due) >= len(jobs) or not _cells_together(self.device)
        if self.due and (many or trainer.finished or self.stop):
            self._store(jobs, trainer, self.due)
            for report in self.due:
                jobs[report.index].done = True
            self.due = []
        if self.stop:
            done = f"{len(self.work.finished)} of {len(self.work.cost)} trainings"
            raise StoppedError(f"stopped after {done}", self.stop.exit_code)

    def on_restart(self, jobs: Sequence[Job]) -> None:
        """Forget what was due when memory ran out; these members are trained again."""
        self.due = []

    def on_too_large(self, jobs: Sequence[Job], error: InputError) -> None:
        """Say which model and graph are too large."""
        raise InputError(f"{_label(self.trainings[jobs[0]])}: {error}") from None

    def _store(self, jobs: Sequence[Job], trainer: Trainer, reports: Sequence[EpochReport]) -> None:
        """Score the best weights of finished members and store their runs and units."""
        self.trained += len(reports)
        for report in reports:
            one = self.trainings[jobs[report.index]]
            if report.diverged and not one.for_units:
                run = replace(self._unscored(one, report), diverged=report.diverged)
                self.results.add(one.cell, [run])
        finite = [report for report in reports if not report.diverged]
        outputs = _member_outputs(trainer, [report.index for report in finite])
        for report, output in zip(finite, outputs, strict=True):
            one = self.trainings[jobs[report.index]]
            run = output.scored(self._unscored(one, report))
            if not one.for_units:
                self.results.add(one.cell, [run])
            best = self.results.best(one.cell)
            if one.cell.keeps_units and best is not None and best.seed == one.seed:
                origin = {"seed": np.array(one.seed), "data": np.array(run.data)}
                self.results.keep_arrays(one.cell, {**output.arrays(), **origin})

    def _unscored(self, one: Training, report: EpochReport) -> Run:
        data, state = self.graphs.fingerprint(one.cell, one.seed), report.state
        return Run(one.seed, data, state.epoch, round(state.seconds, 3), scores={})


def _cells_together(device: torch.device) -> bool:
    """Whether cells of one architecture are trained together; only a GPU gains by it."""
    return device.type == "cuda"


def _label(one: Training) -> str:
    return f"{MODELS[one.cell.model].title} on {one.cell.graph}"


class _Work:
    """Counts the work of trainings: the numbers their layers touch, in all epochs."""

    def __init__(self, trainings: Sequence[Training], graphs: Graphs) -> None:
        self.cost = {one: self._cost(one, graphs) for one in trainings}
        self.done = dict.fromkeys(trainings, 0.0)
        self.total = sum(self.cost.values())
        self.total_done = 0.0
        self.finished: set[Training] = set()

    def count(self, one: Training, report: EpochReport) -> None:
        """Count an epoch; a training that stops early has done all its work."""
        share = 1.0 if report.finished else report.state.epoch / one.cell.settings.epochs
        done = share * self.cost[one]
        self.total_done += done - self.done[one]
        self.done[one] = done
        if report.finished:
            self.finished.add(one)

    def progress(self, one: Training) -> TrainingProgress:
        """The progress while ``one`` is trained."""
        share = self.total_done / self.total
        return TrainingProgress(share, len(self.finished), len(self.cost), _label(one))

    @staticmethod
    def _cost(one: Training, graphs: Graphs) -> float:
        data, settings = graphs.graph(one.cell, one.seed), one.cell.settings
        nodes, edges = data.x.size(0), data.edge_index.size(1)
        touched = settings.hidden_channels * (16 * settings.num_layers * nodes + edges)
        return float(settings.epochs * touched)


@dataclass(frozen=True)
class _MemberOutput:
    """What the best weights of a member give on its graph."""

    task: Task
    graph: Data
    logits: Tensor  # [N, C]
    local_logits: Tensor | None  # with the latent graphs off; None without any
    layers: list[Disentangled]

    def scored(self, run: Run) -> Run:
        """The run with its scores and its measures of disentanglement."""
        local, factors = {}, {}
        if self.local_logits is not None:
            local = self._scores(self.local_logits)
        if self.layers:
            y_factor = self.graph.get("y_factor")
            factors = headline(self.layers[-1], self.graph.edge_index, y_factor)
        scores = self._scores(self.logits)
        return replace(run, scores=scores, local_scores=local, factors=factors)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The units of every layer and what figures colour them by."""
        arrays = {
            f"units_{depth}": layer.units.cpu().numpy().astype(np.float32)
            for depth, layer in enumerate(self.layers, start=1)
        }
        for name in ("y", "test_mask", "y_factor"):
            if name in self.graph:
                arrays[name] = self.graph[name].cpu().numpy()
        return arrays

    def _scores(self, logits: Tensor) -> Scores:
        graph = self.graph
        return {
            split: self.task.scores(logits, graph.y, graph[f"{split}_mask"])
            for split in ("val", "test")
        }


@torch.no_grad()
def _member_outputs(trainer: Trainer, indices: Sequence[int]) -> Iterator[_MemberOutput]:
    """Run the best weights of some members, all in one pass."""
    if not indices:
        return
    network = stack([trainer.model(index) for index in indices]).eval()
    graph = trainer.graphs[indices[0]]
    output = network.disentangle(graph.x, graph.edge_index)
    local_network = network.without_latent_graphs()
    local = None if local_network is None else local_network(graph.x, graph.edge_index)
    for row, index in enumerate(indices):
        yield _MemberOutput(
            trainer.tasks[index],
            trainer.graphs[index],
            output.logits[row],
            None if local is None else local[row],
            [Disentangled(*(field[row] for field in layer)) for layer in output.layers],
        )
