"""Which nodes count, where members share a split and where they do not."""

import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.train.targets import Targets

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


def test_the_precision_is_that_of_the_values():
    targets = Targets.of(graphs([1, 1, 1, 0, 0]), "part")
    for dtype in (torch.float32, torch.float64):
        assert targets.mean(torch.ones(2, 3, dtype=dtype)).dtype == dtype
