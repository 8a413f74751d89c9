"""What is measured of trained models: scores, also without their latent graphs, and factors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lgdgcn.metrics import headline
from lgdgcn.models import LGDGCN, LGDOutput
from lgdgcn.models.stacked import stack
from lgdgcn.nn import Disentangled
from lgdgcn.reproduce.results import Scores
from lgdgcn.train.population import Population
from lgdgcn.train.task import Task

__all__ = ["Measurement", "look_at"]

PARTS = ("val", "test")


@dataclass(frozen=True)
class Measurement:
    """What was measured of a member's best weights.

    Attributes:
        scores: On validation and test nodes.
        local_scores: The same with the latent graphs off; empty without any.
        factors: What the last layer knows of the factors; empty for models without.
        layers: What every layer found out.
        graph: The member's graph.
    """

    scores: Scores
    local_scores: Scores
    factors: dict[str, float]
    layers: list[Disentangled]
    graph: Data

    def units(self) -> dict[str, npt.NDArray[Any]]:
        """The units of every layer beside what figures colour them by."""
        arrays = {
            f"units_{depth}": layer.units.cpu().numpy().astype(np.float32)
            for depth, layer in enumerate(self.layers, start=1)
        }
        for name in ("y", "test_mask", "y_factor"):
            if name in self.graph:
                arrays[name] = self.graph[name].cpu().numpy()
        return arrays


@torch.no_grad()
def look_at(population: Population, places: Sequence[int]) -> Iterator[Measurement]:
    """Measure the best weights of some members, all in one pass."""
    if not places:
        return
    network = stack([population.model(place) for place in places]).eval()
    graph = population.graphs[places[0]]
    output = _run(network, graph)
    local = None
    if isinstance(network, LGDGCN) and any(layer.has_latent_graph for layer in network.layers):
        for layer in network.layers:
            layer.has_latent_graph = False
        local = _run(network, graph).logits
    for row, place in enumerate(places):
        own, task = population.graphs[place], population.tasks[place]
        layers = [Disentangled(*(part[row] for part in layer)) for layer in output.layers]
        yield Measurement(
            _scores(task, output.logits[row], own),
            {} if local is None else _scores(task, local[row], own),
            _factor_scores(layers, own),
            layers,
            own,
        )


def _run(network: nn.Module, graph: Data) -> LGDOutput:
    """Scores ``[R, N, C]`` of all members, and what their layers found out."""
    if isinstance(network, LGDGCN):
        return network.disentangle(graph.x, graph.edge_index)
    return LGDOutput(network(graph.x, graph.edge_index), [])


def _scores(task: Task, logits: Tensor, graph: Data) -> Scores:
    return {part: task.scores(logits, graph.y, graph[f"{part}_mask"]) for part in PARTS}


def _factor_scores(layers: Sequence[Disentangled], graph: Data) -> dict[str, float]:
    if not layers:
        return {}
    return headline(layers[-1], graph.edge_index, graph.get("y_factor"))
