"""The one driver of trainings: in batches that fit into memory, in halves if they do not.

``lgdgcn train``, ``reproduce``, ``tune`` and :class:`~lgdgcn.estimator.LGDClassifier` all describe
what they want as :class:`Job` and follow it with a :class:`JobObserver`.
"""

import gc
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lgdgcn.data.scaling import suited_scaling
from lgdgcn.errors import InputError
from lgdgcn.large.rows import prepared_rows
from lgdgcn.large.sampler import NeighbourLoader
from lgdgcn.train.memory import is_out_of_memory, members_at_once, out_of_memory
from lgdgcn.train.population import EpochReport, Member, TrainState
from lgdgcn.train.prepared import prepared_alike
from lgdgcn.train.trainer import Trainer

__all__ = ["Job", "JobObserver", "run_jobs"]


@dataclass(eq=False)
class Job:
    """One training that is wanted.

    Attributes:
        model: A key of :data:`lgdgcn.models.MODELS`.
        member: Its settings and seed.
        graph: Its canonical graph, on the CPU.
        batch_key: Jobs of one key may be trained in one pass: they have one architecture, and
            graphs that differ in the split only.
        group: Jobs of one group are never parted, such as the seeds of a trial.
        state: Where it stands; ``None`` if it is new.
        done: Whether its result is kept, so that it is not trained again if memory runs out.
    """

    model: str
    member: Member
    graph: Data
    batch_key: Hashable = None
    group: Hashable = None
    state: TrainState | None = None
    done: bool = False


class JobObserver:
    """Follows trainings; every method may raise to stop them all."""

    def on_epoch(
        self, jobs: Sequence[Job], trainer: Trainer, reports: Sequence[EpochReport]
    ) -> None:
        """Called after every epoch of a batch; report ``i`` is of the job at its index."""

    def on_end(self, jobs: Sequence[Job], trainer: Trainer) -> None:
        """Called when all jobs of a batch are finished."""

    def on_restart(self, jobs: Sequence[Job]) -> None:
        """Called before jobs begin again in smaller batches, because memory ran out."""

    def on_too_large(self, jobs: Sequence[Job], error: InputError) -> None:
        """Called for a group of jobs that is too large for the device by itself."""
        raise error


def run_jobs(jobs: Sequence[Job], device: torch.device, observer: JobObserver) -> None:
    """Train all jobs, as many in one pass as fit."""
    alike: dict[Hashable, list[Job]] = {}
    kinds: dict[int, str] = {}  # by the features, which splits of one graph share
    for job in jobs:
        alike.setdefault((job.batch_key, _scaled_by(job, kinds)), []).append(job)
    for together in alike.values():
        free_memory(device)
        largest = max((job.member.settings for job in together), key=lambda settings: settings.k)
        at_once = 1 if largest.batch_size else members_at_once(together[0].graph, largest, device)
        queue = deque(_batches(together, at_once))
        while queue:
            batch = queue.popleft()
            try:
                _train(batch, device, observer)
                continue
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                too_large = error if isinstance(error, InputError) else out_of_memory(device)
            # out here nothing holds the failed trainer any more
            too_large = too_large.with_traceback(None)
            free_memory(device)
            rest = [job for job in batch if not job.done]
            halves = list(_batches(rest, (len(rest) + 1) // 2))
            if len(halves) == 1:
                observer.on_too_large(rest, too_large)
            else:
                observer.on_restart(rest)
                queue.extendleft(reversed(halves))


def _scaled_by(job: Job, kinds: dict[int, str]) -> Hashable:
    """The training nodes, if the features depend on them: other ones have no features in common.

    Trainings in batches have nothing in common anyway.
    """
    if job.member.settings.batch_size:
        return None
    kind, x = job.member.settings.feature_scaling, job.graph.x
    if kind == "auto":
        if id(x) not in kinds:
            kinds[id(x)] = suited_scaling(x)
        kind = kinds[id(x)]
    return job.graph.train_mask.numpy().tobytes() if kind == "standard" else None


def _train(jobs: Sequence[Job], device: torch.device, observer: JobObserver) -> None:
    """Train jobs in one pass, or a single one in batches of nodes."""
    trainer: Trainer
    members, states = [job.member for job in jobs], [job.state for job in jobs]
    if members[0].settings.batch_size and len(jobs) > 1:
        for job in jobs:
            _train([job], device, observer)
        return
    if members[0].settings.batch_size:
        graph = prepared_rows(jobs[0].graph, members[0].settings)
        loader = NeighbourLoader(graph, members[0].settings, device)
        trainer = Trainer(loader, members, jobs[0].model, states)
    else:
        graphs = prepared_alike([job.graph for job in jobs], members[0].settings, device)
        trainer = Trainer(graphs, members, jobs[0].model, states)
    while not trainer.finished:
        observer.on_epoch(jobs, trainer, trainer.epoch())
    observer.on_end(jobs, trainer)


def _batches(jobs: Sequence[Job], size: int) -> Iterator[list[Job]]:
    """Cut jobs into batches of about this size, at least one group each."""
    groups: dict[Hashable, list[Job]] = {}
    for job in jobs:
        groups.setdefault(id(job) if job.group is None else job.group, []).append(job)
    batch: list[Job] = []
    for group in groups.values():
        if batch and len(batch) + len(group) > size:
            yield batch
            batch = []
        batch = batch + group
    if batch:
        yield batch


def free_memory(device: torch.device) -> None:
    """Give back what earlier trainers held, so that it counts as free."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
