"""The weights that a network had at another time, kept in it and saved with it."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

__all__ = ["PastWeights"]

_DOT = ":"  # which the names of buffers may have, in the place of one that they may not


class PastWeights(nn.Module):
    """A copy of a network's weights, of the epoch in which its structure was found.

    Where a structure is too large to be saved, it is found again: its size grows with the graph,
    that of the weights does not.

    Args:
        weights: Weights of the size that is kept.
    """

    epoch: Tensor  # ``[*]``; 0 before there is any structure

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        like = next(iter(weights.values()))
        self.register_buffer("epoch", torch.zeros((), dtype=torch.int64, device=like.device))
        for name, tensor in weights.items():
            self.register_buffer(name.replace(".", _DOT), tensor.detach().clone())

    @torch.no_grad()
    def keep(self, weights: Mapping[str, Tensor], epoch: int) -> None:
        """Replace them by the weights of an epoch."""
        for name, tensor in weights.items():
            self.get_buffer(name.replace(".", _DOT)).copy_(tensor)
        self.epoch.fill_(epoch)

    def weights(self) -> dict[str, Tensor]:
        """The weights under their own names."""
        own = {name.replace(_DOT, "."): tensor for name, tensor in self.named_buffers()}
        return {name: tensor for name, tensor in own.items() if name != "epoch"}
