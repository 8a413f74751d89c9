"""Units that are classes: our variant's projection and routing."""

import torch
from torch import Tensor

from lgdgcn.nn.routing import route
from lgdgcn.nn.subgraph import Subgraph

__all__ = ["class_units", "vote"]


def class_units(scores: Tensor) -> Tensor:
    r"""Turn the scores of a factor's d classes into a unit: :math:`\sqrt{\mathrm{softmax}}`.

    Its length is 1 by construction, and the inner product of two units is the overlap of their
    distributions: 1 for the same class, 0 for different ones, which is what routing compares.

    Args:
        scores: Shape ``[*, N, M, d]``.

    Example:
        >>> import torch
        >>> class_units(torch.tensor([0.0, 0.0, 0.0, 0.0])).tolist()
        [0.5, 0.5, 0.5, 0.5]
    """
    return (scores.log_softmax(-1) / 2).exp()


def vote(scores: Tensor, edge_index: Tensor, rounds: int, tau: float | Tensor) -> Tensor:
    r"""Let neighbours vote for each other's classes through the factors in which they agree.

    One round of mean-field inference: an edge goes to the factors in which its ends agree, and
    each neighbour adds its classes there to the node's own scores s.

    .. math::
        p_{ji,m} = \operatorname{softmax}_m (\langle u_{j,m}, u_{i,m} \rangle / \tau), \qquad
        u_{i,m} \leftarrow \sqrt{\operatorname{softmax}(s_{i,m} + u_{i,m}
                                 + \textstyle\sum_j p_{ji,m} u_{j,m})}

    (The factors' shares of the edges have no part in p: with one factor for all labels, every
    neighbour would vote for it with all its weight, and all nodes end in one class.)

    Args:
        scores: The nodes' own scores. Shape ``[*, N, M, d]``.
        edge_index: Edges, source to target. Shape ``[2, E]``.
        rounds: How often all nodes vote, T.
        tau: Temperature of the softmax, see :func:`~lgdgcn.nn.routing.route`.

    Returns:
        Units ``[*, N, M, d]``.
    """
    units = class_units(scores)
    part = Subgraph.current()
    for _ in range(rounds):
        votes, _ = route(units, edge_index, 1, tau, normalize_last=False)
        if part is not None:  # a drawn neighbour votes for those that were not
            scale = part.vote_scale.repeat(units.size(-3) // len(part.vote_scale))
            votes = torch.lerp(units, votes, scale.to(units.dtype)[:, None, None])
        units = class_units(scores + votes)
    return units
