"""Training over several seeds in a run folder: logged, checkpointed, resumable."""

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch_geometric.data import Data

import lgdgcn
from lgdgcn.config import Settings
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import CheckpointError, DivergedError, InputError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.train import checkpoint
from lgdgcn.train.identity import check_same
from lgdgcn.train.member import Member, MemberState, Progress, Report
from lgdgcn.train.population import Population
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.trained import TrainedModel, prepared_alike

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
    """Scores of one seed's best weights."""

    seed: int
    val: float | None
    test: float | None
    epochs: int
    seconds: float
    scores: dict[str, dict[str, float | None]]

    def as_row(self) -> dict[str, Any]:
        """What ``result.json`` says of a run."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


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
                        advice = f"lower lr (now {self.settings.lr:g})"
                        raise DivergedError(f"{report.diverged}; {advice}")
                if stop and stopping and not population.finished:
                    last = reports[-1]
                    seed = self.members[last.place].seed
                    message = f"stopped after epoch {last.progress.epoch} of seed {seed}"
                    raise StoppedError(message, stop.exit_code)
        except torch.OutOfMemoryError:
            raise out_of_memory(self.device) from None

    def outcome(self, place: int) -> tuple[SeedResult, Callable[[], TrainedModel]]:
        """The result of a member, and its model on demand."""
        data, member, task = self.graphs[place], self.members[place], self.population.tasks[place]

        def trained() -> TrainedModel:
            classes = list(getattr(data, "classes", range(task.outputs)))
            model = self.population.model(place)
            return TrainedModel(self.model, model, self.settings, task, classes, data.x.size(1))

        graph = self.population.graphs[place]
        logits = trained().run(graph).logits
        scores = {
            part: task.scores(logits, graph.y, graph[f"{part}_mask"])
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
        )
        return result, trained

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
        self.folder.truncate_metrics(lambda line: line["seed"] != seed or line["epoch"] <= epoch)
        return state


def _progress(meta: Mapping[str, Any], path: Path) -> Progress:
    """How far a saved training was; a sealed file may still say anything."""
    try:
        kinds = get_type_hints(Progress).items()
        return Progress(**{name: kind(meta["progress"][name]) for name, kind in kinds})
    except (KeyError, TypeError, ValueError, OverflowError):
        raise CheckpointError(
            f"{path}: the newest checkpoint does not say how far it is; remove it to go on from "
            "the one before"
        ) from None


def out_of_memory(device: torch.device) -> InputError:
    """The one line for a device whose memory is too small."""
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
    return InputError(
        f"{device} ran out of memory at a peak of {peak:.1f} GiB; use --device cpu, "
        "or lower hidden_channels or num_layers"
    )


def summary(results: Sequence[SeedResult]) -> dict[str, Any]:
    """Mean and sample standard deviation of the test score, ``None`` without test nodes."""
    tests = [result.test for result in results if result.test is not None]
    return {
        "runs": [result.as_row() for result in results],
        "mean": statistics.fmean(tests) if tests else None,
        "std": (statistics.stdev(tests) if len(tests) > 1 else 0.0) if tests else None,
    }


def _identity(model: str, member: Member, graph: Data) -> dict[str, Any]:
    return {
        "config": {"model": model, "seed": member.seed, **member.settings.as_dict()},
        "data": fingerprint(graph),
        "versions": {
            "lgdgcn": lgdgcn.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
    }


def members_at_once(data: Data, settings: Settings, device: torch.device) -> int:
    """How many trainings fit into a quarter of a GPU's free memory or 1 GiB, by a rough count."""
    nodes, edges = data.x.size(0), data.edge_index.size(1)
    floats = settings.hidden_channels * (16 * settings.num_layers * nodes + edges)
    floats += 8 * settings.hidden_channels * data.x.size(1) + 8 * nodes * min(settings.k, nodes)
    room = torch.cuda.mem_get_info(device)[0] / 4 if device.type == "cuda" else 2**30
    return max(1, min(64, int(room / (4 * floats))))
