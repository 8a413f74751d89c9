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


def test_results_are_those_of_single_trainings(graph):
    wanted = [
        Training("lgdgcn", SHORT, 0, graph),
        Training("gcn", SHORT, 0, graph),
        Training("lgdgcn", replace(SHORT, lr=0.03), 1, graph),
    ]
    together = {id(result.training): result for result in run(wanted, CPU)}
    for one in wanted:
        [alone] = run([Training(one.model, one.settings, one.seed, graph)], CPU)
        found = together[id(one)]
        assert found.error is None
        assert found.state.epoch == alone.state.epoch == 6
        for name, tensor in alone.network().state_dict().items():
            torch.testing.assert_close(found.network().state_dict()[name], tensor)


def test_what_is_given_up_ends_and_the_rest_goes_on(graph):
    wanted = [Training("gcn", SHORT, seed, graph) for seed in range(3)]

    def give_up(epochs):
        return [one.training for one in epochs if one.state.epoch == 2 and one.training.seed == 1]

    found = {result.training.seed: result.state.epoch for result in run(wanted, CPU, give_up)}
    assert found == {0: 6, 1: 2, 2: 6}


def test_a_divergence_is_an_error_of_its_result_alone(graph):
    wild = replace(SHORT, lr=1e30)
    wanted = [Training("gcn", wild, 0, graph), Training("gcn", SHORT, 0, graph)]
    found = {result.training.settings.lr: result.error for result in run(wanted, CPU)}
    assert found[SHORT.lr] is None
    assert "training diverged" in str(found[1e30])
