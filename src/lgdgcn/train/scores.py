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
    "best_cut",
    "label_cuts",
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

_LARGEST_LOGIT = 15.0  # of a cut: its probability still differs from 0 and 1
_HALF_WAY = 10  # nodes with a label at which its own threshold counts as much as the common one


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
    """Precision at every true entry of a ranking, averaged ``[*, n] -> [*]``; 0 if nothing is true.

    Entries of one score share a rank, as in scikit-learn. Those of the score ``-inf`` that are not
    true do not count.

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
    """How often a true entry scores higher than one that is not, ``[*, n] -> [*]``.

    It is 0.5 where one kind is missing. Equal scores count half. Entries of the score ``-inf`` that
    are not true do not count.

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


def label_cuts(logits: Tensor, truth: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    r"""The scores above which labels are predicted: one for all ``[*]``, one for each ``[*, L]``.

    Few nodes have a rare label, and the best threshold for these few is mostly chance: so it is
    drawn towards the one that all labels have in common.

    .. math:: t_l = t + \frac{n_l}{n_l + 10} (t_l^* - t)

    where :math:`t` has the highest Micro-F1 of all common cuts, :math:`t_l^*` the highest F1 of
    label :math:`l`, and :math:`n_l` nodes have that label. Of scores ``[*, n, L]``, truths and
    nodes that count ``[*, n]`` either may be broadcast to the others.
    """
    limited = logits.double().clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)
    scores = torch.where(counted.unsqueeze(-1), limited, -torch.inf)
    truth = ((truth > 0) & counted.unsqueeze(-1)).expand_as(scores)
    common = best_cut(scores.flatten(-2), truth.flatten(-2))
    own = best_cut(scores.mT.contiguous(), truth.mT)
    known = truth.sum(-2).double()  # [*, L]
    return common, torch.lerp(common.unsqueeze(-1), own, known / (known + _HALF_WAY))


def best_cut(scores: Tensor, truth: Tensor) -> Tensor:
    """The score above which entries are predicted for the highest F1, ``[*, n] -> [*]``.

    It is half way between two neighbouring scores, 0 where nothing is true. Entries of the score
    ``-inf`` do not count. All shapes are fixed and no value is read by the host, so that a GPU can
    record it.

    Example:
        >>> best_cut(torch.tensor([-1.0, -2.0, -4.0, -5.0]), torch.tensor([1, 1, 0, 0])).item()
        -3.0
    """
    if scores.size(-1) == 0:
        return scores.new_zeros(scores.shape[:-1])
    falling, order = scores.sort(dim=-1, descending=True, stable=True)
    hit = torch.take_along_dim(truth > 0, order, dim=-1)
    chosen = torch.arange(1, hit.size(-1) + 1, device=hit.device)
    f1 = 2 * hit.cumsum(-1).double() / (chosen + hit.sum(-1, keepdim=True))
    below = torch.cat([falling[..., 1:], falling[..., -1:] - torch.inf], dim=-1)
    below = torch.where(below == -torch.inf, falling - 1, below)  # nothing that counts is below
    f1 = f1.masked_fill(falling == below, -1)  # no cut tells equal scores apart
    best = f1.argmax(-1, keepdim=True)
    cut = torch.take_along_dim(falling + below, best, dim=-1).squeeze(-1) / 2
    return torch.where(hit.any(-1), cut, 0)


def _mean(values: Tensor, kept: Tensor) -> Tensor:
    """Mean of the values that are kept, ``[*, L] -> [*]``; 0 where there are none."""
    return (values * kept).sum(-1) / kept.sum(-1).clamp_min(1)
