"""Which labels belong together: those of one factor exclude each other."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["label_groups", "meetings", "met_groups", "number_of_groups"]

_RESTARTS = 8
_STEPS = 200
_COLDEST = 16.0  # steps from 0.3 to this inverse temperature, in nodes
_PARTS = 8  # labels move in so many turns: all at once would swing back and forth


def number_of_groups(y: Tensor, most: int) -> int:
    """Return how many groups labels need, as few as explain which of them exclude each other.

    More groups are tried until one of them stays empty. Of all numbers the smallest is taken
    whose energy (see :func:`label_groups`) is that of the best up to one standard error, as if
    the labels met by chance.

    Args:
        y: Label sets of the training nodes, 0 or 1. Shape ``[n, C]``.
        most: How many groups there may be.

    Example:
        >>> sizes, colours = torch.eye(2).repeat(8, 1), torch.eye(2).repeat_interleave(8, 0)
        >>> number_of_groups(torch.cat([sizes, colours], 1), 4)
        2
    """
    y = y.detach().cpu().double()
    met = y.t() @ y
    costs, spreads = [], []
    for groups in range(1, most + 1):
        group = label_groups(y, groups)
        costs.append(_cost(_energy(met, len(y)), group, groups))
        expected = _cost(_expected(met, len(y)), group, groups)  # every pair of labels twice
        spreads.append(math.sqrt(2 * expected))
        if len(set(group.tolist())) < groups:
            break
    best = min(range(len(costs)), key=costs.__getitem__)
    return next(i + 1 for i, cost in enumerate(costs) if cost <= costs[best] + spreads[best])


def label_groups(y: Tensor, groups: int) -> Tensor:
    """Distribute labels over groups in which they meet as rarely as possible.

    A node has one class per factor, so two labels of one factor never meet. Labels that meet less
    often than half of what chance would give attract each other, others repel; the groups of
    lowest energy are found by mean-field annealing, the best of a few starts. Groups may stay
    empty: labels of a single factor end up in one.

    Args:
        y: Label sets of the training nodes, 0 or 1. Shape ``[n, C]``.
        groups: How many groups there may be.

    Returns:
        The group of every label ``[C]``; the same for the same input.

    Example:
        >>> sizes, colours = torch.eye(2).repeat(8, 1), torch.eye(2).repeat_interleave(8, 0)
        >>> label_groups(torch.cat([sizes, colours], 1), 2).unique_consecutive().numel()
        2
    """
    return met_groups(meetings(y), len(y), groups)


def meetings(y: Tensor) -> Tensor:
    """How many nodes have both of two labels, ``[n, C] -> [C, C]``, float64 on the CPU."""
    y = y.detach().cpu().double()
    return y.t() @ y


def met_groups(met: Tensor, nodes: int, groups: int) -> Tensor:
    """The same as :func:`label_groups` of so many nodes by their :func:`meetings`."""
    return torch.tensor(_best_groups(met.numpy().tobytes(), nodes, groups))


@lru_cache(maxsize=64)  # every member of a population asks the same
def _best_groups(numbers: bytes, nodes: int, groups: int) -> list[int]:
    flat = torch.frombuffer(bytearray(numbers), dtype=torch.float64)
    met = flat.view(-1, math.isqrt(len(flat)))
    energy = _energy(met, nodes)
    generator = torch.Generator().manual_seed(0)
    starts = [_annealed(energy, groups, generator) for _ in range(_RESTARTS)]
    return min(starts, key=lambda group: _cost(energy, group, groups)).tolist()


def _energy(met: Tensor, nodes: int) -> Tensor:
    """How much every two labels repel each other ``[C, C]``."""
    return (met - _expected(met, nodes) / 2).fill_diagonal_(0)


def _expected(met: Tensor, nodes: int) -> Tensor:
    """How many nodes would have both labels by chance ``[C, C]``."""
    expected = met.diagonal().unsqueeze(1) * met.diagonal() / max(1, nodes)
    return expected.fill_diagonal_(0)


def _annealed(energy: Tensor, groups: int, generator: torch.Generator) -> Tensor:
    labels = len(energy)
    share = torch.rand(labels, groups, generator=generator, dtype=torch.float64).softmax(1)
    for cold in torch.logspace(-0.5, torch.tensor(_COLDEST).log10(), _STEPS).tolist():
        for part in torch.randperm(labels, generator=generator).chunk(_PARTS):
            share[part] = (-cold * (energy[part] @ share)).softmax(1)
    return share.argmax(1)


def _cost(energy: Tensor, group: Tensor, groups: int) -> float:
    member = F.one_hot(group, groups).double()
    return float((member * (energy @ member)).sum())
