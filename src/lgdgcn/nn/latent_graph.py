"""Latent structures: nodes that are alike in one factor, wherever they are (Sec. 3.2, Eq. 4)."""

import warnings
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.errors import InputError, LGDWarning

__all__ = ["GraphKind", "LatentGraph", "cknn_graph", "knn_graph", "latent_graph"]

GraphKind = Literal["knn", "cknn"]


class LatentGraph(NamedTuple):
    """One undirected graph per member and factor over the same N nodes, as one structure.

    Node ``i`` of factor ``m`` of member ``r`` has the number ``(r * M + m) * N + i``. Both
    directions of every edge are there, grouped by target, without self loops.
    """

    row_ptr: Tensor  # [R * M * N + 1]
    source: Tensor  # [nnz]
    ends: Tensor  # [nnz] ends that choose the edge: 2, 1, or 0 for padding; 2 in CkNN

    @property
    def edge_index(self) -> Tensor:
        """Edges from source to target, numbered as above. Shape ``[2, E]``."""
        target = torch.repeat_interleave(self.row_ptr.diff())
        return torch.stack([self.source, target])[:, self.ends > 0]

    def aggregate(
        self,
        units: Tensor,
        normalization: Literal["symmetric", "row"] = "symmetric",
        one_sided_weight: float = 1.0,
    ) -> Tensor:
        r"""Average every factor's units along its own graph (Eq. 4).

        .. math:: \breve Z^{(m)} = D^{-1/2} (A^{(m)} + I) D^{-1/2} \hat Z^{(m)}

        Args:
            units: Units. Shape ``[*, N, M, d]``.
            normalization: ``"symmetric"`` is Eq. 4; ``"row"`` is :math:`D^{-1} (A + I)`.
            one_sided_weight: Weight of an edge that only one end lists; the paper's "or" rule
                gives it 1.

        Returns:
            Aggregated units. Shape ``[*, N, M, d]``.
        """
        by_factor = units.transpose(-2, -3)  # [*, M, N, d]
        one_sided = torch.where(self.ends == 1, one_sided_weight, 0.0)
        weight = torch.where(self.ends == 2, 1.0, one_sided).to(units.dtype)
        degree = 1 + kernels.row_sums(weight, self.row_ptr)
        if normalization == "symmetric":
            left = right = degree.rsqrt()
        else:
            left, right = degree.reciprocal(), torch.ones_like(degree)
        rows = by_factor.reshape(-1, units.size(-1))
        out = kernels.aggregate(rows, self.row_ptr, self.source, weight, left, right)
        return out.view(by_factor.shape).transpose(-2, -3)


@torch.no_grad()
def latent_graph(
    units: Tensor, k: int, kind: GraphKind = "cknn", own_k: Tensor | None = None
) -> LatentGraph:
    r"""Build one nearest-neighbour graph per factor, Euclidean and exact.

    kNN joins i and j when one is among the k nearest of the other. CkNN joins them when
    :math:`d_{ij} < \sqrt{r_i r_j}` with r the distance to the k-th neighbour; since that implies
    :math:`d_{ij} < \max(r_i, r_j)`, its edges are found by filtering the kNN lists.

    Args:
        units: Units. Shape ``[*, N, M, d]``.
        k: Number of neighbours; at most N - 1 are used. Ties go to the lower node number: taken
            literally, the paper's rule would join all pairs of identical units.
        kind: ``"knn"`` or ``"cknn"``.
        own_k: Number of neighbours of each member ``[R]``, none above ``k``.
    """
    if kind not in get_args(GraphKind):
        raise InputError(f"graph is {kind!r}; choose from {', '.join(get_args(GraphKind))}")
    nodes, factors, channels = units.shape[-3:]
    if k > nodes - 1:
        warnings.warn(
            f"k is {k}, but there are only {nodes} nodes: using k = {nodes - 1}",
            LGDWarning,
            stacklevel=2,
        )
        k = nodes - 1
    points = units.transpose(-2, -3).reshape(-1, nodes, channels)  # [R * M, N, d]
    if k < 1:
        empty = torch.zeros(0, dtype=torch.int64, device=units.device)
        row_ptr = empty.new_zeros(len(points) * nodes + 1)
        return LatentGraph(row_ptr, empty, empty.to(torch.uint8))
    index, squared = kernels.nearest(points, k)  # [R * M, N, k]
    listed = None
    if own_k is not None:
        own_k = own_k.clamp(max=k).repeat_interleave(factors).view(-1, 1, 1)
        listed = torch.arange(k, device=units.device) < own_k  # [R * M, 1, k]
    if kind == "knn":
        return LatentGraph(
            *kernels.symmetrize(index, None if listed is None else listed.expand_as(index))
        )
    # d^4 < r_i^2 r_j^2: without roots, and exact for float32 points, so ties stay ties
    squared = squared.double()
    if own_k is None:
        reach = squared[..., -1]  # [R * M, N] to the k-th neighbour
    else:
        reach = squared.gather(2, (own_k - 1).expand(-1, nodes, 1)).squeeze(2)
    other = reach.gather(1, index.flatten(1)).view_as(index)
    near = squared.square() < reach.unsqueeze(-1) * other
    union = kernels.symmetrize(index, near if listed is None else near & listed)
    return LatentGraph(union.row_ptr, union.source, 2 * (union.ends > 0).to(torch.uint8))


def knn_graph(z: Tensor, k: int) -> Tensor:
    """Nearest-neighbour graph of points ``z [N, d]``: symmetric, without self loops.

    Returns:
        Edges of shape ``[2, E]``, both directions.

    Example:
        >>> knn_graph(torch.tensor([[0.0], [1.0], [3.0]]), k=1).tolist()
        [[1, 0, 2, 1], [0, 1, 1, 2]]
    """
    return latent_graph(z.unsqueeze(1), k, "knn").edge_index


def cknn_graph(z: Tensor, k: int) -> Tensor:
    """Continuous nearest-neighbour graph of points ``z [N, d]``; see :func:`latent_graph`.

    Returns:
        Edges of shape ``[2, E]``, both directions.

    Example:
        >>> cknn_graph(torch.tensor([[0.0], [1.0], [3.0]]), k=2).tolist()
        [[1, 0, 2, 1], [0, 1, 1, 2]]
    """
    return latent_graph(z.unsqueeze(1), k, "cknn").edge_index
