"""One training run: Adam, early stopping on validation, best weights restored."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.errors import DivergedError
from lgdgcn.models import LGDGCN, build
from lgdgcn.runtime import set_seed
from lgdgcn.train.objective import objective
from lgdgcn.train.task import Task

__all__ = ["Progress", "Run", "evaluate"]

Metrics = dict[str, float | None]


@dataclass
class Progress:
    """How far a run is and the best it has seen; with the weights, all there is to resume."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    best_loss: float = math.inf
    seconds: float = 0.0

    def improves(self, score: float, loss: float) -> bool:
        """A higher score is better; at the same score, a lower loss."""
        return (score, -loss) > (self.best_score, -self.best_loss)


@dataclass
class Run:
    """A model in training on one graph with one seed.

    Args:
        data: A canonical graph on the device it is trained on.
        settings: Hyper-parameters.
        model_name: A key of :data:`lgdgcn.models.MODELS`.
        seed: Seed of weights and dropout.
    """

    data: Data
    settings: Settings
    model_name: str = "lgdgcn"
    seed: int = 0
    task: Task = field(init=False)
    model: nn.Module = field(init=False)
    optimizer: torch.optim.Adam = field(init=False)
    progress: Progress = field(init=False, default_factory=Progress)
    best_state: dict[str, Tensor] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        set_seed(self.seed)
        self.task = Task.of(self.data)
        model = build(
            self.model_name, self.settings.as_dict(), self.data.x.size(1), self.task.outputs
        )
        self.model = model.to(self.data.x.device, self.data.x.dtype)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=self.settings.lr, weight_decay=self.settings.weight_decay
        )

    @property
    def finished(self) -> bool:
        """Whether the epochs or the patience are used up."""
        waited = self.progress.epoch - self.progress.best_epoch
        return self.progress.epoch >= self.settings.epochs or waited >= self.settings.patience

    def train(self, on_epoch: Callable[[Metrics], Any] = lambda metrics: None) -> None:
        """Train to the end; ``on_epoch`` sees every epoch's metrics and may raise to stop."""
        while not self.finished:
            on_epoch(self.epoch())
        self.model.load_state_dict(self.best_state)

    def epoch(self) -> Metrics:
        """One optimiser step, one evaluation, one update of the statistics (Alg. 2)."""
        start = time.perf_counter()
        epoch = self.progress.epoch + 1
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        terms = objective(self.model, self.data, self.task, self.settings)
        losses = {name: term.item() for name, term in terms.items()}
        self._check_finite(losses, epoch)
        terms["total"].backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

        score, loss = self._validate(self._evaluate_and_update(), epoch)
        progress = self.progress
        progress.epoch = epoch
        if score is None or loss is None:
            self._keep(epoch)
        elif progress.improves(score, loss):
            progress.best_score, progress.best_loss = score, loss
            self._keep(epoch)
        progress.seconds += time.perf_counter() - start
        return {"epoch": epoch, **losses, "val_loss": loss, f"val_{self.task.metric}": score}

    def scores(self) -> dict[str, Metrics]:
        """Score the restored best weights on every part of the split."""
        logits = evaluate(self.model, self.data)
        parts = {"train": "train_mask", "val": "val_mask", "test": "test_mask"}
        return {
            part: self.task.scores(logits, self.data.y, self.data[mask])
            for part, mask in parts.items()
        }

    @torch.no_grad()
    def _evaluate_and_update(self) -> Tensor:
        """The forward pass that scores the epoch also supplies the units of Alg. 2."""
        self.model.eval()
        if not isinstance(self.model, LGDGCN):
            return self.model(self.data.x, self.data.edge_index)  # type: ignore[no-any-return]
        output = self.model.disentangle(self.data.x, self.data.edge_index)
        self.model.after_step(output.layers)
        return output.logits

    def _validate(self, logits: Tensor, epoch: int) -> tuple[float | None, float | None]:
        """Score and loss on the validation nodes; without any, the last epoch is kept."""
        if not self.data.val_mask.any():
            self._check_finite({"evaluation": logits.sum().item()}, epoch)
            return None, None
        scores = self.task.scores(logits, self.data.y, self.data.val_mask)
        loss = self.task.loss(logits, self.data.y, self.data.val_mask).item()
        self._check_finite({"validation": loss}, epoch)
        return next(iter(scores.values())), loss

    def _keep(self, epoch: int) -> None:
        self.progress.best_epoch = epoch
        self.best_state = copy.deepcopy(self.model.state_dict())

    def _check_finite(self, losses: dict[str, float], epoch: int) -> None:
        for name, value in losses.items():
            if not math.isfinite(value):
                raise DivergedError(
                    f"training diverged: the {name} loss is {value} in epoch {epoch}; "
                    f"lower lr (now {self.settings.lr:g})"
                )


@torch.no_grad()
def evaluate(model: nn.Module, data: Data) -> Tensor:
    """Class scores of all nodes, dropout off."""
    model.eval()
    return model(data.x, data.edge_index)  # type: ignore[no-any-return]
