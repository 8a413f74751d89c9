"""How high the best epoch's score may be where nothing was learned: a control by shuffling."""

import math

import torch
from torch import Tensor

from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task

__all__ = ["lucky_score"]

_SHUFFLES = 20
_ONE_IN_TWENTY = 1.645  # standard deviations above the mean, of a single epoch


def lucky_score(task: Task, logits: Tensor, targets: Targets, epochs: int) -> float:
    r"""The score that predictions may reach by luck, given that the best of several epochs is kept.

    The labels are shuffled among the nodes, which leaves how common they are and how often they
    are predicted, and nothing else. The best of E such scores is about

    .. math:: \text{mean} + \sqrt{2 \ln E} \cdot \text{standard deviation}

    for a single epoch it is the 95th percentile; no score is above 1. Epochs resemble each other,
    so that the best of them is rather less lucky.

    Args:
        task: What is predicted.
        logits: Scores of the target nodes. Shape ``[1, n, C]``.
        targets: The nodes, with their labels.
        epochs: How many the best was chosen from.
    """
    generator = torch.Generator().manual_seed(0)
    scores = []
    for _ in range(_SHUFFLES):
        order = torch.randperm(targets.y.size(1), generator=generator).to(targets.y.device)
        shuffled = targets._replace(y=targets.y[:, order])
        scores.append(float(task.selection_score(logits, shuffled)[0]))
    found = torch.tensor(scores, dtype=torch.float64)
    spread = max(_ONE_IN_TWENTY, math.sqrt(2 * math.log(max(1, epochs))))
    return min(1.0, float(found.mean() + spread * found.std()))
