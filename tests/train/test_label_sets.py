"""Nodes with one to five labels: what a score at threshold 0.5 misses, ours learns."""

from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.train.scores import Counts
from lgdgcn.train.task import Task
from models.toy import toy_graph
from train.one_seed import train_seed

CPU = torch.device("cpu")
SETTINGS = Settings(
    hidden_channels=32, epochs=400, patience=20, lr=0.005, weight_decay=0.0, dropout=0.0
)


def one_to_five(nodes=600, labels=30, seed=0):
    """Every label is had by few nodes, some by very few, and noisy features show it."""
    generator = torch.Generator().manual_seed(seed)
    data = toy_graph(nodes=nodes, features=12)
    popular = 0.9 ** torch.arange(labels)
    y = torch.zeros(nodes, labels)
    for node in range(nodes):
        size = int(torch.randint(1, 6, (), generator=generator))
        y[node, torch.multinomial(popular, size, generator=generator)] = 1
    data.x = y + 0.3 * torch.randn(nodes, labels, generator=generator)
    data.y = y
    return data


def at_a_half(self, logits, targets):
    """Micro-F1 of the labels that are more probable than not."""
    predicted = (logits > 0) & (targets.weight.unsqueeze(-1) > 0)
    return Counts.of(predicted, targets.y).score("micro_f1", one_each=False)


def test_one_to_five_labels(monkeypatch):
    data = one_to_five()
    assert data.y.sum(1).unique().tolist() == [1, 2, 3, 4, 5]
    result, _ = train_seed(data, SETTINGS, "mlp", 0, CPU)
    test = result.scores["test"]
    assert result.warnings == []
    assert test["micro_f1"] > 0.5
    assert test["macro_f1"] > 0.35
    assert test["micro_f1_with_true_set_size"] > 0.65

    monkeypatch.setattr(Task, "selection_score", at_a_half)
    monkeypatch.setattr(Task, "constant_score", lambda self, targets: 0.0)
    missed, _ = train_seed(data, SETTINGS, "mlp", 0, CPU)
    assert missed.epochs < 200 < result.epochs  # it stopped while no label was probable
    assert missed.scores["test"]["average_precision"] < test["average_precision"] / 2


def test_a_threshold_for_every_label_pays():
    """Labels are ranked equally well, but the probabilities of the rarer ones are too low."""
    torch.manual_seed(0)
    y = (torch.rand(2000, 10) < 0.2).float()
    logits = 2 * y + torch.randn(2000, 10) - torch.arange(10)
    tuned_on = torch.arange(2000) < 1000
    task = Task(10, True).tuned(logits, y, tuned_on)
    found = task.scores(logits, y, ~tuned_on)
    common = replace(task, label_thresholds=None).scores(logits, y, ~tuned_on)
    for name in ("micro_f1", "macro_f1"):
        assert found[name] > common[name] + 0.1


@pytest.mark.parametrize("sizes", ["same", "different"])
def test_only_sets_of_different_sizes_are_cut_by_thresholds(sizes):
    data = toy_graph(nodes=120, multi_label=True)
    if sizes == "different":
        data.y[::3, 5] = 1 - data.y[::3, 5]
    result, trained = train_seed(data, SETTINGS, "mlp", 0, CPU)
    scores = result.scores["test"]
    is_cut = sizes == "different"
    assert (trained.task.label_thresholds is not None) == is_cut
    assert ("micro_f1_with_true_set_size" in scores) == is_cut
    assert ("macro_f1_with_true_set_size" in scores) == is_cut
