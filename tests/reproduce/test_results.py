"""Finished runs are found again, and nothing else is."""

import json

import numpy as np
import pytest

from lgdgcn.errors import InputError
from lgdgcn.reproduce.results import Mean, Results, Run
from reproduce.tiny import cell


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


def test_a_mean_is_in_per_cent_with_its_spread():
    mean = Mean.of([0.7, 0.6])
    assert (mean.mean, mean.count) == (pytest.approx(65), 2)
    assert mean.std == pytest.approx(np.std([70, 60], ddof=1))
    assert mean.error == pytest.approx(mean.std / 2**0.5)
    assert Mean.of([0.5]) == Mean(50.0, 0.0, 1)


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
    assert results.runs(cell()) == {}
    results.keep_units(cell(), {"units_1": np.ones((3, 2, 4), np.float32)})
    assert results.units(cell())["units_1"].shape == (3, 2, 4)
    packed = (results.folder / f"{cell().key}.npz").read_bytes()
    for part in (damage, packed[:-30], packed[:40]):
        (results.folder / f"{cell().key}.npz").write_bytes(part)
        assert results.units(cell()) is None


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        Results(tmp_path / "file" / "cells")
