"""Which score chooses the epoch: one that is fair to the labels, or the one asked for."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    roc_auc_score,
)
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.labels import is_labelled
from lgdgcn.data.registry import load
from lgdgcn.errors import InputError
from lgdgcn.runs.fit import fit
from lgdgcn.train.population import Member
from lgdgcn.train.scores import METRICS
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task, choose_metric
from lgdgcn.train.trainer import Trainer
from literal.seeds import seeds
from models.toy import toy_graph
from train.one_seed import train_seed

CPU = torch.device("cpu")
SEEDS = seeds(3)
OF_SETS = ["macro_f1", "micro_f1", "roc_auc", "average_precision"]


def test_the_setting_has_every_score():
    (field,) = (field for field in dataclasses.fields(Settings) if field.name == "metric")
    assert field.metadata["options"] == ("auto", *METRICS)


# The default


@pytest.mark.parametrize(
    ("y", "metric", "reason"),
    [
        ([0, 1, 2, 2, -1, -1, -1], "accuracy", "as every node has one class"),
        ([0] * 2 + [1], "accuracy", "as every node has one class"),
        ([0] * 7 + [1] * 3, "roc_auc", "as 70.0 % of the training nodes have the same class"),
        ([1] * 7 + [0] * 3 + [-1] * 9, "roc_auc", "as 70.0 % of the training nodes"),
        ([0] * 8 + [1, 2], "macro_f1", "as 80.0 % of the training nodes have the same class"),
        ([[1.0, 0, 1], [0, 1, 1]], "micro_f1", "as every node has 2 labels"),
        ([[1.0, 0, 1], [torch.nan] * 3, [0, 1, 1]], "micro_f1", "as every node has 2 labels"),
        ([[1.0, 0, 1], [0, 1, 0]], "average_precision", "as nodes have 1 to 2 labels"),
        ([[0.0, 0, 0], [0, 0, 0]], "average_precision", "as nodes have 0 to 0 labels"),
    ],
)
def test_the_default_follows_the_labels(y, metric, reason):
    y = torch.tensor(y)
    known = is_labelled(y)
    found = choose_metric(Data(y=y, train_mask=known, val_mask=known & False))
    assert found.metric == metric
    assert str(found).startswith(f"metric: {METRICS[metric]}, {reason}")


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("cora", "accuracy"),
        ("citeseer", "accuracy"),
        ("pubmed", "accuracy"),
        ("lgd_syn_fac4", "micro_f1"),
        ("lgd_syn_fac12", "micro_f1"),
        ("synthetic", "micro_f1"),
    ],
)
def test_graphs_with_presets_keep_their_score(shared_data, name, metric):
    assert Task.of(load(name, shared_data)).metric == metric


def test_tolokers_is_judged_by_roc_auc(shared_data):
    arrays = np.load(shared_data / "tolokers.npz")
    for seed in range(10):
        masks = {
            f"{n}_mask": torch.from_numpy(arrays[f"{n}_masks"][seed]) for n in ("train", "val")
        }
        found = choose_metric(Data(y=torch.from_numpy(arrays["y"]), **masks))
        assert str(found).startswith("metric: ROC-AUC, as 78.")
        assert str(found).endswith(" % of the validation nodes have the same class")


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy"])
def test_sets_of_labels_have_no_accuracy(metric):
    data = toy_graph(multi_label=True)
    with pytest.raises(InputError, match=f"metric is '{metric}', which sets of labels do not"):
        Trainer(data, [Member(Settings(metric=metric))], "mlp")


# The scores


def members(classes, different):
    """Scores of three members, labels, and each member's nodes."""
    torch.manual_seed(SEEDS[0])
    y = torch.randint(0, classes, (40,))
    masks = [torch.rand(40) < share for share in ((0.4, 0.6, 0.8) if different else (0.5,) * 3)]
    masks = masks if different else masks[:1] * 3
    return 2 * torch.randn(3, 40, classes, dtype=torch.float64), y, masks


