"""A model that is asked about a part of a graph and answers as in the whole of it."""

from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.errors import InputError
from lgdgcn.large.graph_rows import GraphRows, feature_rows
from lgdgcn.large.neighbourhood import induced_edges
from lgdgcn.models import NodeModel, NodeOutput
from lgdgcn.nn import Disentangled
from lgdgcn.train.trained import TrainedModel

__all__ = ["GraphInMemory", "PartModel", "WholeGraph"]


class WholeGraph(Protocol):
    """A graph of any size with a model of it, of which parts are taken.

    :class:`~lgdgcn.large.large_graph.LargeGraph` is one that is not read whole.
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
