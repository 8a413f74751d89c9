"""A trained model on a packed graph that is never read whole: what it says of any nodes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import select_columns
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.scaling import fit_scaling
from lgdgcn.errors import InputError
from lgdgcn.large.graph_rows import GraphRows, feature_rows
from lgdgcn.large.hop_table import row_ranges
from lgdgcn.large.mapped import mapped_labels, mapped_rows
from lgdgcn.large.neighbourhood import drawn_edges, induced_edges
from lgdgcn.large.unit_table import UnitTable, unit_table
from lgdgcn.models import ClassUnitGCN, NodeModel, NodeOutput
from lgdgcn.nn import Disentangled
from lgdgcn.train.trained import TrainedModel

__all__ = ["LargeGraph", "edges_of_range"]

_DRAWN = 100_000  # edges whose factors say whether edges are told apart


@dataclass(frozen=True)
class LargeGraph:
    """A packed graph and what a model says of its nodes and edges.

    Attributes:
        packed: The graph.
        trained: The model, one that :func:`~lgdgcn.large.batch_input.check_batchable` accepts.
        make_split: Whether labelled nodes are split where no split was given.
    """

    packed: PackedGraph
    trained: TrainedModel
    make_split: bool = False

    def __post_init__(self) -> None:
        """Refuse columns that the model does not know."""
        own, other = self.trained.encoding, self.packed.encoding
        if own is not None and own != other:
            raise InputError(
                f"{self.packed.folder} has columns that were not packed for this run, and is not "
                "read whole, so they cannot be encoded anew; pack it with --like RUN"
            )

    @cached_property
    def _mapped(self) -> tuple[Tensor, GraphRows]:
        return mapped_rows(self.packed)

    @cached_property
    def rows(self) -> GraphRows:
        """The graph as the network reads it: columns in its order, scaled."""
        names = list(self.packed.manifest.feature_names) or None
        columns = self.trained.own_columns(names, self.packed.num_features)
        _, rows = self._mapped
        dtype = next(self.trained.model.parameters()).dtype

        def chosen(nodes: Tensor) -> Tensor:
            x = rows.features(nodes)
            return x if columns is None else select_columns(x, columns)

        scaling = self.trained.scaling
        if scaling is None:  # a model of an older version
            some = torch.arange(0, rows.num_nodes, max(1, rows.num_nodes // 100_000))
            kind = self.trained.settings.feature_scaling
            scaling = fit_scaling(kind, chosen(some), self.labels[1]["train_mask"][some])
        weight = None if rows.weight is None else rows.weight.to(dtype)
        return replace(
            rows,
            features=lambda nodes: scaling(chosen(nodes)).to(dtype),
            weight=weight,
            dtype=dtype,
        )

    @cached_property
    def table(self) -> UnitTable:
        """The units of all nodes."""
        return unit_table(self.rows, cast("ClassUnitGCN", self.trained.model))

    @cached_property
    def labels(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Labels ``[N]`` or ``[N, L]``, and the masks of the split."""
        return mapped_labels(self.packed, self.make_split)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of nodes that are worth one piece of work each."""
        width = self.table.units.size(1)
        return pairwise(row_ranges(self.rows.row_ptr.numpy(), width))

    def output(self, nodes: Tensor, edges: Tensor | None = None) -> NodeOutput:
        """What the model says of some nodes ``[n]``, and of edges between nodes ``[2, e]``.

        Raises:
            InputError: The scores are not finite.
        """
        units = self.table.rows(nodes)
        logits = self.table.logits(units)
        of_edges = units.new_zeros(0, units.size(1))
        if edges is not None:
            of_edges = self.table.edge_factors(*edges)
        device = self.table.network.head.start.device
        own = units.to(device)
        return NodeOutput(logits.to(device), [Disentangled(own, own, of_edges.to(device))])

    def about(self, nodes: Any) -> Data:
        """Labels and split of some nodes, numbers or a slice, as a graph without edges."""
        y, masks = self.labels
        chosen = {name: mask[nodes] for name, mask in masks.items()}
        return Data(y=y[nodes], classes=self.packed.classes, **chosen)

    def part(self, nodes: Tensor) -> Data:
        """Some nodes, ascending, and all edges between them, in canonical form.

        Its ``part_nodes`` are their numbers in the graph.
        """
        packed, numbers = self.packed, nodes.numpy()
        x, rows = self._mapped
        edge_index, entry = induced_edges(rows.row_ptr, rows.column, nodes)
        graph = self.about(nodes)
        graph.x = feature_rows(x, nodes).to(rows.dtype)
        graph.edge_index, graph.part_nodes = edge_index, nodes
        graph.node_ids = packed.ids(numbers)
        if packed.manifest.text:
            graph.node_text = {name: packed.text(name, numbers) for name in packed.manifest.text}
        if packed.manifest.feature_names:
            graph.feature_names = list(packed.manifest.feature_names)
        if packed.encoding is not None:
            graph.encoding = packed.encoding
        if packed.has("y_factor"):
            known = np.asarray(packed.array("y_factor")[numbers], np.int64)
            graph.y_factor = torch.from_numpy(known)
        if packed.weight is not None:
            graph.edge_weight = torch.from_numpy(packed.weight[entry.numpy()])
        if packed.edge_type is not None:
            graph.edge_type = torch.from_numpy(packed.edge_type[entry.numpy()])
            graph.edge_type_names = list(packed.manifest.edge_type_names)
        return graph

    @property
    def classes(self) -> list[Any]:
        """Names of the labels."""
        return self.packed.classes

    @cached_property
    def edge_factors(self) -> Tensor:
        """Factors of edges drawn at random, or of all if there are no more."""
        some, between = drawn_edges(self.rows.row_ptr, self.rows.column, _DRAWN)
        return self.table.edge_factors(*some[between])

    def find(self, name: str) -> int:
        """The number of a node by its id.

        Raises:
            InputError: No node has it.
        """
        return int(self.packed.find([name])[0])

    def part_output(self, part: Data) -> NodeOutput:
        """What the model says of the nodes and edges of a part, in the whole graph."""
        return self.output(part.part_nodes, part.part_nodes[part.edge_index])

    def with_model(self, model: NodeModel) -> "LargeGraph":
        """The same graph with another network."""
        return replace(self, trained=replace(self.trained, model=model))


def edges_of_range(graph: GraphRows, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Both ends of all edges that begin at nodes ``low`` to ``high - 1``, in order."""
    ptr = graph.row_ptr[low : high + 1]
    target = graph.column[int(ptr[0]) : int(ptr[-1])].long()
    source = torch.repeat_interleave(torch.arange(low, high), ptr.diff())
    return source, target
