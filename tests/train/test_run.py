"""Trainings in, results out: each is its single training, whatever is trained beside it."""

from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.data import synthetic_graph
from lgdgcn.data.validate import canonical
from lgdgcn.training import Training, run

CPU = torch.device("cpu")
SHORT = Settings(factors=2, hidden_channels=8, epochs=6, scaling="rows", lambda_space=1e-5)


@pytest.fixture(scope="module")
def graph():
    return canonical(synthetic_graph(factors=2, nodes=60, classes=3, average_degree=10))


def test_each_ends_by_itself_whatever_is_trained_beside_it(graph):
    wild = replace(SHORT, lr=1e30)
    wanted = [Training("gcn", SHORT, seed, graph) for seed in range(3)]
    wanted += [Training("lgdgcn", SHORT, 0, graph), Training("gcn", wild, 0, graph)]

    def give_up(epochs):
        return [one.training for one in epochs if one.state.epoch == 2 and one.training.seed == 1]

    found = {id(result.training): result for result in run(wanted, CPU, give_up)}
    *ended, diverged = (found[id(one)] for one in wanted)
    assert [one.state.epoch for one in ended] == [6, 2, 6, 6]
    assert [one.error for one in ended] == [None] * 4
    assert "training diverged" in str(diverged.error)
    for one in (ended[0], ended[3]):
        [alone] = run([replace(one.training)], CPU)
        torch.testing.assert_close(one.network().state_dict(), alone.network().state_dict())


@pytest.fixture
def two_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_passes_side_by_side_change_nothing(graph, two_cores, monkeypatch):
    wanted = {
        model: Training(model, replace(SHORT, factors=1, hidden_channels=width), 3, graph)
        for model, width in (("mlp", 8), ("gcn", 8), ("gcnii", 4), ("grand", 8))
    }
    seen = {model: [] for model in wanted}

    def on_epoch(epochs):
        for one in epochs:
            seen[one.training.model].append(one.metrics)

    def trained():
        results = {
            result.training.model: result for result in run([*wanted.values()], CPU, on_epoch)
        }
        return {model: (results[model].state.tensors, seen[model]) for model in wanted}

    together = trained()
    seen = {model: [] for model in wanted}
    monkeypatch.setattr("lgdgcn.training._MOST_AT_ONCE", 1)
    torch.set_num_threads(1)
    alone = trained()
    torch.set_num_threads(2)
    for model in wanted:
        assert together[model][1] == alone[model][1]
        for name, tensor in alone[model][0].items():
            assert torch.equal(together[model][0][name], tensor), (model, name)


def test_what_is_raised_in_one_pass_ends_those_beside_it(graph, two_cores):
    long = [Training(model, replace(SHORT, epochs=10**6), 0, graph) for model in ("mlp", "gcn")]

    def on_epoch(epochs):
        if epochs[0].training.model == "gcn" and epochs[0].state.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run(long, CPU, on_epoch))
