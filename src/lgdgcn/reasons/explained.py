"""The edges of a graph with their reasons, and all that speaks for them, whatever found them."""

import difflib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from torch_geometric.data import Data

from lgdgcn.data.labels import is_labelled
from lgdgcn.errors import InputError
from lgdgcn.reasons.describe import Description, describe_reasons
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.stability import Stability
from lgdgcn.reasons.traits import NodeTraits, node_ids, traits_of

__all__ = ["MOST", "ONE_SEED", "ExplainedGraph"]

MOST = 10  # neighbours or features that are listed
ONE_SEED = "one seed: whether others find the same is not known; train with --seeds 5 to see"


class ExplainedGraph:
    """Reasons of every edge beside the graph.

    Args:
        data: The graph in canonical form.
        factors: Probability of each reason, each edge counted once ``[P, M]``.
        noun: What a reason is called, ``factor`` or ``reason``.
        names: Of the reasons, where they have names of their own.
        stability: How well other seeds agree, where there are others.
        interval: Lowest and highest probability over the seeds, two arrays ``[P, M]``.
    """

    def __init__(
        self,
        data: Data,
        factors: Array,
        *,
        noun: str,
        names: Sequence[str] | None = None,
        stability: Stability | None = None,
        interval: tuple[Array, Array] | None = None,
    ) -> None:
        self.data, self.factors, self.noun, self.own_names = data, factors, noun, names
        self.stability, self.interval = stability, interval

    @cached_property
    def ids(self) -> list[str]:
        """Of the nodes, as they are written."""
        return node_ids(self.data)

    @cached_property
    def pairs(self) -> Edges:
        """Each edge once."""
        return Edges.of(self.data.edge_index, self.data.x.size(0))

    @cached_property
    def traits(self) -> NodeTraits:
        """What the nodes have in words."""
        return traits_of(self.data)

    @cached_property
    def descriptions(self) -> list[Description]:
        """What each reason is about."""
        ends, names = self.pairs.ends, self.own_names
        return describe_reasons(
            self.factors, ends, self.traits, self.ids, names=names, noun=self.noun
        )

    @cached_property
    def activity(self) -> Array:
        """Expected number of edges of each reason at each node ``[N, M]``."""
        return np.asarray(self.pairs.incidence @ self.factors)

    @property
    def note(self) -> str | None:
        """One line that says what is told by a sample of the graph, if anything is."""
        return None

    @property
    def num_fits(self) -> int:
        """How many fits are compared, of other seeds or with some of the known types held back."""
        return 1 if self.stability is None else len(self.stability.agreement) + 1

    def explain_factors(self) -> dict[str, Any]:
        """Every reason: a name, three lines and how stable it is."""
        return {"fits": self.num_fits, "factors": [self.about(m) for m in self._numbers_of_factors]}

    def explain_edge(self, first: str, second: str) -> dict[str, Any]:
        """The reasons of an edge, the likeliest first, and what speaks for them.

        Args:
            first: Id of one end.
            second: Id of the other.

        Raises:
            InputError: One of them is no node, or no edge joins them.
        """
        pair, ends = self._edge(first, second)
        share = self.factors[pair]
        common = np.intersect1d(self._neighbours(ends[0]), self._neighbours(ends[1]))
        common = common[np.argsort(self.pairs.degree[common], kind="stable")]
        return {
            "edge": [self.ids[end] for end in ends],
            "fits": self.num_fits,
            "factors": [
                {
                    **self.told(m),
                    "probability": float(share[m]),
                    "over_fits": self._range(pair, m),
                    "activity": [float(self.activity[end, m]) for end in ends],
                    **self.evidence(pair, ends, m),
                }
                for m in np.argsort(-share, kind="stable")
            ],
            "ends": [{"id": self.ids[end], **self.about_node(end)} for end in ends],
            "common_neighbours": len(common),
            "most_specific_neighbours": [self.ids[i] for i in common[:MOST]],
            "shared": self._shared(ends),
        }

    def explain_node(self, name: str) -> dict[str, Any]:
        """A node and its neighbours by reason; an edge belongs to its likeliest reason.

        Args:
            name: Id of the node.
        """
        node = self.node(name)
        winner = self.factors.argmax(1)
        own = np.flatnonzero((self.pairs.ends == node).any(0))
        factors = []
        for m in self._numbers_of_factors:
            mine = own[winner[own] == m]
            mine = mine[np.argsort(-self.factors[mine, m], kind="stable")]
            others = self.pairs.ends[:, mine].sum(0) - node
            neighbours = [
                {
                    "id": self.ids[i],
                    "probability": float(self.factors[pair, m]),
                    "over_fits": self._range(pair, m),
                }
                for i, pair in zip(others, mine, strict=True)
            ]
            edges = int((winner == m).sum())
            factors.append({**self.told(m), "edges": edges, "neighbours": neighbours})
        return {
            "node": self.ids[node],
            "fits": self.num_fits,
            **self.about_node(node),
            "factors": factors,
        }

    # What a model with more to say adds

    def evidence(self, pair: int, ends: Sequence[int], factor: int) -> dict[str, Any]:
        """More that speaks for a reason of an edge."""
        return {}

    def about_node(self, node: int) -> dict[str, Any]:
        """What is known of a node."""
        return {"labels": self.known(node)}

    # Parts

    @property
    def _numbers_of_factors(self) -> range:
        return range(self.factors.shape[1])

    def told(self, factor: int) -> dict[str, Any]:
        """What is said of a reason wherever it is named."""
        about = self.descriptions[factor]
        stable = None if self.stability is None else self.stability.rows[factor]
        told = {"factor": int(factor) + 1, "name": about.name, "about": about.lines}
        return {**told, "stability": stable}

    def about(self, factor: int) -> dict[str, Any]:
        """All that is known of a reason."""
        about = self.descriptions[factor]
        return {
            **self.told(factor),
            "edges": about.size,
            "share": about.share,
            "traits": [vars(trait) for trait in about.traits],
            "typical_edges": [list(edge) for edge in about.edges],
            "most_active_nodes": [list(node) for node in about.nodes],
        }

    def node(self, name: str, argument: str = "--node") -> int:
        """The number of a node.

        Raises:
            InputError: No node has this id.
        """
        if name in self._numbers:
            return self._numbers[name]
        close = [own for own in self.ids if own.casefold() == name.casefold()]
        close = close or difflib.get_close_matches(name[:100], self.ids, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"ids are written as {self.ids[0]!r}"
        raise InputError(f"{argument}: no node has the id {name[:100]!r}; {hint}")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.ids)}

    def _edge(self, first: str, second: str) -> tuple[int, list[int]]:
        """The number of a pair, and of its ends as they were named."""
        ends = [self.node(first, "--edge"), self.node(second, "--edge")]
        if ends[0] == ends[1]:
            raise InputError(f"--edge: {first!r} is given twice; give the two ends of an edge")
        found = np.flatnonzero((self.pairs.ends == np.sort(ends)[:, None]).all(0))
        if not len(found):
            others = [repr(self.ids[i]) for i in self._neighbours(ends[0])[:5]]
            hint = f"has edges to {', '.join(others)}" if others else "has no edges"
            raise InputError(f"--edge: no edge joins {first!r} and {second!r}; {first!r} {hint}")
        return int(found[0]), ends

    def _range(self, pair: int, factor: int) -> list[float] | None:
        """Lowest and highest probability over the seeds; None with one seed."""
        if self.interval is None:
            return None
        return [float(bound[pair, factor]) for bound in self.interval]

    def _neighbours(self, node: int) -> Array:
        ends = self.pairs.ends[:, (self.pairs.ends == node).any(0)]
        return np.asarray(ends.sum(0) - node)

    def known(self, node: int) -> list[str]:
        """The labels that the graph gives a node."""
        y = self.data.get("y")
        if y is None or not bool(is_labelled(y)[node]):
            return []
        own = y[node]
        numbers = own.nonzero().flatten().tolist() if own.dim() else [int(own)]
        return [str(self.data.classes[number]) for number in numbers]

    def _shared(self, ends: Sequence[int]) -> list[dict[str, Any]]:
        """What both ends have, the rarest first."""
        rows = self.traits.has.tocsr()
        both = rows[ends[0]].multiply(rows[ends[1]]).tocsr().indices
        total = np.asarray(self.traits.has.sum(0)).ravel()
        order = both[np.argsort(total[both], kind="stable")][:MOST]
        return [
            {"kind": self.traits.kinds[t], "name": self.traits.names[t], "nodes": int(total[t])}
            for t in order
        ]
