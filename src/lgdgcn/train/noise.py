"""How far the scores of two models may lie apart by chance, as so few nodes are scored."""

import math
from collections.abc import Sequence
from statistics import variance
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task

__all__ = ["Scored", "noise_of_difference"]

_RESAMPLES = 100  # which give the noise to 7 %
_MOST = 20_000  # entries of a resample; with more nodes the noise is less, by the square root
_FEWEST = 6  # nodes: that five favour one of two equal models has a chance of 1 in 16


class Scored(NamedTuple):
    """A model's scores of a graph, with the split that it was trained on.

    Attributes:
        task: What it predicts.
        logits: Its scores of all nodes ``[N, C]``, on the CPU.
        graph: The graph.
    """

    task: Task
    logits: Tensor
    graph: Data

    def score(self, nodes: Tensor) -> float:
        """The :attr:`~lgdgcn.train.task.Task.metric` of these nodes, which may occur repeatedly."""
        targets = Targets(nodes[None], self.graph.y[nodes][None], torch.ones(1, len(nodes)))
        return float(self.task.selection_score(self.logits[nodes][None], targets)[0])


def noise_of_difference(
    first: Scored, second: Scored, split: str, differences: Sequence[float]
) -> float:
    r"""The difference of two scores that chance alone would hardly exceed.

    .. math:: 2 \sqrt{s_\text{nodes}^2 + s_\text{seeds}^2 / S} + 1 / n

    s_nodes is the standard deviation of the difference over resamples of the scored nodes
    (bootstrap), each of them the same for both models: what both have right says nothing of which
    is better. s_seeds is that of the differences of S seeds; of one seed it is not known and taken
    as 0. 1/n, one node, corrects for scores that move in steps. That each model is itself the best
    of several on these nodes is not counted.

    Args:
        first: One model, of several seeds the one that was kept.
        second: The other.
        split: ``"val"`` or ``"test"``.
        differences: Of the scores, one for each seed.

    Returns:
        The noise; infinite where too few nodes are scored to show anything.
    """
    masks = [one.graph[f"{split}_mask"] for one in (first, second)]
    nodes = (masks[0] | masks[1]).nonzero().flatten()
    count = min(int(mask.sum()) for mask in masks)
    if count < _FEWEST:
        return math.inf
    generator = torch.Generator().manual_seed(0)
    most = max(_MOST // first.logits.size(1), 1)
    part = nodes[torch.randperm(len(nodes), generator=generator)[:most]]
    found = []
    for _ in range(_RESAMPLES):
        drawn = part[torch.randint(len(part), (len(part),), generator=generator)]
        own = [drawn[mask[drawn]] for mask in masks]
        if all(map(len, own)):
            found.append(first.score(own[0]) - second.score(own[1]))
    of_nodes = variance(found) * len(part) / len(nodes)
    of_seeds = variance(differences) / len(differences) if len(differences) > 1 else 0.0
    return 2 * math.sqrt(of_nodes + of_seeds) + 1 / count
