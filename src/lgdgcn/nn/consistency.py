"""What a node is must not depend on which of its neighbours were dropped."""

from torch import Tensor

__all__ = ["consistency_loss", "sharpened"]


def sharpened(probability: Tensor, temperature: float | Tensor) -> Tensor:
    r"""Return distributions with their larger probabilities enlarged, :math:`p^{1/T}`, normalised.

    Args:
        probability: Distributions over the last axis. Shape ``[*, N, C]``.
        temperature: T in (0, 1]; a tensor has one for each member ``[*]``.

    Example:
        >>> import torch
        >>> sharpened(torch.tensor([[0.6, 0.3, 0.1]]), 0.5).round(decimals=2).tolist()
        [[0.7799999713897705, 0.20000000298023224, 0.019999999552965164]]
    """
    temperature = _for_members(temperature, probability)
    return (probability.clamp_min(1e-12).log() / temperature).softmax(-1)


def consistency_loss(
    probability: Tensor, temperature: float | Tensor, confidence: float | Tensor = 0.0
) -> Tensor:
    r"""Mean squared distance of the views' distributions to their sharpened average.

    .. math:: L = \frac{1}{V |S|} \sum_{v, i \in S} \| p_{v,i} - \bar{p}_i \|^2, \qquad
        \bar{p}_i = \operatorname{sharpened}(\tfrac{1}{V} \textstyle\sum_v p_{v,i})

    The average is a target: no gradient goes through it. The set S has all nodes, with or without
    label, whose largest probability in the average, before it is sharpened, is above
    ``confidence``. The loss of an empty set is 0.

    Args:
        probability: Class distributions of every node in V views. Shape ``[*, V, N, C]``.
        temperature: See :func:`sharpened`.
        confidence: In [0, 1), 0 for all nodes; a tensor has one for each member ``[*]``.

    Returns:
        The loss of every member ``[*]``.
    """
    average = probability.detach().mean(-3)  # [*, N, C]
    target = sharpened(average, temperature).unsqueeze(-3)
    distance = (probability - target).square().sum(-1)  # [*, V, N]
    likeliest = average.amax(-1)
    counted = (likeliest > _for_members(confidence, likeliest)).to(average.dtype)
    # times N / |S|, so that the mean over all nodes is that of the counted ones
    share = counted.size(-1) / counted.sum(-1, keepdim=True).clamp_min(1)
    return (distance * (counted * share).unsqueeze(-2)).mean((-1, -2))


def _for_members(value: float | Tensor, like: Tensor) -> float | Tensor:
    """A number of every member ``[*]`` in a shape that fits a tensor ``[*, ...]``."""
    if not isinstance(value, Tensor):
        return value
    return value.to(like.dtype).view(*value.shape, *[1] * (like.dim() - value.dim()))
