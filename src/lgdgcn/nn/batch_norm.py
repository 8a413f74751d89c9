"""Batch norm for members side by side: each has statistics of its own."""

import torch
from torch import Tensor, nn

__all__ = ["MemberBatchNorm"]


class MemberBatchNorm(nn.Module):
    r"""Batch norm over the nodes of a view.

    .. math:: \gamma (x - \mu) / \sqrt{\sigma^2 + 10^{-5}} + \beta

    Training uses the mean and variance of each view's own nodes, and moves running ones by a tenth
    towards the views' average; evaluation uses the running ones. All of them, weights and buffers,
    may have a leading axis of members.

    Args:
        channels: Size of the vectors C.

    Shapes:
        - **input and output:** ``[*, V, N, C]`` with V views
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the nodes' vectors."""
        if self.training:
            variance, mean = torch.var_mean(x, -2, unbiased=False)  # [*, V, C]
            nodes = x.size(-2)
            with torch.no_grad():
                unbiased = variance.mean(-2) * (nodes / max(1, nodes - 1))
                self.mean.lerp_(mean.mean(-2), _MOMENTUM)
                self.variance.lerp_(unbiased, _MOMENTUM)
        else:
            mean, variance = self.mean.unsqueeze(-2), self.variance.unsqueeze(-2)  # [*, 1, C]
        scale = self.weight.unsqueeze(-2) * (variance + _SMALLEST).rsqrt()
        shift = self.bias.unsqueeze(-2) - mean * scale
        return torch.addcmul(shift.unsqueeze(-2), x, scale.unsqueeze(-2))


_MOMENTUM = 0.1
_SMALLEST = 1e-5
