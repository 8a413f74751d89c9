"""What our variant is for: it finds the factors that made a graph, the paper's does not."""

import re
import warnings
from functools import cache

import pytest
import torch

from lgdgcn.config import preset, resolve
from lgdgcn.data import synthetic_graph
from lgdgcn.errors import LGDWarning
from lgdgcn.metrics import edge_attribution
from train.one_seed import train_seed
from train.single import Member, trainer_of

GRAPH = synthetic_graph(factors=3, nodes=200, classes=4, average_degree=20, seed=0)
SIZES = {"factors": 3, "hidden_channels": 12, "epochs": 150}


@cache
def trained(variant, **changes):
    settings = resolve(
        preset("any", "lgdgcn", "ours", multi_label=True), SIZES, {"variant": variant}, changes
    )
    return train_seed(GRAPH, settings, "lgdgcn", 0, torch.device("cpu"))


def attribution(model):
    edge_factors = model(GRAPH).layers[-1].edge_factors
    return edge_attribution(GRAPH.edge_index, edge_factors, GRAPH.y_factor)


def test_edges_are_given_to_the_factor_that_made_them():
    ours, paper = trained("ours"), trained("paper")
    assert attribution(ours[1]) > 0.9
    assert attribution(paper[1]) < 0.6  # chance is a third
    assert ours[0].test > 0.9 > 0.8 > paper[0].test


def test_every_factor_knows_its_classes_on_nodes_it_was_not_told():
    _, model = trained("ours")
    certain = model(GRAPH).layers[-1].units.square().argmax(-1)  # [N, M]
    shares = model.model.classifier.shares().view(3, 4, 3, 4)  # [factor, class] of labels and units
    factor = shares.sum((1, 3)).argmax(1)
    assert factor.unique().numel() == 3
    index = shares[torch.arange(3), :, factor].argmax(-1)  # [factor, class] -> unit's class
    predicted = index.gather(1, GRAPH.y_factor.t()).t()
    right = (certain[:, factor] == predicted)[GRAPH.test_mask]
    assert right.float().mean() > 0.9


def test_groups_are_those_of_the_training_nodes_alone():
    settings = resolve(preset("any", "lgdgcn", "ours", multi_label=True), SIZES)

    def start(graph):
        return trainer_of(graph, [Member(settings)]).new_model(0).classifier.start

    other = GRAPH.clone()
    hidden = (~other.train_mask).nonzero().squeeze(1)
    other.y[hidden] = 1 - other.y[hidden]
    assert torch.equal(start(other), start(GRAPH))
    other.y[:] = torch.eye(12)[torch.arange(200) % 12]
    assert not torch.equal(start(other), start(GRAPH))
    split = GRAPH.clone()
    split.train_mask, split.val_mask = split.val_mask, split.train_mask
    split.y[GRAPH.train_mask] = torch.eye(12)[0]  # now validation nodes
    trainer = trainer_of([GRAPH, split], [Member(settings), Member(settings, 1)])
    for index, graph in enumerate((GRAPH, split)):
        assert torch.equal(trainer.model(index).classifier.start, start(graph))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_channels": 6}, "a factor has 2 of the 4 classes .* hidden_channels=12 or more"),
        ({"hidden_channels": 3, "label_groups": False}, "has 1 of the 2 .* hidden_channels=6 "),
        ({"hidden_channels": 12}, None),
        ({"hidden_channels": 6, "variant": "paper"}, None),
    ],
)
def test_too_few_classes_are_said_once(changes, words):
    settings = resolve(
        preset("any", "lgdgcn", "ours", multi_label=True), SIZES, {"epochs": 1}, changes
    )
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", LGDWarning)
        trainer = trainer_of(GRAPH, [Member(settings), Member(settings, 1)])
        trainer.train()
        trainer.model(0)
    assert len(seen) == (words is not None)
    assert all(re.search(words, str(one.message)) for one in seen)
