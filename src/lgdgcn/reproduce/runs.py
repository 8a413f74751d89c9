"""Trains the cells that the results do not have yet, many at once, and stores what comes out.

This is the only module of the package that knows :mod:`lgdgcn.train`.
"""

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lgdgcn.errors import InputError, StoppedError
from lgdgcn.metrics import headline
from lgdgcn.models import LGDGCN, MODELS, LGDOutput
from lgdgcn.models.stacked import stack
from lgdgcn.nn import Disentangled
from lgdgcn.reproduce.cells import Cell
from lgdgcn.reproduce.graphs import Graphs
from lgdgcn.reproduce.results import Results, Run, Scores
from lgdgcn.runtime import StopRequest
from lgdgcn.train.member import OWN, Member, Report
from lgdgcn.train.population import Population
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.session import members_at_once
from lgdgcn.train.task import Task
from lgdgcn.train.trained import prepared_alike

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
    lock = RunFolder(results.folder, resume=True)
    lock.checkpoints = lock.path  # there are none: the folder is entered for its lock
    with lock:
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
    shared["settings"] = {k: v for k, v in shared["settings"].items() if k not in OWN}
    return json.dumps(shared, sort_keys=True)


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
        for batch in self._batches(trainings):
            self._train_batch(batch)

    def _batches(self, trainings: Sequence[Training]) -> Iterator[list[Training]]:
        """Trainings that can be one population, as many as fit."""
        groups: dict[str, list[Training]] = {}
        for one in trainings:
            key = architecture(one.cell) if _cells_together(self.device) else one.cell.key
            groups.setdefault(key, []).append(one)
        for group in groups.values():
            largest = max((one.cell.settings for one in group), key=lambda own: own.k)
            graph = self.graphs.graph(group[0].cell, group[0].seed)
            self._free_memory()
            at_once = members_at_once(graph, largest, self.device)
            for start in range(0, len(group), at_once):
                yield group[start : start + at_once]

    def _train_batch(self, batch: list[Training]) -> None:
        """Train one population; if memory runs out, two of half the size."""
        finished: set[int] = set()
        try:
            self._train_population(batch, finished)
            return
        except torch.OutOfMemoryError:
            rest = [one for index, one in enumerate(batch) if index not in finished]
            if len(rest) == 1:
                raise InputError(
                    f"{self.device} has too little memory for {_label(rest[0])}; use --device cpu"
                ) from None
        half = len(rest) // 2  # outside the handler, which holds the failed population
        for some in (rest[:half], rest[half:]):
            self._free_memory()
            self._train_batch(some)

    def _train_population(self, batch: list[Training], finished: set[int]) -> None:
        graphs = [self.graphs.graph(one.cell, one.seed) for one in batch]
        own = prepared_alike(graphs, batch[0].cell.settings, self.device)
        members = [Member(one.cell.settings, one.seed) for one in batch]
        population = Population(own, members, batch[0].cell.model)
        due: list[Report] = []
        while not population.finished:
            for report in population.epoch():
                self.work.count(batch[report.place], report)
                due += [report] if report.finished else []
            self.on_progress(self.work.progress(batch[0]))
            # on a GPU many members are scored in one pass; on a CPU each as soon as it is finished
            many = 4 * len(due) >= len(batch) or not _cells_together(self.device)
            if due and (many or population.finished or self.stop):
                self._store(batch, population, due)
                finished |= {report.place for report in due}
                due = []
            if self.stop:
                done = f"{self.work.finished} of {len(self.work.cost)} trainings"
                raise StoppedError(f"stopped after {done}", self.stop.exit_code)

    def _store(
        self, batch: Sequence[Training], population: Population, reports: Sequence[Report]
    ) -> None:
        """Score the best weights of finished members and store their runs and units."""
        self.trained += len(reports)
        for report in reports:
            one = batch[report.place]
            if report.diverged and not one.for_units:
                run = replace(self._unscored(one, report), diverged=report.diverged)
                self.results.add(one.cell, [run])
        sound = [report for report in reports if not report.diverged]
        outputs = _member_outputs(population, [report.place for report in sound])
        for report, output in zip(sound, outputs, strict=True):
            one = batch[report.place]
            run = output.scored(self._unscored(one, report))
            if not one.for_units:
                self.results.add(one.cell, [run])
            best = self.results.best(one.cell)
            if one.cell.keeps_units and best is not None and best.seed == one.seed:
                origin = {"seed": np.array(one.seed), "data": np.array(run.data)}
                self.results.keep_arrays(one.cell, {**output.arrays(), **origin})

    def _unscored(self, one: Training, report: Report) -> Run:
        data, progress = self.graphs.fingerprint(one.cell, one.seed), report.progress
        return Run(one.seed, data, progress.epoch, round(progress.seconds, 3), scores={})

    def _free_memory(self) -> None:
        """Return the memory of earlier populations, so that it counts as free."""
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()


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
        self.finished = 0

    def count(self, one: Training, report: Report) -> None:
        """Count an epoch; a training that stops early has done all its work."""
        share = 1.0 if report.finished else report.progress.epoch / one.cell.settings.epochs
        done = share * self.cost[one]
        self.total_done += done - self.done[one]
        self.done[one] = done
        self.finished += report.finished

    def progress(self, one: Training) -> TrainingProgress:
        """The progress while ``one`` is trained."""
        share = self.total_done / self.total
        return TrainingProgress(share, self.finished, len(self.cost), _label(one))

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
def _member_outputs(population: Population, indices: Sequence[int]) -> Iterator[_MemberOutput]:
    """Run the best weights of some members, all in one pass."""
    if not indices:
        return
    network = stack([population.model(index) for index in indices]).eval()
    graph = population.graphs[indices[0]]
    output, local = _run(network, graph), None
    if isinstance(network, LGDGCN) and any(layer.has_latent_graph for layer in network.layers):
        for layer in network.layers:
            layer.has_latent_graph = False
        local = _run(network, graph).logits
    for row, index in enumerate(indices):
        yield _MemberOutput(
            population.tasks[index],
            population.graphs[index],
            output.logits[row],
            None if local is None else local[row],
            [Disentangled(*(field[row] for field in layer)) for layer in output.layers],
        )


def _run(network: nn.Module, graph: Data) -> LGDOutput:
    """Logits ``[R, N, C]`` of all members, and the output of their layers."""
    if isinstance(network, LGDGCN):
        return network.disentangle(graph.x, graph.edge_index)
    return LGDOutput(network(graph.x, graph.edge_index), [])
