"""Finished runs are found again, and nothing else is."""

import json

import numpy as np
import pytest

from lgdgcn.errors import InputError
from lgdgcn.reproduce.results import Results, Run
from reproduce.made_up import units
from reproduce.tiny import cell

decoded = json.loads


def run(seed: int, val: float, test: float | None = 0.5, **more: object) -> Run:
    scores = {"val": {"accuracy": val}, "test": {"accuracy": test}}
    return Run(seed, "data", 4, 0.1, scores, **more)


@pytest.fixture
def results(tmp_path) -> Results:
    return Results(tmp_path / "cells")


def test_runs_are_kept_beside_each_other(results):
    results.add(cell(), [run(1, 0.8, 0.7)])
    results.add(cell(), [run(0, 0.9, 0.6)])
    assert list(results.runs(cell())) == [0, 1]
    assert results.missing(cell(seeds=(0, 1, 2))) == [2]
    assert results.runs(cell(k=9)) == {}


def test_a_diverged_run_is_there_but_is_no_number(results):
    failed = Run(0, "data", 1, 0.1, {}, diverged="training diverged")
    results.add(cell(), [failed, run(1, 0.8, 0.7)])
    assert results.missing(cell()) == []
    assert results.runs(cell())[0] == failed
    assert results.best(cell()).seed == 1


def test_the_best_run_has_the_highest_validation_score(results):
    assert results.best(cell()) is None
    results.add(cell(), [run(0, 0.8, 0.9), run(1, 0.9, 0.1), run(2, 0.9), run(3, 1.0)])
    assert results.best(cell(seeds=(0, 2, 1))).seed == 1  # nobody asks for seed 3


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"configuration": {}, "runs": []}'])
def test_damaged_files_count_as_absent(results, damage):
    results.add(cell(), [run(0, 0.8)])
    file = results.folder / f"{cell().key}.json"
    assert json.loads(file.read_text())["configuration"]["graph"] == cell().graph
    file.write_bytes(damage)
    assert Results(results.folder).runs(cell()) == {}
    results.keep_arrays(cell(), {"units_1": np.ones((3, 2, 4), np.float32)})
    assert results.arrays(cell())["units_1"].shape == (3, 2, 4)
    packed = (results.folder / f"{cell().key}.npz").read_bytes()
    for part in (damage, packed[:-30], packed[:40]):
        (results.folder / f"{cell().key}.npz").write_bytes(part)
        assert Results(results.folder).arrays(cell()) == {}


def test_every_file_is_read_once(results, monkeypatch):
    results.add(cell(), [run(0, 0.8)])
    read = []
    monkeypatch.setattr(json, "loads", lambda text: read.append(text) or decoded(text))
    for _ in range(3):
        assert results.missing(cell(seeds=(0, 1))) == [1]
        assert results.best(cell()).seed == 0
    assert len(read) == 2  # the file, and the configuration it is compared with
    results.add(cell(), [run(1, 0.9)])
    assert results.best(cell()).seed == 1


def test_units_are_those_of_the_layer_asked_for(results):
    arrays = units(10)
    results.keep_arrays(cell(), arrays)
    for layer, name in ((0, "units_2"), (1, "units_1"), (2, "units_2")):
        np.testing.assert_array_equal(results.units(cell(), layer).units, arrays[name])
    chosen = arrays["units_1"][arrays["test_mask"]]
    np.testing.assert_array_equal(results.units(cell(), 1).on_test_nodes, chosen)
    assert results.units(cell(), 3) is None
    assert results.units(cell(k=9)) is None
    arrays["units_2"][0] = np.nan
    results.keep_arrays(cell(), arrays)
    assert results.units(cell()) is None


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        Results(tmp_path / "file" / "cells")
