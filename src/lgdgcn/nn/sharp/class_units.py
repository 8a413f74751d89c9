"""Units that are classes: the sharp variant's projection and routing."""

import torch
from torch import Tensor

from lgdgcn.nn.routing import route

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


def vote(
    scores: Tensor, edge_index: Tensor, rounds: int, tau: float | Tensor, log_lift: Tensor
) -> Tensor:
    r"""Let neighbours vote for each other's classes through the factor that explains their edge.

    One round of mean-field inference: an edge goes to the factors in which its ends agree, and
    each neighbour adds its classes there to the node's own scores s.

    .. math::
        p_{ji,m} = \operatorname{softmax}_m (\langle u_{j,m}, u_{i,m} \rangle / \tau + b_m), \qquad
        u_{i,m} \leftarrow \sqrt{\operatorname{softmax}(s_{i,m} + u_{i,m}
                                 + \textstyle\sum_j p_{ji,m} u_{j,m})}

    Args:
        scores: The nodes' own scores. Shape ``[*, N, M, d]``.
        edge_index: Edges, source to target. Shape ``[2, E]``.
        rounds: How often all nodes vote, T.
        tau: Temperature of the softmax, see :func:`~lgdgcn.nn.routing.route`.
        log_lift: What an agreement in each factor counts, b
            (:func:`~lgdgcn.nn.sharp.edge_mixture.log_lift`). Shape ``[*, M]``.

    Returns:
        Units ``[*, N, M, d]``.
    """
    # one more channel with the same number in all nodes adds b to every inner product of units
    above_least = (log_lift - log_lift.amin(-1, keepdim=True)).to(scores.dtype)
    temperature = tau.to(scores.dtype) if isinstance(tau, Tensor) else scores.new_tensor(tau)
    channel = (above_least * temperature.unsqueeze(-1)).sqrt()[..., None, :, None]
    channel = channel.expand(*scores.shape[:-1], 1)
    units = class_units(scores)
    for _ in range(rounds):
        votes, _ = route(torch.cat([units, channel], -1), edge_index, 1, tau, normalize_last=False)
        units = class_units(scores + votes[..., :-1])
    return units
