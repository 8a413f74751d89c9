"""All measures of a trained model beside what an untrained one and shuffled channels give."""

from dataclasses import replace
from typing import TypedDict

import numpy as np
import torch
from torch_geometric.data import Data

from lgdgcn.errors import InputError
from lgdgcn.metrics.catalogue import MEASURES, Better
from lgdgcn.metrics.draws import Draws, edge_draws, value_of
from lgdgcn.metrics.inputs import Inputs, checked
from lgdgcn.metrics.resampling import interval
from lgdgcn.metrics.suite import all_draws
from lgdgcn.models import NodeOutput, build
from lgdgcn.reasons import EdgeReasons
from lgdgcn.train.trained import TrainedModel

__all__ = ["Row", "measure", "measure_reasons", "permuted", "untrained_copy"]

RESAMPLES = 200


class Row(TypedDict):
    """One measure, ready for JSON; numbers are ``None`` where they do not exist.

    Attributes:
        name: Key of :data:`~lgdgcn.metrics.catalogue.MEASURES`.
        title: What it is called.
        value: Of the trained model.
        low: Lower end of the 95 % bootstrap interval.
        high: Upper end.
        untrained: The same of a network with fresh weights.
        permuted: The same of the trained model with its channels shuffled over the units.
        better: Which way is better.
        about: What it says, in one sentence.
    """

    name: str
    title: str
    value: float | None
    low: float | None
    high: float | None
    untrained: float | None
    permuted: float | None
    better: Better
    about: str


def measure(
    trained: TrainedModel,
    data: Data,
    *,
    edges: Data | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Row]:
    """Measure the last layer of a model on a graph, with controls and intervals.

    Args:
        trained: A model with factors.
        data: A canonical graph; with ``y_factor`` the factors are known.
        edges: A graph whose edges are measured instead of those of ``data``, where both are samples
            of a larger one (:mod:`lgdgcn.metrics.sampled`).
        seed: Seed of fresh weights, shuffles, samples, folds and resamples.
        resamples: Bootstrap resamples behind the intervals.

    Returns:
        One row for every measure, in the order of the catalogue.
    """
    own, own_edges = _both(trained, data, edges)
    fresh, fresh_edges = _both(untrained_copy(trained, seed), data, edges)
    draws = all_draws(own, edges=own_edges, resamples=resamples, seed=seed)
    untrained = all_draws(fresh, edges=fresh_edges, seed=seed)
    other = None if own_edges is None else permuted(own_edges, seed)
    shuffled = all_draws(permuted(own, seed), edges=other, seed=seed)
    return _rows(draws, untrained, shuffled)


def measure_reasons(reasons: EdgeReasons, data: Data, *, seed: int = 0) -> list[Row]:
    """Measure reasons of edges that no model of nodes has found: what is said of edges alone.

    Args:
        reasons: Of the edges of ``data``.
        data: A canonical graph; with ``y_factor`` the factors are known.
        seed: Seed of shuffles and resamples.
    """
    edges = reasons.edges
    units = np.zeros((edges.num_nodes, len(reasons.names), 1))
    y_factor = data.get("y_factor")
    inputs = checked(units, edges.ends, reasons.probability, y_factor)
    draws = edge_draws(inputs, RESAMPLES, seed)
    rows = _rows(draws, {}, edge_draws(permuted(inputs, seed), 0, seed))
    return [row for row in rows if row["value"] is not None]


def _rows(draws: Draws, untrained: Draws, shuffled: Draws) -> list[Row]:
    """One row for every measure, in the order of the catalogue."""
    rows: list[Row] = []
    for name, about in MEASURES.items():
        values = draws.get(name)
        ends = None if values is None else interval(values, about.low, about.high)
        rows.append({
            "name": name,
            "title": about.title,
            "value": value_of(values),
            "low": ends and ends[0],
            "high": ends and ends[1],
            "untrained": value_of(untrained.get(name)),
            "permuted": value_of(shuffled.get(name)),
            "better": about.better,
            "about": about.about,
        })  # fmt: skip
    return rows


def untrained_copy(trained: TrainedModel, seed: int) -> TrainedModel:
    """The same network with fresh weights."""
    like = next(trained.model.parameters())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build(
            trained.name,
            trained.settings.as_dict(),
            trained.in_channels,
            trained.task.outputs,
            multi_label=trained.task.multi_label,
        )
    model.to(like.device, like.dtype)
    return replace(trained, model=model)


def _both(trained: TrainedModel, data: Data, edges: Data | None) -> tuple[Inputs, Inputs | None]:
    """What is measured of the nodes and, if that is something else, of the edges."""
    own = _inputs(trained(data), data)
    return own, None if edges is None else _inputs(trained(edges), edges)


def _inputs(output: NodeOutput, data: Data) -> Inputs:
    if not output.layers:
        raise InputError("the model has no factors to measure; train lgdgcn or disengcn")
    last = output.layers[-1]
    return checked(
        last.units, data.edge_index, last.edge_factors, data.get("y_factor"), data.get("y")
    )


def permuted(inputs: Inputs, seed: int = 0) -> Inputs:
    """Destroy the partition into units and the identity of the edges' channels, nothing else.

    The M * d channels of all units are dealt to M new units of d channels, the same way for all
    nodes. Each edge's M probabilities are dealt to the channels anew, another way for each edge.

    Args:
        inputs: What is measured.
        seed: Seed of the shuffles.
    """
    rng = np.random.default_rng(seed)
    nodes, factors, channels = inputs.units.shape
    order = rng.permutation(factors * channels)
    units = inputs.units.reshape(nodes, -1)[:, order].reshape(inputs.units.shape)
    return replace(inputs, units=units, pair_factors=rng.permuted(inputs.pair_factors, axis=1))
