"""The units of all nodes of a graph of any size, found step by step for all nodes.

A batch of nodes needs the neighbours of neighbours, which soon are most of the graph. Here every
step of the network is made for all nodes before the next one begins
(:mod:`lgdgcn.large.steps`). So all neighbours count, the result is that of the whole graph at
once, and a step reads every edge once.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

from lgdgcn.data.node_arrays import node_array
from lgdgcn.large.hops import row_ranges
from lgdgcn.large.neighbourhood import around, entries_between
from lgdgcn.large.rows import GraphRows
from lgdgcn.large.steps import NodeSteps
from lgdgcn.large.structure import structure_rows
from lgdgcn.models import ClassUnitGCN
from lgdgcn.nn import ClassUnitConv
from lgdgcn.nn.ours.edge_mixture import SMALLEST, posterior_of
from lgdgcn.train.trained import check_finite

__all__ = ["SCORED", "UnitTable", "depth_of", "scores_without", "unit_table"]

SCORED = 1 << 16  # nodes that are scored at once
_ROWS = 1 << 14  # nodes whose edges are looked at together
_EDGES = 1 << 16  # whose ends are read at once


@dataclass(frozen=True)
class UnitTable:
    """What a network says of every node of a graph.

    Attributes:
        graph: The graph, as the network reads it.
        units: The units of the last layer ``[N, M * d]``, in memory or in a mapped file.
        lift: How much an agreement of two nodes in each factor speaks for it ``[M]``.
    """

    graph: GraphRows
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
        check_finite(logits)
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

    The features are scaled as the network is used to, and it can be trained in batches.
    """
    steps = NodeSteps(graph, network, structure_rows(graph, network))
    units = steps.units()
    return UnitTable(graph, network, units, _lift(network, units, steps.ranges))


def _lift(network: ClassUnitGCN, units: Tensor, ranges: list[int]) -> Tensor:
    """Each factor's share of the edges by the agreement of any two nodes in it ``[M]``.

    That of :func:`~lgdgcn.nn.ours.edge_mixture.factor_posterior`, summed over the nodes.
    """
    nodes, width = units.shape
    total, square = (torch.zeros(width, dtype=torch.float64) for _ in range(2))
    for low, high in pairwise(ranges):
        part = units[low:high].double().square()
        total += part.sum(0)
        square += part.square().sum(0)
    pairs = (total.square() - square).view(network.num_factors, -1).sum(-1)
    by_chance = pairs / max(1, nodes * (nodes - 1)) + SMALLEST
    shares = cast("ClassUnitConv", network.layers[-1]).factor_weights.detach().cpu()
    return (shares.double() / by_chance).to(units.dtype)


def depth_of(network: ClassUnitGCN) -> int:
    """How many hops away a node can be and still have a part in another's scores."""
    votes = sum(cast("ClassUnitConv", layer).iterations for layer in network.layers)
    encoder = network.encoder
    return votes + (0 if encoder is None else encoder.hops + len(encoder.deeper))


def scores_without(table: UnitTable, nodes: Tensor, factor: int) -> Tensor:
    """Class scores of some nodes, ascending, on the graph without the edges of a factor ``[n, C]``.

    An edge belongs to its likeliest factor. Only the nodes that have a part in the scores are
    looked at, and their neighbours, as degrees count: often that is most of the graph, and of a
    network with a structure all of it.
    """
    network, rows = table.network, table.graph
    if network.propagation_graph is None:
        near = around(rows, nodes, depth_of(network) + 1)
    else:  # latent neighbours may be anywhere, and are found anew
        near = torch.arange(rows.num_nodes)
    found = unit_table(_without(table, near, factor), network)
    return found.logits(found.rows(torch.searchsorted(near, nodes)))


def _without(table: UnitTable, nodes: Tensor, factor: int) -> GraphRows:
    """The graph of some nodes without the edges of a factor, numbered as they are listed."""
    rows = table.graph
    most = int((rows.row_ptr[nodes + 1] - rows.row_ptr[nodes]).sum()) + 1  # no file is empty
    column = node_array((most,), torch.int32 if len(nodes) < 2**31 else torch.int64)
    weight = None if rows.weight is None else node_array((most,), rows.dtype)
    scale = 1.0 if rows.weight is None else _mean_weight(table, factor)
    degree, done = [torch.zeros(1, dtype=torch.long)], 0
    for chosen in torch.split(nodes, _ROWS):
        source, place, entry = entries_between(rows, chosen, nodes)
        stays = table.edge_factors(chosen[source], nodes[place]).argmax(1) != factor
        degree.append(torch.bincount(source[stays], minlength=len(chosen)))
        end = done + int(stays.sum())
        column[done:end] = place[stays]
        if weight is not None and rows.weight is not None:
            weight[done:end] = rows.weight[entry[stays]] / scale
        done = end
    return GraphRows(
        torch.cat(degree).cumsum(0),
        column[:done],
        None if weight is None else weight[:done],
        lambda chosen: rows.features(nodes[chosen]),
        rows.num_features,
        rows.dtype,
    )


def _mean_weight(table: UnitTable, factor: int) -> float:
    """Mean weight of the edges of all other factors, which a network divides weights by."""
    rows, total, count = table.graph, 0.0, 0
    assert rows.weight is not None
    for low, high in pairwise(row_ranges(rows.row_ptr.numpy(), table.units.size(1))):
        ends = rows.edges(low, high)
        stays = table.edge_factors(*ends).argmax(1) != factor
        weight = rows.weight[int(rows.row_ptr[low]) : int(rows.row_ptr[high])][stays]
        total, count = total + float(weight.double().sum()), count + len(weight)
    return total / max(1, count)
