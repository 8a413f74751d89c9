"""A run read back: the model's own split, and damaged results refused."""

import json
from pathlib import Path

import pytest
import torch

from commands.conftest import write_graph
from commands.runner import call, train
from lgdgcn.errors import InputError
from lgdgcn.runs.finished import FinishedRun, open_run


def test_the_split_is_that_of_the_model_that_was_kept(tmp_path):
    assert train(tmp_path, "--seeds", 2, "--split", "random", epochs=2).code == 0
    result = json.loads((tmp_path / "result.json").read_text())
    for best in (0, 1):
        for run in result["runs"]:
            run["val"] = 0.9 if run["seed"] == best else 0.1
        (tmp_path / "result.json").write_text(json.dumps(result))
        finished = open_run(tmp_path, "cpu")
        assert finished.best_run["seed"] == best
        own, other = finished.data, finished.source.load(1 - best)
        assert torch.equal(own.test_mask, finished.source.load(best).test_mask)
        assert not torch.equal(own.test_mask, other.test_mask)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"runs": []}', '{"runs": [{"val": 1}]}', "[" * 10**5]
)
def test_damaged_results(mine, tmp_path, text):
    _, run, _ = mine
    (tmp_path / "result.json").write_text(text)
    whole = open_run(Path(run), "cpu")
    with pytest.raises(InputError, match=r"result\.json"):
        _ = FinishedRun(tmp_path, whole.source, whole.trained).best_run


@pytest.mark.parametrize("verb", ["measure", "predict", "explore", "explain"])
def test_a_graph_in_place_of_a_run_is_told_apart(tmp_path, verb):
    graph = write_graph(tmp_path / "mine")
    advice = f"lgdgcn train {graph}/ --out runs/mine"
    call(verb, graph).refused(f"{graph} is a graph, not a run", advice)
    advice = f"lgdgcn train GRAPH --out {tmp_path / 'nope'}"
    call(verb, tmp_path / "nope").refused("holds no finished run", advice)
