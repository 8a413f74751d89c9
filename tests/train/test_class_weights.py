"""Classes and labels that count more the rarer they are, against torch and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.train.population import Member
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task
from lgdgcn.train.trainer import Trainer
from literal.seeds import seeds
from models.toy import toy_graph

SEEDS = seeds(3)


def example(seed, multi_label):
    """Scores of three members, labels of unequal frequency, and each member's nodes."""
    torch.manual_seed(seed)
    y = torch.randint(0, 12, (40,)).clamp(max=3) % 4
    y[:4] = torch.arange(4)
    if multi_label:
        y = (torch.rand(40, 4) < torch.tensor([0.7, 0.4, 0.2, 0.1])).float()
    masks = [torch.arange(40) < size for size in (40, 25, 12)]
    return 2 * torch.randn(3, 40, 4, dtype=torch.float64), y, masks


@pytest.mark.parametrize("seed", SEEDS)
def test_classes_count_alike_together(seed):
    logits, y, masks = example(seed, multi_label=False)
    targets = Targets.of([Data(y=y, part=mask) for mask in masks], "part").balanced(4)
    found = Task(4, False).loss(targets.pick(logits), targets)
    for member, mask in enumerate(masks):
        own = y[mask]
        present = own.unique().numpy()
        weight = torch.ones(4, dtype=torch.float64)
        weight[present] = torch.from_numpy(
            compute_class_weight("balanced", classes=present, y=own.numpy())
        )
        want = torch.nn.functional.cross_entropy(logits[member, mask], own, weight)
        np.testing.assert_allclose(found[member], want, rtol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_count_as_much_where_they_are_as_where_they_are_not(seed):
    logits, y, masks = example(seed, multi_label=True)
    y[:, 3] = 1  # a label of everybody has nothing to be weighed against
    y[:12, 2] = 0  # nor has one of nobody
    targets = Targets.of([Data(y=y, part=mask) for mask in masks], "part").balanced(4)
    found = Task(4, True).loss(targets.pick(logits), targets)
    for member, mask in enumerate(masks):
        having = y[mask].sum(0)
        weight = (len(y[mask]) - having) / having
        weight[(having == 0) | (having == len(y[mask]))] = 1
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits[member, mask], y[mask].double(), pos_weight=weight, reduction="none"
        )
        np.testing.assert_allclose(found[member], loss.sum(1).mean(), rtol=1e-6)


@pytest.mark.parametrize("multi_label", [False, True])
def test_views_have_the_same_weights(multi_label):
    logits, y, masks = example(0, multi_label)
    targets = Targets.of([Data(y=y, part=mask) for mask in masks], "part").balanced(4)
    once = Task(4, multi_label).loss(targets.pick(logits), targets)
    twice = torch.cat([targets.pick(logits)] * 2, 1)
    found = Task(4, multi_label).loss(twice, targets.repeated(2))
    torch.testing.assert_close(found, once)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("model", ["mlp", "lgdgcn"])
def test_rare_ones_are_predicted_more_often(model, multi_label):
    data = toy_graph(nodes=120)
    data.x = torch.rand(120, 12)  # says nothing
    data.y = (torch.arange(120) % 10 == 0).long()
    if multi_label:
        data.y = torch.stack([data.y, 1 - data.y, torch.arange(120) % 2], 1).float()
    likely = {}
    for weights in ("none", "balanced"):
        settings = Settings(class_weights=weights, epochs=40, hidden_channels=8, lr=0.05, k=3)
        trainer = Trainer(data, [Member(settings)], model)
        trainer.train()
        logits = trainer.model(0, "model").eval()(data.x, data.edge_index)
        column = 0 if multi_label else 1
        likely[weights] = trainer.tasks[0].probabilities(logits)[:, column].mean().item()
    assert likely["none"] < 0.25 < likely["balanced"]
