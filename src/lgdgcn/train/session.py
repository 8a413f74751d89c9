"""Training over several seeds in a run folder: logged, checkpointed, resumable."""

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch_geometric.data import Data

import lgdgcn
from lgdgcn.config import Settings
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import CheckpointError, DivergedError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.train import checkpoint
from lgdgcn.train.identity import check_same
from lgdgcn.train.member import Member, MemberState, Progress, Report
from lgdgcn.train.memory import is_out_of_memory, members_at_once, out_of_memory
from lgdgcn.train.population import Population
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.sanity import likely_cause, sanity_warnings
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel, feature_names, prepared_alike

__all__ = [
    "SeedResult",
    "members_at_once",
    "out_of_memory",
    "summary",
    "train_seed",
    "train_seeds",
]


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
        threshold: Probability above which a label is predicted, where label sets differ in size.
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
        """What ``result.json`` says of a run; its warnings are in :func:`summary`."""
        row = {**asdict(self), "seconds": round(self.seconds, 3)}
        del row["warnings"]
        if self.threshold is None:
            del row["threshold"]
        return row


OnEpoch = Callable[[Member, Report], None]


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
) -> tuple[list[SeedResult], TrainedModel]:
    """Train one model per seed, as many at once as fit.

    Args:
        load: Gives the canonical graph of a seed; only its split may depend on the seed.
        settings: Hyper-parameters.
        model: A key of :data:`lgdgcn.models.MODELS`.
        seeds: Seeds, one run each.
        device: Where to train.
        folder: Where metrics and checkpoints go; resumed from where it holds some.
        on_epoch: Called after every epoch of every run.
        stop: Becomes true when a signal asks to stop.

    Returns:
        The result of every seed, and the model with the best validation score.
    """
    results: list[SeedResult] = []
    best: TrainedModel | None = None
    at_once = members_at_once(load(seeds[0]), settings, device)
    for start in range(0, len(seeds), at_once):
        group = seeds[start : start + at_once]
        session = _Session([load(seed) for seed in group], settings, model, group, device, folder)
        session.train(on_epoch, stop)
        for place in range(len(group)):
            result, trained = session.outcome(place)
            if best is None or (result.val or 0) > max(other.val or 0 for other in results):
                best = trained()
            results.append(result)
    if folder is not None:
        folder.sort_metrics(_as_trained(seeds, at_once))
    assert best is not None
    return results, best


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
) -> tuple[SeedResult, TrainedModel]:
    """Train one model, going on from its checkpoint where there is one."""
    results, trained = train_seeds(
        lambda _: data, settings, model, [seed], device, folder, on_epoch=on_epoch, stop=stop
    )
    return results[0], trained


class _Session:
    """A population whose members are the seeds of one run."""

    def __init__(
        self,
        graphs: Sequence[Data],
        settings: Settings,
        model: str,
        seeds: Sequence[int],
        device: torch.device,
        folder: RunFolder | None,
    ) -> None:
        self.graphs, self.settings, self.model, self.folder = graphs, settings, model, folder
        self.members = [Member(settings, seed) for seed in seeds]
        self.device = device
        self.identities = [
            _identity(model, member, graph)
            for member, graph in zip(self.members, graphs, strict=True)
        ]
        states = [self._saved(place) for place in range(len(seeds))]
        own = prepared_alike(graphs, settings, device)
        self.population = Population(own, self.members, model, states)

    def train(self, on_epoch: OnEpoch, stop: StopRequest | None) -> None:
        """Train to the end, or to the epoch in which a signal asks to stop."""
        population = self.population
        try:
            while not population.finished:
                reports = population.epoch()
                stopping = bool(stop)  # asked once: a later signal ends the next epoch
                sound = [report for report in reports if report.diverged is None]
                for report in sound:
                    self._log(report)
                for report in sound:
                    on_epoch(self.members[report.place], report)
                self._save_due(sound, stopping or sound != reports)
                for report in reports:
                    if report.diverged is not None:
                        advice = likely_cause(self.settings, population.graphs[0].x, self.model)
                        raise DivergedError(f"{report.diverged}; {advice}")
                if stop and stopping and not population.finished:
                    last = reports[-1]
                    seed = self.members[last.place].seed
                    message = f"stopped after epoch {last.progress.epoch} of seed {seed}"
                    raise StoppedError(message, stop.exit_code)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise out_of_memory(self.device) from None

    def outcome(self, place: int) -> tuple[SeedResult, Callable[[], TrainedModel]]:
        """The result of a member, and its model on demand."""
        member, graph = self.members[place], self.population.graphs[place]
        trained = self._trained(place, self.population.tasks[place])
        output = trained.run(graph)
        task = trained.task.tuned(output.logits, graph.y, graph.val_mask)
        scores = {
            part: task.scores(output.logits, graph.y, graph[f"{part}_mask"])
            for part in ("train", "val", "test")
        }
        headline = {part: next(iter(values.values())) for part, values in scores.items()}
        progress = self.population.states[place].progress
        result = SeedResult(
            member.seed,
            headline["val"],
            headline["test"],
            progress.epoch,
            progress.seconds,
            scores,
            self.identities[place]["data"],
            task.threshold if task.sizes_differ else None,
            sanity_warnings(trained, graph, output, progress),
        )
        return result, lambda: self._trained(place, task)

    def _trained(self, place: int, task: Task) -> TrainedModel:
        """The model of a member's best epoch."""
        data, model = self.graphs[place], self.population.model(place)
        classes = list(getattr(data, "classes", range(task.outputs)))
        size, names = data.x.size(1), feature_names(data)
        return TrainedModel(self.model, model, self.settings, task, classes, size, names)

    def _log(self, report: Report) -> None:
        if self.folder is not None:
            seed = self.members[report.place].seed
            self.folder.append_metrics({"seed": seed, **report.metrics})

    def _save_due(self, reports: Sequence[Report], stopping: bool) -> None:
        if self.folder is None:
            return
        every = self.settings.checkpoint_every
        due = {
            report.place
            for report in reports
            if stopping
            or report.finished
            or report.progress.epoch == 1
            or report.progress.epoch % every == 0
        }
        for place in sorted(due):
            state = self.population.state(place)
            meta = {**self.identities[place], "progress": asdict(state.progress)}
            checkpoint.save(self.folder.checkpoint(self.members[place].seed), state.tensors, meta)

    def _saved(self, place: int) -> MemberState | None:
        """What the folder holds of a member; later lines of its log are dropped."""
        if self.folder is None:
            return None
        seed = self.members[place].seed
        saved = checkpoint.load(self.folder.checkpoint(seed))
        state = None
        if saved is not None:
            tensors, meta = saved
            check_same(meta, self.identities[place])
            state = MemberState(_progress(meta, self.folder.checkpoint(seed)), tensors)
        epoch = 0 if state is None else state.progress.epoch
        self.folder.truncate_metrics(lambda line: _is_known(line, seed, epoch))
        return state


