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
