"""The rows of ``measure``: value, interval and controls of a real network."""

import json

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.data import synthetic_graph
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError
from lgdgcn.metrics import MEASURES, disentanglement
from lgdgcn.metrics.controls import Row, measure
from lgdgcn.models import build
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel

DATA = synthetic_graph(nodes=150, classes=3, factors=2, average_degree=10, seed=0)


def network(name="lgdgcn", data=DATA, seed=0):
    torch.manual_seed(seed)
    settings = Settings(factors=2, hidden_channels=8)
    task = Task.of(data)
    model = build(name, settings.as_dict(), data.x.size(1), task.outputs)
    classes = list(range(task.outputs))
    return TrainedModel(name, model, settings, task, classes, data.x.size(1))


@pytest.fixture(scope="module")
def rows():
    return measure(network(seed=1), DATA, resamples=30)


def test_every_measure_has_a_row(rows):
    assert [row["name"] for row in rows] == list(MEASURES)
    for row in rows:
        assert row.keys() == Row.__annotations__.keys()
        assert row["low"] <= row["value"] <= row["high"], row
        assert row["untrained"] is not None
        assert row["permuted"] is not None
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_values_are_those_of_the_last_layer(rows):
    last = network(seed=1)(DATA).layers[-1]
    found = disentanglement(last.units, DATA.edge_index, last.edge_factors, DATA.y_factor, DATA.y)
    assert {row["name"]: row["value"] for row in rows} == found


def test_the_untrained_control_is_a_network_with_fresh_weights():
    fresh = network(seed=7)(DATA).layers[-1]
    found = disentanglement(fresh.units, DATA.edge_index, fresh.edge_factors, DATA.y_factor)
    other = measure(network(seed=1), DATA, seed=7, resamples=0)
    names = ["edge_attribution", "routing_entropy", "correlation_ratio", "determinant_diversity"]
    own = {row["name"]: row for row in other}
    assert [own[name]["untrained"] for name in names] == [found[name] for name in names]
    assert own["routing_entropy"]["low"] is None  # no resamples, no interval


def test_the_callers_random_numbers_are_left_alone():
    model = network()
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    measure(model, DATA, resamples=0)
    assert torch.equal(torch.rand(1), expected)


def test_a_graph_without_factors_gives_a_subset():
    data = canonical(DATA.clone())
    del data.y_factor
    data.y = DATA.y_factor[:, 0]
    known = {row["name"]: row["value"] for row in measure(network(data=data), data, resamples=2)}
    assert known["edge_attribution"] is None
    assert known["dci_informativeness"] > 1 / 3


def test_models_without_factors_are_refused():
    with pytest.raises(InputError, match="the model has no factors to measure"):
        measure(network("gcn"), DATA)
