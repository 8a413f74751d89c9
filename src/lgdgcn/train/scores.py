"""Scores of predictions, equal to scikit-learn's, for many members at once.

Predictions and truths are 0/1 matrices of nodes and classes, or labels. All shapes are fixed and no
value is read by the host, so that a GPU can record a score with the epoch that it belongs to.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "METRICS",
    "RANKINGS",
    "Counts",
    "average_precision",
    "roc_auc",
    "score",
]

METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "Macro-F1",
    "micro_f1": "Micro-F1",
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
}
"""The title of every score that may choose the epoch to keep, by its name."""

RANKINGS = ("roc_auc", "average_precision")  # which need no prediction


class Counts(NamedTuple):
    """How often predictions are right, by class or label: all that most scores need of them.

    Those of some nodes and of others can be added up.

    Attributes:
        hit: Of every column the entries that are both predicted and true ``[*, C]``.
        predicted: Those that are predicted.
        true: Those that are true.

    Example:
        >>> counts = Counts.of(torch.tensor([[1, 0], [0, 0]]), torch.tensor([[1, 0], [1, 0]]))
        >>> counts.score("micro_f1", one_each=False).item()
        0.6666666666666666
    """

    hit: Tensor
    predicted: Tensor
    true: Tensor

    @classmethod
    def of(cls, predicted: Tensor, truth: Tensor) -> "Counts":
        """Count the entries of 0/1 matrices, ``[*, n, C] -> [*, C]``."""
        predicted, truth = predicted.bool(), truth.bool()
        return cls((predicted & truth).sum(-2), predicted.sum(-2), truth.sum(-2))

    def score(self, metric: str, *, one_each: bool) -> Tensor:
        """One of :data:`METRICS` that is no ranking, equal to scikit-learn's ``[*]``, float64.

        Args:
            metric: Its name. Balanced accuracy is the share of a class's nodes that are predicted,
                averaged over classes that have any.
            one_each: Whether every node has one class, and not a set of labels. Of classes,
                Macro-F1 leaves out those that are neither true nor predicted anywhere; of labels it
                counts them as 0.
        """
        hit, total = self.hit.double(), (self.predicted + self.true).double()
        if metric == "macro_f1":
            return _mean(2 * hit / total.clamp_min(1), (total > 0) | (not one_each))
        if metric == "balanced_accuracy":
            return _mean(hit / self.true.clamp_min(1), self.true > 0)
        return 2 * hit.sum(-1) / total.sum(-1).clamp_min(1)  # with one class each the accuracy


def score(
    metric: str, predicted: Tensor | None, ranking: Tensor, truth: Tensor, *, one_each: bool
) -> Tensor:
    """One of :data:`METRICS`.

    ROC-AUC is the mean over classes, each against the rest, or over labels. Average precision is
    that of all pairs of a node and a label together, and of classes the mean.

    Args:
        metric: Its name.
        predicted: Classes or labels that are predicted, ``[*, n, C]``; ``None`` for a ranking.
        ranking: The higher, the likelier; ``-inf`` for filling. Shape ``[*, n, C]``.
        truth: Which are true, none of filling. Shape ``[*, n, C]``.
        one_each: Whether every node has one class, and not a set of labels.

    Returns:
        Shape ``[*]``, float64.
    """
    if metric in RANKINGS:
        if metric == "average_precision" and not one_each:
            return average_precision(ranking.flatten(-2), truth.flatten(-2))
        rows = ranking.mT.contiguous(), truth.mT.contiguous()  # [*, C, n]
        known = truth.sum(-2)
        if metric == "average_precision":
            return _mean(average_precision(*rows), known > 0)
        both = (known > 0) & (known < (ranking > -torch.inf).sum(-2))
        return _mean(roc_auc(*rows), both)
    assert predicted is not None
    return Counts.of(predicted, truth).score(metric, one_each=one_each)


def average_precision(scores: Tensor, truth: Tensor) -> Tensor:
    """Precision at every true entry of a ranking, averaged; 0 where nothing is true.

    Entries of one score share a rank, as in scikit-learn. Those of the score ``-inf`` that are not
    true do not count.

    Args:
        scores: Shape ``[*, n]``.
        truth: Which entries are true. Shape ``[*, n]``.

    Returns:
        Shape ``[*]``, float64.

    Example:
        >>> average_precision(torch.tensor([0.9, 0.8, 0.7]), torch.tensor([1, 0, 1])).item()
        0.8333333333333333
    """
    falling, order = (-scores).sort(dim=-1, stable=True)
    hit = torch.take_along_dim(truth > 0, order, dim=-1)
    rank = torch.searchsorted(falling, falling, right=True)  # entries of this score or higher
    found = torch.take_along_dim(hit.cumsum(-1), rank - 1, dim=-1)
    precision = found.double() / rank
    return (precision * hit).sum(-1) / hit.sum(-1).clamp_min(1)


def roc_auc(scores: Tensor, truth: Tensor) -> Tensor:
    """How often a true entry scores higher than one that is not; 0.5 where one kind is missing.

    Equal scores count half. Entries of the score ``-inf`` that are not true do not count.

    Args:
        scores: Shape ``[*, n]``.
        truth: Which entries are true. Shape ``[*, n]``.

    Returns:
        Shape ``[*]``, float64.

    Example:
        >>> roc_auc(torch.tensor([0.9, 0.8, 0.7]), torch.tensor([1, 0, 1])).item()
        0.5
    """
    truth = truth > 0
    rising = scores.sort(dim=-1).values
    lower = torch.searchsorted(rising, scores)
    equal = torch.searchsorted(rising, scores, right=True) - lower
    left_out = ((scores == -torch.inf) & ~truth).sum(-1, keepdim=True)
    beaten = ((lower - left_out).double() + equal.double() / 2) * truth
    true = truth.sum(-1).double()
    false = scores.size(-1) - left_out.squeeze(-1) - true
    pairs = beaten.sum(-1) - true * true / 2  # without those of two true entries
    return torch.where(true * false > 0, pairs / (true * false).clamp_min(1), 0.5)


def _mean(values: Tensor, kept: Tensor) -> Tensor:
    """Mean of the values that are kept, ``[*, L] -> [*]``; 0 where there are none."""
    return (values * kept).sum(-1) / kept.sum(-1).clamp_min(1)
