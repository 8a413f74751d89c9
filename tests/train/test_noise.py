"""A difference of two scores is told from chance: by the nodes, the seeds, and both together."""

import math

import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.train import checks
from lgdgcn.train.checks import Scored, noise_of_difference
from lgdgcn.train.task import Task


def planted(nodes, first_only=0, second_only=0, both_wrong=0, mask=None):
    """Two models that are right on all scored nodes but the ones counted here."""
    y = torch.arange(nodes) % 3
    right = torch.ones(2, nodes, dtype=torch.bool)
    right[1, :first_only] = False
    right[0, first_only : first_only + second_only] = False
    right[:, nodes - both_wrong :] = False
    order = torch.randperm(nodes)
    mask = torch.ones(nodes, dtype=torch.bool) if mask is None else mask
    graph = Data(y=y[order], val_mask=mask, test_mask=~mask)
    answers = torch.where(right, y, (y + 1) % 3)[:, order]
    one_hot = torch.nn.functional.one_hot(answers, 3).float()
    return [Scored(Task(3, False), logits, graph) for logits in one_hot]


def of(models, differences=(0.1,), split="val"):
    return noise_of_difference(*models, split, differences)


@pytest.mark.parametrize("counts", [(30, 10), (0, 20), (25, 25)])
def test_it_is_that_of_mcnemars_test(counts):
    """Two standard errors of a paired difference of shares, and one node."""
    nodes, (first, second) = 200, counts
    exact = math.sqrt(first + second - (first - second) ** 2 / nodes) / nodes
    found = of(planted(nodes, first, second))
    assert found == pytest.approx(2 * exact + 1 / nodes, rel=0.35)
    assert (abs(first - second) / nodes > found) == (counts != (25, 25))


def test_what_both_have_wrong_says_nothing():
    assert of(planted(200, 3, 1, both_wrong=100)) < 0.04
    assert of(planted(200)) == 1 / 200


def test_few_nodes_show_nothing():
    assert of(planted(5, 5)) == math.inf
    assert of(planted(6, 6)) == pytest.approx(1 / 6)  # all six agree
    assert of(planted(100, 4)) > 4 / 100  # while four of many may be by chance
    assert of(planted(9), split="test") == math.inf


def test_more_nodes_have_less_noise_even_where_only_some_are_drawn(monkeypatch):
    many = [of(planted(nodes, nodes // 10, nodes // 10)) for nodes in (100, 400, 1600)]
    assert many[0] > 1.3 * many[1] > 1.3 * 1.3 * many[2]
    models = planted(1600, 160, 160)
    whole = of(models)
    monkeypatch.setattr(checks, "_MOST", 3 * 200)  # 200 nodes of three classes
    assert of(models) == pytest.approx(whole, rel=0.5)


def test_seeds_that_differ_add_to_it():
    models = planted(1000, 20, 10)
    assert of(models, [0.1, 0.1, 0.1]) == of(models)
    assert of(models, [0.3, 0.1, -0.1]) == pytest.approx(
        2 * math.hypot((of(models) - 1 / 1000) / 2, 0.2 / math.sqrt(3)) + 1 / 1000
    )


@pytest.mark.parametrize("metric", ["roc_auc", "macro_f1", "average_precision", "micro_f1"])
def test_every_score_has_one(metric):
    """Label sets, and a model that ranks at random beside one that knows."""
    torch.manual_seed(0)
    y = (torch.rand(300, 4) < 0.4).long()
    mask = torch.ones(300, dtype=torch.bool)
    graph = Data(y=y, val_mask=mask, test_mask=~mask)
    task = Task(4, multi_label=True, metric=metric)
    knows = Scored(task, y + 0.3 * torch.randn(300, 4), graph)
    same = Scored(task, y + 0.3 * torch.randn(300, 4), graph)
    guesses = Scored(task, torch.randn(300, 4), graph)
    nodes = torch.arange(300)
    assert abs(knows.score(nodes) - same.score(nodes)) <= of([knows, same])
    assert knows.score(nodes) - guesses.score(nodes) > of([knows, guesses])


def test_splits_of_their_own_have_more_noise_than_the_same_nodes():
    half = torch.arange(400) % 2 == 0
    same = planted(400, 20, 20, both_wrong=150, mask=half)
    other = Scored(same[1].task, same[1].logits, same[1].graph.clone())
    other.graph.val_mask = ~half
    assert of([same[0], other]) > 1.3 * of(same)
    state = torch.get_rng_state()
    assert of(same) == of(same)
    assert torch.equal(torch.get_rng_state(), state)  # nothing is drawn from others' numbers
