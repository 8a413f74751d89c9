import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from golden.side_by_side.differences import Difference, compare
from golden.side_by_side.digits import first_other_digit
from golden.side_by_side.outputs import described, table
from golden.side_by_side.spellings import Change, Spelling
from golden.side_by_side.trainings import read_run


def run_folder(folder, *, epochs=(1, 2, 3), loss=0.123456, weight=0.25, seconds=1.0):
    """A made-up run whose loss is the same in the first epoch."""
    folder.mkdir()
    lines = [{"seed": 0, "epoch": e, "total": loss if e > 1 else 0.5} for e in epochs]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    scores = {"mean": 0.5, "runs": [{"seed": 0, "seconds": seconds}], "warnings": ["a"]}
    (folder / "result.json").write_text(json.dumps(scores))
    arrays = {"weight": np.array([[weight, 8.0], [1.0, 0.0]], dtype=np.float32)}
    save_file(arrays, folder / "model.safetensors")
    return folder


@pytest.fixture
def differences(tmp_path):
    """Compares two made-up runs, of which the second may differ."""

    def between(**new):
        spelling = Spelling.of(tmp_path)
        records = [
            read_run(run_folder(tmp_path / name, **own), spelling)
            for name, own in (("old", {}), ("new", new))
        ]
        return [*compare(*records)]

    return between


def test_equal_runs_differ_in_nothing(differences):
    assert differences(seconds=2.0) == []


def test_the_digit_and_the_first_epoch_that_differ_are_named(differences):
    [found] = differences(loss=0.123496)
    assert found.where == "metrics/seed 0"
    assert found.text == "epoch 2 to 3; total: 0.123456 before, 0.123496 now (5th digit); at worst"
    assert found.digit == 5


def test_epochs_that_are_missing_are_named(differences):
    [found] = differences(epochs=(1, 4, 5))
    assert found == Difference("metrics/seed 0", "epochs 2-3 missing now; 4-5 missing before")


def test_weights_are_compared_to_the_last_bit(differences):
    [found] = differences(weight=np.nextafter(np.float32(0.25), np.float32(1)))
    assert (found.where, found.text) == ("weights/best/weight", "1 of 4 numbers")
    assert found.digit == 9  # of the largest one, 8.0


def test_long_texts_are_shown_where_they_begin_to_differ():
    [found] = compare({"about": ["a" * 90 + "xy"]}, {"about": ["a" * 90 + "xz"]})
    assert found.where == "about[0]"
    assert found.text == f"…{'a' * 15}xy' before, …{'a' * 15}xz' now"


@pytest.mark.parametrize(
    ("old", "new", "digit"),
    [(1.0, 1.0, None), (0.0, 1e-30, 1), (99.99, 100.0, 5), (1e5, 1e5 + 1, 6), (1.0, np.nan, 1)],
)
def test_the_first_other_digit(old, new, digit):
    assert first_other_digit(old, new) == first_other_digit(new, old) == digit


def test_a_tree_that_renames_things_is_read_under_the_names_of_today(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "cli.py").write_text("def edges(): ...\n")
    gone = Change("cli.py:def nodes", {"edges": "never"})
    changes = (Change("cli.py:def edges", {"edges": "edges {graph}"}, {"why": "type"}), gone)
    spelling = Spelling.of(tree, changes)
    assert spelling.command("edges", graph="my graph") == ["edges", "my graph"]
    assert Spelling.of(tree, (gone,)).words["edges"] != "never"

    for name, text in (("old", "type,p\nx,1\n,\n"), ("new", "why,p\nx,1\n,2\n")):
        (tmp_path / f"{name}.csv").write_text(text)
        key = text.partition(",")[0]
        (tmp_path / f"{name}.json").write_text(json.dumps({"note": name, "all": [{key: "x"}]}))
    [found] = compare(
        table(tmp_path / "old.csv", {}), table(tmp_path / "new.csv", spelling.renamed)
    )
    assert found == Difference("p", "1 of 2 numbers", 1)
    new = described(tmp_path / "new.json", spelling.renamed)
    assert described(tmp_path / "old.json", {}) == new == {"all": [{"type": "x"}]}
