"""Trainings that have learned nothing say so, and why; differences are told from chance."""

import math

import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.registry import load
from lgdgcn.data.validate import canonical
from lgdgcn.errors import DivergedError
from lgdgcn.models import MODELS, NodeOutput, build
from lgdgcn.nn import VARIANTS, Disentangled
from lgdgcn.train.checks import (
    Scored,
    likely_cause,
    noise_of_difference,
    null_score,
    sanity_warnings,
    usage_warning,
)
from lgdgcn.train.population import TrainState
from lgdgcn.train.scores import METRICS
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task
from lgdgcn.train.trained import TrainedModel
from models.toy import toy_graph
from train.one_seed import train_seed
from train.single import Member, trainer_of

CPU = torch.device("cpu")


SMALL = {"factors": 2, "hidden_channels": 16, "epochs": 40, "k": 3, "lambda_space": 1e-5}


def large_toy():
    """So many nodes that noise is not far from one answer for all."""
    return toy_graph(nodes=300, features=6)


def trained(data=None, model="lgdgcn", folder=None, **settings):
    data = toy_graph() if data is None else data
    return train_seed(data, Settings(**SMALL | settings), model, 0, CPU, folder)


def warnings_of(*args, **settings):
    return trained(*args, **settings)[0].warnings


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("multi_label", [False, True])
def test_good_trainings_learn_and_pass_without_a_word(model, multi_label):
    rate = {"lr": 0.05, "epochs": 60, "weight_decay": 5e-4, "dropout": 0.2}
    result, network = trained(toy_graph(nodes=120, multi_label=multi_label), model, **rate)
    assert result.warnings == []
    assert result.scores["train"][network.task.metric] >= 0.9
    assert result.test >= 0.6


def test_where_something_was_learned_it_is_a_warning():
    data = load("synthetic", nodes=200, classes=3, factors=2, average_degree=12)
    result, _ = trained(data, "gcn", lr=1000.0, epochs=60)
    assert result.test > 0.7
    (warning,) = result.warnings
    assert warning.startswith("the classification loss is ")
    assert warning.endswith("by guessing; lower lr (now 1000)")


def test_features_that_are_far_too_large_are_named():
    data = large_toy()
    data.x *= 1e6
    warning, chance = warnings_of(data, "gcn")
    assert warning.startswith("the classification loss is ")
    assert "this may be chance" in chance
    for text in (warning, chance):
        assert "scale the features (the largest is 2e+06)" in text
    data.y = data.y[torch.randperm(300, generator=torch.Generator().manual_seed(0))]
    data.x = data.x[:, 3:]  # nothing to learn
    with pytest.raises(
        DivergedError, match=r"diverged: .*scale the features \(the largest is 9.99e"
    ):
        warnings_of(data, "mlp", epochs=3)


def test_a_temperature_that_is_far_too_low_is_named():
    with pytest.raises(DivergedError, match=r"in epoch \d+; raise tau \(now 1e-30\)$"):
        trained(tau=1e-30)


@pytest.mark.parametrize(
    ("settings", "scale", "advice"),
    [
        ({}, 1, "lower lr (now 0.01)"),
        ({"lr": 1000.0}, 1, "lower lr (now 1000)"),
        ({"lr": 1000.0}, 1e9, "scale the features (the largest is 1e+09)"),
        ({"lr": 1e30}, 1e9, "lower lr (now 1e+30)"),
        ({"lr": 1e-9}, 1, "raise lr (now 1e-09)"),
        ({"tau": 1e-30}, 1e9, "raise tau (now 1e-30)"),
        ({"lambda_space": 1e20}, 1, "lower lambda_space (now 1e+20)"),
        ({"weight_decay": 50.0}, 1, "lower weight_decay (now 50)"),
    ],
)
def test_the_likely_cause_is_what_is_farthest_from_usual(settings, scale, advice):
    x = scale * torch.eye(3)
    assert likely_cause(Settings(**settings), x, "lgdgcn") == advice
    assert likely_cause(Settings(**settings), x.to_sparse_csr(), "lgdgcn") == advice
    assert "tau" not in likely_cause(Settings(**settings), x, "gcn")


def test_the_majority_class_is_said_to_be_nothing_learned():
    data = large_toy()
    data.y = torch.where(torch.rand(300, generator=torch.Generator().manual_seed(1)) < 0.9, 0, 1)
    data.x = data.x[:, 3:]  # which says nothing of the class
    (warning,) = warnings_of(data, "mlp", epochs=30, metric="accuracy")
    assert "that of the most common class for every node" in warning
    assert "nothing was learned; lr may not fit (now 0.01)" in warning


