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
    if isinstance(temperature, Tensor):
        missing = probability.dim() - temperature.dim()
        temperature = temperature.to(probability.dtype).view(*temperature.shape, *[1] * missing)
    return (probability.clamp_min(1e-12).log() / temperature).softmax(-1)


def consistency_loss(probability: Tensor, temperature: float | Tensor) -> Tensor:
    r"""Mean squared distance of the views' distributions to their sharpened average.

    .. math:: L = \frac{1}{V N} \sum_{v, i} \| p_{v,i} - \bar{p}_i \|^2, \qquad
        \bar{p}_i = \operatorname{sharpened}(\tfrac{1}{V} \textstyle\sum_v p_{v,i})

    The average is a target: no gradient goes through it. All nodes count, with or without label.

    Args:
        probability: Class distributions of every node in V views. Shape ``[*, V, N, C]``.
        temperature: See :func:`sharpened`.

    Returns:
        The loss of every member ``[*]``.
    """
    target = sharpened(probability.detach().mean(-3), temperature).unsqueeze(-3)
    return (probability - target).square().sum(-1).mean((-1, -2))
