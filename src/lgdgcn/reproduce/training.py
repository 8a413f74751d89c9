"""Trains what is missing: cells of one architecture together, results kept as they come."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from lgdgcn.errors import InputError, StoppedError
from lgdgcn.models import MODELS
from lgdgcn.reproduce import outcome
from lgdgcn.reproduce.cell import Cell
from lgdgcn.reproduce.graphs import Graphs
from lgdgcn.reproduce.ledger import Advance, Job, Ledger
from lgdgcn.reproduce.results import Results, Run
from lgdgcn.runtime import StopRequest
from lgdgcn.train.member import Member, Report
from lgdgcn.train.population import Population
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.session import members_at_once

__all__ = ["merged", "train_cells"]

OnProgress = Callable[[Advance], None]


def train_cells(
    cells: Iterable[Cell],
    results: Results,
    device: torch.device,
    *,
    root: str | None = None,
    on_progress: OnProgress = lambda advance: None,
    stop: StopRequest | None = None,
) -> int:
    """Train every seed of every cell that is not in the results yet, on the same data.

    A run that diverges is kept as such, without scores.

    Args:
        cells: What is wanted; equal configurations are trained once.
        results: Where finished runs are, and go soon after each is finished.
        device: Where to train. On a GPU all cells of an architecture are trained together, on a
            CPU one cell after the other, so that a kill loses little.
        root: Folder to look for data sets in.
        on_progress: Called at the start and after every epoch.
        stop: Becomes true when a signal asks to stop.

    Returns:
        How many models were trained.

    Raises:
        StoppedError: ``stop`` became true; all finished runs are kept.
        InputError: Another process trains in the folder, or a graph cannot be read.
    """
    wanted = merged(cells)
    lock = RunFolder(results.folder, resume=True)
    lock.checkpoints = lock.path  # there are none: the folder is entered for its lock
    with lock:
        trainer = _Trainer(results, Graphs(root), device, on_progress, stop)
        trainer.train([job for cell in wanted for job in trainer.missing(cell)])
        trainer.train([job for cell in wanted for job in trainer.without_units(cell)])
        return trainer.trained


def merged(cells: Iterable[Cell]) -> list[Cell]:
    """Each configuration once, with the seeds of all that ask for it."""
    found: dict[str, Cell] = {}
    for cell in cells:
        other = found.get(cell.key, cell)
        seeds = tuple(dict.fromkeys((*other.seeds, *cell.seeds)))
        keeps = other.keeps_units or cell.keeps_units
        found[cell.key] = replace(cell, seeds=seeds, keeps_units=keeps)
    return list(found.values())


class _Trainer:
    """Trains jobs in populations and keeps what comes out."""

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
        self.ledger = Ledger([], graphs)
        self.trained = 0

    def missing(self, cell: Cell) -> list[Job]:
        """Trainings without a run, or with one of other data."""
        known = self.results.runs(cell)
        prints = {seed: self.graphs.fingerprint(cell, seed) for seed in cell.seeds}
        wrong = [s for s in cell.seeds if s not in known or known[s].data != prints[s]]
        return [Job(cell, seed) for seed in wrong]

    def without_units(self, cell: Cell) -> list[Job]:
        """The best run of a cell whose units are wanted but are not there."""
        best = self.results.best(cell) if cell.keeps_units else None
        if best is None:
            return []
        units = self.results.units(cell) or {}
        origin = [units[key].item() for key in ("seed", "data") if key in units]
        if origin == [best.seed, best.data]:
            return []
        return [Job(cell, best.seed, for_units=True)]

    def train(self, jobs: Sequence[Job]) -> None:
        """Train all of them."""
        self.ledger = Ledger(jobs, self.graphs)
        if jobs:
            self.on_progress(self.ledger.advance(jobs[0]))
        for batch in self._batches(jobs):
            self._train_batch(batch)

    def _batches(self, jobs: Sequence[Job]) -> Iterator[list[Job]]:
        """Trainings that go together."""
        groups: dict[str, list[Job]] = {}
        for job in jobs:
            key = job.cell.architecture if _together(self.device) else job.cell.key
            groups.setdefault(key, []).append(job)
        for group in groups.values():
            largest = max((job.cell.settings for job in group), key=lambda own: own.k)
            graph = self.graphs.graph(group[0].cell, group[0].seed)
            self._free_memory()
            at_once = members_at_once(graph, largest, self.device)
            for start in range(0, len(group), at_once):
                yield group[start : start + at_once]

    def _train_batch(self, batch: list[Job]) -> None:
        """Train in one pass; where the memory is too small for it, in two."""
        finished: set[int] = set()
        try:
            self._train_population(batch, finished)
            return
        except torch.OutOfMemoryError:
            rest = [job for place, job in enumerate(batch) if place not in finished]
            if len(rest) == 1:
                what = f"{MODELS[rest[0].cell.model].title} on {rest[0].cell.graph}"
                raise InputError(
                    f"{self.device} has too little memory for {what}; use --device cpu"
                ) from None
        half = len(rest) // 2  # out here, where nothing holds the failed population any more
        for part in (rest[:half], rest[half:]):
            self._free_memory()
            self._train_batch(part)

    def _train_population(self, batch: list[Job], finished: set[int]) -> None:
        pairs = [(job.cell, job.seed) for job in batch]
        graphs = self.graphs.ready(pairs, batch[0].cell.settings, self.device)
        members = [Member(cell.settings, seed) for cell, seed in pairs]
        population = Population(graphs, members, batch[0].cell.model)
        due: list[Report] = []
        while not population.finished:
            for report in population.epoch():
                self.ledger.note(batch[report.place], report)
                due += [report] if report.finished else []
            self.on_progress(self.ledger.advance(batch[0]))
            # a GPU scores many in one pass, a CPU loses nothing by turns
            many = 4 * len(due) >= len(batch) or not _together(self.device)
            if due and (many or population.finished or self.stop):
                self._keep(batch, population, due)
                finished |= {report.place for report in due}
                due = []
            if self.stop:
                done = f"{self.ledger.finished} of {len(self.ledger.cost)} trainings"
                raise StoppedError(f"stopped after {done}", self.stop.exit_code)

    def _keep(
        self, batch: Sequence[Job], population: Population, reports: Sequence[Report]
    ) -> None:
        """Score the best weights of finished members and write down what is wanted of them."""
        self.trained += len(reports)
        for report in reports:
            if report.diverged and not batch[report.place].for_units:
                run = replace(self._run(batch[report.place], report), diverged=report.diverged)
                self.results.add(batch[report.place].cell, [run])
        sound = [report for report in reports if not report.diverged]
        measured = outcome.look_at(population, [report.place for report in sound])
        for report, found in zip(sound, measured, strict=True):
            job = batch[report.place]
            run = replace(
                self._run(job, report),
                scores=found.scores,
                local_scores=found.local_scores,
                factors=found.factors,
            )
            if not job.for_units:
                self.results.add(job.cell, [run])
            best = self.results.best(job.cell)
            if job.cell.keeps_units and best is not None and best.seed == job.seed:
                origin = {"seed": np.array(job.seed), "data": np.array(run.data)}
                self.results.keep_units(job.cell, {**found.units(), **origin})

    def _run(self, job: Job, report: Report) -> Run:
        data, progress = self.graphs.fingerprint(job.cell, job.seed), report.progress
        return Run(job.seed, data, progress.epoch, round(progress.seconds, 3), scores={})

    def _free_memory(self) -> None:
        """Give back what earlier populations held, so that it counts as free."""
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()


def _together(device: torch.device) -> bool:
    """Whether cells are trained beside each other; it is a GPU that does many at once sooner."""
    return device.type == "cuda"
