import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgdgcn.data.labels import (
    canonical_labels,
    canonical_masks,
    check_trainable,
    is_labelled,
    stratified_split,
)
from lgdgcn.errors import InputError, LGDWarning


@pytest.mark.parametrize(
    ("given_y", "numbers", "classes"),
    [
        (torch.tensor([0, 2, 5, -1]), [0, 1, 2, -1], [0, 2, 5]),
        (torch.tensor([0.0, 2.0, float("nan"), 2.0]), [0, 1, -1, 1], [0, 2]),
        (np.array(["b", "a", "", "b"]), [1, 0, -1, 1], ["a", "b"]),
        (["b", None, "a", "ü"], [1, -1, 0, 2], ["a", "b", "ü"]),
        ([3, None, 1, 3], [1, -1, 0, 1], [1, 3]),
        (torch.tensor([[1], [0], [1], [0]]), [1, 0, 1, 0], [0, 1]),
        (torch.tensor([True, False, True, True]), [1, 0, 1, 1], [0, 1]),
        (torch.tensor([1, 0, 1, 7], dtype=torch.uint8), [1, 0, 1, 2], [0, 1, 7]),
        (np.array([2**64 - 1, 3, 2**63, 3], np.uint64), [2, 0, 1, 0], [3, 2**63, 2**64 - 1]),
        (None, [-1, -1, -1, -1], []),
    ],
)
def test_single_label_forms(given_y, numbers, classes):
    y, found = canonical_labels(given_y, 4)
    assert y.dtype == torch.int64
    assert y.tolist() == numbers
    assert found == classes


@pytest.mark.parametrize("missing", [float("nan"), -1.0])
def test_matrix_is_multi_label_with_nan_rows_for_unlabelled_nodes(missing):
    y, classes = canonical_labels(torch.tensor([[0.0, 1.0], [missing, missing], [1.0, 1.0]]), 3)
    assert y.dtype == torch.float32
    assert classes == [0, 1]
    assert is_labelled(y).tolist() == [True, False, True]
    assert y[1].isnan().all()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (torch.tensor([0.0, 0.5, 1.0]), r"real-valued \(y\[1\] = 0.5\)"),
        (torch.tensor([0.0, float("inf"), 1.0]), "real-valued"),
        (torch.tensor([0, -100, 1]), r"y\[1\] is -100"),
        (torch.tensor([0, 1]), "y has 2 rows but x has 3"),
        (torch.tensor([[0, 1], [2, 0], [1, 1]]), r"y\[1, 0\] is 2"),
        (torch.tensor([[0, 1], [1, -1], [1, 1]]), r"y\[1, 1\] is -1"),
        (torch.zeros(3, 2, 2), "shape"),
        (torch.zeros(3, 0), "shape"),
        ([[1], [2, 3], [4]], "y"),
        (np.array([b"a", b"b", b"c"]), "type"),
        (["a", "b", ["c"]], r"y\[2\] is a list"),
    ],
)
def test_bad_labels_are_refused(bad, message):
    with pytest.raises(InputError, match=message):
        canonical_labels(bad, 3)


def test_known_classes_fix_the_numbers():
    assert canonical_labels(["b", "c"], 2, ["a", "b", "c"])[0].tolist() == [1, 2]
    assert canonical_labels([1, 2], 2, ["a", "b", "c"])[0].tolist() == [1, 2]
    for wrong in (["d", "a"], [3, 0], [[0, 1], [1, 0]]):
        with pytest.raises(InputError, match="classes"):
            canonical_labels(wrong, 2, ["a", "b", "c"])


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(min_size=1, max_size=3)), min_size=1, max_size=20))
def test_strings_round_trip(labels):
    y, classes = canonical_labels(labels, len(labels))
    assert [classes[i] if i >= 0 else None for i in y.tolist()] == labels
    assert classes == sorted(set(classes))


@settings(deadline=None)
@given(st.lists(st.integers(-1, 2**40), min_size=1, max_size=20))
def test_integers_round_trip(labels):
    y, classes = canonical_labels(torch.tensor(labels), len(labels))
    assert [classes[i] if i >= 0 else -1 for i in y.tolist()] == labels
    assert set(y[y >= 0].tolist()) == set(range(len(classes)))


