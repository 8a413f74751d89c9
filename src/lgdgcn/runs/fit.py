"""One model trained over several seeds in a run folder: logged, checkpointed, resumable."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch_geometric.data import Data

import lgdgcn
from lgdgcn.config import Settings
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import DivergedError, StoppedError
from lgdgcn.models import MODELS
from lgdgcn.reasons.propagation import attach_reasons
from lgdgcn.runs.checkpoint import Checkpoint, check_same
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import StopRequest
from lgdgcn.storage import plain_file
from lgdgcn.train.checks import likely_cause, sanity_warnings
from lgdgcn.train.population import TrainState
from lgdgcn.train.prepared import hold_once
from lgdgcn.train.ranks import Ranks
from lgdgcn.train.task import Task, choose_metric
from lgdgcn.train.trained import TrainedModel, feature_names
from lgdgcn.training import Epoch, Result, Training
from lgdgcn.training import run as train

__all__ = ["SeedResult", "fit", "summary"]

_SAVED_EVERY = 60.0  # seconds


@dataclass
class SeedResult:
    """Scores of one seed's best weights.

    Attributes:
        seed: The seed.
        val: Score on the validation nodes.
        test: Score on the test nodes.
        epochs: Epochs trained.
        seconds: Time taken.
        scores: Every score of ``train``, ``val`` and ``test`` by name.
        data: Fingerprint of the graph and its split.
        threshold: Probability above which a label is predicted, if label sets differ in size.
        warnings: What a reader of the scores should know, a sentence each.
        reasons: How much labels travel along edges of each reason, if they do.
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
    reasons: dict[str, float] | None = None

    def as_row(self) -> dict[str, Any]:
        """Return what ``result.json`` says of a run; its warnings are in :func:`summary`."""
        row = {**asdict(self), "seconds": round(self.seconds, 3)}
        del row["warnings"]
        for name in ("threshold", "reasons"):
            if row[name] is None:
                del row[name]
        return row


def fit(
    load: Callable[[int], Data],
    settings: Settings,
    model: str,
    seeds: Sequence[int],
    device: torch.device,
    run: Run | None = None,
    *,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    stop: StopRequest | None = None,
    begun: TrainState | None = None,
) -> tuple[list[SeedResult], TrainedModel]:
    """Train one model per seed, as many at once as fit.

    Args:
        load: Returns the canonical graph of a seed; only its split may depend on the seed.
        settings: Hyper-parameters.
        model: A key of :data:`lgdgcn.models.MODELS`.
        seeds: Seeds, one training each.
        device: Where to train.
        run: Where metrics and checkpoints go; gone on with if it has a checkpoint.
        on_epoch: Called after every epoch of every training.
        stop: Becomes true when a signal asks to stop.
        begun: Where the training of the first seed stands already.

    Returns:
        The result of every seed, and the model with the best validation score.

    Raises:
        StoppedError: ``stop`` became true; where all stand is saved.
        DivergedError: A loss is not finite, or exploded.
    """
    graphs = hold_once([load(seed) for seed in seeds])
    if model == "reasons":
        for graph in graphs:
            attach_reasons(graph)
    metrics = [choose_metric(graph, settings.metric).metric for graph in graphs]
    # a mean is of one score: that of the first seed, should splits differ in what is fair
    used = replace(settings, metric=metrics[0]) if len(set(metrics)) > 1 else settings
    trainings = [
        Training(model, used, seed, graph) for seed, graph in zip(seeds, graphs, strict=True)
    ]
    trainings[0].state = begun
    about = _about(trainings)
    follow = _Follower(trainings, about, run, on_epoch, stop)
    named = {"version": "versions", "graph": "data", "settings": "config"}
    Ranks.current().check_same({name: about[own] for name, own in named.items()})
    results: dict[int, SeedResult] = {}
    best: tuple[float, int, TrainedModel] | None = None
    for ended in train(trainings, device, follow):
        seed = ended.training.seed
        trained = _trained(ended, settings)
        score = partial(_scored, ended, trained, about["data"][str(seed)])
        result, trained.task = Ranks.current().by_first(score)
        results[seed] = result
        if run is not None and len(seeds) > 1 and trained.model.num_factors:
            plain_file(run.seed_model(seed))  # no link is followed
            trained.save(run.seed_model(seed))
        rank = (result.val or 0, -list(seeds).index(seed))  # the first of those that are best
        if best is None or rank > best[:2]:
            best = (*rank, trained)
    assert best is not None
    follow.tidy_log()
    return [results[seed] for seed in seeds], best[2]


