"""How well a trial's models tell factors apart; reported, never searched for."""

from collections.abc import Sequence
from statistics import fmean

import torch

from lgdgcn.metrics import headline
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.train.population import Population

__all__ = ["told_apart"]


@torch.no_grad()
def told_apart(population: Population, places: Sequence[int]) -> dict[str, float]:
    """Mean headline measures of some members' best weights; the test nodes' factors are not read.

    Args:
        population: Members after their training.
        places: Which of them.

    Returns:
        What exists: nothing for models without factors, or where the memory is too small.
    """
    found = []
    for place in places:
        model, graph = population.model(place).eval(), population.graphs[place]
        if not model.num_factors:
            return {}
        y_factor = graph.get("y_factor")
        if y_factor is not None:
            y_factor = y_factor.masked_fill(graph.test_mask.unsqueeze(1), -1)
        try:
            last = model.disentangle(graph.x, graph.edge_index).layers[-1]
        except torch.OutOfMemoryError:
            return {}
        found.append(headline(last, graph.edge_index, y_factor))
    known = [name for name in HEADLINE if found and all(name in each for each in found)]
    return {name: fmean(each[name] for each in found) for name in known}
