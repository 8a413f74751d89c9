"""Finalists report how well they tell factors apart, without a look at the test nodes' factors."""

import torch

from lgdgcn.config import Settings
from lgdgcn.data import synthetic_graph
from lgdgcn.data.validate import canonical
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.train.member import Member
from lgdgcn.train.population import Population
from lgdgcn.tune.contest import Contestant, compete
from lgdgcn.tune.told_apart import told_apart

SETTINGS = Settings(factors=2, hidden_channels=8, epochs=3)


def graph():
    made = synthetic_graph(nodes=120, classes=3, factors=2, average_degree=10)
    data = canonical(made)
    data.y_factor = made.y_factor
    return data


def trained(data, model="lgdgcn"):
    population = Population(data, [Member(SETTINGS, 0), Member(SETTINGS, 1)], model)
    population.train()
    return population


def test_the_mean_of_the_members():
    population = trained(graph())
    both, first, second = (told_apart(population, places) for places in ([0, 1], [0], [1]))
    assert list(both) == list(HEADLINE)
    for name in HEADLINE:
        assert both[name] == (first[name] + second[name]) / 2


def test_test_nodes_are_not_looked_at():
    data, other = graph(), graph()
    hidden = other.test_mask.nonzero().view(-1)
    other.y_factor[hidden] = other.y_factor[hidden.flip(0)]
    assert told_apart(trained(data), [0]) == told_apart(trained(other), [0])


def test_models_without_factors_have_none_and_trials_are_measured_on_demand():
    assert told_apart(trained(graph(), "gcn"), [0]) == {}
    for measured in (False, True):
        one = Contestant(0, SETTINGS, range(2))
        cpu = torch.device("cpu")
        list(compete([one], dict.fromkeys(range(2), graph()), "lgdgcn", cpu, measured=measured))
        assert list(one.factors) == (list(HEADLINE) if measured else [])