@pytest.mark.parametrize("metric", [*METRICS])
def test_labels_that_nothing_tells_of_may_be_chance(metric):
    """The best of many epochs is above the most common class, and yet nothing was learned."""
    data = toy_graph(nodes=240)
    data.y = data.y[torch.randperm(240, generator=torch.Generator().manual_seed(0))]
    found = warnings_of(data, "mlp", epochs=100, lr=0.02, metric=metric)
    (warning,) = (text for text in found if "this may be chance; lr may not fit (now 0.02)" in text)
    assert warning.startswith(f"the validation {METRICS[metric]} of the kept epoch is ")
    assert "and with shuffled labels the best of as many epochs may have" in warning
    assert warnings_of(toy_graph(nodes=240), "mlp", epochs=100, lr=0.02, metric=metric) == []


def test_the_more_epochs_there_are_to_choose_from_the_better_is_the_best():
    data = toy_graph(nodes=240)
    targets = Targets.of([data], "val_mask")
    torch.manual_seed(0)
    logits = torch.randn(1, 60, 3)
    bars = [null_score(Task(3, False), logits, targets, epochs) for epochs in (1, 40, 1000)]
    assert 1 / 3 < bars[0] < bars[1] < bars[2] < 0.65
    by_chance = [
        float(Task(3, False).selection_score(torch.randn(1, 60, 3), targets)) for _ in range(1000)
    ]
    assert sorted(by_chance)[-50] == pytest.approx(bars[0], abs=0.05)
    assert max(by_chance) == pytest.approx(bars[2], abs=0.05)
    state = torch.get_rng_state()
    null_score(Task(3, False), logits, targets, 5)
    assert torch.equal(torch.get_rng_state(), state)  # nothing is drawn from others' numbers


def test_chance_has_no_more_than_all_right():
    """Of four validation nodes, the best of many epochs may have all right, and not 118 %."""
    data = toy_graph(nodes=240)
    data.val_mask &= data.val_mask.cumsum(0) <= 4
    logits = torch.randn(240, 3, generator=torch.Generator().manual_seed(0))
    targets = Targets.of([data], "val_mask")
    assert null_score(Task(3, False), targets.pick(logits[None]), targets, 10**6) == 1.0
    # and all right is not called chance for that
    perfect = TrainState(10**6, 20, 1.0, 0.5, lowest_score=0.3)
    assert verdict(Task(3, False), perfect, one_hot(data.y), data) == []


def verdict(task, progress, logits, data=None):
    """What is said of a training that went like this."""
    data = toy_graph() if data is None else data
    settings = Settings(**SMALL)
    model = trainer_of(data, [Member(settings)], "gcn").model(0)
    trained = TrainedModel("gcn", model, settings, task, [0, 1, 2], 12)
    return sanity_warnings(trained, data, NodeOutput(logits, []), progress)


def one_hot(y):
    return torch.nn.functional.one_hot(y, 3).float()


def test_a_score_that_never_moves_or_is_best_at_once():
    y, task = toy_graph().y, Task(3, False)
    logits = one_hot(y)
    logits[toy_graph().val_mask.nonzero()[0]] *= -1  # one of the nine is wrong
    good = TrainState(50, 20, 8 / 9, 0.5, lowest_score=0.3, first_loss=1.1, last_loss=0.2)
    assert verdict(task, good, logits) == []
    still = TrainState(50, 20, 8 / 9, 0.5, lowest_score=8 / 9, first_loss=1.1, last_loss=0.2)
    (warning,) = verdict(task, still, logits)
    assert warning.startswith("the validation accuracy was the same in all 50 epochs; ")
    assert verdict(task, TrainState(9, 5, 8 / 9, 0.5, lowest_score=8 / 9), logits) == []
    perfect = TrainState(50, 20, 1.0, 0.5, lowest_score=1.0)
    assert verdict(task, perfect, one_hot(y)) == []
    first = TrainState(50, 1, 8 / 9, 0.5, lowest_score=0.3)
    (warning,) = verdict(task, first, logits)
    assert warning.startswith("the kept epoch is the first of 50; ")
    assert verdict(task, TrainState(1, 1, 8 / 9, 0.5, lowest_score=8 / 9), logits) == []


