"""Training over several seeds in a run folder: logged, checkpointed, resumable."""

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch_geometric.data import Data

import lgdgcn
from lgdgcn.config import Settings
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.train import checkpoint, states
from lgdgcn.train.identity import check_same
from lgdgcn.train.loop import Progress, Run
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.trained import TrainedModel, prepared

__all__ = ["SeedResult", "summary", "train_seed", "train_seeds"]


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


OnEpoch = Callable[[Run, dict[str, Any]], None]


def train_seeds(
    load: Callable[[int], Data],
    settings: Settings,
    model: str,
    seeds: Sequence[int],
    device: torch.device,
    folder: RunFolder | None = None,
    *,
    on_epoch: OnEpoch = lambda run, metrics: None,
    stop: StopRequest | None = None,
) -> tuple[list[SeedResult], TrainedModel]:
    """Train one model per seed.

    Args:
        load: Gives the canonical graph of a seed (its split may depend on it).
        settings: Hyper-parameters.
        model: A key of :data:`lgdgcn.models.MODELS`.
        seeds: Seeds, one run each.
        device: Where to train.
        folder: Where metrics and checkpoints go; resumed from where it holds some.
        on_epoch: Called after every epoch.
        stop: Becomes true when a signal asks to stop.

    Returns:
        The result of every seed, and the model with the best validation score.
    """
    results: list[SeedResult] = []
    best: TrainedModel | None = None
    for seed in seeds:
        result, trained = train_seed(
            load(seed), settings, model, seed, device, folder, on_epoch=on_epoch, stop=stop
        )
        if best is None or (result.val or 0) > max(other.val or 0 for other in results):
            best = trained
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
    on_epoch: OnEpoch = lambda run, metrics: None,
    stop: StopRequest | None = None,
) -> tuple[SeedResult, TrainedModel]:
    """Train one model, going on from its checkpoint where there is one."""
    run = Run(prepared(data, settings, device), settings, model, seed)
    identity = {
        "config": {"model": model, "seed": seed, **settings.as_dict()},
        "data": fingerprint(data),
        "versions": {
            "lgdgcn": lgdgcn.__version__,
            "torch": torch.__version__,
            "python": sys.version.split()[0],
        },
    }
    if folder is not None:
        _resume(run, identity, folder)

    def after_epoch(metrics: dict[str, Any]) -> None:
        stopping = bool(stop)  # asked once: a later signal ends the next epoch, saved like this one
        if folder is not None:
            folder.append_metrics({"seed": seed, **metrics})
            due = run.progress.epoch % settings.checkpoint_every == 0 or run.progress.epoch == 1
            if due or stopping or run.finished:
                _save(run, identity, folder)
        on_epoch(run, metrics)
        if stop and stopping and not run.finished:
            message = f"stopped after epoch {run.progress.epoch} of seed {seed}"
            raise StoppedError(message, stop.exit_code)

    try:
        run.train(after_epoch)
    except torch.OutOfMemoryError:
        peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
        raise InputError(
            f"{device} ran out of memory at a peak of {peak:.1f} GiB; use --device cpu, or lower "
            "hidden_channels or num_layers"
        ) from None
    scores = run.scores()
    headline = {part: next(iter(values.values())) for part, values in scores.items()}
    progress = run.progress
    result = SeedResult(
        seed, headline["val"], headline["test"], progress.epoch, progress.seconds, scores
    )
    classes = list(getattr(data, "classes", range(run.task.outputs)))
    return result, TrainedModel(model, run.model, settings, run.task, classes, data.x.size(1))


def summary(results: Sequence[SeedResult]) -> dict[str, Any]:
    """Mean and sample standard deviation of the test score, ``None`` without test nodes."""
    tests = [result.test for result in results if result.test is not None]
    return {
        "runs": [result.as_row() for result in results],
        "mean": statistics.fmean(tests) if tests else None,
        "std": (statistics.stdev(tests) if len(tests) > 1 else 0.0) if tests else None,
    }


def _save(run: Run, identity: dict[str, Any], folder: RunFolder) -> None:
    tensors = {f"model.{name}": tensor for name, tensor in run.model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in run.best_state.items()}
    tensors |= states.optimizer_tensors(run.optimizer)
    tensors |= states.random_state()
    meta = {**identity, "progress": asdict(run.progress)}
    checkpoint.save(folder.checkpoint(run.seed), tensors, meta)


def _resume(run: Run, identity: dict[str, Any], folder: RunFolder) -> None:
    saved = checkpoint.load(folder.checkpoint(run.seed))
    if saved is not None:
        tensors, meta = saved
        check_same(meta, identity)
        expected = run.model.state_dict()
        for prefix in ("model.", "best."):
            found = {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
            states.check_like(found, expected, f"{prefix.rstrip('.')} weights")
            if prefix == "model.":
                run.model.load_state_dict(found)
            else:
                run.best_state = {k: t.to(expected[k].device) for k, t in found.items()}
        states.load_optimizer_tensors(run.optimizer, tensors)
        states.set_random_state(tensors)
        run.progress = replace(Progress(), **meta["progress"])
    epoch = run.progress.epoch
    folder.truncate_metrics(lambda line: line["seed"] != run.seed or line["epoch"] <= epoch)
