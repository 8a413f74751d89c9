"""Sets of labels in one column, and words for no label."""

import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest

from lgdgcn.data.label_sets import _taken_apart, joined, label_sets
from lgdgcn.data.names import label_values
from lgdgcn.errors import LGDNote, LGDWarning

PATH = Path("nodes.csv")


def test_what_predict_writes_is_read_again():
    random = Random(0)
    letters = "a|\\ b"
    for _ in range(300):
        names = ["x" + "".join(random.choices(letters, k=3)) + "x" for _ in range(4)]
        assert _taken_apart(joined(names)) == names


def test_sets_of_labels_become_a_matrix():
    with pytest.warns(LGDNote, match="'blue|red' are taken as sets of 3 labels"):
        found = label_sets(PATH, "label", ["red", "blue|red", "", "blue | green", "|"])
    assert found is not None
    matrix, names = found
    assert names == ["blue", "green", "red"]
    expected = [[0, 0, 1], [1, 0, 1], [np.nan] * 3, [1, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(matrix, expected)


@pytest.mark.parametrize("cells", [["red", "blue", ""], ["red", "|"], ["1", "2"]])
def test_one_class_each(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert label_sets(PATH, "label", cells) is None


def test_names_with_a_bar_that_share_no_parts_stay_whole():
    with pytest.warns(LGDNote, match="taken as one class each"):
        assert label_sets(PATH, "label", ["north|south", "east|west", "north|south"]) is None


def test_words_for_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert label_values(PATH, "y", ["3", "NA", "", "5", "null"]).tolist() == [3, -1, -1, 5, -1]
    with pytest.warns(LGDWarning, match="'NA' in column 'y' \\(2 cells\\) is taken as a class"):
        assert label_values(PATH, "y", ["u", "NA", "", "NA"]) == ["u", "NA", "", "NA"]
