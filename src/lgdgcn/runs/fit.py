"""One model trained over several seeds in a run folder: logged, checkpointed, resumable."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

import lgdgcn
from lgdgcn.config import Settings
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import CheckpointError, DivergedError, StoppedError
from lgdgcn.models import MODELS
from lgdgcn.runs.files import check_same
from lgdgcn.runs.folder import RunFolder
from lgdgcn.runtime import StopRequest
from lgdgcn.storage import plain_file
from lgdgcn.train import checkpoint
from lgdgcn.train.jobs import Job, JobObserver, run_jobs
from lgdgcn.train.metric import choose_metric
from lgdgcn.train.ranks import Ranks
from lgdgcn.train.sanity import likely_cause, sanity_warnings
from lgdgcn.train.state import EpochReport, Member, TrainState
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel, feature_names, hold_once
from lgdgcn.train.trainer import Trainer

__all__ = ["SeedResult", "summary", "train_seed", "train_seeds"]


@dataclass
class SeedResult:
    """Scores of one seed's best weights.

    Attributes:
        seed: The seed.
        val: Headline score on the validation nodes.
        test: Headline score on the test nodes.
        epochs: Epochs trained.
        seconds: Time taken.
        scores: Every score of ``train``, ``val`` and ``test`` by name.
        data: Fingerprint of the graph and its split.
        threshold: Probability above which a label is predicted, if label sets differ in size.
        warnings: What a reader of the scores should know, a sentence each.
    """

    seed: int
    val: float | None
    test: float | None
    epochs: int
    seconds: float
    scores: dict[str, dict[str, float | None]]
    data: str = ""
    threshold: float | None = None
    warnings: list[str] = field(default_factory=list)

    def as_row(self) -> dict[str, Any]:
        """Return what ``result.json`` says of a run; its warnings are in :func:`summary`."""
        row = {**asdict(self), "seconds": round(self.seconds, 3)}
        del row["warnings"]
        if self.threshold is None:
            del row["threshold"]
        return row


_SAVED_EVERY = 60.0  # seconds

OnEpoch = Callable[[Member, EpochReport], None]


def train_seeds(
    load: Callable[[int], Data],
    settings: Settings,
    model: str,
    seeds: Sequence[int],
    device: torch.device,
    folder: RunFolder | None = None,
    *,
    on_epoch: OnEpoch = lambda member, report: None,
    stop: StopRequest | None = None,
    begun: TrainState | None = None,
) -> tuple[list[SeedResult], TrainedModel]:
    """Train one model per seed, as many at once as fit.

    Args:
        load: Returns the canonical graph of a seed; only its split may depend on the seed.
        settings: Hyper-parameters.
        model: A key of :data:`lgdgcn.models.MODELS`.
        seeds: Seeds, one run each.
        device: Where to train.
        folder: Where metrics and checkpoints go; resumed from if it holds some.
        on_epoch: Called after every epoch of every run.
        stop: Becomes true when a signal asks to stop.
        begun: Where the training of the first seed stands already.

    Returns:
        The result of every seed, and the model with the best validation score.
    """
    observer = _SeedObserver(settings, folder, on_epoch, stop)
    observer.many = len(seeds) > 1
    observer.begun = {} if begun is None else {seeds[0]: begun}
    graphs = hold_once([load(seed) for seed in seeds])
    metrics = [choose_metric(graph, settings.metric).metric for graph in graphs]
    # a mean is of one score: that of the first seed, should splits differ in what is fair
    used = replace(settings, metric=metrics[0]) if len(set(metrics)) > 1 else settings
    jobs = [
        Job(model, Member(used, seed), graph) for seed, graph in zip(seeds, graphs, strict=True)
    ]
    observer.load_states(jobs)
    about = [observer.identity(job) for job in jobs]
    named = {"version": "versions", "graph": "data", "settings": "config"}
    Ranks.current().check_same({name: [own[key] for own in about] for name, key in named.items()})
    run_jobs(jobs, device, observer)
    if folder is not None:
        folder.sort_metrics(_training_order(observer.batches))
    assert observer.best is not None
    return observer.results, observer.best


def train_seed(
    data: Data,
    settings: Settings,
    model: str,
    seed: int,
    device: torch.device,
    folder: RunFolder | None = None,
    *,
    on_epoch: OnEpoch = lambda member, report: None,
    stop: StopRequest | None = None,
    begun: TrainState | None = None,
) -> tuple[SeedResult, TrainedModel]:
    """Train one model, going on from its checkpoint if there is one; see :func:`train_seeds`."""
    follow: dict[str, Any] = {"on_epoch": on_epoch, "stop": stop, "begun": begun}
    results, trained = train_seeds(
        lambda _: data, settings, model, [seed], device, folder, **follow
    )
    return results[0], trained


class _SeedObserver(JobObserver):
    """Writes metrics and checkpoints, stops on signals, and scores what is finished."""

    def __init__(
        self,
        settings: Settings,
        folder: RunFolder | None,
        on_epoch: OnEpoch,
        stop: StopRequest | None,
    ) -> None:
        self.settings, self.folder, self.report, self.stop = settings, folder, on_epoch, stop
        self.results: list[SeedResult] = []
        self.best: TrainedModel | None = None
        self.many = False  # whether models of several seeds are kept, to be compared
        self.batches: list[list[int]] = []  # seeds that were trained in one pass
        self.begun: dict[int, TrainState] = {}  # by seed
        self._identities: dict[int, dict[str, Any]] = {}
        self._saved_at = time.monotonic()

    def load_states(self, jobs: Sequence[Job]) -> None:
        """Let jobs go on from their checkpoints; later lines of their logs are dropped."""
        for job in jobs:
            seed = job.member.seed
            identity = self._identities[seed] = _identity(job)
            job.state = self.begun.get(seed)
            if self.folder is None:
                continue
            saved = checkpoint.load(self.folder.checkpoint(seed))
            if saved is not None:
                tensors, meta = saved
                check_same(meta, identity)
                job.state = _saved_state(meta, tensors, self.folder.checkpoint(seed))
            elif job.state is not None:  # begun elsewhere: from now on this folder knows it
                meta = {**identity, "progress": job.state.progress()}
                checkpoint.save(self.folder.checkpoint(seed), job.state.tensors, meta)
        if self.folder is not None:
            _align(jobs, self.folder)
            epochs = {job.member.seed: job.state.epoch if job.state else 0 for job in jobs}
            self.folder.truncate_metrics(partial(_is_known, epochs=epochs))

    def identity(self, job: Job) -> dict[str, Any]:
        """What all ranks of a job must have in common."""
        return self._identities[job.member.seed]

    def on_restart(self, jobs: Sequence[Job]) -> None:
        """Go back to the last checkpoints."""
        self.load_states(jobs)

    def on_epoch(
        self, jobs: Sequence[Job], trainer: Trainer, reports: Sequence[EpochReport]
    ) -> None:
        """Log, save what is due, and stop if a signal asks for it or a training diverges."""
        # asked once: a later signal ends the next epoch; ranks stop together
        stopping = Ranks.current().agree(bool(self.stop))
        finite = [report for report in reports if report.diverged is None]
        for report in finite:
            if self.folder is not None:
                seed = jobs[report.index].member.seed
                self.folder.append_metrics({"seed": seed, **report.metrics})
        for report in finite:
            self.report(jobs[report.index].member, report)
        self._save_due(jobs, trainer, finite, stopping or finite != reports)
        for report in reports:
            if report.diverged is not None:
                job, x = jobs[report.index], trainer.graphs[report.index].x
                advice = likely_cause(job.member.settings, x, job.model)
                raise DivergedError(f"{report.diverged}; {advice}")
        if stopping and not trainer.finished:
            last = reports[-1]
            seed = jobs[last.index].member.seed
            message = f"stopped after epoch {last.state.epoch} of seed {seed}"
            raise StoppedError(message, self.stop.exit_code if self.stop else 143)

    def on_end(self, jobs: Sequence[Job], trainer: Trainer) -> None:
        """Score the best weights of every seed and keep the best model of all."""
        self.batches.append([job.member.seed for job in jobs])
        for index, job in enumerate(jobs):
            trained = TrainedModel(
                job.model,
                trainer.model(index),
                self.settings,
                trainer.tasks[index],
                list(getattr(job.graph, "classes", range(trainer.tasks[index].outputs))),
                job.graph.x.size(1),
                feature_names(job.graph),
                job.graph.get("encoding"),
                trainer.graphs[index].get("scaling"),
            )
            score = partial(self._scored, trainer, index, trained)
            result, trained.task = Ranks.current().by_first(score)
            if self.folder is not None and self.many and trained.model.num_factors:
                file = self.folder.seed_model(job.member.seed)
                plain_file(file)  # no link is followed
                trained.save(file)
            if self.best is None or (result.val or 0) > max(o.val or 0 for o in self.results):
                self.best = trained
            self.results.append(result)
            job.done = True

    def _scored(
        self, trainer: Trainer, index: int, trained: TrainedModel
    ) -> tuple[SeedResult, Task]:
        """Score a finished model; returns its task, too, with the best thresholds."""
        graph, state = trainer.graphs[index], trainer.states[index]
        seed = trainer.members[index].seed
        output = trainer.output(index, trained)
        trained.task = task = trained.task.tuned(output.logits, graph.y, graph.val_mask)
        scores = {
            split: task.scores(output.logits, graph.y, graph[f"{split}_mask"])
            for split in ("train", "val", "test")
        }
        headline = {split: next(iter(values.values())) for split, values in scores.items()}
        result = SeedResult(
            seed,
            headline["val"],
            headline["test"],
            state.epoch,
            state.seconds,
            scores,
            self._identities[seed]["data"],
            task.threshold if task.sizes_differ else None,
            sanity_warnings(trained, graph, output, state) + _unused_weights(trained, graph),
        )
        return result, task

    def _save_due(
        self,
        jobs: Sequence[Job],
        trainer: Trainer,
        reports: Sequence[EpochReport],
        stopping: bool,
    ) -> None:
        """Save checkpoints every few epochs, of first and last epochs, and before stopping.

        Long epochs are not lost, either: no minute passes without one.
        """
        if self.folder is None:
            return
        stopping = stopping or time.monotonic() > self._saved_at + _SAVED_EVERY
        due: set[int] = set()
        for report in reports:
            every = jobs[report.index].member.settings.checkpoint_every
            epoch = report.state.epoch
            is_due = stopping or report.finished or epoch == 1 or epoch % every == 0
            if is_due and not trainer.states[report.index].diverged:  # its weights are spoilt
                due.add(report.index)
        for index in sorted(due):
            state, seed = trainer.state(index), jobs[index].member.seed
            meta = {**self._identities[seed], "progress": state.progress()}
            checkpoint.save(self.folder.checkpoint(seed), state.tensors, meta)
            self._saved_at = time.monotonic()


def _unused_weights(trained: TrainedModel, graph: Data) -> list[str]:
    rows = graph.get("rows")  # of a mapped graph
    has_weights = "edge_weight" in graph or (rows is not None and rows.weight is not None)
    if not has_weights or trained.model.uses_edge_weights:
        return []
    title, settings = MODELS[trained.name].title, trained.settings
    if getattr(trained.model, "encoder", None) is not None:
        # not the model but one of its settings has no use for them
        title += " with hops=0" if settings.hops == 0 else f" with structure={settings.structure}"
    return [f"{title} has no use for the weights of edges: all count the same"]


def summary(results: Sequence[SeedResult]) -> dict[str, Any]:
    """Return all runs, mean and standard deviation of the test score, and every warning once.

    A warning begins with its seed, unless all seeds have it. The mean and the deviation (of a
    sample) are ``None`` without test nodes.
    """
    tests = [result.test for result in results if result.test is not None]
    common = [
        warning
        for warning in (results[0].warnings if results else ())
        if all(warning in result.warnings for result in results)
    ]
    return {
        "runs": [result.as_row() for result in results],
        "mean": statistics.fmean(tests) if tests else None,
        "std": (statistics.stdev(tests) if len(tests) > 1 else 0.0) if tests else None,
        "warnings": common
        + [
            f"seed {result.seed}: {warning}"
            for result in results
            for warning in result.warnings
            if warning not in common
        ],
    }


def _identity(job: Job) -> dict[str, Any]:
    """Return what must be the same in a run that goes on."""
    settings, task = job.member.settings.as_dict(), Task.of(job.graph, job.member.settings.metric)
    # Earlier versions knew two scores only, and what they chose cannot be compared with others.
    chosen_by = {} if task.metric in ("accuracy", "micro_f1") else {"selection": task.metric}
    return {
        **chosen_by,
        "config": {"model": job.model, "seed": job.member.seed, **settings},
        "data": fingerprint(job.graph),
        "versions": {
            "lgdgcn": lgdgcn.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
    }


def _align(jobs: Sequence[Job], folder: RunFolder) -> None:
    """Take seeds that were saved ahead of others back to the epoch of these.

    A kill may come when one seed is saved and the next is not. Trained on from there, one of them
    would do its last epochs without the other, and sums of one member are rounded otherwise than
    those of several in one pass: the run would not be that of nobody's interruption, bit for bit.
    """
    saved = [(job, job.state) for job in jobs if job.state is not None]
    running = [s.epoch for job, s in saved if not s.is_finished(job.member.settings)]
    if not running:
        return
    last = min(running)
    for job, state in saved:
        path = folder.checkpoint(job.member.seed)
        if state.epoch > last:
            older = checkpoint.go_back(path, lambda meta: _epoch_of(meta) == last)
            if older is not None:
                job.state = _saved_state(older[1], older[0], path)
        elif state.epoch == 1 and len(saved) < len(jobs):  # the first save of all
            checkpoint.remove(path)
            job.state = None


def _epoch_of(meta: Mapping[str, Any]) -> Any:
    progress = meta.get("progress")
    return progress.get("epoch") if isinstance(progress, dict) else None


def _saved_state(meta: Mapping[str, Any], tensors: dict[str, Tensor], path: Path) -> TrainState:
    """Return where a saved training stands; a sealed file may still say anything."""
    try:
        saved = {name: meta["progress"].get(name) for name in TrainState().progress()}
        for name in ("epoch", "best_epoch"):
            saved[name] = int(saved[name])
        for name in ("best_score", "best_loss", "seconds"):
            saved[name] = float(saved[name])
        for name in ("lowest_score", "first_loss", "last_loss"):
            saved[name] = None if saved[name] is None else float(saved[name])
        return TrainState(**saved, tensors=tensors)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise CheckpointError(
            f"{path}: the newest checkpoint does not say how far it is; remove it to go on from "
            "the one before"
        ) from None


def _is_known(line: dict[str, Any], epochs: Mapping[int, int]) -> bool:
    """Whether a line of the log is of another seed, or of an epoch that its seed has behind it."""
    of_seed, of_epoch = line.get("seed"), line.get("epoch")
    if type(of_seed) is not int or type(of_epoch) is not int:
        return False
    return of_epoch <= epochs.get(of_seed, of_epoch)


def _training_order(
    batches: Sequence[Sequence[int]],
) -> Callable[[dict[str, Any]], tuple[int, ...]]:
    """Return a sort key that brings the log into the order of a run that was never killed.

    After a kill between the checkpoints of two seeds, one of them catches up with the other.
    """
    order = {seed: (b, i) for b, seeds in enumerate(batches) for i, seed in enumerate(seeds)}

    def key(line: dict[str, Any]) -> tuple[int, ...]:
        batch, index = order.get(line["seed"], (-1, 0))
        return (batch, line["epoch"], index)

    return key
