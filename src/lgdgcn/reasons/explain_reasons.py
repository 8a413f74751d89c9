"""Why an edge is there, by the model of edges that ``--task edges`` fits."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from torch_geometric.data import Data

from lgdgcn.reasons.describe import Description
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.explained import ExplainedGraph
from lgdgcn.reasons.fit import EdgeReasons
from lgdgcn.reasons.of_graph import known_types, unknown_edges
from lgdgcn.reasons.stability import Stability

__all__ = ["ReasonExplainer"]


class ReasonExplainer(ExplainedGraph):
    """Reasons or types of the edges of a graph. No node has a prediction here.

    Args:
        data: The graph in canonical form.
        reasons: Of its edges.
        stability: How well other seeds agree, where there are others.
        interval: Lowest and highest probability over the seeds, two arrays ``[P, M]``.
    """

    def __init__(
        self,
        data: Data,
        reasons: EdgeReasons,
        stability: Stability | None = None,
        interval: tuple[Array, Array] | None = None,
    ) -> None:
        types = known_types(data)
        self.typed = types is not None
        self.reasons = reasons
        edges = Edges.of_graph(data)
        self._presence = edges.once(reasons.presence)
        self.known_types = None if types is None else edges.once(types)
        self.unknown = edges.once(unknown_edges(reasons, data)) > 0  # [P]
        super().__init__(
            data,
            Edges.of_graph(data).once(reasons.probability).astype(float),
            noun="type" if self.typed else "reason",
            names=reasons.names if self.typed else None,
            stability=stability,
            interval=interval,
        )

    @cached_property
    def descriptions(self) -> list[Description]:
        """What each reason is about, and how many of its edges are unknown."""
        winner = self.factors.argmax(1)
        return [
            replace(one, unknown=int(self.unknown[winner == m].sum()))
            for m, one in enumerate(super().descriptions)
        ]

    def explain_node(self, name: str) -> dict[str, Any]:
        """A node and its neighbours by reason, with how many of its edges are unknown."""
        found, node = super().explain_node(name), self.node(name)
        own, winner = (self.pairs.ends == node).any(0), self.factors.argmax(1)
        for m, factor in enumerate(found["factors"]):
            factor["unknown"] = int(self.unknown[own & (winner == m)].sum())
        return found

    def explain_edge(self, first: str, second: str) -> dict[str, Any]:
        """The reasons of an edge; see :meth:`ExplainedGraph.explain_edge`.

        Also whether the edge is unknown, and the types that were given where some were.
        """
        found = super().explain_edge(first, second)
        pair, _ = self._edge(first, second)
        found["unknown"] = bool(self.unknown[pair])
        if self.known_types is not None:
            own = self.known_types[pair].nonzero()[0]
            found["known"] = [self.reasons.names[number] for number in own]
        return found

    def evidence(self, pair: int, ends: Sequence[int], factor: int) -> dict[str, Any]:
        """That the reason is there at all, and how many types of both ends were given."""
        more: dict[str, Any] = {"presence": float(self._presence[pair, factor])}
        if self.known_types is not None:
            own = self.known_types[pair, factor]
            given = (self.pairs.incidence[list(ends)] @ self.known_types[:, factor]) - own
            more["known_at_ends"] = [int(count) for count in given]
        return more
