"""A column of types in edges.csv changes nothing in any verb but what is said about the graph."""

import numpy as np
import pytest

from cli.runner import call
from lgdgcn.config import model_name

SMALL = ["--set", "epochs=3", "--set", "hidden_channels=8", "--set", "factors=2", "--device", "cpu"]


def write(folder, typed):
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    nodes = [f"n{i},{'ab'[i % 2]},{rng.random():.3f},{rng.random():.3f}" for i in range(40)]
    (folder / "nodes.csv").write_text("id,label,f,g\n" + "\n".join(nodes) + "\n")
    ends = sorted({tuple(sorted(pair)) for pair in rng.integers(0, 40, (120, 2)).tolist()})
    kinds = ["", "bus", "train", "bus;train", "</script><b>"]
    header = "source,target" + ",type" * typed
    rows = [f"n{a},n{b}" + f",{kinds[(a + b) % 5]}" * typed for a, b in ends]
    (folder / "edges.csv").write_text("\n".join([header, *rows]) + "\n")


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_the_verbs_work_as_without_types(tmp_path, monkeypatch, variant):
    said = {}
    for typed in (False, True):
        home = tmp_path / str(typed)
        write(home / "mine", typed)
        monkeypatch.chdir(home)
        model = model_name("lgdgcn", variant)
        train = ["train", "./mine", "--out", "run", "--model", model, *SMALL]
        for args in (
            train,
            ["predict", "run", "--out", "labels.csv"],
            ["predict", "run", "--graph", "./mine", "--out", "again.csv"],
            ["measure", "run"],
            ["explore", "run", "--out", "page.html"],
            ["data", "check", "./mine"],
        ):
            outcome = call(*args)
            assert outcome.code == 0, (args, outcome.err)
        said[typed] = [(home / name).read_text() for name in ("labels.csv", "again.csv")]
    assert said[True] == said[False]
    assert "edge types" in outcome.out
    assert "3 (known of" in outcome.out


def test_factors_are_found_without_types(tmp_path, monkeypatch):
    outputs = []
    for typed in (False, True):
        home = tmp_path / str(typed)
        write(home / "mine", typed)
        monkeypatch.chdir(home)
        args = ["train", "./mine", "--out", "run", "--set", "epochs=3", "--device", "cpu"]
        outcome = call(*args, "--set", "factors=auto")
        assert outcome.code == 0, outcome.err
        assert call("predict", "run", "--out", "labels.csv").code == 0
        outputs.append((home / "labels.csv").read_text())
    assert outputs[0] == outputs[1]
