"""Explanations of a part of a graph that answer as in the whole of it."""

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.large.neighbourhood import around, linked_sample
from lgdgcn.large.view import GraphView
from lgdgcn.models import NodeOutput
from lgdgcn.reasons.explain import Explainer
from lgdgcn.train.trained import TrainedModel

__all__ = ["LargeExplainer", "explainer_of"]

_MOST = 20_000  # nodes by which factors are described


class LargeExplainer(Explainer):
    """Like :class:`~lgdgcn.reasons.explain.Explainer`, for some nodes of a larger graph.

    Predictions and factors of these nodes are those of the whole graph. What a factor is about, and
    how many nodes have something, is told by the part.
    """

    @classmethod
    def of(cls, graph: GraphView, names: list[str]) -> "LargeExplainer":
        """Explain nodes by their ids, an edge by those of its ends, or by none all factors.

        The part has all neighbours of these nodes, and a sample of linked nodes.

        Raises:
            InputError: One of them is no node.
        """
        asked = torch.unique(graph.find(names)) if names else None
        nodes = linked_sample(graph.rows, _MOST)
        if asked is not None:
            nodes = torch.unique(torch.cat([around(graph.rows, asked, 1), nodes]))
        part = graph.part(nodes)
        if asked is not None:
            part.asked = torch.searchsorted(nodes, asked)
        return cls(graph, part)

    @property
    def whole(self) -> GraphView:
        """The graph that this is a part of."""
        return cast("GraphView", self.trained)

    @property
    def edge_factors_of_graph(self) -> Tensor:
        """Those of the graph that this is a part of."""
        return cast("Tensor", self.whole.edge_factors)

    @property
    def note(self) -> str | None:
        """One line that says what is told by a sample; ``None`` if the part is all of it."""
        nodes, of_all = self.data.x.size(0), self.whole.rows.num_nodes
        if nodes == of_all:
            return None
        return (
            f"what a factor is about is told by {nodes:,} of {of_all:,} nodes; all else is that "
            "of the whole graph"
        )

    def without(self, factor: int) -> NodeOutput:
        """The scores on the whole graph without any edge of a factor, run again.

        Where only some nodes are asked about, the scores of others stay as they are.
        """
        asked: Tensor | None = self.data.get("asked")
        if asked is None:
            asked = torch.arange(self.data.x.size(0))
        nodes, whole = self.data.part_nodes[asked], self.whole
        logits = self.output.logits.clone()
        if whole.packed is not None:
            found = whole.scores_without(nodes, factor)
        else:
            found = self._in_memory.without(factor).logits[nodes.to(logits.device)]
        logits[asked.to(logits.device)] = found.to(logits)
        return NodeOutput(logits, [])

    @cached_property
    def _in_memory(self) -> Explainer:
        """What explains the whole graph, if it is in memory."""
        return Explainer(self.whole, self.whole.data)


def explainer_of(
    trained: TrainedModel, data: Data, others: Sequence[TrainedModel] = ()
) -> Explainer:
    """What explains a graph, or a part of the graph that the model knows."""
    if "part_nodes" in data:
        return LargeExplainer(trained, data)
    return Explainer(trained, data, others)
