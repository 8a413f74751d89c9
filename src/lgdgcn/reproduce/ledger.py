"""The trainings to do, what they cost, and how much of that is done."""

from collections.abc import Sequence
from dataclasses import dataclass

from lgdgcn.models import MODELS
from lgdgcn.reproduce.cell import Cell
from lgdgcn.reproduce.graphs import Graphs
from lgdgcn.train.member import Report

__all__ = ["Advance", "Job", "Ledger"]


@dataclass(frozen=True, eq=False)
class Job:
    """One training; ``for_units`` repeats a finished one whose units are wanted."""

    cell: Cell
    seed: int
    for_units: bool = False


@dataclass(frozen=True)
class Advance:
    """How far the trainings are.

    Attributes:
        share: Share of the work that is done, by a rough count of its cost.
        finished: Trainings that are finished.
        total: Trainings in all.
        label: What is being trained.
    """

    share: float
    finished: int
    total: int
    label: str


class Ledger:
    """Counts the work of trainings.

    Args:
        jobs: What there is to do.
        graphs: Where they find their graphs.
    """

    def __init__(self, jobs: Sequence[Job], graphs: Graphs) -> None:
        self.cost = {job: _cost(job, graphs) for job in jobs}
        self.done = dict.fromkeys(jobs, 0.0)
        self.total = sum(self.cost.values())
        self.total_done = 0.0
        self.finished = 0

    def note(self, job: Job, report: Report) -> None:
        """Count an epoch; whoever stops early has done all its work."""
        share = 1.0 if report.finished else report.progress.epoch / job.cell.settings.epochs
        done = share * self.cost[job]
        self.total_done += done - self.done[job]
        self.done[job] = done
        self.finished += report.finished

    def advance(self, job: Job) -> Advance:
        """Where things stand while ``job`` is trained."""
        label = f"{MODELS[job.cell.model].title} on {job.cell.graph}"
        return Advance(self.total_done / self.total, self.finished, len(self.cost), label)


def _cost(job: Job, graphs: Graphs) -> float:
    """Rough cost of a training: the numbers its layers touch, in all epochs."""
    data, settings = graphs.graph(job.cell, job.seed), job.cell.settings
    nodes, edges = data.x.size(0), data.edge_index.size(1)
    touched = settings.hidden_channels * (16 * settings.num_layers * nodes + edges)
    return float(settings.epochs * touched)
