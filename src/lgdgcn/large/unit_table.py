"""The units of all nodes of a graph of any size, found step by step for all nodes.

A batch of nodes needs the neighbours of neighbours, which soon are most of the graph. Here every
step of the network is made for all nodes before the next one begins
(:mod:`lgdgcn.large.node_steps`). So all neighbours count, the result is that of the whole graph at
once, and a step reads every edge once.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lgdgcn.errors import InputError
from lgdgcn.large.graph_rows import GraphRows
from lgdgcn.large.node_steps import NodeSteps
from lgdgcn.large.structure_rows import structure_rows
from lgdgcn.models import ClassUnitGCN
from lgdgcn.nn.ours.edge_mixture import posterior_of

__all__ = ["SCORED", "UnitTable", "unit_table"]

SCORED = 1 << 16  # nodes that are scored at once
_EDGES = 1 << 16  # whose ends are read at once


@dataclass(frozen=True)
class UnitTable:
    """What a network says of every node of a graph.

    Attributes:
        network: The network.
        units: The units of the last layer ``[N, M * d]``, in memory or in a mapped file.
        lift: How much an agreement of two nodes in each factor speaks for it ``[M]``.
    """

    network: ClassUnitGCN
    units: Tensor
    lift: Tensor

    def rows(self, nodes: Tensor) -> Tensor:
        """The units of some nodes ``[n, M, d]``."""
        return self.units[nodes].view(len(nodes), self.network.num_factors, -1)

    @torch.no_grad()
    def logits(self, units: Tensor) -> Tensor:
        """The class scores that units mean, ``[n, M, d] -> [n, C]``.

        Raises:
            InputError: They are not finite.
        """
        like = self.network.head.start
        logits = self.network.score(self.network.evidence(units.to(like.device))).cpu()
        if bad := int((~logits.isfinite()).any(-1).sum()):
            raise InputError(
                f"the model's scores of {bad} of {len(logits)} nodes are not finite; "
                "the features may be too large, or the model damaged"
            )
        return logits

    def edge_factors(self, source: Tensor, target: Tensor) -> Tensor:
        """Probability of each factor, of edges by their ends ``[e] -> [e, M]``."""
        found = [self.lift.new_zeros(0, len(self.lift))]
        for low in range(0, len(source), _EDGES):
            ends = (self.rows(end[low : low + _EDGES]).square() for end in (source, target))
            found.append(posterior_of((next(ends) * next(ends)).sum(-1), self.lift))
        return torch.cat(found)


@torch.no_grad()
def unit_table(graph: GraphRows, network: ClassUnitGCN) -> UnitTable:
    """Run a network on all nodes of a graph; one with a structure finds that of the graph first.

    Args:
        graph: The graph, with features scaled as the network is used to.
        network: One that :func:`~lgdgcn.large.batch_input.check_batchable` accepts.
    """
    steps = NodeSteps(graph, network, structure_rows(graph, network))
    units = steps.units(steps.encoded())
    return UnitTable(network, units, steps.lift())
