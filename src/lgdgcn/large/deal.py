"""Which nodes each step of an epoch has, in an order that only the seed decides."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.large.drawn_rows import key_of
from lgdgcn.large.rows import node_array

__all__ = ["Deal"]


@dataclass(frozen=True)
class Deal:
    """How the nodes of a graph are dealt to the steps of an epoch, and the parts of a step.

    Attributes:
        nodes: Number of nodes N.
        train: Number of training nodes.
        batch_size: Most nodes of a step.
        parts: Parts of a step, which may be computed on different devices.

    Raises:
        InputError: There are more parts than nodes for them.
    """

    nodes: int
    train: int
    batch_size: int
    parts: int = 1

    def __post_init__(self) -> None:
        if self.nodes < self.steps * self.parts:
            raise InputError(
                f"{self.nodes:,} nodes in {self.steps:,} steps of {self.parts:,} parts "
                "(batch_parts, or ranks) leave some empty; take fewer parts, or more nodes in a "
                "step (--batch-size)"
            )

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return max(1, -(-self.nodes // self.batch_size))

    @property
    def train_size(self) -> int:
        """Training nodes of a part: all, or half as many as there are others."""
        part = -(-min(self.batch_size, self.nodes) // self.parts)
        return min(self.train, max(1, part // 2))

    def order(self, seed: int, epoch: int) -> Tensor:
        """All nodes in the order of an epoch ``[N]``."""
        return _shuffled(self.nodes, key_of(seed, epoch, 1))

    def seeds(self, order: Tensor, step: int, part: int) -> Tensor:
        """The nodes of one part of a step; parts differ by one node at most."""
        total, index = self.steps * self.parts, step * self.parts + part
        low, high = (self.nodes * i // total for i in (index, index + 1))
        return order[low:high].long()

    def training(self, seed: int, epoch: int, step: int, part: int) -> Tensor:
        """Which of the training nodes a part has: the next ones of an endless deck."""
        size = self.train_size
        if size == self.train:
            return torch.arange(size)
        start = ((epoch * self.steps + step) * self.parts + part) * size
        cards = []
        while size > 0:
            cycle, low = divmod(start, self.train)
            cards.append(_deck(self.train, key_of(seed, cycle, 2))[low : low + size])
            start, size = start + len(cards[-1]), size - len(cards[-1])
        return torch.cat(cards).long()


def _shuffled(count: int, key: int) -> Tensor:
    """The numbers from 0 to ``count - 1`` in random order, as small as they can be stored."""
    dtype = torch.int32 if count < 2**31 else torch.int64
    numbers = torch.arange(count, dtype=dtype, out=node_array((count,), dtype))
    np.random.Generator(np.random.Philox(key=key)).shuffle(numbers.numpy())
    return numbers


# Steps take a few cards each from the same shuffled deck, so the last one is kept.
_deck = lru_cache(maxsize=1)(_shuffled)
