"""What is predicted: one class per node (softmax) or a set of labels per node (sigmoid)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.train.targets import Targets

__all__ = ["Task", "f1_scores", "headlines"]


def f1_scores(predicted: Tensor, truth: Tensor) -> tuple[float, float]:
    """Micro and macro F1 of 0/1 label matrices; a label nobody has or predicts counts as 0.

    Example:
        >>> truth = torch.tensor([[1, 0], [1, 0]])
        >>> f1_scores(torch.tensor([[1, 0], [0, 0]]), truth)
        (0.6666666666666666, 0.3333333333333333)
    """
    hit = (predicted.bool() & truth.bool()).sum(0).double()  # [L]
    total = (predicted.bool().sum(0) + truth.bool().sum(0)).double()
    micro = 2 * hit.sum() / total.sum().clamp_min(1)
    macro = (2 * hit / total.clamp_min(1)).mean()
    return micro.item(), macro.item()


@dataclass(frozen=True)
class Task:
    """Loss, scores and probabilities of a node classification task.

    Attributes:
        outputs: Number of classes or labels.
        multi_label: Whether a node has a set of labels.
        labels_per_node: Size of that set where all training nodes agree on it. The set is then
            predicted as the highest scores (top-m); otherwise as probabilities above 0.5.
    """

    outputs: int
    multi_label: bool
    labels_per_node: int | None = None

    @classmethod
    def of(cls, data: Data) -> "Task":
        """Read the task off the labels."""
        y: Tensor = data.y
        if y.dim() == 1:
            classes = getattr(data, "classes", None)
            return cls(len(classes) if classes is not None else int(y.max()) + 1, False)
        sizes = y[data.train_mask].sum(1)
        same = sizes.numel() > 0 and bool((sizes == sizes[0]).all()) and sizes[0] > 0
        return cls(y.size(1), True, int(sizes[0]) if same else None)

    @property
    def metric(self) -> str:
        """Name of the headline score."""
        return "micro_f1" if self.multi_label else "accuracy"

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Mean loss over the target nodes, ``[R, n, C] -> [R]``.

        The losses of a node's labels are summed (Sec. 3.4).
        """
        if not self.multi_label:
            chosen = targets.y.unsqueeze(-1)
            loss = -torch.take_along_dim(logits.log_softmax(-1), chosen, dim=-1).squeeze(-1)
        else:
            truth = targets.y.to(logits.dtype).expand_as(logits)
            loss = F.binary_cross_entropy_with_logits(logits, truth, reduction="none").sum(-1)
        return targets.mean(loss)

    def headline(self, logits: Tensor, targets: Targets) -> Tensor:
        """The first of :meth:`scores` on the target nodes, ``[R, n, C] -> [R]`` in float64."""
        predicted = self.predict(logits)
        if not self.multi_label:
            return targets.mean((predicted == targets.y).double())
        counted = targets.weight.unsqueeze(-1) > 0
        truth, predicted = (targets.y > 0) & counted, predicted & counted
        hits = (predicted & truth).sum((-1, -2)).double()
        total = predicted.sum((-1, -2)) + truth.sum((-1, -2))
        return 2 * hits / total.clamp_min(1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Turn scores into probabilities, ``[*, N, C]``."""
        return logits.sigmoid() if self.multi_label else logits.softmax(-1)

    def predict(self, logits: Tensor) -> Tensor:
        """Return class numbers ``[*, N]`` or label sets ``[*, N, L]``."""
        if not self.multi_label:
            return logits.argmax(-1)
        if self.labels_per_node is None:
            return logits > 0
        chosen = logits.topk(self.labels_per_node, dim=-1).indices
        return torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, chosen, True)

    def scores(self, logits: Tensor, y: Tensor, mask: Tensor) -> dict[str, float | None]:
        """Score the nodes of ``mask``, the headline first; ``None`` where the mask is empty."""
        names = ["micro_f1", "macro_f1", "micro_f1_at_0.5", "macro_f1_at_0.5"]
        if not self.multi_label:
            names = ["accuracy"]
        if not mask.any():
            return dict.fromkeys(names)
        logits, y = logits[mask], y[mask]
        if not self.multi_label:
            return {"accuracy": (self.predict(logits) == y).double().mean().item()}
        values = [*f1_scores(self.predict(logits), y), *f1_scores(logits > 0, y)]
        return dict(zip(names, values, strict=True))


def headlines(tasks: Sequence[Task], logits: Tensor, targets: Targets) -> Tensor:
    """Every member's :meth:`Task.headline` ``[R]``; a split may decide how sets are predicted."""
    scores = {task: task.headline(logits, targets) for task in dict.fromkeys(tasks)}
    if len(scores) == 1:
        return scores[tasks[0]]
    return torch.stack([scores[task][row] for row, task in enumerate(tasks)])
