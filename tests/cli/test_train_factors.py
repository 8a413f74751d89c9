"""``lgdgcn train --set factors=auto``: found once, said in one line, kept with the run."""

import json
import tomllib

import pytest

from cli.runner import GRAPH, call, result_of
from lgdgcn.cli import train_nodes as command
from lgdgcn.errors import StoppedError
from lgdgcn.search import choose as choosing
from lgdgcn.search.factors import find_factors

LINE = "factors: 2 own labels, 0 free (held-out edge likelihood); 8 channels"


def train(folder, *args, epochs=30, factors="auto", model="lgdgcn"):
    given = ["--model", model, "--factors", factors, "--epochs", epochs]
    return call("train", GRAPH, *given, "--seeds", 2, "--out", folder, *args)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auto") / "run"
    return folder, train(folder)


def never(*args):
    raise AssertionError("searched again")


def test_one_line_says_what_was_found_and_the_run_keeps_it(run):
    folder, outcome = run
    assert (outcome.code, outcome.err) == (0, "")
    assert [line for line in outcome.out.splitlines() if line.startswith("factors: ")] == [LINE]
    config = tomllib.loads((folder / "config.toml").read_text())
    assert (config["settings"]["factors"], config["settings"]["hidden_channels"]) == (2, 8)
    found = json.loads((folder / "result.json").read_text())["auto_factors"]
    assert found == config["auto_factors"]
    assert (found["labelled"], found["free"], found["tried"]) == (2, 0, [2, 3, 4, 6])
    assert len(found["edge_losses"]) == len(found["errors"]) == 4


def test_the_numbers_given_train_the_same_models(run, tmp_path):
    folder, _ = run
    assert train(tmp_path / "run", "--set", "hidden_channels=8", factors=2).code == 0
    wanted = result_of(folder)
    del wanted["auto_factors"]
    assert result_of(tmp_path / "run") == wanted
    models = [(path / "model.safetensors").read_bytes() for path in (folder, tmp_path / "run")]
    assert models[0] == models[1]


def test_an_interrupted_run_goes_on_with_what_was_found(run, tmp_path, monkeypatch):
    folder, fit = tmp_path / "run", command.fit

    def stopped(*args, **options):
        raise StoppedError("stopped", 130)

    monkeypatch.setattr(command, "fit", stopped)
    assert train(folder).code == 130
    monkeypatch.setattr(command, "fit", fit)
    monkeypatch.setattr(choosing, "find_factors", never)
    outcome = train(folder, "--resume")
    assert (outcome.code, outcome.err) == (0, "")
    assert result_of(folder) == result_of(run[0])


def test_an_interrupted_search_begins_again(run, tmp_path, monkeypatch):
    folder = tmp_path / "run"

    def stopped(settings, data, model, seed, device, stop):
        stop.signal = 15
        return find_factors(settings, data, model, seed, device, stop)

    monkeypatch.setattr(choosing, "find_factors", stopped)
    train(folder).refused("while finding the number of factors", "--resume", code=143)
    monkeypatch.undo()
    assert train(folder, "--resume").code == 0
    assert result_of(folder) == result_of(run[0])