def by_scikit_learn(metric, logits, y):
    probability, predicted = logits.softmax(-1).numpy(), logits.argmax(-1).numpy()
    present = np.unique(y)
    truth = np.eye(logits.size(1))[y][:, present]
    return {
        "accuracy": lambda: accuracy_score(y, predicted),
        "balanced_accuracy": lambda: balanced_accuracy_score(y, predicted),
        "macro_f1": lambda: f1_score(y, predicted, average="macro"),
        "micro_f1": lambda: f1_score(y, predicted, average="micro"),
        "roc_auc": lambda: roc_auc_score(truth, probability[:, present]),
        "average_precision": lambda: average_precision_score(truth, probability[:, present]),
    }[metric]()


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("different", [False, True], ids=["one split", "splits of their own"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("metric", METRICS)
def test_scores_of_classes(metric, classes, different):
    logits, y, masks = members(classes, different)
    task = Task(classes, False, metric=metric)
    targets = Targets.of([Data(y=y, part=mask) for mask in masks], "part")
    found = task.selection_score(targets.pick(logits), targets)
    for member, (own, mask) in enumerate(zip(logits, masks, strict=True)):
        want = by_scikit_learn(metric, own[mask], y[mask])
        assert found[member].item() == pytest.approx(want)
        scores = task.scores(own, y, mask)
        assert next(iter(scores)) == metric
        assert scores[metric] == pytest.approx(want)
    if classes == 2:
        want = roc_auc_score(y[mask], logits[2, mask, 1] - logits[2, mask, 0])
        assert task.scores(logits[2], y, mask)["roc_auc"] == pytest.approx(want)


@pytest.mark.parametrize("labels_per_node", [None, 2])
@pytest.mark.parametrize("metric", OF_SETS)
def test_scores_of_label_sets(metric, labels_per_node):
    """With the thresholds that are tuned later, the score of an epoch is that of its end."""
    logits, _, masks = members(6, different=True)
    y = (torch.rand(40, 6) < 0.3).float()
    task = Task(6, True, labels_per_node, metric=metric)
    targets = Targets.of([Data(y=y, part=mask) for mask in masks], "part")
    found = task.selection_score(targets.pick(logits), targets)
    for member, (own, mask) in enumerate(zip(logits, masks, strict=True)):
        scores = task.tuned(own, y, mask).scores(own, y, mask)
        assert next(iter(scores)) == metric
        assert scores[metric] == pytest.approx(found[member].item())


@pytest.mark.parametrize("metric", METRICS)
def test_one_answer_for_all_nodes(metric):
    y = torch.tensor([0] * 6 + [1] * 3 + [2])
    targets = Targets.of([Data(y=y, part=y >= 0)], "part")
    found = Task(3, False, metric=metric).constant_score(targets)
    want = {"accuracy": 0.6, "micro_f1": 0.6, "macro_f1": 0.25, "roc_auc": 0.5}
    assert found == pytest.approx(want.get(metric, 1 / 3))


@pytest.mark.parametrize("metric", OF_SETS)
def test_one_answer_for_all_nodes_of_different_sets(metric):
    y = torch.zeros(40, 3)
    y[:, 0], y[:10, 1], y[:2, 2] = 1, 1, 1
    targets = Targets.of([Data(y=y, part=y[:, 0] > 0)], "part")
    found = Task(3, True, metric=metric).constant_score(targets)
    assert found == pytest.approx(
        {
            "micro_f1": 2 * 40 / (40 + 52),  # the first label for everybody
            "macro_f1": (1 + 20 / 50 + 4 / 42) / 3,  # all labels for everybody
            "roc_auc": 0.5,
            "average_precision": (40 + 10 * 50 / 80 + 2 * 52 / 120) / 52,
        }[metric]
    )


# In training


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("metric", OF_SETS)
def test_the_epoch_that_is_kept_has_the_best_score(metric, multi_label):
    data = toy_graph(nodes=60, multi_label=multi_label)
    if multi_label:
        data.y[::2, 5] = 1  # label sets of different sizes
    settings = Settings(metric=metric, hidden_channels=8, epochs=12)
    trainer = Trainer(data, [Member(settings)], "mlp")
    seen = []
    trainer.train(lambda report: seen.append(report.metrics[f"val_{metric}"]))
    assert trainer.states[0].best_score == max(seen)
    result, trained = train_seed(data, settings, "mlp", 0, CPU)
    assert result.val == pytest.approx(max(seen))
    assert result.test == result.scores["test"][metric]
    assert trained.task.metric == metric


def balanced(data, size=8):
    """As many training and validation nodes of either class."""
    data = data.clone()
    for name, nodes in (("train_mask", slice(0, size)), ("val_mask", slice(size, 2 * size))):
        data[name] = torch.zeros(len(data.y), dtype=torch.bool)
        for number in (0, 1):
            data[name][(data.y == number).nonzero().flatten()[nodes]] = True
    data.test_mask = ~(data.train_mask | data.val_mask)
    return data


def test_the_test_nodes_have_no_say():
    data = toy_graph(nodes=90)
    data.y = (data.y == 0).long() * (torch.arange(90) < 60)  # 20 of 90
    assert Task.of(data).metric == "roc_auc"
    assert Task.of(balanced(data)).metric == "accuracy"
    sets = toy_graph(multi_label=True)
    sets.y[sets.test_mask] = 1
    assert Task.of(sets).metric == "micro_f1"


def test_all_seeds_have_the_score_of_the_first(tmp_path):
    data = toy_graph(nodes=90)
    data.y = (data.y == 0).long() * (torch.arange(90) < 60)
    graphs, settings = (data, balanced(data)), Settings(hidden_channels=8, epochs=3)
    for order, metric in ((graphs, "roc_auc"), (graphs[::-1], "accuracy")):
        results, trained = fit(order.__getitem__, settings, "mlp", [0, 1], CPU)
        assert [next(iter(result.scores["test"])) for result in results] == [metric] * 2
        assert trained.settings == settings
        assert trained.task.metric == metric