def test_without_validation_the_training_nodes_are_looked_at():
    data = toy_graph()
    data.val_mask &= False
    task = Task(3, False)
    ended = TrainState(50, 50, lowest_score=0.0, first_loss=1.1, last_loss=0.5)
    assert verdict(task, ended, one_hot(data.y), data) == []
    (warning,) = verdict(task, ended, torch.ones(36, 3), data)
    assert warning.startswith("the training accuracy of the kept epoch is 33.3 %")
    exploded = TrainState(50, 50, lowest_score=0.0, first_loss=1.1, last_loss=500.0)
    with pytest.raises(DivergedError, match="500 in the last of 50 epochs"):
        verdict(task, exploded, torch.ones(36, 3), data)


@pytest.mark.parametrize(("value", "sparse"), [(0.0, True), (1.0, False)], ids=["zero", "constant"])
@pytest.mark.parametrize(
    ("model", "variant"), [*(("lgdgcn", v) for v in VARIANTS), ("gcn", "paper")]
)
def test_features_that_are_all_the_same_are_worth_one_warning(model, variant, value, sparse):
    data = toy_graph()
    data.x = torch.full((36, 12), value)
    data.x = data.x.to_sparse_csr() if sparse else data.x
    found = warnings_of(canonical(data), model, variant=variant, epochs=12)
    same = [warning for warning in found if "all nodes have the same" in warning]
    assert same == [
        "all nodes have the same features, so only the edges tell them apart; "
        "use other features, or --features degree or identity"
    ]


def test_identical_units_are_worth_one_warning(monkeypatch):
    real = TrainedModel.run

    def run(self, data):
        output = real(self, data)
        units = output.layers[-1].units.clone()
        units[:, 1] = units[0, 1]  # of one factor
        return output._replace(layers=[output.layers[-1]._replace(units=units)])

    monkeypatch.setattr(TrainedModel, "run", run)
    found = warnings_of()
    assert [w for w in found if "all nodes have the same unit in a factor" in w] == found[:1]


def test_zero_features_of_some_nodes_are_no_matter():
    data = toy_graph()
    data.x[:5] = 0
    data.x[:, 7] = 1
    assert not any("all nodes" in warning for warning in warnings_of(data))


def usage_of(shares, collapsed=(), *, variant="ours", edges=50):
    """The warning of a model whose first of several factors is owned by three labels."""
    count = len(shares)
    settings = Settings(variant=variant, factors=count, hidden_channels=4 * count)
    ours = {"encoder_channels": 8} if variant == "ours" else {}
    options = settings.as_dict() | ours
    model = build("lgdgcn", options, 6, 3, multi_label=False)
    data = toy_graph(features=6)
    model.begin(torch.eye(3)[data.y], data.x, data.edge_index)
    units = torch.full((36, count, 4), 0.5)
    for m in collapsed:
        units[:, m] = torch.tensor([0.97, 0.01, 0.01, 0.01]).sqrt()
    layer = Disentangled(units, units, torch.tensor(shares).expand(edges, -1))
    task = Task(3, multi_label=False)
    trained = TrainedModel("lgdgcn", model, settings, task, [0, 1, 2], 6)
    return usage_warning(trained, NodeOutput(torch.zeros(36, 3), [layer]))


def test_factors_that_are_needed_are_worth_no_word():
    assert usage_of([0.7, 0.1, 0.1, 0.1]) is None
    assert usage_of([0.005, 0.995]) is None  # labels own the first: it is needed
    assert usage_of([0.5, 0.5], [0]) is None
    assert usage_of([0.0, 1.0], edges=0) is None
    assert usage_of([1.0, 0.0, 0.0], [1], variant="paper") is None


def test_free_factors_without_edges_or_with_one_class_are_worth_a_sentence():
    two = usage_of([0.7, 0.005, 0.29, 0.005])
    assert two.startswith("2 of 4 factors take under 1 % of the edges; ")
    assert two.endswith("; factors=2, hidden_channels=8 would do")
    assert usage_of([0.7, 0.3], [1]) == (
        "1 of 2 factors gives nearly all nodes the same class; "
        "factors=1, hidden_channels=4 would do"
    )
    both = usage_of([0.7, 0.0, 0.3], [1, 2])  # a factor counts once
    assert both == (
        "1 of 3 factors takes under 1 % of the edges and 1 of 3 factors gives nearly all nodes "
        "the same class; factors=1, hidden_channels=4 would do"
    )


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


def test_seeds_that_differ_add_to_it():
    models = planted(1000, 20, 10)
    assert of(models, [0.1, 0.1, 0.1]) == of(models)
    assert of(models, [0.3, 0.1, -0.1]) == pytest.approx(
        2 * math.hypot((of(models) - 1 / 1000) / 2, 0.2 / math.sqrt(3)) + 1 / 1000
    )
