"""Neighbourhood routing: which factor explains each edge (Alg. 1, line 5; DisenGCN, Alg. 1)."""

import torch
from torch import Tensor

from lgdgcn import kernels

__all__ = ["route"]


def route(
    z: Tensor,
    edge_index: Tensor,
    iterations: int = 7,
    tau: float | Tensor = 1.0,
    *,
    uniform_start: bool = False,
    normalize_last: bool = True,
) -> tuple[Tensor, Tensor]:
    r"""Let every node assign its neighbours to factors, softly and iteratively.

    Starting from :math:`c_i = z_i`, each of T iterations computes for every edge
    :math:`j \to i` and factor m

    .. math::
        p_{ji,m} = \operatorname{softmax}_m (\langle z_{j,m}, c_{i,m} \rangle / \tau), \qquad
        c_{i,m} = \frac{z_{i,m} + \sum_j p_{ji,m} z_{j,m}}
                       {\|z_{i,m} + \sum_j p_{ji,m} z_{j,m}\|_2}

    The neighbours' units stay fixed: an iteration reads a node's own state and its neighbours'
    input only, which is why one pass per node suffices (:mod:`lgdgcn.kernels`, where
    ``reference.py`` holds the readable version of this loop).

    Args:
        z: Units. Shape ``[*, N, M, d]``.
        edge_index: Edges, source to target. Shape ``[2, E]``.
        iterations: Number of iterations T.
        tau: Temperature of the softmax, one for all members or one each ``[*]``; below 1 the
            routing is sharper.
        uniform_start: Give every factor the same weight in the first iteration instead of
            starting from the node's own unit.
        normalize_last: Bring the output to unit length, too.

    Returns:
        Units ``[*, N, M, d]`` and the factor probabilities ``[*, E, M]`` of every edge in the
        last iteration, in the order of ``edge_index``.
    """
    if isinstance(tau, Tensor):  # a module's buffer, which need not be of the units' type
        tau = tau.to(torch.promote_types(z.dtype, torch.float32))
    return kernels.route(
        z,
        edge_index,
        iterations,
        tau,
        uniform_start=uniform_start,
        normalize_last=normalize_last,
    )