class _Follower:
    """Sees every epoch: logs it, saves what is due, and stops where a signal asks for it."""

    def __init__(
        self,
        trainings: Sequence[Training],
        about: Mapping[str, Any],
        run: Run | None,
        on_epoch: Callable[[Epoch], None],
        stop: StopRequest | None,
    ) -> None:
        self.trainings, self.about, self.run = trainings, about, run
        self.on_epoch, self.stop = on_epoch, stop
        self.logged: dict[int, int] = {}  # the last epoch in the log, by seed
        self.saved_at = time.monotonic()
        if run is not None:
            self.checkpoint = Checkpoint(run.checkpoint)
            saved = self.checkpoint.load()
            if saved is not None:
                check_same(saved[1], about)
                for one in trainings:
                    one.state = saved[0].get(one.seed)
            elif any(one.state for one in trainings):  # begun elsewhere
                self._save([])
            self.tidy_log()

    def __call__(self, epochs: Sequence[Epoch]) -> None:
        """See :data:`lgdgcn.training.OnEpoch`."""
        # asked once: a later signal ends the next epoch; ranks stop together
        stopping = Ranks.current().agree(bool(self.stop))
        diverged = {epoch.training.seed for epoch in epochs if epoch.state.diverged is not None}
        sound = [epoch for epoch in epochs if epoch.state.diverged is None]
        if self.run is not None:
            self._log(self.run, sound)
        for epoch in sound:
            self.on_epoch(epoch)
        # several epochs of one training may come at once; of one that diverged nothing is saved
        last = {epoch.training.seed: epoch for epoch in sound}
        last = {seed: epoch for seed, epoch in last.items() if seed not in diverged}
        if last and (stopping or diverged or self._is_due(sound)):
            self._save([*last.values()])
        if stopping and not diverged and any(not epoch.finished for epoch in last.values()):
            epoch = epochs[-1]
            message = f"stopped after epoch {epoch.state.epoch} of seed {epoch.training.seed}"
            raise StoppedError(message, self.stop.exit_code if self.stop else 143)

    def _log(self, run: Run, epochs: Sequence[Epoch]) -> None:
        for epoch in epochs:
            seed, number = epoch.training.seed, epoch.state.epoch
            if number <= self.logged.get(seed, 0):  # memory ran out, and all began again
                self.tidy_log()
            run.append_metrics({"seed": seed, **epoch.metrics})
            self.logged[seed] = number

    def tidy_log(self) -> None:
        """Keep the epochs that the saved states have behind them, whatever was trained first."""
        self.logged = {one.seed: one.state.epoch if one.state else 0 for one in self.trainings}
        seeds = [*self.logged]

        def is_behind(line: dict[str, Any]) -> bool:
            seed, epoch = line.get("seed"), line.get("epoch")
            return type(seed) is type(epoch) is int and epoch <= self.logged.get(seed, -1)

        if self.run is not None:
            self.run.cut_metrics(
                is_behind, order=lambda line: (line["epoch"], seeds.index(line["seed"]))
            )

    def _is_due(self, epochs: Sequence[Epoch]) -> bool:
        """Whether to save: every few epochs, of first and last ones, and every minute."""
        every = self.trainings[0].settings.checkpoint_every
        numbers = [epoch.state.epoch for epoch in epochs]
        due = any(number == 1 or number % every == 0 for number in numbers)
        late = time.monotonic() > self.saved_at + _SAVED_EVERY
        return due or late or any(epoch.finished for epoch in epochs)

    def _save(self, epochs: Sequence[Epoch]) -> None:
        """Save where all trainings stand, of which these have moved on."""
        if self.run is None:
            return
        for epoch in epochs:
            state = epoch.snapshot()
            on_host = {name: tensor.cpu() for name, tensor in state.tensors.items()}
            # from here it begins again, too, if memory runs out
            epoch.training.state = replace(state, tensors=on_host)
        states = {one.seed: one.state for one in self.trainings if one.state is not None}
        self.checkpoint.save(states, self.about)
        self.saved_at = time.monotonic()


def _about(trainings: Sequence[Training]) -> dict[str, Any]:
    """What must be the same in a run that goes on."""
    first = trainings[0]
    return {
        "config": {"model": first.model, **first.settings.as_dict()},
        "data": {str(one.seed): fingerprint(one.graph) for one in trainings},
        "versions": {
            "lgdgcn": lgdgcn.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
    }


def _trained(ended: Result, settings: Settings) -> TrainedModel:
    one = ended.training
    if isinstance(ended.error, DivergedError):
        advice = likely_cause(one.settings, ended.graph.x, one.model)
        raise DivergedError(f"{ended.error}; {advice}")
    if ended.error is not None:
        raise ended.error
    assert ended.task is not None
    return TrainedModel(
        one.model,
        ended.network(),
        settings,
        ended.task,
        list(getattr(one.graph, "classes", range(ended.task.outputs))),
        one.graph.x.size(1),
        feature_names(one.graph),
        one.graph.get("encoding"),
        ended.graph.get("scaling"),
    )


def _scored(ended: Result, trained: TrainedModel, data: str) -> tuple[SeedResult, Task]:
    """Score a finished model; returns its task, too, with the best thresholds."""
    graph, state = ended.graph, ended.state
    assert state is not None
    output = ended.output(trained)
    trained.task = task = trained.task.tuned(output.logits, graph.y, graph.val_mask)
    scores = {
        split: task.scores(output.logits, graph.y, graph[f"{split}_mask"])
        for split in ("train", "val", "test")
    }
    first = {split: next(iter(values.values())) for split, values in scores.items()}
    result = SeedResult(
        ended.training.seed,
        first["val"],
        first["test"],
        state.epoch,
        state.seconds,
        scores,
        data,
        task.threshold if task.sizes_differ else None,
        sanity_warnings(trained, graph, output, state) + _unused_weights(trained, graph),
        _reason_weights(trained, graph),
    )
    return result, task


def _reason_weights(trained: TrainedModel, graph: Data) -> dict[str, float] | None:
    weights = trained.model.reason_weights()
    if weights is None or "reason_names" not in graph:
        return None
    named = zip(graph.reason_names, weights.tolist(), strict=True)
    return {name: round(weight, 4) for name, weight in named}


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
    every = [(result.seed, warning) for result in results for warning in result.warnings]
    of_all = {text for _, text in every if all(text in result.warnings for result in results)}
    lines = [text if text in of_all else f"seed {seed}: {text}" for seed, text in every]
    return {
        "runs": [result.as_row() for result in results],
        "mean": statistics.fmean(tests) if tests else None,
        "std": (statistics.stdev(tests) if len(tests) > 1 else 0.0) if tests else None,
        "warnings": [*dict.fromkeys(sorted(lines, key=lambda line: line not in of_all))],
    }
