"""Why an edge is there, and what a node's prediction rests on, by a trained model with factors."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.data.features import features_without_edges
from lgdgcn.data.spectral import SPECTRAL_NAMES
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS, NodeOutput
from lgdgcn.reasons.edges import Array, Edges
from lgdgcn.reasons.explained import ExplainedGraph
from lgdgcn.reasons.stability import over_fits, stability
from lgdgcn.train.trained import TrainedModel

__all__ = ["Explainer", "without_pairs"]


class Explainer(ExplainedGraph):
    """A trained model beside the graph that it explains.

    Args:
        trained: A model with factors.
        data: The graph in canonical form.
        others: The same model trained with other seeds, to say how much the numbers vary.
    """

    def __init__(
        self, trained: TrainedModel, data: Data, others: Sequence[TrainedModel] = ()
    ) -> None:
        if not trained.model.num_factors:
            title = MODELS[trained.name].title
            raise InputError(f"{title} has no factors to explain edges; train lgdgcn or disengcn")
        self.trained, self.others = trained, list(others)
        self.output = trained(data)
        self.other_outputs = [other(data) for other in others]
        pairs = Edges.of_graph(data)
        self.fits = [_factors(pairs, output) for output in (self.output, *self.other_outputs)]
        found = stability(self.fits) if self.others else None
        interval = None if found is None else over_fits(self.fits, found.matched)
        super().__init__(data, self.fits[0], noun="factor", stability=found, interval=interval)

    @property
    def edge_factors_of_graph(self) -> Tensor:
        """Factors of the graph's edges, or of some that are drawn from all of it ``[E, M]``."""
        return self.output.layers[-1].edge_factors

    def explain_node(self, name: str) -> dict[str, Any]:
        """A node's prediction, its neighbours by factor, and the prediction without each factor.

        An edge belongs to its likeliest factor. Without a factor means that the model is run
        again on the graph without any edge of this factor, at the node and elsewhere. Models of
        other seeds are run again without the edges of the factor that is matched to it.

        Args:
            name: Id of the node.
        """
        found, node = super().explain_node(name), self.node(name)
        for m, factor in enumerate(found["factors"]):
            factor["without"] = self._without(m, node)
        # eigenvectors may turn when a few edges go: the change would not be that of the factor
        found["features_stay"] = self.data.get("feature_names") == SPECTRAL_NAMES
        return found

    def without(self, factor: int) -> NodeOutput:
        """What the model says of the graph without any edge of a factor, run again."""
        removed = self.factors.argmax(1) == factor
        return self.trained(without_pairs(self.data, self.pairs, removed))

    def about_node(self, node: int) -> dict[str, Any]:
        """The known and the predicted labels of a node."""
        labels, _ = self._chosen(self.output, node)
        outputs = [self.output, *self.other_outputs]
        return {
            "labels": self.known(node),
            **self._predicted(self.output, node),
            "over_fits": self._over_fits(outputs, node, labels),
        }

    def evidence(self, pair: int, ends: Sequence[int], factor: int) -> dict[str, Any]:
        """The class of both ends in a factor, where factors have classes."""
        units = self.output.layers[-1].units
        classes = self.trained.model.factor_classes(units)  # [N, M]
        of_labels = self.trained.model.label_classes()
        if classes is None or of_labels is None:
            return {}
        names = []
        for end in ends:
            number = int(classes[end, factor])
            code = factor * units.size(-1) + number
            labels = (of_labels.flatten() == code).nonzero().flatten().tolist()
            labelled = [str(self.trained.classes[label]) for label in labels]
            names.append(" or ".join(labelled) or f"class {number + 1}")
        same = len({int(classes[end, factor]) for end in ends}) == 1
        return {"classes": names, "same_class": same}

    def _chosen(self, output: NodeOutput, node: int) -> tuple[list[int], Tensor]:
        """Numbers of the labels that are predicted, and the probability of every label."""
        logits, task = output.logits[node : node + 1], self.trained.task
        predicted, probability = task.predict(logits)[0], task.probabilities(logits)[0]
        numbers = predicted.nonzero().flatten().tolist() if predicted.dim() else [int(predicted)]
        return numbers, probability.double().cpu()

    def _predicted(self, output: NodeOutput, node: int) -> dict[str, Any]:
        numbers, probability = self._chosen(output, node)
        return {
            "predicted": [str(self.trained.classes[number]) for number in numbers],
            "probability": probability[numbers].tolist(),
        }

    def _without(self, factor: int, node: int) -> dict[str, Any]:
        """The new prediction, and how probable what was predicted before has become."""
        before, _ = self._chosen(self.output, node)
        output = self.without(factor)
        outputs = [output]
        for number, other in enumerate(self.others):
            assert self.stability is not None
            matched = int(self.stability.matched[number, factor])
            if matched >= 0:
                removed = self.fits[number + 1].argmax(1) == matched
                outputs.append(other(without_pairs(self.data, self.pairs, removed)))
        _, probability = self._chosen(output, node)
        return {
            **self._predicted(output, node),
            "probability_of_prediction": probability[before].tolist(),
            "over_fits": self._over_fits(outputs, node, before),
        }

    def _over_fits(
        self, outputs: Sequence[NodeOutput], node: int, labels: Sequence[int]
    ) -> list[list[float]] | None:
        """Lowest and highest probability of each label over seeds; None with one seed."""
        if not self.others:
            return None
        found = torch.stack([self._chosen(output, node)[1][list(labels)] for output in outputs])
        return torch.stack([found.amin(0), found.amax(0)], 1).tolist()


def _factors(pairs: Edges, output: NodeOutput) -> Array:
    """Probability of each factor, mean over both directions ``[P, M]``."""
    return pairs.once(output.layers[-1].edge_factors.cpu().double().numpy())


def without_pairs(data: Data, pairs: Edges, removed: Array) -> Data:
    """A graph without some of its edges, in both directions.

    Features that are rows of the adjacency matrix or degrees lose the edges, too; others stay.

    Args:
        data: A canonical graph.
        pairs: Its pairs.
        removed: Which of them to remove, bool ``[P]``.
    """
    gone = torch.from_numpy(np.asarray(removed)[pairs.number])
    graph = copy(data)
    graph.x = features_without_edges(data.x, data.edge_index, data.edge_index[:, gone])
    graph.edge_index = data.edge_index[:, ~gone]
    for key in ("edge_weight", "edge_type"):
        if key in data:
            graph[key] = data[key][~gone]
    return graph
