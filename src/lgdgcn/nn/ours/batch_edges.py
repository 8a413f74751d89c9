"""Edges as evidence where only some of them, and some nodes, are seen in a step."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.nn.ours.edge_mixture import (
    SMALLEST,
    agreement_by_factor,
    drawn_weights,
    posterior_of,
)
from lgdgcn.nn.subgraph import Subgraph

__all__ = ["EdgeMoments", "sampled_edge_loss", "sum_of_seen"]


class EdgeMoments:
    r"""Running means over steps of what the edge loss needs to know of all nodes and edges.

    Any two nodes agree by :math:`\bar a_m = \|\bar q_m\|^2` on average, up to the pairs of a node
    with itself. The mean :math:`\bar q` over a batch alone is noisy, so it is averaged with those
    of earlier steps. So are the slope of the loss along :math:`\bar a_m`, which is a mean over
    edges, and the factors' shares of the edges (a step of EM).

    Args:
        like: Shares of the factors ``[*, M]``, of the device and type to compute in.
        channels: Classes of a factor d.
        rate: Weight of a new step; with all nodes in every step 1.

    Attributes:
        mean: Mean distributions ``[*, M, d]``.
        square: Mean square of a distribution's length ``[*, M]``.
        slope: Derivative of the loss by the agreement of any two nodes ``[*, M]``.
        drawn: Edges that each factor draws ``[*, M]``.
        count: Number of nodes that the means are as good as ``[1]``; 0 before the first step.
    """

    def __init__(self, like: Tensor, channels: int, rate: float) -> None:
        self.rate = rate
        self.mean = like.new_zeros(*like.shape, channels)
        self.square, self.slope, self.drawn = (torch.zeros_like(like) for _ in range(3))
        self.count = like.new_zeros(1)
        self.seen: list[Tensor] = []  # of the parts of this step, all numbers in a row each

    def tensors(self) -> dict[str, Tensor]:
        """What a training that goes on needs to know."""
        names = ("mean", "square", "slope", "drawn", "count")
        return {name: getattr(self, name) for name in names}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from saved means."""
        for name, own in self.tensors().items():
            own.copy_(tensors[name])

    def known(self, name: str, new: Tensor) -> Tensor:
        """A running mean with this step's among it."""
        return torch.lerp(getattr(self, name), new, self._rate_now())

    def known_count(self, nodes: float | Tensor) -> Tensor:
        """The number of nodes that such means are as good as ``[1]``."""
        rate = self._rate_now()
        return 1 / ((1 - rate).square() / self.count.clamp_min(1) + rate.square() / nodes)

    def _rate_now(self) -> Tensor:
        """The weight of this step ``[1]``, 1 for the first."""
        return torch.where(self.count > 0, self.rate, 1.0).to(self.count)

    def note(self, *means: Tensor, nodes: int) -> None:
        """Remember the means over one part of a step, in the order of :meth:`tensors`."""
        numbers = [*means, means[0].new_full((1,), nodes)]
        self.seen.append(torch.cat([number.flatten() for number in numbers]))

    def update(self, seen: Tensor, owned: Tensor) -> Tensor:
        """Move the means by all parts of a step, and return the factors' shares.

        Args:
            seen: Sums over the parts of what they noted, and last their number.
            owned: Whether labels own a factor ``[*, M]``.
        """
        *means, count = self.tensors().values()
        *sums, nodes, parts = torch.split(seen, [*(mean.numel() for mean in means), 1, 1])
        rate, known = self._rate_now(), self.known_count(nodes)
        for mean, total in zip(means, sums, strict=True):
            mean.lerp_(total.view_as(mean) / parts, rate)
        count.copy_(known)
        return drawn_weights(self.drawn, owned)


def sampled_edge_loss(
    units: Tensor, part: Subgraph, weights: Tensor, moments: EdgeMoments
) -> Tensor:
    r"""Estimate :func:`~lgdgcn.nn.ours.edge_mixture.edge_loss` from a part of the graph.

    Edges count for those that were not drawn. The agreement by chance is that of the running means.
    Its gradient is that of this part's nodes, times the running slope of the loss: averaged over
    all parts, and with the means of all nodes and edges, value and gradient are those of the loss
    of the whole graph.

    Args:
        units: Units of the part's nodes in all views. Shape ``[*, V * n, M, d]``.
        part: The part.
        weights: Shares of the factors. Shape ``[*, M]``.
        moments: Running means, which note this part.
    """
    nodes = len(part.vote_scale)
    views = units.size(-3) // nodes
    weights = weights.to(units.dtype)
    shares = units.square()
    # 1. agreement by chance: the value of all nodes, the gradient of these
    own = part.seeds_of(shares, views)  # [*, V * seeds, M, d]
    each = part.parts / (views * part.num_nodes)
    mean, square = own.sum(-3) * each, own.square().sum((-1, -3)) * each
    seen = {"mean": mean.detach(), "square": square.detach()}
    all_mean = moments.known("mean", seen["mean"]) + (mean - seen["mean"])
    all_square = moments.known("square", seen["square"]) + (square - seen["square"])
    count = moments.known_count(own.size(-3))
    pairs = count * all_mean.square().sum(-1) - all_square
    moving = pairs / (count - 1).clamp_min(1)  # [*, M]
    by_chance = moving.detach().clamp_min(0) + SMALLEST
    # 2. the drawn edges of every view
    offset = torch.arange(views, device=units.device) * nodes
    edges = (part.edges.unsqueeze(1) + offset.view(1, -1, 1)).flatten(1)
    scale = (weights / by_chance).sqrt()
    lift = kernels.edge_agreement((shares * scale[..., None, :, None]).flatten(-2), edges)
    likelihood = 1 - weights.sum(-1, keepdim=True) + lift  # [*, V e]
    weight = part.edge_weight.to(units.dtype).repeat(views)
    each = part.parts / (views * max(1, part.num_edges))
    loss = -(likelihood.log() * weight).sum(-1) * each
    # 3. what these edges say of the factors' shares, and of the slope along the agreement
    with torch.no_grad():
        agreement, factor_lift = agreement_by_factor(shares, edges), weights / by_chance
        counted = weight.unsqueeze(-1)  # [V e, 1]
        total = weight.sum().clamp_min(torch.finfo(weight.dtype).tiny)
        drawn = (posterior_of(agreement, factor_lift) * counted).sum(-2) / total
        by_edge = (agreement * (counted / likelihood.unsqueeze(-1))).sum(-2)
        slope = by_edge * factor_lift / by_chance * each
    moments.note(*seen.values(), slope, drawn, nodes=own.size(-3))
    return loss + (moments.known("slope", slope) * (moving - moving.detach())).sum(-1)


def sum_of_seen(moments: Sequence[EdgeMoments]) -> Tensor:
    """Hand over the sums of what all layers have seen in this step, in one row."""
    rows = []
    for own in moments:
        seen, own.seen = torch.stack(own.seen), []
        rows += [seen.sum(0), seen.new_full((1,), len(seen))]
    return torch.cat(rows)
