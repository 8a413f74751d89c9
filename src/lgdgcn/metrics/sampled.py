"""Measures of a graph too large to measure whole: nodes and edges drawn from it."""

from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lgdgcn.large.neighbourhood import drawn_edges, some_of
from lgdgcn.large.view import GraphView
from lgdgcn.metrics.controls import Row, measure
from lgdgcn.models import NodeOutput

__all__ = ["Sample"]

MOST_NODES = 20_000
MOST_EDGES = 50_000


@dataclass(frozen=True)
class Sample:
    """Nodes and edges of a graph, each drawn with the same probability.

    Edges are drawn for themselves: between nodes that are drawn one by one there are few, and
    ends of edges are not nodes like any other, as those with many edges are more often among them.

    Attributes:
        graph: The graph and its model, which answers as in the whole of it.
        nodes: The nodes, with the few edges between them.
        edges: The edges and their ends; ``None`` if the graph has none.
        note: One line that says so; ``None`` if these are all.
    """

    graph: GraphView
    nodes: Data
    edges: Data | None
    note: str | None

    @classmethod
    def of(cls, graph: GraphView, seed: int = 0) -> "Sample":
        """Draw from a graph."""
        rows = graph.rows
        nodes = graph.part(some_of(torch.arange(rows.num_nodes), MOST_NODES, seed))
        ends, edge_index = drawn_edges(rows, MOST_EDGES, seed)
        edges = graph.part(ends)
        edges.edge_index = edge_index
        found = nodes.x.size(0), edge_index.size(1) // 2
        every = rows.num_nodes, rows.num_edges // 2
        note = None
        if found != every:
            note = (
                f"measured on {found[0]:,} of {every[0]:,} nodes and {found[1]:,} of "
                f"{every[1]:,} edges, drawn at random; intervals are those of the sample"
            )
        return cls(graph, nodes, edges if every[1] else None, note)

    def measure(self) -> list[Row]:
        """All measures, with controls and intervals."""
        return measure(self.graph, self.nodes, edges=self.edges)

    def output(self) -> NodeOutput:
        """What the model says of the drawn nodes, with the factors of the drawn edges."""
        of_nodes = self.graph(self.nodes)
        if not of_nodes.layers or self.edges is None:
            return of_nodes
        of_edges = self.graph(self.edges)
        last = of_nodes.layers[-1]._replace(edge_factors=of_edges.layers[-1].edge_factors)
        return NodeOutput(of_nodes.logits, [last])