def _progress(meta: Mapping[str, Any], path: Path) -> Progress:
    """How far a saved training was; a sealed file may still say anything."""
    try:
        saved = {name: meta["progress"].get(name) for name in get_type_hints(Progress)}
        for name in ("epoch", "best_epoch"):
            saved[name] = int(saved[name])
        for name in ("best_score", "best_loss", "seconds"):
            saved[name] = float(saved[name])
        for name in ("lowest_score", "first_loss", "last_loss"):
            saved[name] = None if saved[name] is None else float(saved[name])
        return Progress(**saved)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise CheckpointError(
            f"{path}: the newest checkpoint does not say how far it is; remove it to go on from "
            "the one before"
        ) from None


def _is_known(line: dict[str, Any], seed: int, epoch: int) -> bool:
    """Whether a line of the log is of another seed, or of an epoch that this one has behind it."""
    of_seed, of_epoch = line.get("seed"), line.get("epoch")
    if type(of_seed) is not int or type(of_epoch) is not int:
        return False
    return of_seed != seed or of_epoch <= epoch


def _as_trained(seeds: Sequence[int], at_once: int) -> Callable[[dict[str, Any]], tuple[int, ...]]:
    """Sorts the lines of a log as a training writes them that nobody has killed.

    After a kill between the checkpoints of two seeds, one of them catches up with the other.
    """
    order = {seed: place for place, seed in enumerate(seeds)}

    def key(line: dict[str, Any]) -> tuple[int, ...]:
        place = order.get(line["seed"])
        return (-1,) if place is None else (place // at_once, line["epoch"], place)

    return key


def summary(results: Sequence[SeedResult]) -> dict[str, Any]:
    """All runs, mean and standard deviation of the test score, and every warning once.

    The mean and the deviation (of a sample) are ``None`` without test nodes.
    """
    tests = [result.test for result in results if result.test is not None]
    return {
        "runs": [result.as_row() for result in results],
        "mean": statistics.fmean(tests) if tests else None,
        "std": (statistics.stdev(tests) if len(tests) > 1 else 0.0) if tests else None,
        "warnings": [
            warning if len(results) == 1 else f"seed {result.seed}: {warning}"
            for result in results
            for warning in result.warnings
        ],
    }


def _identity(model: str, member: Member, graph: Data) -> dict[str, Any]:
    task = Task.of(graph)
    # Earlier versions chose these epochs by another score, which cannot be compared.
    chosen_by = {"selection": task.selection_metric} if task.sizes_differ else {}
    return {
        **chosen_by,
        "config": {"model": model, "seed": member.seed, **member.settings.as_dict()},
        "data": fingerprint(graph),
        "versions": {
            "lgdgcn": lgdgcn.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
    }
