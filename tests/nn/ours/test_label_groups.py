"""Labels that never meet end up together."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from lgdgcn.nn import label_groups, number_of_groups
from lgdgcn.nn.ours.label_groups import _best_groups
from literal.seeds import seeds


def label_sets(factors, classes, nodes, seed):
    """One label of every factor for every node, classes of equal size."""
    generator = torch.Generator().manual_seed(seed)
    own = [torch.randperm(nodes, generator=generator) % classes for _ in range(factors)]
    return F.one_hot(torch.stack(own, dim=1), classes).flatten(1)


def same_partition(group, wanted):
    return torch.equal(group[:, None] == group[None], wanted[:, None] == wanted[None])


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize(("factors", "classes"), [(4, 16), (8, 16), (2, 3)])
def test_planted_groups_are_found(factors, classes, seed):
    y = label_sets(factors, classes, 600, seed)
    order = torch.randperm(factors * classes)
    wanted = (torch.arange(factors * classes) // classes)[order]
    assert same_partition(label_groups(y[:, order], factors), wanted)


def test_the_same_labels_give_the_same_groups():
    y = (torch.rand(80, 20) < 0.3).float()
    first = label_groups(y, 4)
    _best_groups.cache_clear()
    torch.manual_seed(99)
    state = torch.get_rng_state()
    for same in (y, y.bool(), y.flip(0)):
        assert torch.equal(label_groups(same, 4), first)
    assert torch.equal(torch.get_rng_state(), state)  # and cost no random number


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("nodes", [1, 5, 500])
def test_labels_of_one_factor_stay_together(groups, nodes):
    y = F.one_hot(torch.arange(nodes * 7) % 7, 7)
    assert label_groups(y, groups).unique().numel() == 1


def test_labels_that_always_meet_are_kept_apart():
    assert label_groups(torch.ones(20, 4), 4).unique().numel() == 4


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(
    "y",
    [
        torch.zeros(9, 5),
        torch.zeros(0, 5),
        torch.ones(9, 1),
        torch.zeros(1, 1),
        torch.eye(40),
        F.pad(label_sets(2, 3, 12, 0), (0, 4)),
    ],
    ids=["nobody has one", "no nodes", "one", "one for nobody", "one node each", "unused"],
)
def test_every_label_gets_a_group(y, groups):
    group = label_groups(y, groups)
    assert group.shape == (y.size(1),)
    assert group.dtype == torch.int64
    assert ((group >= 0) & (group < groups)).all()


def test_unused_labels_do_not_disturb():
    y = F.pad(label_sets(3, 4, 200, 0), (0, 5))
    assert same_partition(label_groups(y, 3)[:12], torch.arange(12) // 4)


# How many groups


@pytest.mark.parametrize("factors", [4, 8, 12])
def test_the_published_graphs_have_as_many_groups_as_factors(shared_data, factors):
    with np.load(shared_data / f"lgd_syn_fac{factors}.npz") as graph:
        y = torch.from_numpy(graph["y"][graph["train_idx"]])
    assert number_of_groups(y, 16) == factors


@pytest.mark.parametrize("factors", [1, 2, 5])
def test_planted_groups_are_counted(factors):
    y = label_sets(factors, 4, 100, *seeds(1))
    assert number_of_groups(y, 12) == factors
    y[::3, :4] = 0  # nodes without a label of the first group
    assert number_of_groups(y, 12) == factors
    with_absent = torch.cat([torch.zeros(100, 1, dtype=y.dtype), y], 1)
    assert number_of_groups(with_absent, 12) == factors


def test_labels_that_sometimes_meet_are_not_split_for_small_gains():
    y = label_sets(4, 8, 400, 0)
    flipped = torch.rand(y.shape, generator=torch.Generator().manual_seed(0)) < 0.02
    assert number_of_groups(y ^ flipped.to(y.dtype), 32) == 4


def test_independent_labels_need_groups_of_their_own_and_no_more_than_allowed():
    y = torch.rand(500, 6, generator=torch.Generator().manual_seed(0)) < 0.3
    assert number_of_groups(y, 6) == 6
    assert number_of_groups(y, 3) == 3
