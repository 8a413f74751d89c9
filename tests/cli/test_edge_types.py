"""A column of types in edges.csv changes nothing in any verb but what is said about the graph."""

import numpy as np
import pytest

from cli.runner import call

SMALL = ["--set", "epochs=3", "--set", "factors=auto", "--device", "cpu"]


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


@pytest.mark.usefixtures("quick_measures")
def test_the_verbs_and_the_search_for_factors_work_as_without_types(tmp_path, monkeypatch):
    said = {}
    for typed in (False, True):
        home = tmp_path / str(typed)
        write(home / "mine", typed)
        monkeypatch.chdir(home)
        train = ["train", "./mine", "--out", "run", *SMALL]
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
