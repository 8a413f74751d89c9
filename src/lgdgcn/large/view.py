"""A trained model and a graph, of which parts are looked at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import select_columns
from lgdgcn.data.packed import PackedGraph
from lgdgcn.errors import InputError
from lgdgcn.large.hops import row_ranges
from lgdgcn.large.inference import UnitTable, scores_without, unit_table
from lgdgcn.large.neighbourhood import around, drawn_edges, induced_edges, linked_sample
from lgdgcn.large.rows import GraphRows, as_tensor, feature_rows, mapped_data, rows_scaling
from lgdgcn.models import ClassUnitGCN, NodeOutput
from lgdgcn.nn import Disentangled
from lgdgcn.train.trained import TrainedModel

__all__ = ["GraphView"]

_DRAWN = 100_000  # edges whose factors say whether factors differ between edges
_LINKED = 20_000  # nodes by which factors are described
_OF_NODES = ("y", "train_mask", "val_mask", "test_mask", "y_factor")
_OF_EDGES = ("edge_weight", "edge_reasons", "edge_type")
_OF_GRAPHS = ("classes", "feature_names", "edge_type_names", "encoding")


@dataclass(kw_only=True)
class GraphView(TrainedModel):
    """A trained model that knows a graph: of a part it says what it says of the whole graph.

    Attributes:
        data: The graph in canonical form. Of a mapped one its arrays are files, in place of
            ``edge_index`` it has ``rows``, and weights and types of edges are in their order.
        packed: The folder of a mapped graph; ``None`` for one in memory.
    """

    data: Data
    packed: PackedGraph | None = None

    @classmethod
    def in_memory(cls, trained: TrainedModel, data: Data) -> "GraphView":
        """View a canonical graph in memory with any model."""
        return cls(**_values(trained), data=data)

    @classmethod
    def mapped(
        cls, trained: TrainedModel, packed: PackedGraph, *, make_split: bool = False
    ) -> "GraphView":
        """View a packed graph without reading it whole; the model can be trained in batches.

        Where no split was given, one may be made of the labelled nodes.

        Raises:
            InputError: It has columns that the model does not know.
        """
        if trained.encoding is not None and trained.encoding != packed.encoding:
            raise InputError(
                f"{packed.folder} has columns that were not packed for this run, and is not "
                "read whole, so they cannot be encoded anew; pack it with --like RUN"
            )
        data = mapped_data(packed, make_split=make_split)
        files = {"y_factor": "y_factor", "edge_weight": "weight", "edge_type": "edge_type"}
        for key, name in files.items():
            if packed.has(name):
                data[key] = as_tensor(packed.array(name))
        if packed.edge_type is not None:
            data.edge_type_names = list(packed.manifest.edge_type_names)
        return cls(**_values(trained), data=data, packed=packed)

    @cached_property
    def rows(self) -> GraphRows:
        """Neighbours and features of all nodes; entries of ``column`` are the graph's edges."""
        if self.packed is not None:
            return cast("GraphRows", self.data.rows)
        x, (source, target) = self.data.x, self.data.edge_index
        degree = torch.bincount(source, minlength=x.size(0))
        row_ptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
        return GraphRows(row_ptr, target, None, partial(feature_rows, x), x.size(1), x.dtype)

    @cached_property
    def table(self) -> UnitTable:
        """What the model says of all nodes of a mapped graph."""
        rows, names = self.rows, self.data.get("feature_names")
        columns = self.own_columns(names, rows.num_features)
        scaling = self.scaling or rows_scaling(self.data, self.settings.feature_scaling)
        dtype = next(self.model.parameters()).dtype

        def features(nodes: Tensor) -> Tensor:
            x = rows.features(nodes)
            return scaling(x if columns is None else select_columns(x, columns)).to(dtype)

        weight = None if rows.weight is None else rows.weight.to(dtype)
        graph = replace(rows, features=features, weight=weight, dtype=dtype)
        return unit_table(graph, cast("ClassUnitGCN", self.model))

    @cached_property
    def _output(self) -> NodeOutput:
        """What the model says of a graph in memory."""
        return super().__call__(self.data)

    def __call__(self, data: Data) -> NodeOutput:
        """What the model says of a part in the whole graph, or of any other graph."""
        if "part_nodes" not in data:
            return super().__call__(data)
        return self.output(data.part_nodes, data.part_nodes[data.edge_index])

    def output(self, nodes: Tensor, edges: Tensor | None = None) -> NodeOutput:
        """What the model says of some nodes ``[n]``, and of edges between nodes ``[2, e]``.

        Raises:
            InputError: The scores are not finite.
        """
        device = next(self.model.parameters()).device
        edges = nodes.new_zeros(2, 0) if edges is None else edges
        if self.packed is not None:
            units = self.table.rows(nodes)
            logits, factors = self.table.logits(units), self.table.edge_factors(*edges)
            units = units.to(device)
            return NodeOutput(logits.to(device), [Disentangled(units, units, factors.to(device))])
        entries = torch.searchsorted(self._edge_codes, self._codes(edges)).to(device)
        nodes, whole = nodes.to(device), self._output
        layers = [
            Disentangled(layer.units[nodes], layer.local_units[nodes], layer.edge_factors[entries])
            for layer in whole.layers
        ]
        return NodeOutput(whole.logits[nodes], layers)

    def _codes(self, edges: Tensor) -> Tensor:
        """A number for each pair of nodes, ascending as edges are sorted ``[2, e] -> [e]``."""
        return edges[0] * self.rows.num_nodes + edges[1]

    @cached_property
    def _edge_codes(self) -> Tensor:
        return self._codes(self.data.edge_index)

    @cached_property
    def edge_factors(self) -> Tensor | None:
        """Factors of all edges in memory, else of some that are drawn ``[E, M]``."""
        if self.packed is None:
            layers = self._output.layers
            return layers[-1].edge_factors if layers else None
        nodes, between = drawn_edges(self.rows, _DRAWN)
        return self.table.edge_factors(*nodes[between])

    def scores_without(self, nodes: Tensor, factor: int) -> Tensor:
        """Class scores of nodes of a mapped graph without the edges of a factor ``[n, C]``."""
        return scores_without(self.table, nodes, factor)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of nodes of a mapped graph that are worth one piece of work each."""
        return pairwise(row_ranges(self.rows.row_ptr.numpy(), self.table.units.size(1)))

    def find(self, names: Sequence[str]) -> Tensor:
        """The numbers of nodes by their ids ``[n]``.

        Raises:
            InputError: No node has one of them.
        """
        if self.packed is not None:
            return torch.from_numpy(self.packed.find(names))
        ids = self.data.get("node_ids") or range(self.rows.num_nodes)
        numbers = {str(name): number for number, name in enumerate(ids)}
        for name in names:
            if name not in numbers:
                raise InputError(
                    f"--node: no node has the id {name[:100]!r}; ids are like {ids[0]!r}"
                )
        return torch.tensor([numbers[name] for name in names], dtype=torch.long)

    def ids(self, nodes: Tensor | range) -> list[Any]:
        """The ids of some nodes, their numbers where they have none."""
        if self.packed is not None:
            return self.packed.ids(_entries(nodes))
        names, numbers = self.data.get("node_ids"), _numbers(nodes)
        return numbers if names is None else [names[node] for node in numbers]

    def text(self, nodes: Tensor | range) -> dict[str, list[str]]:
        """What the nodes table says of some nodes in words, by the name of the column."""
        if self.packed is not None:
            names = self.packed.manifest.text
            return {name: self.packed.text(name, _entries(nodes)) for name in names}
        text: dict[str, Sequence[str]] = self.data.get("node_text") or {}
        return {name: [cells[i] for i in _numbers(nodes)] for name, cells in text.items()}

    def about(self, nodes: Any) -> Data:
        """Labels and split of some nodes, numbers or a slice, as a graph without edges."""
        part = Data(**{key: self.data[key] for key in _OF_GRAPHS if key in self.data})
        for key in _OF_NODES:
            if key in self.data:
                part[key] = self.data[key][nodes]
        return part

    def part_around(self, names: Sequence[str]) -> Data:
        """A sample of linked nodes, and all neighbours of the nodes of these ids.

        Its ``asked`` are the numbers of the latter in the part, where there are any.

        Raises:
            InputError: One of them is no node.
        """
        nodes = linked_sample(self.rows, _LINKED)
        if not names:
            return self.part(nodes)
        asked = torch.unique(self.find(names))
        nodes = torch.unique(torch.cat([around(self.rows, asked, 1), nodes]))
        part = self.part(nodes)
        part.asked = torch.searchsorted(nodes, asked)
        return part

    def part(self, nodes: Tensor) -> Data:
        """Some nodes, ascending, and all edges between them, in canonical form.

        Its ``part_nodes`` are their numbers in the graph.
        """
        part = self.about(nodes)
        part.edge_index, entry = induced_edges(self.rows, nodes)
        part.x, part.part_nodes = self.rows.features(nodes), nodes
        for key in _OF_EDGES:
            if key in self.data:
                part[key] = self.data[key][entry]
        part.node_ids = self.ids(nodes)
        if text := self.text(nodes):
            part.node_text = text
        return part


def _numbers(nodes: Tensor | range) -> list[int]:
    return list(nodes) if isinstance(nodes, range) else nodes.tolist()


def _entries(nodes: Tensor | range) -> Any:
    """Numbers of nodes for a file: what lies side by side is read at once."""
    return slice(nodes.start, nodes.stop) if isinstance(nodes, range) else nodes.numpy()


def _values(trained: TrainedModel) -> dict[str, Any]:
    return {field.name: getattr(trained, field.name) for field in fields(TrainedModel)}
