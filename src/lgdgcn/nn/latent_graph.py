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
    """One undirected graph per factor over the same N nodes, stored as one structure.

    Node ``i`` of factor ``m`` has the number ``m * N + i``. Both directions of every edge are
    there, sorted by target, without self loops.
    """

    row_ptr: Tensor  # [M * N + 1]
    source: Tensor  # [nnz]
    mutual: Tensor  # [nnz] both ends choose the edge; always so in CkNN, whose rule is symmetric

    @property
    def edge_index(self) -> Tensor:
        """Edges from source to target, numbered as above. Shape ``[2, nnz]``."""
        degree = self.row_ptr.diff()
        target = torch.repeat_interleave(degree)
        return torch.stack([self.source, target])

    def aggregate(
        self,
        units: Tensor,
        normalization: Literal["symmetric", "row"] = "symmetric",
        one_sided_weight: float = 1.0,
    ) -> Tensor:
        r"""Average every factor's units along its own graph (Eq. 4).

        .. math:: \breve Z^{(m)} = D^{-1/2} (A^{(m)} + I) D^{-1/2} \hat Z^{(m)}

        Args:
            units: Units. Shape ``[N, M, d]``.
            normalization: ``"symmetric"`` is Eq. 4; ``"row"`` is :math:`D^{-1} (A + I)`.
            one_sided_weight: Weight of an edge that only one end lists; the paper's "or" rule
                gives it 1.

        Returns:
            Aggregated units. Shape ``[N, M, d]``.
        """
        nodes, factors, channels = units.shape
        stacked = units.transpose(0, 1).reshape(factors * nodes, channels)
        weight = torch.where(self.mutual, 1.0, one_sided_weight).to(units.dtype)
        listed = torch.cat([weight.new_zeros(1), weight.cumsum(0, dtype=torch.float64)])
        degree = 1 + (listed[self.row_ptr[1:]] - listed[self.row_ptr[:-1]]).to(units.dtype)
        if normalization == "symmetric":
            left = right = degree.rsqrt()
        else:
            left, right = degree.reciprocal(), torch.ones_like(degree)
        out = kernels.aggregate(stacked, self.row_ptr, self.source, weight, left, right)
        return out.view(factors, nodes, channels).transpose(0, 1)


@torch.no_grad()
def latent_graph(units: Tensor, k: int, kind: GraphKind = "cknn") -> LatentGraph:
    r"""Build one nearest-neighbour graph per factor, Euclidean and exact.

    kNN joins i and j when one is among the k nearest of the other. CkNN joins them when
    :math:`d_{ij} < \sqrt{r_i r_j}` with r the distance to the k-th neighbour; since that implies
    :math:`d_{ij} < \max(r_i, r_j)`, its edges are found by filtering the kNN lists.

    Args:
        units: Units. Shape ``[N, M, d]``.
        k: Number of neighbours; at most N - 1 are used. Ties go to the lower node number: taken
            literally, the paper's rule would join all pairs of identical units.
        kind: ``"knn"`` or ``"cknn"``.
    """
    if kind not in get_args(GraphKind):
        raise InputError(f"graph is {kind!r}; choose from {', '.join(get_args(GraphKind))}")
    nodes, factors = units.shape[:2]
    if k > nodes - 1:
        warnings.warn(
            f"k is {k}, but there are only {nodes} nodes: using k = {nodes - 1}",
            LGDWarning,
            stacklevel=2,
        )
        k = nodes - 1
    if k < 1:
        empty = torch.zeros(0, dtype=torch.int64, device=units.device)
        row_ptr = empty.new_zeros(factors * nodes + 1)
        return LatentGraph(row_ptr, empty, empty.bool())
    index, squared = kernels.nearest(units.transpose(0, 1), k)  # [M, N, k]
    if kind == "knn":
        return LatentGraph(*kernels.symmetrize(index))
    # d^4 < r_i^2 r_j^2: without roots, and exact for float32 points, so ties stay ties
    squared = squared.double()
    reach = squared[..., -1]  # [M, N] to the k-th neighbour
    other = reach.gather(1, index.flatten(1)).view_as(index)
    row_ptr, source, mutual = kernels.symmetrize(
        index, squared.square() < reach.unsqueeze(-1) * other
    )
    return LatentGraph(row_ptr, source, torch.ones_like(mutual))


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
