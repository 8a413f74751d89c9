import pytest
import torch

from lgdgcn.data.splits import fraction_split, random_split, sized_split, stored_split
from lgdgcn.errors import InputError

Y = torch.tensor([0] * 30 + [1] * 20 + [2] * 50 + [-1] * 10)


def test_random_split_is_balanced_disjoint_and_labelled():
    train, val, test = random_split(Y, train_per_class=5, num_val=20, num_test=40, seed=1)
    assert torch.bincount(Y[train]).tolist() == [5, 5, 5]
    assert (int(val.sum()), int(test.sum())) == (20, 40)
    assert not (train & val).any()
    assert not (train & test).any()
    assert not (val & test).any()
    assert (Y[train | val | test] >= 0).all()


def test_random_split_takes_one_count_per_class():
    train, _, _ = random_split(Y, train_per_class=[1, 2, 30], num_val=1, num_test=1)
    assert torch.bincount(Y[train]).tolist() == [1, 2, 30]


def test_splits_follow_the_seed():
    def draw(seed):
        return torch.stack(random_split(Y, train_per_class=5, num_val=9, num_test=9, seed=seed))

    assert draw(3).equal(draw(3))
    assert not draw(3).equal(draw(4))


def test_validation_and_test_nodes_are_uniform_over_the_rest():
    draws = [
        random_split(Y, train_per_class=5, num_val=17, num_test=34, seed=s) for s in range(400)
    ]
    share = torch.stack([test for _, _, test in draws]).float().mean(0)
    # A node of class c is left over with probability 1 - 5/size, then tested with 34/85.
    for label, size in enumerate((30, 20, 50)):
        assert share[label == Y].mean() == pytest.approx((1 - 5 / size) * 34 / 85, abs=0.02)


@pytest.mark.parametrize(
    ("n", "sizes"), [(1000, [600, 200, 200]), (34, [20, 7, 7]), (5, [3, 1, 1])]
)
def test_fraction_split_covers_every_node(n, sizes):
    masks = torch.stack(fraction_split(n))
    assert masks.sum(1).tolist() == sizes
    assert masks.sum(0).eq(1).all()


def test_fraction_split_of_labelled_nodes_only():
    masks = torch.stack(fraction_split(Y >= 0, (0.5, 0.2, 0.1), seed=2))
    assert masks.sum(1).tolist() == [50, 20, 10]
    assert not masks[:, Y < 0].any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: random_split(Y, train_per_class=21, num_val=1, num_test=1), "class 1 has 20"),
        (lambda: random_split(Y, train_per_class=5, num_val=80, num_test=9), "85 labelled"),
        (lambda: random_split(Y, train_per_class=5, num_val=1, num_test=1, seed=-1), "seed is -1"),
        (lambda: fraction_split(10, (0.6, 0.3, 0.2)), "sum to at most 1"),
        (lambda: fraction_split(3, (0.9, 0.05, 0.05)), "too few"),
        (lambda: sized_split(Y >= 0, (90, 10, 1)), "does not fit"),
    ],
)
def test_impossible_splits_say_why(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_stored_split_picks_a_row_of_masks():
    masks = {f"{part}_masks": torch.eye(3).bool().numpy() for part in ("train", "val", "test")}
    assert stored_split(masks, 2)["val_mask"].tolist() == [False, False, True]
    with pytest.raises(InputError, match=r"0\.\.2"):
        stored_split(masks, 3)
    assert stored_split({}, 0) == {}
