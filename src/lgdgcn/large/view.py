"""A model and a graph of which parts are looked at: it answers as in the whole graph."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import select_columns
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.scaling import fit_scaling
from lgdgcn.errors import InputError
from lgdgcn.large.hops import row_ranges
from lgdgcn.large.inference import UnitTable, unit_table
from lgdgcn.large.neighbourhood import drawn_edges, induced_edges
from lgdgcn.large.rows import GraphRows, feature_rows, mapped_labels, mapped_rows
from lgdgcn.models import ClassUnitGCN, NodeModel, NodeOutput
from lgdgcn.nn import Disentangled
from lgdgcn.train.trained import TrainedModel

__all__ = ["GraphInMemory", "LargeGraph", "PartModel", "WholeGraph"]

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


class WholeGraph(Protocol):
    """A graph of any size with a model of it, of which parts are taken.

    :class:`~lgdgcn.large.view.LargeGraph` is one that is not read whole.
    """

    @property
    def trained(self) -> TrainedModel:
        """The model."""

    @property
    def rows(self) -> GraphRows:
        """The neighbours of all nodes."""

    @property
    def labels(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Labels ``[N]`` or ``[N, L]``, and the masks of the split."""

    @property
    def classes(self) -> list[Any]:
        """Names of the graph's labels."""

    @property
    def edge_factors(self) -> Tensor:
        """Factors of all edges, or of some that are drawn at random ``[E, M]``."""

    def find(self, name: str) -> int:
        """The number of a node by its id."""

    def part(self, nodes: Tensor) -> Data:
        """Some nodes, ascending, and all edges between them, in canonical form.

        Its ``part_nodes`` are their numbers in the graph.
        """

    def part_output(self, part: Data) -> NodeOutput:
        """What the model says of the nodes and edges of a part, in the whole graph."""

    def with_model(self, model: NodeModel) -> "WholeGraph":
        """The same graph with another network."""


@dataclass(frozen=True)
class GraphInMemory:
    """A whole graph that is too large to be shown or measured, but not to be read."""

    trained: TrainedModel
    data: Data

    @cached_property
    def rows(self) -> GraphRows:
        """The neighbours of all nodes, in the order of the edges."""
        x, (source, target) = self.data.x, self.data.edge_index
        degree = torch.bincount(source, minlength=x.size(0))
        row_ptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
        return GraphRows(row_ptr, target, None, partial(feature_rows, x), x.size(1), x.dtype)

    @cached_property
    def labels(self) -> tuple[Tensor, dict[str, Tensor]]:
        """Labels and masks."""
        names = ("train_mask", "val_mask", "test_mask")
        return self.data.y, {name: self.data[name] for name in names}

    @property
    def classes(self) -> list[Any]:
        """Names of the labels."""
        return list(self.data.classes)

    @cached_property
    def output(self) -> NodeOutput:
        """What the model says of all nodes."""
        return self.trained(self.data)

    @property
    def edge_factors(self) -> Tensor:
        """Factors of all edges."""
        return self.output.layers[-1].edge_factors

    def find(self, name: str) -> int:
        """The number of a node by its id."""
        ids = self.data.get("node_ids") or range(self.data.x.size(0))
        for number, own in enumerate(ids):
            if str(own) == name:
                return number
        raise InputError(f"--node: no node has the id {name[:100]!r}; ids are like {ids[0]!r}")

    def part(self, nodes: Tensor) -> Data:
        """Some nodes and all edges between them."""
        data, chosen = self.data, nodes.tolist()
        edge_index, entry = induced_edges(self.rows.row_ptr, self.rows.column, nodes)
        part = Data(x=feature_rows(data.x, nodes), edge_index=edge_index, part_nodes=nodes)
        for key in ("y", "train_mask", "val_mask", "test_mask", "y_factor"):
            if key in data:
                part[key] = data[key][nodes]
        for key in ("edge_weight", "edge_type"):
            if key in data:
                part[key] = data[key][entry]
        for key in ("classes", "feature_names", "edge_type_names", "encoding"):
            if key in data:
                part[key] = data[key]
        if "node_ids" in data:
            part.node_ids = [data.node_ids[node] for node in chosen]
        else:
            part.node_ids = chosen
        text: dict[str, Any] = data.get("node_text") or {}
        if text:
            part.node_text = {name: [cells[i] for i in chosen] for name, cells in text.items()}
        return part

    def part_output(self, part: Data) -> NodeOutput:
        """What the model says of a part: some rows of what it says of all."""
        device = self.output.logits.device
        nodes, columns = part.part_nodes, self._columns(part).to(device)
        layers = [
            Disentangled(
                layer.units[nodes.to(device)],
                layer.local_units[nodes.to(device)],
                layer.edge_factors[columns],
            )
            for layer in self.output.layers
        ]
        return NodeOutput(self.output.logits[nodes.to(device)], layers)

    def _columns(self, part: Data) -> Tensor:
        """Which of the graph's edges those of a part are."""
        size = self.data.x.size(0)
        source, target = part.part_nodes[part.edge_index]
        codes = self.data.edge_index[0] * size + self.data.edge_index[1]  # ascending
        return torch.searchsorted(codes, source * size + target)

    def with_model(self, model: NodeModel) -> "GraphInMemory":
        """The same graph with another network."""
        return replace(self, trained=replace(self.trained, model=model))


@dataclass
class PartModel(TrainedModel):
    """A model that knows the rest of the graph when it is asked about a part.

    Attributes:
        whole: The graph that parts are of.
    """

    whole: WholeGraph | None = None

    def __post_init__(self) -> None:
        """See that the graph is asked with this network, which may be another than it had."""
        if self.whole is not None and self.whole.trained.model is not self.model:
            self.whole = self.whole.with_model(self.model)

    @classmethod
    def of(cls, whole: WholeGraph) -> "PartModel":
        """The model of a graph."""
        trained = whole.trained
        values = {field.name: getattr(trained, field.name) for field in fields(TrainedModel)}
        return cls(**values, whole=whole)

    def __call__(self, data: Data) -> NodeOutput:
        """What the model says of the nodes and edges of a part, in the whole graph."""
        assert self.whole is not None
        return self.whole.part_output(data)
