"""What is predicted of a node: one class (softmax) or a set of labels (sigmoid)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.config import AUTO
from lgdgcn.data.labels import class_sizes, set_sizes
from lgdgcn.errors import InputError
from lgdgcn.train.scores import METRICS, RANKINGS, Counts, label_cuts, score
from lgdgcn.train.targets import Targets, one_hot

__all__ = ["Task", "choose_metric", "selection_scores"]

_OF_CLASSES = ("accuracy", "balanced_accuracy", "macro_f1")  # that a finished training tells
_IMBALANCED = 2 / 3  # share of the most common class above which accuracy rewards naming it always
_OF_CLASSES_ONLY = ("accuracy", "balanced_accuracy")
_ENTRIES = 1 << 20  # scores that are looked at at once


@dataclass(frozen=True)
class Task:
    """Loss, scores and probabilities of a node classification task.

    Attributes:
        outputs: Number of classes or labels.
        multi_label: Whether a node has a set of labels.
        labels_per_node: Size of that set where all training nodes agree on it. The set is then
            predicted as the highest scores (top-m).
        threshold: Where the sizes differ, the labels of a higher probability are predicted.
        label_thresholds: The same for every label, where they were tuned
            (:func:`~lgdgcn.train.scores.label_cuts`); ``threshold`` is then their common one.
        metric: Name of the score that chooses the epoch to keep, a key of
            :data:`~lgdgcn.train.scores.METRICS`; the usual one of such labels if empty.
    """

    outputs: int
    multi_label: bool
    labels_per_node: int | None = None
    threshold: float = 0.5
    label_thresholds: tuple[float, ...] | None = None
    metric: str = ""

    def __post_init__(self) -> None:
        if not self.metric:
            of_sets = "average_precision" if self.sizes_differ else "micro_f1"
            object.__setattr__(self, "metric", of_sets if self.multi_label else "accuracy")

    @classmethod
    def of(cls, data: Data, metric: str = AUTO) -> "Task":
        """Read the task off the labels; the score may be named (:func:`choose_metric`)."""
        y, chosen = data.y, choose_metric(data, metric).metric
        if y.dim() == 1:
            classes = getattr(data, "classes", None)
            outputs = len(classes) if classes is not None else int(y.max()) + 1
            return cls(outputs, False, metric=chosen)
        least, most = set_sizes(y, data.train_mask)
        return cls(y.size(1), True, most if 0 < least == most else None, metric=chosen)

    @property
    def sizes_differ(self) -> bool:
        """Whether nodes have label sets of different sizes, predicted by thresholds."""
        return self.multi_label and self.labels_per_node is None

    @property
    def is_counted(self) -> bool:
        """Whether :attr:`metric` follows from :meth:`counts`, which some nodes can be added to."""
        return self.metric not in RANKINGS and not self.sizes_differ

    def loss(self, logits: Tensor, targets: Targets) -> Tensor:
        """Mean loss over the target nodes by their weights, ``[R, n, C] -> [R]``."""
        return targets.mean(self.losses(logits, targets))

    def losses(self, logits: Tensor, targets: Targets) -> Tensor:
        """The loss of every target node, ``[R, n, C] -> [R, n]``.

        Those of a node's labels are summed (Sec. 3.4).
        """
        if not self.multi_label:
            chosen = targets.y.unsqueeze(-1)
            return -torch.take_along_dim(logits.log_softmax(-1), chosen, dim=-1).squeeze(-1)
        truth = targets.y.to(logits.dtype).expand_as(logits)
        weight = targets.positive_weight
        return F.binary_cross_entropy_with_logits(
            logits,
            truth,
            reduction="none",
            pos_weight=None if weight is None else weight.to(logits.dtype),
        ).sum(-1)

    def counts(self, logits: Tensor, y: Tensor, predicted: Tensor | None = None) -> Counts:
        """Count nodes of every class or label, ``[*, n, C] -> [*, C]``, as predicted or given."""
        predicted = self.predict(logits) if predicted is None else predicted
        if self.multi_label:
            return Counts.of(predicted, (y > 0).expand_as(logits))
        truth = one_hot(y, self.outputs).expand_as(logits)
        return Counts.of(one_hot(predicted, self.outputs), truth)

    def selection_score(self, logits: Tensor, targets: Targets) -> Tensor:
        """The :attr:`metric` on the target nodes, ``[R, n, C] -> [R]`` in float64.

        Where label sets differ in size, F1 is that of the best thresholds for these scores: they
        are tuned when training is over, and at 0.5 no label may be predicted for many epochs.
        """
        if self.metric == "accuracy":
            return targets.mean((self.predict(logits) == targets.y).double())
        counted = targets.weight > 0
        predicted = None
        if self.sizes_differ and self.metric not in RANKINGS:
            _, cuts = label_cuts(logits, targets.y, counted)
            predicted = logits.double() > cuts.unsqueeze(-2)
        return self._score(self.metric, logits, targets.y, counted, predicted)

    def _score(
        self,
        metric: str,
        logits: Tensor,
        y: Tensor,
        counted: Tensor,
        predicted: Tensor | None = None,
    ) -> Tensor:
        """A score of the nodes that count, ``[*, n, C] -> [*]``, of given label sets or its own."""
        counted = counted.unsqueeze(-1)
        if metric in RANKINGS:
            predicted = None
        elif self.multi_label:
            predicted = (self.predict(logits) if predicted is None else predicted) & counted
        else:
            predicted = one_hot(self.predict(logits), self.outputs) & counted
        truth = y > 0 if self.multi_label else one_hot(y, self.outputs)
        truth = (truth & counted).expand_as(logits)
        ranking = logits
        if metric in RANKINGS:
            # a class is ranked by its probability; that of a label is in the order of its score
            ranking = logits if self.multi_label else logits.double().log_softmax(-1)
            ranking = torch.where(counted, ranking, -torch.inf)
        return score(metric, predicted, ranking, truth, one_each=not self.multi_label)

    def constant_score(self, targets: Targets) -> float:
        """The best :meth:`selection_score` of one answer for all nodes, of the first member.

        That is the most common class, or the labels by how common they are.
        """
        y, nodes = targets.y[0], targets.y.size(1)
        common = class_sizes(y, classes=self.outputs)[None]  # [1, C]
        share = (common / nodes).double()
        if self.is_counted:
            answer = self.predict(share)
            answer = answer if self.multi_label else one_hot(answer, self.outputs)
            counts = Counts(answer * common, answer * nodes, common)
            return float(counts.score(self.metric, one_each=not self.multi_label)[0])
        if self.metric not in RANKINGS:  # all or none have a label
            sizes = common[0].double().sort(descending=True).values
            if self.metric == "macro_f1":
                return float((2 * sizes / (sizes + nodes)).mean())
            chosen = nodes * torch.arange(1, len(sizes) + 1, device=y.device)
            return float((2 * sizes.cumsum(0) / (chosen + sizes.sum())).max())
        same = share.unsqueeze(1).expand(-1, nodes, -1)
        return float(self.selection_score(same, targets)[0])

    @property
    def guessing_loss(self) -> float:
        """The :meth:`loss` of equal scores for all classes or labels."""
        return self.outputs * math.log(2) if self.multi_label else math.log(self.outputs)

    def tuned(self, logits: Tensor, y: Tensor, mask: Tensor) -> "Task":
        """The same task with the best thresholds on the nodes of ``mask``, where it has any."""
        if not self.sizes_differ or not mask.any():
            return self
        common, own = label_cuts(logits[mask], y[mask], mask[mask])
        tuned = tuple(own.sigmoid().tolist())
        return replace(self, threshold=float(common.sigmoid()), label_thresholds=tuned)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Turn scores into probabilities, ``[*, N, C]``."""
        return logits.sigmoid() if self.multi_label else logits.softmax(-1)

    def predict(self, logits: Tensor) -> Tensor:
        """Return class numbers ``[*, N]`` or label sets ``[*, N, L]``."""
        if not self.multi_label:
            return logits.argmax(-1)
        if self.labels_per_node is None:
            thresholds = self.label_thresholds or (self.threshold,)
            cuts = [math.log(threshold / (1 - threshold)) for threshold in thresholds]
            return logits.double() > torch.tensor(cuts, dtype=torch.double, device=logits.device)
        chosen = logits.topk(self.labels_per_node, dim=-1).indices
        return torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, chosen, True)

    def scores(self, logits: Tensor, y: Tensor, mask: Tensor) -> dict[str, float | None]:
        """Score the nodes of ``mask``, the :attr:`metric` first; ``None`` where the mask is empty.

        Where label sets differ in size, ``…_with_true_set_size`` gives every node as many of its
        highest-scoring labels as it has: a protocol of the literature that needs to know the sizes.
        """
        ways: dict[str, Callable[[Tensor, Tensor], Tensor]]  # to predict, by suffix
        ways = {"": lambda logits, y: self.predict(logits)}
        if self.multi_label:
            ways["_at_0.5"] = lambda logits, y: logits > 0
        if self.sizes_differ:
            ways["_with_true_set_size"] = _as_many_as_true
        counts = {suffix: self._all_counts(logits, y, mask, ways[suffix]) for suffix in ways}
        names = ("micro_f1", "macro_f1") if self.multi_label else (self.metric, *_OF_CLASSES)
        found: dict[str, float | None] = {self.metric: None}
        for suffix, own in counts.items():
            for name in (name for name in names if name not in RANKINGS):
                found[name + suffix] = own.score(name, one_each=not self.multi_label).item()
        if self.sizes_differ:
            found |= dict.fromkeys(RANKINGS)
        if not self.multi_label and self.outputs == 2:
            found["roc_auc"] = None
        for name in found:
            if name in RANKINGS:
                found[name] = self._score(name, logits[mask], y[mask], mask[mask]).item()
        return found if mask.any() else dict.fromkeys(found)

    def _all_counts(
        self,
        logits: Tensor,
        y: Tensor,
        mask: Tensor,
        predict: Callable[[Tensor, Tensor], Tensor],
    ) -> Counts:
        """The :meth:`counts` of the nodes of ``mask``, some at a time."""
        step = max(1, _ENTRIES // self.outputs)
        total = Counts(*logits.new_zeros(3, self.outputs, dtype=torch.long))
        for low in range(0, len(mask), step):
            chosen = mask[low : low + step]
            own = logits[low : low + step][chosen], y[low : low + step][chosen]
            some = self.counts(*own, predict(*own))
            total = Counts(*(a + b for a, b in zip(total, some, strict=True)))
        return total


def _as_many_as_true(logits: Tensor, y: Tensor) -> Tensor:
    """As many labels of every node as it has, those of the highest scores ``[n, L]``."""
    rank = logits.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    return rank < y.sum(1, keepdim=True)


def selection_scores(tasks: Sequence[Task], logits: Tensor, targets: Targets) -> Tensor:
    """Every member's :meth:`Task.selection_score` ``[R]``; a split may decide what it is."""
    scores = {task: task.selection_score(logits, targets) for task in dict.fromkeys(tasks)}
    if len(scores) == 1:
        return scores[tasks[0]]
    return torch.stack([scores[task][row] for row, task in enumerate(tasks)])


class ChosenMetric(NamedTuple):
    """A score and, in a few words, why it was chosen."""

    metric: str
    reason: str

    def __str__(self) -> str:
        return f"metric: {METRICS[self.metric]}, {self.reason}"


def choose_metric(data: Data, metric: str = AUTO) -> ChosenMetric:
    """Return the score that is asked for, or else one that is fair to the labels.

    ========================================  =====================
    labels                                    score
    ========================================  =====================
    one class each                            ``accuracy``
    one of two, over 2/3 of the nodes in one  ``roc_auc``
    one of many, over 2/3 in one              ``macro_f1``
    as many labels for every node             ``micro_f1``
    label sets of different sizes             ``average_precision``
    ========================================  =====================

    Counted are the classes of the validation nodes (of the training nodes without any), and the
    labels of both. Those of the test nodes have no say in anything.

    Args:
        data: A canonical graph.
        metric: The setting: a key of :data:`~lgdgcn.train.scores.METRICS`, or ``"auto"``.

    Raises:
        InputError: Label sets have no such score.
    """
    y: Tensor = data.y
    if metric != AUTO:
        if y.dim() == 2 and metric in _OF_CLASSES_ONLY:
            known = ", ".join(name for name in METRICS if name not in _OF_CLASSES_ONLY)
            raise InputError(
                f"metric is {metric!r}, which sets of labels do not have; choose from {known}"
            )
        return ChosenMetric(metric, "as asked for")
    if y.dim() == 1:
        split = "validation" if data.val_mask.any() else "training"
        sizes = class_sizes(y, data.val_mask if data.val_mask.any() else data.train_mask)
        share = float(sizes.max()) / max(1, int(sizes.sum())) if len(sizes) else 0.0
        if share <= _IMBALANCED:
            return ChosenMetric("accuracy", "as every node has one class")
        common = f"as {100 * share:.1f} % of the {split} nodes have the same class"
        return ChosenMetric("roc_auc" if (sizes > 0).sum() <= 2 else "macro_f1", common)
    low, high = set_sizes(y, data.train_mask | data.val_mask)
    if low == high and low > 0:
        return ChosenMetric("micro_f1", f"as every node has {low} label{'s' * (low > 1)}")
    return ChosenMetric("average_precision", f"as nodes have {low} to {high} labels")
