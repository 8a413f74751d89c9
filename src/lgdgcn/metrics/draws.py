"""The measures, group by group: each the value, then its bootstrap ``[1 + resamples]``."""

import math

import numpy as np
import torch

from lgdgcn.metrics import dependence, mig
from lgdgcn.metrics.arrays import Array, centred
from lgdgcn.metrics.attribution import (
    attribution_table,
    effective_number,
    matched_share,
    single_makers,
)
from lgdgcn.metrics.correlation import block_correlation
from lgdgcn.metrics.dci import (
    above_chance,
    completeness,
    disentanglement_of,
    probe_blocks,
    rest_hits,
)
from lgdgcn.metrics.diversity import node_diversity
from lgdgcn.metrics.inputs import Inputs
from lgdgcn.metrics.probes import Probes
from lgdgcn.metrics.resampling import Resamples

__all__ = [
    "Draws",
    "correlation_draws",
    "dependence_draws",
    "diversity_draws",
    "edge_draws",
    "probe_draws",
    "value_of",
]

Draws = dict[str, Array | None]  # by name; None, or no entry, where a measure does not exist


def edge_draws(inputs: Inputs, resamples: int = 0, seed: int = 0) -> Draws:
    """Over the edges, each once; attribution over those that one factor made."""
    factors = inputs.units.shape[1]
    edges = Resamples(inputs.pairs.shape[1], resamples, seed)
    if not edges.size:
        return {}
    shares = torch.from_numpy(edges.means(inputs.pair_factors))  # [1 + resamples, M]
    draws: Draws = {"factor_usage": effective_number(shares).numpy()}
    if factors == 1:
        return draws
    draws["routing_entropy"] = edges.means(inputs.pair_entropy) / math.log(factors)
    maker = single_makers(inputs.pairs, inputs.y_factor)
    known = maker >= 0
    if known.any():
        channel, maker = inputs.pair_factors[known].argmax(1), maker[known]
        shape = factors, inputs.y_factor.shape[1]
        drawn = Resamples(len(maker), resamples, seed)
        tables = [attribution_table(channel, maker, shape, counts) for counts in drawn]
        draws["edge_attribution"] = np.array([matched_share(table) for table in tables])
    return draws


def probe_draws(inputs: Inputs, resamples: int = 0, seed: int = 0, brief: bool = False) -> Draws:
    """Over the nodes whose classes are known."""
    nodes, units, _ = inputs.units.shape
    values, labels = inputs.units.reshape(nodes, -1), _probed(inputs.y_factor)
    factors = labels.shape[1]
    if not factors and inputs.y is not None and not brief:
        labels = _probed(inputs.y[:, None])
    known = (labels >= 0).all(1)
    if not labels.shape[1] or known.sum() < 2:
        return {}
    probes = Probes(values[known], labels[known], seed)
    drawn = Resamples(int(known.sum()), resamples, seed)
    draws: Draws = {}
    if not brief:
        everything = np.arange(values.shape[1])
        hits = [probes.predict(everything, f) == labels[known, f] for f in range(labels.shape[1])]
        draws["dci_informativeness"] = drawn.means(np.mean(hits, axis=0))
    if not factors or units == 1:
        return draws
    blocks = probe_blocks(probes, units)
    relevance = [blocks.relevance(counts) for counts in drawn]
    if factors > 1:
        draws["dci_disentanglement"] = np.array([disentanglement_of(each) for each in relevance])
    if brief:
        return draws
    draws["dci_completeness"] = np.array([completeness(each) for each in relevance])
    draws["mig"] = mig.gap(mig.information_draws(blocks, np.stack(list(drawn))))
    matched, rest = rest_hits(probes, blocks)
    accuracy = np.stack([rest @ counts for counts in drawn]) / drawn.size  # [B, m]
    draws["leakage"] = above_chance(accuracy, blocks.majority[matched]).mean(1)
    return draws


def correlation_draws(inputs: Inputs, resamples: int = 0, seed: int = 0) -> Draws:
    """Over the nodes."""
    drawn = Resamples(len(inputs.units), resamples, seed)
    ratios = np.array([block_correlation(inputs.units, counts).ratio for counts in drawn])
    return {"correlation_ratio": _existing(ratios)} if inputs.units.shape[1] > 1 else {}


def dependence_draws(inputs: Inputs, resamples: int = 0, seed: int = 0) -> Draws:
    """Over the nodes, or a sample of them."""
    units = _sample(inputs.units, dependence.MOST_NODES, seed)
    units = centred(units).astype(np.float32)
    drawn = Resamples(len(units), resamples, seed)
    if len(units) < dependence.LEAST_NODES or units.shape[1] == 1:
        return {}
    transforms = dependence.gaussian(units, seed), dependence.plain
    criterion, covariance = dependence.inner_products(units, transforms, drawn)
    return {
        "cka": dependence.pair_means(dependence.shares(criterion)),
        "distance_correlation": dependence.pair_means(np.sqrt(dependence.shares(covariance))),
    }


def diversity_draws(inputs: Inputs, resamples: int = 0, seed: int = 0) -> Draws:
    """Over the nodes."""
    drawn = Resamples(len(inputs.units), resamples, seed)
    if inputs.units.shape[1] == 1:
        return {}
    return {"determinant_diversity": drawn.means(node_diversity(inputs.units))}


def value_of(draws: Array | None) -> float | None:
    """The value before its bootstrap, where the measure exists."""
    return None if draws is None else float(draws[0])


def _probed(labels: Array) -> Array:
    """The labels that have at least two classes, numbered without gaps."""
    columns = [np.unique(column[column >= 0], return_inverse=True) for column in labels.T]
    kept = [f for f, (classes, _) in enumerate(columns) if len(classes) > 1]
    numbered = np.full((len(labels), len(kept)), -1)
    for column, f in enumerate(kept):
        numbered[labels[:, f] >= 0, column] = columns[f][1]
    return numbered


def _sample(units: Array, most: int, seed: int) -> Array:
    chosen = np.random.default_rng(seed).permutation(len(units))[:most]
    return units[np.sort(chosen)]


def _existing(values: Array) -> Array | None:
    return values if np.isfinite(values[0]) else None
