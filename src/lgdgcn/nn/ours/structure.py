"""What is propagated along: edges by how much their ends agree, and latent neighbours."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from lgdgcn import kernels
from lgdgcn.nn.ours.past_weights import PastWeights
from lgdgcn.nn.propagation import Propagator, normalized_adjacency

__all__ = ["REFRESHES", "PropagationGraph", "Structure", "structured_adjacency"]

Structure = Literal["none", "local", "global", "both"]

REFRESHES = 2  # of a graph whose matrix is found from its plain edges


@torch.no_grad()
def structured_adjacency(
    edge_index: Tensor,
    agreement: Tensor,
    neighbours: Tensor,
    gamma: Tensor,
) -> Propagator:
    r"""Join weighed edges and latent neighbours, and normalise as a GCN does.

    .. math:: W_{ij} = a_{ij} [ij \in E]
        + \tfrac{\gamma}{2} ([j \in \mathrm{kNN}(i)] + [i \in \mathrm{kNN}(j)])

    Args:
        edge_index: Both directions of every edge. Shape ``[2, E]``.
        agreement: Weight a of every edge. Shape ``[*, E]``.
        neighbours: Nodes that each node is most alike. Shape ``[*, N, k]``.
        gamma: Weight of a neighbour that is one in both directions. Shape ``[*]``.
    """
    *lead, nodes, k = neighbours.shape
    listing = torch.arange(nodes, device=neighbours.device).unsqueeze(-1).expand_as(neighbours)
    pairs = torch.stack([neighbours.flatten(-2), listing.flatten(-2)], -2)  # [*, 2, N k]
    half = (gamma.to(agreement.dtype) / 2).unsqueeze(-1).expand(*lead, nodes * k)
    # a node that lists itself, as all do at first, has no neighbour there
    half = half.masked_fill(pairs[..., 0, :] == pairs[..., 1, :], 0)
    edges = torch.cat([edge_index.expand(*lead, 2, -1), pairs, pairs.flip(-2)], -1)
    return normalized_adjacency(edges, nodes, torch.cat([agreement, half, half], -1))


class PropagationGraph(nn.Module):
    """The matrix that a network propagates along, which it weighs itself from time to time.

    It is a buffer, saved with the weights: those were trained for it. Another graph gets its own
    matrix (:meth:`is_for`). Trained in batches of nodes, the network has no matrix but keeps the
    weights that one was found with (``past``), from which it is found again.

    Args:
        structure: ``"local"`` weighs edges by the agreement of their ends, ``"global"`` adds
            latent neighbours, ``"both"`` does both.
        neighbours: Number of latent neighbours k.
        gamma: Weight of latent neighbours.
    """

    row_ptr: Tensor
    column: Tensor
    value: Tensor
    graph_key: Tensor
    gamma: Tensor

    def __init__(self, structure: Structure, neighbours: int, gamma: float) -> None:
        super().__init__()
        self.past: PastWeights | None = None
        self.is_local = structure in ("local", "both")
        self.neighbours = neighbours if structure in ("global", "both") else 0
        for name in ("row_ptr", "column", "graph_key"):
            self.register_buffer(name, torch.zeros(0, dtype=torch.int64))
        self.register_buffer("value", torch.zeros(0))
        # a buffer, so that the members of a population can have one each
        self.register_buffer("gamma", torch.tensor(gamma, dtype=torch.float64), persistent=False)

    def begin(self, edge_index: Tensor, num_nodes: int) -> None:
        """Begin with the plain edges of a graph."""
        lead = self.gamma.shape
        agreement = self.value.new_ones(*lead, edge_index.size(1))
        node = torch.arange(num_nodes, device=edge_index.device).unsqueeze(-1)
        itself = node.expand(*lead, num_nodes, min(self.neighbours, num_nodes - 1))
        graph = structured_adjacency(edge_index, agreement, itself, self.gamma)
        self.row_ptr, self.column, self.value = graph
        self.graph_key = _key(edge_index, num_nodes).expand(*lead, 1).clone()

    def is_for(self, edge_index: Tensor, num_nodes: int) -> bool:
        """Whether the matrix is made of this graph; it may be of none yet."""
        if not self.graph_key.numel():
            return False
        return torch.equal(self.graph_key, _key(edge_index, num_nodes).expand_as(self.graph_key))

    def matrix(self) -> Propagator:
        """The matrix, or one for each member."""
        return Propagator(self.row_ptr, self.column, self.value)

    @torch.no_grad()
    def refresh(self, edge_index: Tensor, classes: Tensor, hidden: Tensor, due: Tensor) -> None:
        """Weigh the edges anew and look for neighbours.

        Args:
            edge_index: Edges of the graph. Shape ``[2, E]``.
            classes: What nodes agree in: parts of distributions. Shape ``[*, N, D]``.
            hidden: What nodes are alike in. Shape ``[*, N, C]``.
            due: The members whose matrix is changed. Shape ``[*]``.
        """
        *lead, nodes, _ = hidden.shape
        if self.is_local:
            agreement = kernels.edge_agreement(classes, edge_index)
        else:
            agreement = hidden.new_ones(*lead, edge_index.size(1))
        k = min(self.neighbours, nodes - 1)
        if k:
            found, _ = kernels.nearest(hidden.reshape(-1, *hidden.shape[-2:]), k)
            found = found.view(*lead, nodes, k)
        else:
            found = edge_index.new_zeros(*lead, nodes, 0)
        graph = structured_adjacency(edge_index, agreement, found, self.gamma)
        for old, new in zip(self.matrix(), graph, strict=True):
            old.copy_(torch.where(due.unsqueeze(-1), new, old))

    def resize(self, saved: Mapping[str, Tensor]) -> None:
        """Take the sizes of saved buffers, whose names are without a prefix."""
        for name in ("row_ptr", "column", "value", "graph_key"):
            own = getattr(self, name)
            setattr(self, name, own.new_zeros(saved.get(name, own).shape))


def _key(edge_index: Tensor, num_nodes: int) -> Tensor:
    """A number that other graphs do not have, ``[1]``: a sum over edges of products that wrap."""
    source, target = edge_index.long()
    mixed = (source * 0x9E3779B1 + target * 0x85EBCA77) ^ (source * target + 0xC2B2AE3D)
    key: Tensor = (mixed * mixed + mixed).sum() + num_nodes
    return key.reshape(1)
