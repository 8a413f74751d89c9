"""``lgdgcn predict`` of a graph that is not read whole: some nodes, or edges, at a time."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import torch

from lgdgcn.commands.console import out as console
from lgdgcn.commands.predicted_columns import (
    all_probabilities,
    edge_columns,
    known_columns,
    known_of,
    node_columns,
    with_text,
)
from lgdgcn.commands.table_file import Block, write_blocks
from lgdgcn.large.inference import SCORED
from lgdgcn.large.view import GraphView
from lgdgcn.progress import long_work

__all__ = ["write_large"]

_ROWS = SCORED  # nodes, or edges, of one block: as many as a training scores at once


def write_large(graph: GraphView, out: Path, edge_file: Path | None, probabilities: bool) -> None:
    """Write the predictions of all nodes and, if asked for, of all edges."""
    console.print(
        f"{graph.rows.num_nodes:,} nodes are predicted step by step, with all their neighbours",
        soft_wrap=True,
    )
    _ = graph.table  # which shows how far it is
    nodes = write_blocks(out, _nodes(graph, probabilities))
    console.print(f"{nodes} nodes: {out}", soft_wrap=True)
    if edge_file is not None:
        edges = write_blocks(edge_file, _edges(graph))
        console.print(f"{edges} edges: {edge_file}", soft_wrap=True)


def _nodes(graph: GraphView, probabilities: bool) -> Iterator[Block]:
    packed = graph.packed
    assert packed is not None
    known = known_columns(graph.about(slice(None)))
    bounds = [*range(0, packed.num_nodes, _ROWS), packed.num_nodes]
    with long_work("predicting nodes", "nodes") as advance:
        for low, high in pairwise(bounds):
            output = graph.output(torch.arange(low, high))
            block: Block = {"node": packed.ids(slice(low, high))}
            block |= node_columns(graph, output) | known_of(graph.about(slice(low, high)), known)
            if probabilities:
                block |= all_probabilities(graph, output)
            text = {name: packed.text(name, slice(low, high)) for name in packed.manifest.text}
            yield with_text(block, text)
            advance(high, high / packed.num_nodes)


def _edges(graph: GraphView) -> Iterator[Block]:
    """Every edge once, the end with the smaller number first."""
    packed = graph.packed
    assert packed is not None
    yield edge_columns([], [], graph.table.lift.new_zeros(0, len(graph.table.lift)))  # the header
    with long_work("predicting edges", "edges") as advance:
        done = 0
        for low, high in graph.ranges():
            source, target = graph.rows.edges(low, high)
            once = source < target
            source, target = source[once], target[once]
            for first in range(0, len(source), _ROWS):
                ends = source[first : first + _ROWS], target[first : first + _ROWS]
                names = [graph.ids(end) for end in ends]
                yield edge_columns(names[0], names[1], graph.table.edge_factors(*ends))
                done += len(ends[0])
                advance(done, 2 * done / max(1, packed.num_edges))
