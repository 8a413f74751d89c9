"""Why an edge is there and what a prediction rests on: one answer, whoever found the reasons."""

import difflib
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import features_without_edges
from lgdgcn.data.labels import is_labelled
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.errors import InputError
from lgdgcn.large.view import GraphView
from lgdgcn.models import MODELS, NodeOutput
from lgdgcn.reasons.describe import Description, describe_reasons
from lgdgcn.reasons.edge_reasons import EdgeReasons
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.in_common import columns_of
from lgdgcn.reasons.traits import NodeTraits, node_ids, traits_of
from lgdgcn.train.trained import TrainedModel

__all__ = ["MOST", "ONE_SEED", "Explanation", "without_edges"]

MOST = 10  # neighbours or features that are listed
ONE_SEED = "one seed: whether others find the same is not known; train with --seeds 5 to see"

Answer = dict[str, Any]


class Explanation:
    """Why the edges of a graph are there, and what predictions of its nodes rest on.

    Args:
        graph: In canonical form; also a part of the graph that ``model`` knows.
        reasons: Of its edges.
        model: What predicts the labels of its nodes, where anything does.
        others: The same model trained with other seeds, to say how much its numbers vary.
        whole: Of a part: the explanation of the graph in memory that it is a part of, whose names
            and what-if are kept.
    """

    def __init__(
        self,
        graph: Data,
        reasons: EdgeReasons,
        model: TrainedModel | None = None,
        *,
        others: Sequence[TrainedModel] = (),
        whole: "Explanation | None" = None,
    ) -> None:
        self.graph, self.reasons, self.model = graph, reasons, model
        self.others, self.whole = list(others), whole

    @classmethod
    def of_factors(
        cls, model: TrainedModel, graph: Data, others: Sequence[TrainedModel] = ()
    ) -> "Explanation":
        """Explain by the factors of a node model."""
        edges, output = Edges.of_graph(graph), model(graph)
        if not output.layers:
            title = MODELS[model.name].title
            raise InputError(f"{title} has no factors to explain edges; train lgdgcn or disengcn")
        others_say = [other(graph) for other in others]
        reasons = EdgeReasons.from_factors(output, edges, others_say)
        found = cls(graph, reasons, model, others=others)
        found.outputs = [output, *others_say]
        return found

    def part(self, graph: Data) -> "Explanation":
        """The same of a part of the graph, whose ``part_nodes`` are their numbers here."""
        nodes = graph.part_nodes.numpy()
        reasons = self.reasons.part(Edges.of_graph(graph), nodes)
        return Explanation(graph, reasons, self.model, whole=self)

    # What follows of the graph

    @property
    def noun(self) -> str:
        """What one of the reasons is called."""
        return self.reasons.noun

    @property
    def edges(self) -> Edges:
        """The undirected edges of the graph."""
        return self.reasons.edges

    @cached_property
    def ids(self) -> list[str]:
        """Of the nodes, as they are written."""
        return node_ids(self.graph)

    @cached_property
    def traits(self) -> NodeTraits:
        """What the nodes have in words."""
        return traits_of(self.graph)

    @cached_property
    def reason_of_edge(self) -> Array:
        """The likeliest reason of each edge ``[E]``."""
        return self.reasons.predict()

    @cached_property
    def descriptions(self) -> list[Description]:
        """What each reason is about."""
        if self.whole is not None:
            return self.whole.descriptions
        columns = columns_of(self.graph)
        return describe_reasons(self.reasons, columns, self.traits, self.ids)

    @cached_property
    def activity(self) -> Array:
        """Expected number of edges of each reason at each node ``[N, K]``."""
        return self.reasons.activity

    @property
    def num_fits(self) -> int:
        """How many fits are compared, of other seeds or with some of the known types held back."""
        found = self.reasons.stability
        return 1 if found is None else len(found.agreement) + 1

    # What the model says

    @cached_property
    def outputs(self) -> list[NodeOutput]:
        """What the model says of the graph, and those of other seeds."""
        models = [] if self.model is None else [self.model, *self.others]
        return [model(self.graph) for model in models]

    def without(self, reason: int) -> list[Tensor]:
        """Class scores without any edge of a reason, of the model and of other seeds ``[N, C]``.

        An edge belongs to its likeliest reason. The model is run again on the graph without these
        edges, at the node and elsewhere.
        """
        if self.model is None:
            return []
        if self.whole is not None:
            return [self.whole.without(reason)[0][self.graph.part_nodes]]
        if isinstance(self.model, GraphView) and self.model.packed is not None:
            return [self._without_in_files(self.model, reason)]
        graph = without_edges(self.graph, self.edges, self.reason_of_edge == reason)
        return [model(graph).logits for model in (self.model, *self.others)]

    def _without_in_files(self, view: GraphView, factor: int) -> Tensor:
        """Of a graph that is not read whole: scores of the nodes that are asked about change."""
        asked = self.graph.get("asked")
        if asked is None:
            asked = torch.arange(len(self.ids))
        logits = self.outputs[0].logits.clone()
        found = view.scores_without(self.graph.part_nodes[asked], factor)
        logits[asked.to(logits.device)] = found.to(logits)
        return logits

    @property
    def edge_factors(self) -> Tensor | None:
        """Factors of the whole graph's edges, or of some that are drawn; None without a model."""
        if isinstance(self.model, GraphView):
            return self.model.edge_factors
        layers = self.outputs[0].layers if self.outputs else []
        return layers[-1].edge_factors if layers else None

    @cached_property
    def label_weights(self) -> list[float] | None:
        """How much labels travel along an edge of each reason, of all reasons 1 ``[K]``.

        None where the model lets them travel along all edges alike, or has no use for them.
        """
        weights = None if self.model is None else self.model.model.reason_weights()
        if weights is None or weights.numel() != len(self.reasons.names) or self.noun == "factor":
            return None
        return [float(weight) for weight in weights.flatten().tolist()]

    def lines(self, reason: int) -> list[str]:
        """What is to be read of a reason."""
        lines = self.descriptions[reason].lines
        if self.label_weights:
            weight = self.label_weights[reason]
            said = f"labels travel along it with weight {weight:.2f} of 1 for all reasons"
            lines = [*lines, said]
        return lines

    # Answers, ready for JSON

    def all(self) -> Answer:
        """Every reason: its name, what it is about and how stable it is."""
        rows = [
            {
                **self._said(k),
                "edges": about.size,
                "share": about.share,
                "unknown": about.unknown,
                "in_common": str(about.in_common),
                "agreements": [vars(one) for one in about.in_common.columns],
                "common_neighbours": about.in_common.common_neighbours,
                "common_neighbours_by_chance": about.in_common.by_chance,
                "traits": [vars(trait) for trait in about.traits],
                "typical_edges": [list(edge) for edge in about.edges],
                "most_active_nodes": [list(node) for node in about.nodes],
            }
            for k, about in enumerate(self.descriptions)
        ]
        return {"noun": self.noun, "fits": self.num_fits, "reasons": rows}

    def edge(self, first: str, second: str) -> Answer:
        """The reasons of an edge, the likeliest first, and what speaks for them.

        Args:
            first: Id of one end.
            second: Id of the other.

        Raises:
            InputError: One of them is no node, or no edge joins them.
        """
        edge, ends = self._edge(first, second)
        reasons, share = self.reasons, self.reasons.probability[edge]
        common = np.intersect1d(self._neighbours(ends[0]), self._neighbours(ends[1]))
        common = common[np.argsort(self.edges.degree[common], kind="stable")]
        known = reasons.known
        given = [] if known is None else [reasons.names[k] for k in known[edge].nonzero()[0]]
        return {
            "edge": [self.ids[end] for end in ends],
            "noun": self.noun,
            "fits": self.num_fits,
            "known": given,
            "unknown": bool(reasons.unknown[edge]),
            "reasons": [
                {
                    **self._said(k),
                    "probability": float(share[k]),
                    "over_fits": self._range(edge, k),
                    "presence": float(reasons.presence[edge, k]),
                    "activity": [float(self.activity[end, k]) for end in ends],
                    "known_at_ends": self._known_at_ends(edge, ends, k),
                    "classes": self._classes(ends, k),
                }
                for k in np.argsort(-share, kind="stable")
            ],
            "ends": [{"id": self.ids[end], **self._about_node(end)} for end in ends],
            "common_neighbours": len(common),
            "most_specific_neighbours": [self.ids[i] for i in common[:MOST]],
            "shared": self._shared(ends),
        }

    def node(self, name: str) -> Answer:
        """A node's prediction, its neighbours by reason, and the prediction without each reason.

        Args:
            name: Id of the node.
        """
        node = self.number(name)
        here = np.flatnonzero((self.edges.ends == node).any(0))
        return {
            "node": self.ids[node],
            "noun": self.noun,
            "fits": self.num_fits,
            **self._about_node(node),
            "reasons": [self._at_node(node, here, k) for k in range(len(self.reasons.names))],
            # eigenvectors may turn when a few edges go: the change would not be that of the reason
            "features_stay": self.graph.get("feature_names") == SPECTRAL_NAMES,
        }

    # Parts of answers

    def _said(self, reason: int) -> Answer:
        """What is said of a reason wherever it is named."""
        about, found = self.descriptions[reason], self.reasons.stability
        said: Answer = {"reason": int(reason) + 1, "name": about.name, "noun": about.noun}
        said["about"] = self.lines(reason)
        said["label_weight"] = self.label_weights[reason] if self.label_weights else None
        return {**said, "stability": None if found is None else found.rows[reason]}

    def _at_node(self, node: int, here: Array, reason: int) -> Answer:
        """The edges of a node that belong to a reason, and the prediction without the reason."""
        mine = here[self.reason_of_edge[here] == reason]
        mine = mine[np.argsort(-self.reasons.probability[mine, reason], kind="stable")]
        neighbours = [
            {
                "id": self.ids[int(self.edges.ends[:, edge].sum()) - node],
                "probability": float(self.reasons.probability[edge, reason]),
                "over_fits": self._range(edge, reason),
            }
            for edge in mine
        ]
        return {
            **self._said(reason),
            "edges": int((self.reason_of_edge == reason).sum()),
            "unknown": int(self.reasons.unknown[mine].sum()),
            "neighbours": neighbours,
            "without": self._without(reason, node),
        }

    def _without(self, reason: int, node: int) -> Answer | None:
        """The new prediction, and how probable what was predicted before has become."""
        if self.model is None:
            return None
        before, _ = self._chosen(self.outputs[0].logits, node)
        logits = self.without(reason)
        numbers, probability = self._chosen(logits[0], node)
        return {
            "predicted": [str(self.model.classes[number]) for number in numbers],
            "probability": probability[numbers].tolist(),
            "probability_of_prediction": probability[before].tolist(),
            "over_fits": self._over_seeds(logits, node, before),
        }

    def _about_node(self, node: int) -> Answer:
        """The known and, where there is a model, the predicted labels of a node."""
        about: Answer = {"labels": self.known(node)}
        if self.model is None:
            return about
        logits = [output.logits for output in self.outputs]
        numbers, probability = self._chosen(logits[0], node)
        return about | {
            "predicted": [str(self.model.classes[number]) for number in numbers],
            "probability": probability[numbers].tolist(),
            "over_fits": self._over_seeds(logits, node, numbers),
        }

    def _chosen(self, logits: Tensor, node: int) -> tuple[list[int], Tensor]:
        """Numbers of the labels that are predicted, and the probability of every label."""
        assert self.model is not None
        rows, task = logits[node : node + 1], self.model.task
        predicted, probability = task.predict(rows)[0], task.probabilities(rows)[0]
        numbers = predicted.nonzero().flatten().tolist() if predicted.dim() else [int(predicted)]
        return numbers, probability.double().cpu()

    def _over_seeds(
        self, logits: Sequence[Tensor], node: int, labels: Sequence[int]
    ) -> list[list[float]] | None:
        """Lowest and highest probability of each label over seeds; None with one seed."""
        if len(logits) < 2:
            return None
        found = torch.stack([self._chosen(one, node)[1][list(labels)] for one in logits])
        return torch.stack([found.amin(0), found.amax(0)], 1).tolist()

    def _classes(self, ends: Sequence[int], reason: int) -> list[str] | None:
        """The class of both ends in a factor, where the reasons are factors that have classes."""
        if self.noun != "factor" or self.model is None or not self.outputs[0].layers:
            return None
        units = self.outputs[0].layers[-1].units
        classes = self.model.model.factor_classes(units)  # [N, M]
        of_labels = self.model.model.label_classes()
        if classes is None or of_labels is None:
            return None
        names = []
        for end in ends:
            number = int(classes[end, reason])
            code = reason * units.size(-1) + number
            labels = (of_labels.flatten() == code).nonzero().flatten().tolist()
            labelled = [str(self.model.classes[label]) for label in labels]
            names.append(" or ".join(labelled) or f"class {number + 1}")
        return names

    def _known_at_ends(self, edge: int, ends: Sequence[int], reason: int) -> list[int] | None:
        """How many other edges of both ends were given this type, where types were given."""
        known = self.reasons.known
        if known is None:
            return None
        given = (self.edges.incidence[list(ends)] @ known[:, reason]) - known[edge, reason]
        return [int(count) for count in given]

    def _range(self, edge: int, reason: int) -> list[float] | None:
        """Lowest and highest probability over the fits; None with one."""
        if self.reasons.low is None or self.reasons.high is None:
            return None
        return [float(self.reasons.low[edge, reason]), float(self.reasons.high[edge, reason])]

    def number(self, name: str, argument: str = "--node") -> int:
        """The number of a node.

        Raises:
            InputError: No node has this id.
        """
        if name in self._numbers:
            return self._numbers[name]
        close = [one for one in self.ids if one.casefold() == name.casefold()]
        close = close or difflib.get_close_matches(name[:100], self.ids, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"ids are written as {self.ids[0]!r}"
        raise InputError(f"{argument}: no node has the id {name[:100]!r}; {hint}")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.ids)}

    def _edge(self, first: str, second: str) -> tuple[int, list[int]]:
        """The number of an edge, and of its ends as they were named."""
        ends = [self.number(first, "--edge"), self.number(second, "--edge")]
        if ends[0] == ends[1]:
            raise InputError(f"--edge: {first!r} is given twice; give the two ends of an edge")
        found = np.flatnonzero((self.edges.ends == np.sort(ends)[:, None]).all(0))
        if not len(found):
            others = [repr(self.ids[i]) for i in self._neighbours(ends[0])[:5]]
            hint = f"has edges to {', '.join(others)}" if others else "has no edges"
            raise InputError(f"--edge: no edge joins {first!r} and {second!r}; {first!r} {hint}")
        return int(found[0]), ends

    def _neighbours(self, node: int) -> Array:
        ends = self.edges.ends[:, (self.edges.ends == node).any(0)]
        return np.asarray(ends.sum(0) - node)

    def known(self, node: int) -> list[str]:
        """The labels that the graph gives a node."""
        y = self.graph.get("y")
        if y is None or not bool(is_labelled(y)[node]):
            return []
        own = y[node]
        numbers = own.nonzero().flatten().tolist() if own.dim() else [int(own)]
        return [str(self.graph.classes[number]) for number in numbers]

    def _shared(self, ends: Sequence[int]) -> list[Answer]:
        """What both ends have, the rarest first."""
        rows = self.traits.has.tocsr()
        both = rows[ends[0]].multiply(rows[ends[1]]).tocsr().indices
        total = np.asarray(self.traits.has.sum(0)).ravel()
        order = both[np.argsort(total[both], kind="stable")][:MOST]
        return [
            {"kind": self.traits.kinds[t], "name": self.traits.names[t], "nodes": int(total[t])}
            for t in order
        ]


def without_edges(data: Data, edges: Edges, removed: Array) -> Data:
    """A graph without some of its edges, in both directions.

    Features that are rows of the adjacency matrix or degrees lose the edges, too; others stay.

    Args:
        data: A canonical graph.
        edges: Its edges.
        removed: Which of them to remove, bool ``[E]``.
    """
    gone = torch.from_numpy(edges.both(np.asarray(removed)))
    graph = copy(data)
    graph.x = features_without_edges(data.x, data.edge_index, data.edge_index[:, gone])
    graph.edge_index = data.edge_index[:, ~gone]
    for key in ("edge_weight", "edge_type", "edge_reasons"):
        if key in data:
            graph[key] = data[key][~gone]
    return graph
