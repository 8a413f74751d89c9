"""The steps of a network, each made for all nodes of a graph before the next one begins.

Every step (a hop, a deeper layer, a round of votes) goes from one table with a row for every node
into another. Large tables are mapped files.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

from lgdgcn import kernels
from lgdgcn.data.node_arrays import new_array
from lgdgcn.large.hops import hop_table, row_ranges, table_folder
from lgdgcn.large.rows import GraphRows
from lgdgcn.models import ClassUnitGCN
from lgdgcn.nn import ClassUnitConv
from lgdgcn.nn.encoder import DeeperLayer, PropagationEncoder
from lgdgcn.nn.ours.class_units import class_units
from lgdgcn.nn.propagation import weights_of_one_hop
from lgdgcn.nn.routing import route
from lgdgcn.progress import long_work

__all__ = ["NodeSteps"]

Rows = Callable[[Tensor], Tensor]  # of some nodes ``[n] -> [n, C]``

_TABLES = 4  # that are held at the same time


class NodeSteps:
    """The steps of a network, each for all nodes.

    Args:
        graph: The graph, along whose edges nodes vote.
        network: The network, which is evaluated.
        along: What it propagates along, with weights and neighbours of its own; without a
            structure the graph itself.
    """

    def __init__(self, graph: GraphRows, network: ClassUnitGCN, along: GraphRows) -> None:
        self.graph, self.network, self.along = graph, network.eval(), along
        self.device = network.head.start.device
        widths = [cast("ClassUnitConv", layer).out_channels for layer in network.layers]
        if network.encoder is not None:
            widths.append(network.encoder.bias.size(-1))
        size = _TABLES * graph.num_nodes * max(widths) * graph.dtype.itemsize
        self.folder = table_folder(size)
        wide = max(*widths, graph.num_features // 4)
        self.ranges = row_ranges(graph.row_ptr.numpy(), wide)

    def table(self, width: int, make: Rows, what: str) -> Tensor:
        """Make the rows of all nodes, some at a time ``[N, width]``."""
        size = (self.graph.num_nodes, width)
        table = torch.from_numpy(new_array(size, self.graph.dtype, self.folder))
        with long_work(what, "nodes") as advance:
            for low, high in pairwise(self.ranges):
                table[low:high] = make(torch.arange(low, high)).cpu()
                advance(high, high / size[0])
        return table

    def units(self, hidden: Tensor | None = None) -> Tensor:
        """The units of the last layer ``[N, M * d]``; hidden vectors may be known ``[N, C]``."""
        if hidden is None and self.network.encoder is not None:
            hidden = self.hidden()
        rows = self.graph.features if hidden is None else hidden.__getitem__
        for layer in cast("list[ClassUnitConv]", list(self.network.layers)):
            units = self._voted(layer, rows)
            rows = units.__getitem__
        return units

    def hops(self, rows: Rows, width: int, shares: Tensor) -> Tensor:
        """Sum the hops 0 to K of every node's row, weighted by shares ``[K + 1]``: ``[N, C]``."""

        def read(nodes: Tensor) -> Tensor:
            with torch.no_grad():  # in a thread of its own
                return rows(nodes).cpu()

        graph = replace(self.along, features=read, num_features=width)
        with long_work("propagating", "rows") as advance:
            table = hop_table(graph, len(shares) - 1, shares.cpu(), self.folder, advance)
        return table.hops.squeeze(1)

    def hidden(self) -> Tensor:
        """The hidden vectors of the network's encoder ``[N, C]``."""
        encoder = cast("PropagationEncoder", self.network.encoder)
        features, device, width = self.graph.features, self.device, encoder.bias.size(-1)
        kept = 1 - encoder.node_rate.to(self.graph.dtype).cpu()
        if encoder.order == "features":
            wide = self.hops(features, self.graph.num_features, encoder.hop_shares())

            def summed(nodes: Tensor) -> Tensor:  # which drops nodes itself
                return encoder.project_hops(wide[nodes].unsqueeze(1).to(device), 1)
        else:
            tables = [
                self.hops(_projected(encoder, features, device, number), width, shares)
                for number, shares in _matrices(encoder)
            ]

            def summed(nodes: Tensor) -> Tensor:
                total = torch.stack([table[nodes] for table in tables]).sum(0)
                return (kept * total).unsqueeze(0).to(device)

        now = self.table(width, lambda nodes: encoder.activate(summed(nodes))[0], "encoding")
        for layer in cast("list[DeeperLayer]", list(encoder.deeper)):
            now = self._deeper(layer, now)
        return now

    def _deeper(self, layer: DeeperLayer, before: Tensor) -> Tensor:
        """One more layer of an encoder ``[N, C]``."""

        def project(nodes: Tensor) -> tuple[Tensor, Tensor]:
            return layer.project(before[nodes].unsqueeze(0).to(self.device))

        width = before.size(1)
        carried = self.hops(lambda n: project(n)[1][0], width, weights_of_one_hop(before))

        def activate(nodes: Tensor) -> Tensor:
            neighbours = carried[nodes].unsqueeze(0).to(self.device)
            return layer.activate(project(nodes)[0], neighbours)[0]

        return self.table(width, activate, "encoding")

    def _voted(self, layer: ClassUnitConv, rows: Rows) -> Tensor:
        """The units of a layer after all rounds of votes ``[N, M * d]``."""
        width, shape = layer.out_channels, (layer.factors, -1)

        def scores(nodes: Tensor) -> Tensor:
            return layer.project(rows(nodes).to(self.device))

        now = self.table(width, lambda nodes: class_units(scores(nodes)).flatten(1), "units")

        def vote(nodes: Tensor) -> Tensor:
            ptr, entry = kernels.sample(self.graph.row_ptr, nodes, 0, 0)  # all neighbours
            near, column = kernels.renumber(nodes, self.graph.column[entry].long())
            row = torch.repeat_interleave(ptr.diff(), output_size=len(entry))
            units = now[near].view(len(near), *shape).to(self.device)
            edges = torch.stack([column, row]).to(self.device)
            votes, _ = route(units, edges, 1, layer.tau, normalize_last=False)
            return class_units(scores(nodes) + votes[: len(nodes)]).flatten(1)

        for _ in range(layer.iterations):
            now = self.table(width, vote, "votes")
        return now


def _matrices(encoder: PropagationEncoder) -> list[tuple[int, Tensor]]:
    """The encoder's matrices by number, with the shares of hops that each is propagated by."""
    if not encoder.is_separate:
        return [(0, encoder.hop_shares())]
    return [(k, torch.eye(k + 1)[k]) for k in range(encoder.hops + 1)]


def _projected(
    encoder: PropagationEncoder, features: Rows, device: torch.device, number: int
) -> Rows:
    """What one of the encoder's matrices makes of the features of some nodes."""
    width = encoder.bias.size(-1)

    def rows(nodes: Tensor) -> Tensor:
        h = encoder.project(features(nodes).to(device), 1)[0]
        return h[:, number * width : (number + 1) * width].contiguous()

    return rows
