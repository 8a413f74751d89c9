"""From which probability on a label is predicted, where nodes have label sets of different sizes.

Every label has a threshold of its own, which gives it the highest F1 on the validation nodes. Few
nodes have a rare label, and the best threshold for these few is mostly luck: it is drawn towards
the threshold that all labels have in common, the one of the highest Micro-F1.
"""

import torch
from torch import Tensor

__all__ = ["best_cut", "label_cuts"]

_LARGEST_LOGIT = 15.0  # of a cut: its probability can still be told from 0 and 1
_HALF_WAY = 10  # nodes with a label at which its own threshold counts as much as the common one


def label_cuts(logits: Tensor, truth: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    r"""The scores above which labels are predicted: one for all, and one for each.

    .. math:: t_l = t + \frac{n_l}{n_l + 10} (t_l^* - t)

    where :math:`t` has the highest Micro-F1 of all common cuts, :math:`t_l^*` the highest F1 of
    label :math:`l`, and :math:`n_l` nodes have that label.

    Args:
        logits: Scores. Shape ``[*, n, L]``.
        truth: Which labels the nodes have. Shape ``[*, n, L]`` or one that is broadcast to it.
        counted: Which nodes count. Shape ``[*, n]`` or one that is broadcast to it.

    Returns:
        The common cut ``[*]`` and the labels' own ``[*, L]``, float64.
    """
    limited = logits.double().clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)
    scores = torch.where(counted.unsqueeze(-1), limited, -torch.inf)
    truth = ((truth > 0) & counted.unsqueeze(-1)).expand_as(scores)
    common = best_cut(scores.flatten(-2), truth.flatten(-2))
    own = best_cut(scores.mT.contiguous(), truth.mT)
    known = truth.sum(-2).double()  # [*, L]
    return common, torch.lerp(common.unsqueeze(-1), own, known / (known + _HALF_WAY))


def best_cut(scores: Tensor, truth: Tensor) -> Tensor:
    """The score above which entries are predicted for the highest F1; 0 where nothing is true.

    It is half way between two neighbouring scores. Entries of the score ``-inf`` do not count. All
    shapes are fixed and no value is read by the host, so that a GPU can record it.

    Args:
        scores: Shape ``[*, n]``.
        truth: Which entries are true. Shape ``[*, n]``.

    Returns:
        Shape ``[*]``.

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
