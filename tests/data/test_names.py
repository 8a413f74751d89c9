"""Ids and labels are text, features are numbers as programs write them."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

from lgdgcn.data.user_graph import read_graph
from lgdgcn.errors import InputError, LGDWarning


def read(folder, labels, features=None, ids=None):
    """A graph with these cells, one node each."""
    ids = ids or [f"n{i}" for i in range(len(labels))]
    cells = features or ["1"] * len(labels)
    rows = [",".join(row) for row in zip(ids, labels, cells, strict=True)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,f", *rows]), encoding="utf-8")
    edges = "\n".join(f"{a},{b}" for a, b in pairwise(ids))
    (folder / "edges.csv").write_text(f"source,target\n{edges}\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LGDWarning)
        return read_graph(folder, require_labels=False)


def labels_of(data):
    return [data.classes[i] if i >= 0 else None for i in data.y.tolist()]


@pytest.mark.parametrize(
    "labels",
    [
        ["1", "1.0", "01", "1_0", "10"],
        ["1e5", "100000"],
        ["1e5", "100000.0"],
        ["+1", "-1", "+1"],
        ["-2", "-1", "0"],
        ["٣", "3"],
        ["²", "2"],
        ["12345678901234567890", "12345678901234567891"],
        ["9223372036854775808", "1"],
        ["9" * 400, "1"],
        ["007", "7"],
        ["0", "00"],
        ["1.0", "0.0"],
        ["1.", "1"],
        ["nan", "x"],
        ["inf", "1"],
        ["0x10", "16"],
        ["-1", "x"],
        ["1 ", "1"],
        ["0.5", "x"],
    ],
    ids=lambda labels: " ".join(labels)[:40],
)
def test_labels_that_are_not_plain_digits_come_back_as_written(tmp_path, labels):
    assert labels_of(read(tmp_path, labels)) == labels


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["5", "2", "", "-1"], [5, 2, None, None]),
        (["0", "10", "9"], [0, 10, 9]),
        (["999999999999999999", "1"], [999999999999999999, 1]),
        (["5", "nan", "NaN", "2"], [5, None, None, 2]),
        (["1.0", "0.0", "-1.0", "nan"], ["1.0", "0.0", None, None]),
        (["007", "-1", "008"], ["007", None, "008"]),
        (["", " ", "x"], [None, None, "x"]),
        (["-1", "", ""], [None, None, None]),
    ],
    ids=str,
)
def test_plain_digits_are_integers_and_what_is_unlabelled(tmp_path, labels, expected):
    assert labels_of(read(tmp_path, labels)) == expected


@pytest.mark.parametrize("labels", [[".5", "2"], ["0.37", "0.41", ""], ["1e-3", "nan"]], ids=str)
def test_measurements_are_no_labels(tmp_path, labels):
    words = r"nodes\.csv: column 'label' is real-valued \('.*'\); .*groups, or write names"
    with pytest.raises(InputError, match=words):
        read(tmp_path, labels)


@pytest.mark.parametrize(
    "ids",
    [
        ["1", "1.0", "01", "+1", "1_0", "10", "1e1", "١"],
        ["-1", "nan", "NaN", "None", "null", "inf"],
        ["12345678901234567890", "12345678901234567891"],
        ["A", "a", "ａ"],
    ],
    ids=str,
)
def test_ids_are_text(tmp_path, ids):
    data = read(tmp_path, ["x"] * len(ids), ids=ids)
    assert data.node_ids == ids
    assert data.edge_index.size(1) == 2 * (len(ids) - 1)


def test_features_are_written_as_programs_do(tmp_path):
    cells = ["-0.5", "1e-05", ".5", "5.", "+3", "1E+2", "007"]
    data = read(tmp_path, ["x"] * len(cells), cells)
    assert data.x.view(-1).tolist() == [np.float32(float(cell)) for cell in cells]


@pytest.mark.parametrize("cell", ["infinity", "-inf", "1e39"])
def test_features_that_are_not_finite(tmp_path, cell):
    with pytest.raises(InputError, match=r"line 3: column 'f' holds .*, not a finite number"):
        read(tmp_path, ["x", "y"], ["1", cell])


@pytest.mark.parametrize("cell", ["1_0", "٣", "1٣", "nan", "0x1", "1,,5", "", "²", "−1", "NA", "?"])
def test_features_that_are_no_numbers_are_blanks_among_numbers(tmp_path, cell):
    data = read(tmp_path, ["x", "y", "x"], ["1", f'"{cell}"', "3"])
    assert data.feature_names == ["f", "f missing"]
    assert data.x.tolist() == [[1, 0], [2, 1], [3, 0]]
