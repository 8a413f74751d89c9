"""Which nodes count, and how much: splits of their own, rare classes and labels."""

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task
from literal.seeds import seeds
from models.toy import toy_graph
from train.single import Member, trainer_of

Y = torch.tensor([-1, 2, 0, 1, 2])


SETS = torch.tensor([[torch.nan] * 2, [1.0, 0], [0, 1], [1, 1], [0, 0]])


def graphs(*masks, y=Y):
    return [Data(y=y, part=torch.tensor(mask, dtype=torch.bool)) for mask in masks]


def test_a_shared_split_is_kept_once():
    targets = Targets.of(graphs([0, 1, 0, 1, 1], [0, 1, 0, 1, 1]), "part")
    assert targets.nodes.tolist() == [[1, 3, 4]]
    assert targets.y.tolist() == [[2, 1, 2]]
    assert targets.weight.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("y", [Y, SETS], ids=["classes", "label sets"])
def test_filling_has_no_weight_and_no_strange_label(y):
    targets = Targets.of(graphs([0, 1, 0, 1, 1], [0, 0, 1, 0, 0], [0] * 5, y=y), "part")
    assert targets.weight.tolist() == [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert targets.nodes[1, 0] == 2
    for row, nodes in enumerate(([1, 3, 4], [2], [])):
        assert torch.equal(targets.y[row, : len(nodes)], y[nodes])
        assert not targets.y[row, len(nodes) :].any()
    assert targets.y.dtype == y.dtype


def test_scores_and_means_of_each_members_nodes():
    logits = torch.arange(30.0).view(2, 5, 3)
    for masks in ([[0, 1, 0, 1, 1], [0, 0, 1, 0, 0]], [[0, 1, 1, 0, 0]] * 2):
        targets = Targets.of(graphs(*masks), "part")
        picked = targets.pick(logits)
        mean = targets.mean(picked.sum(-1))
        for row, mask in enumerate(masks):
            own = logits[row, torch.tensor(mask, dtype=torch.bool)]
            assert torch.equal(picked[row, : sum(mask)], own)
            assert mean[row] == own.sum(-1).mean()


def test_the_mean_over_no_nodes_is_zero():
    targets = Targets.of(graphs([0] * 5, [0] * 5), "part")
    assert targets.nodes.shape == (1, 0)
    assert targets.mean(targets.pick(torch.ones(2, 5, 3)).sum(-1)).tolist() == [0, 0]


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
        trainer = trainer_of(data, [Member(settings)], model)
        trainer.train()
        logits = trainer.model(0, "model").eval()(data.x, data.edge_index)
        column = 0 if multi_label else 1
        likely[weights] = trainer.tasks[0].probabilities(logits)[:, column].mean().item()
    assert likely["none"] < 0.25 < likely["balanced"]
