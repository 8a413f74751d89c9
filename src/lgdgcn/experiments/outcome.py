"""What is measured of a trained model: scores, also without its latent graphs, and factors."""

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch_geometric.data import Data

from lgdgcn.analysis.disentanglement import edge_attribution, routing_entropy
from lgdgcn.experiments.results import Scores
from lgdgcn.models import LGDGCN, LGDOutput
from lgdgcn.train.task import Task

__all__ = ["factor_scores", "has_latent_graphs", "scores", "switch_off_latent_graphs", "units_of"]

PARTS = ("val", "test")


def scores(task: Task, logits: Tensor, graph: Data) -> Scores:
    """Score validation and test nodes."""
    return {part: task.scores(logits, graph.y, graph[f"{part}_mask"]) for part in PARTS}


def has_latent_graphs(model: LGDGCN) -> bool:
    """Whether a layer aggregates along latent graphs."""
    return any(layer.has_latent_graph for layer in model.layers)


def switch_off_latent_graphs(model: LGDGCN) -> None:
    """Let no layer aggregate along latent graphs any more; the weights stay as they are."""
    for layer in model.layers:
        layer.has_latent_graph = False


def factor_scores(output: LGDOutput, graph: Data) -> dict[str, float]:
    """What the last layer knows of the factors; empty for models without."""
    if not output.layers:
        return {}
    edge_factors = output.layers[-1].edge_factors
    found = {"routing_entropy": routing_entropy(edge_factors)}
    if "y_factor" in graph:
        found["edge_attribution"] = edge_attribution(graph.edge_index, edge_factors, graph.y_factor)
    return {name: value for name, value in found.items() if value is not None}


def units_of(output: LGDOutput, graph: Data) -> dict[str, npt.NDArray[Any]]:
    """The units of every layer beside what figures colour them by."""
    arrays = {
        f"units_{depth}": layer.units.cpu().numpy().astype(np.float32)
        for depth, layer in enumerate(output.layers, start=1)
    }
    for name in ("y", "test_mask", "y_factor"):
        if name in graph:
            arrays[name] = graph[name].cpu().numpy()
    return arrays