@pytest.mark.parametrize(
    "values",
    [
        {"train_mask": torch.tensor([True, False, False, False]), "val_idx": torch.tensor([2])},
        {"train_idx": [0], "val_mask": [False, False, True, False]},
        {"train_mask": torch.tensor([1, 0, 0, 0], dtype=torch.uint8), "val_mask": [2]},
        {"train_idx": np.array([0, 0], dtype=np.int32), "val_idx": (2,), "test_idx": []},
    ],
)
def test_masks_and_indices_mean_the_same(values):
    masks = canonical_masks(values, 4)
    assert masks["train_mask"].tolist() == [True, False, False, False]
    assert masks["val_mask"].tolist() == [False, False, True, False]
    assert not masks["test_mask"].any()


def test_no_split_given():
    assert canonical_masks({"y": 1, "train_mask": None}, 4) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train_idx": [0, 1], "val_idx": [1]}, r"train and val splits share 1 nodes \(first: 1\)"),
        ({"val_idx": [3], "test_idx": [3]}, "val and test"),
        ({"train_mask": torch.ones(3).bool()}, "train_mask has 3 entries but x has 4 rows"),
        ({"train_idx": torch.ones(3).bool()}, "train_idx has 3 entries"),
        ({"train_idx": [0, 4]}, r"train_idx\[1\] is 4 but the graph has 4 nodes"),
        ({"train_idx": [-1]}, r"train_idx\[0\] is -1"),
        ({"train_mask": torch.rand(4)}, "type torch.float32"),
        ({"train_mask": torch.ones(4, 10).bool()}, r"shape \[4, 10\]"),
        ({"train_mask": ["a"]}, "cannot be read"),
        ({"train_mask": [0], "train_idx": [0]}, "both"),
    ],
)
def test_bad_splits_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        canonical_masks(values, 4)


def test_stratified_split_is_seeded_and_covers_every_class():
    y = torch.tensor([0] * 50 + [1] * 20 + [2] * 2 + [3] + [-1] * 5)
    first, second = stratified_split(y), stratified_split(y)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["train_mask"], stratified_split(y, seed=1)["train_mask"])
    assert torch.stack([*first.values()]).sum(0).tolist() == [1] * 73 + [0] * 5
    assert [int(first["train_mask"][y == c].sum()) for c in range(4)] == [30, 12, 1, 1]
    assert [int(first["val_mask"][y == c].sum()) for c in range(4)] == [10, 4, 1, 0]


def test_stratified_split_of_a_matrix():
    y = torch.zeros(10, 3)
    y[3] = float("nan")
    masks = stratified_split(y)
    assert [int(mask.sum()) for mask in masks.values()] == [5, 2, 2]


def _masks(train, val):
    return canonical_masks({"train_idx": train, "val_idx": val}, 4)


@pytest.mark.parametrize(
    ("y", "train", "message"),
    [
        (torch.tensor([0, 0, -1, 0]), [0], "single class"),
        (torch.tensor([0, 1, -1, 0]), [], "train split"),
    ],
)
def test_untrainable_is_refused(y, train, message):
    with pytest.raises(InputError, match=message):
        check_trainable(y, ["a", "b"], _masks(train, []))


@pytest.mark.parametrize(
    "y", [torch.tensor([0, 0, 1, 1]), torch.tensor([[1.0, 0]] * 2 + [[0, 1]] * 2)]
)
def test_doubtful_splits_warn(y):
    with pytest.warns(LGDWarning, match=r"1 of 2 classes have no node .*'b'"):
        check_trainable(y, ["a", "b"], _masks([0, 1], [2]))
    with pytest.warns(LGDWarning, match="validation split is empty"):
        check_trainable(y, ["a", "b"], _masks([0, 2], []))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 1, 2, -1], "3 labelled nodes have 3 classes"),
        ([0, 1, 2, 2], "4 labelled nodes have 3 classes"),
    ],
)
def test_a_class_for_every_node_looks_like_an_identifier(y, words):
    with pytest.warns(LGDWarning, match=f"the label column looks like an identifier: {words}"):
        check_trainable(torch.tensor(y), ["a", "b", "c"], _masks([0, 1, 2], [3]))


def test_good_labels_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_trainable(torch.tensor([0, 1, 0, -1]), ["a", "b"], _masks([0, 1], [2]))


@pytest.mark.parametrize("classes", [["a", "b", "a"], [1, "1", 2]])
def test_two_classes_of_one_name_are_refused(classes):
    with pytest.raises(InputError, match=r"`classes` names '(a|1)' twice"):
        canonical_labels([0, 1, 2], 3, classes)
