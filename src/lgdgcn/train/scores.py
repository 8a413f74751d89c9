"""Scores of label sets: F1, average precision, and the threshold that makes sets of scores."""

import torch
from torch import Tensor

__all__ = ["average_precision", "best_threshold", "f1_scores"]

_LARGEST_LOGIT = 15.0  # of a threshold: its probability can still be told from 0 and 1


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


def average_precision(scores: Tensor, truth: Tensor) -> Tensor:
    """Precision at every true entry of a ranking, averaged; 0 where nothing is true.

    Entries of one score share a rank, as in scikit-learn. All shapes are fixed and no value is
    read by the host, so that a GPU can record it.

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


def best_threshold(logits: Tensor, truth: Tensor) -> float:
    """The probability above which labels are predicted for the highest Micro-F1.

    Half way between two neighbouring scores, in the logits; 0.5 where no label is true.

    Example:
        >>> logits = torch.tensor([[-1.0, -2.0], [-4.0, -5.0]])
        >>> round(best_threshold(logits, torch.tensor([[1, 1], [0, 0]])), 4)  # the logit -3
        0.0474
    """
    scores = logits.double().clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT).flatten()
    falling, order = scores.sort(descending=True, stable=True)
    hit = (truth > 0).flatten()[order]
    if not hit.any():
        return 0.5
    chosen = torch.arange(1, len(hit) + 1, device=hit.device)
    f1 = 2 * hit.cumsum(0).double() / (chosen + hit.sum())
    below = torch.cat([falling[1:], falling[-1:] - 1])
    f1[falling == below] = -1  # no threshold tells equal scores apart
    best = int(f1.argmax())
    return float(((falling[best] + below[best]) / 2).sigmoid())
