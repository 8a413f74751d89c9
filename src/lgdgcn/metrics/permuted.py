"""The control that has the same numbers in other places: channels shuffled over the units."""

from dataclasses import replace

import numpy as np

from lgdgcn.metrics.inputs import Inputs

__all__ = ["permuted"]


def permuted(inputs: Inputs, seed: int = 0) -> Inputs:
    """Destroy the partition into units and the identity of the edges' channels, nothing else.

    The M * d channels of all units are dealt to M new units of d channels, the same way for all
    nodes. Each edge's M probabilities are dealt to the channels anew, another way for each edge.

    Args:
        inputs: What is measured.
        seed: Seed of the shuffles.
    """
    chance = np.random.default_rng(seed)
    nodes, factors, channels = inputs.units.shape
    order = chance.permutation(factors * channels)
    units = inputs.units.reshape(nodes, -1)[:, order].reshape(inputs.units.shape)
    return replace(inputs, units=units, pair_factors=chance.permuted(inputs.pair_factors, axis=1))
