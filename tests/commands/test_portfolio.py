"""``lgdgcn train`` on a graph without a preset: what is tried, chosen, printed and kept."""

import json
import signal
import time
import tomllib

import optuna
import pytest
import torch

from commands.conftest import write_graph
from commands.runner import call, result_of, train
from lgdgcn.commands import search_on as search_module
from lgdgcn.commands import second_process
from lgdgcn.commands import train as train_module
from lgdgcn.errors import StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.search import portfolio


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(portfolio, "ROUNDS", ((2, 3), (4, 1)))
    monkeypatch.setattr(portfolio, "LEAST", 2)
    monkeypatch.setattr(second_process, "MOST_NODES", 0)  # one process, which knows of these rounds


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path / "mine", nodes=36)


def run(folder, graph, *args, epochs=6):
    budget = [] if "--budget" in args else ["--budget", "1m"]
    return train(folder, *budget, *args, graph=graph, epochs=epochs)


def test_the_best_baseline_stands_beside_ours(graph, tmp_path):
    outcome = run(tmp_path / "run", graph)
    assert outcome.code == 0, outcome.err
    result = result_of(tmp_path / "run")
    assert 1 <= result["portfolio"]["number"] <= len(result["portfolio"]["validation"])
    (beside,) = (tmp_path / "run" / "compared").iterdir()
    assert beside.name in ("mlp", "gcn", "appnp", "grand")
    assert "LGD-GCN: settings: number" in outcome.out
    assert outcome.out.count("tried on validation") == 2


def test_metrics_have_the_epochs_of_the_search_too(graph, tmp_path):
    run(tmp_path / "run", graph)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4, 5, 6]


def test_the_choice_repeats_by_seed(graph, tmp_path):
    for name in ("one", "two"):
        run(tmp_path / name, graph)
    assert result_of(tmp_path / "one") == result_of(tmp_path / "two")


def test_a_finished_run_is_read_and_not_searched_again(graph, tmp_path, monkeypatch):
    run(tmp_path / "run", graph)
    first = result_of(tmp_path / "run")
    monkeypatch.setattr(train_module, "choose_settings", None)
    outcome = run(tmp_path / "run", graph, "--resume")
    assert outcome.code == 0, outcome.err
    assert result_of(tmp_path / "run") == first


def test_a_run_goes_on_with_what_it_chose(graph, tmp_path, monkeypatch):
    run(tmp_path / "whole", graph)
    run(tmp_path / "cut", graph)
    cut = tmp_path / "cut"
    for file in (cut / "result.json", cut / "model.safetensors"):
        file.unlink()
    monkeypatch.setattr(train_module, "choose_settings", None)
    outcome = run(cut, graph, "--resume")
    assert outcome.code == 0, outcome.err
    assert result_of(cut)["mean"] == result_of(tmp_path / "whole")["mean"]
    other = run(cut, graph, "--resume", "--set", "lr=0.5")
    assert other.code == 2
    assert "repeat the command as it was given first" in other.err


def test_an_overwritten_run_chooses_its_baseline_anew(graph, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    monkeypatch.setattr(train_module, "BASELINES", ("gcn",))
    run(folder, graph)
    monkeypatch.setattr(train_module, "BASELINES", ("gcn", "mlp"))
    real = train_module.choose_settings

    def mlp_is_best(tried, *args, **options):
        return real([one for one in tried if one.model != "gcn"], *args, **options)

    monkeypatch.setattr(train_module, "choose_settings", mlp_is_best)
    outcome = run(folder, graph, "--overwrite")
    assert outcome.code == 0, outcome.err
    assert "MLP: settings: number" in outcome.out
    assert [beside.name for beside in (folder / "compared").iterdir()] == ["mlp"]
    assert run(folder, graph, "--resume").code == 0  # with the one that was chosen last
    assert [beside.name for beside in (folder / "compared").iterdir()] == ["mlp"]


def test_without_validation_nodes_it_says_that_nothing_was_chosen(graph, tmp_path):
    nodes = graph / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(",val\n", ",test\n"))
    outcome = run(tmp_path / "run", graph)
    assert outcome.code == 0, outcome.err
    assert "tried on validation" not in outcome.out
    for model in ("LGD-GCN", "MLP"):
        assert outcome.out.count(f"{model}: settings: the first of ") == 1
    assert outcome.out.count("as without validation nodes nothing could be chosen") == 2


def test_what_a_user_gives_is_kept_by_all(graph, tmp_path):
    run(tmp_path / "run", graph, "--set", "hops=3")
    config = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert config["settings"]["hops"] == 3


def test_without_a_budget_nothing_is_searched(graph, tmp_path):
    outcome = run(tmp_path / "run", graph, "--budget", "none")
    assert "tried on validation" not in outcome.out
    assert not (tmp_path / "run" / "compared").exists()
    line = "no baseline stands beside it; --budget 1m trains the best of several, --compare gcn"
    assert outcome.out.count(line) == 1


@pytest.mark.parametrize("more", [["--compare", "gcn"], ["--model", "gcn"], ["--batch-size", 8]])
def test_nothing_is_said_of_a_baseline_that_no_budget_would_train(graph, tmp_path, more):
    outcome = run(tmp_path / "run", graph, "--budget", "none", *more)
    assert outcome.code == 0, outcome.err
    assert "no baseline" not in outcome.out


@pytest.mark.parametrize("budget", ["", "5", "-1m", "nanm", "1d"])
def test_a_budget_that_is_no_time_is_refused(graph, tmp_path, budget):
    run(tmp_path / "run", graph, "--budget", budget).refused("budget is", "5m")


def test_more_time_searches_on(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(train_module, "LONG", 0.1)
    start = time.monotonic()
    outcome = run(tmp_path / "run", graph, "--budget", "15s")
    assert outcome.code == 0, outcome.err
    assert time.monotonic() - start >= 10  # two thirds are for our settings
    result = result_of(tmp_path / "run")
    assert result["portfolio"]["searched"] >= 8
    assert "of a search over" in outcome.out
    again = run(tmp_path / "run", graph, "--budget", "15s", "--resume")
    assert again.code == 0, again.err


def test_time_ends_a_search_within_its_first_round(graph, monkeypatch):
    """The budget is kept: a batch of trials may be cut at any epoch."""
    data = train_module.GraphSource(str(graph)).load(0)
    tried = train_module.candidates("", "mlp", {}, variant=None, multi_label=False)
    monkeypatch.setattr(portfolio, "ROUNDS", ((10_000, 1),))
    device = torch.device("cpu")
    for candidate in (tried[0], tried[-1]):
        choice = portfolio.choose_settings(
            [candidate, tried[1]], data, device, seconds=0.2, at_least=False
        )
        assert choice.early
        assert choice.seconds < 5
        assert choice.score == float("-inf")
    optuna.logging.set_verbosity(optuna.logging.INFO)  # as in a new process
    assert search_module.search_on(choice, data, device, time.monotonic()).searched == 0
    assert optuna.logging.get_verbosity() == optuna.logging.WARNING


def test_a_second_process_chooses_as_this_one_does(graph, monkeypatch):
    """With the rounds as they are; the candidates are few and quick."""
    monkeypatch.undo()
    data = train_module.GraphSource(str(graph)).load(0)
    tried = train_module.candidates("", "mlp", {"epochs": 60}, variant=None, multi_label=False)
    with second_process.SecondSearch(tried, data, 60.0) as second:
        found = second.result()
    here = portfolio.choose_settings(tried, data, torch.device("cpu"))
    assert (found.number, found.scores, found.epochs) == (here.number, here.scores, here.epochs)
    assert found.state.tensors.keys() == here.state.tensors.keys()


def test_a_second_process_that_dies_is_noticed(graph):
    data = train_module.GraphSource(str(graph)).load(0)
    tried = train_module.candidates("", "mlp", {}, variant=None, multi_label=False)
    with second_process.SecondSearch(tried, data, 60.0) as second:
        second._process.kill()
        assert second.result() is None
    assert second._process.exitcode


def test_a_signal_does_not_wait_for_the_second_process(graph):
    stop = StopRequest()
    stop.signal = signal.SIGINT
    data = train_module.GraphSource(str(graph)).load(0)
    tried = train_module.candidates("", "mlp", {}, variant=None, multi_label=False)
    with second_process.SecondSearch(tried, data, 60.0) as second, pytest.raises(StoppedError):
        second.result(stop)
    assert not second._process.is_alive()


def test_the_result_is_that_of_one_process(graph, tmp_path, monkeypatch):
    """The command takes what a second process finds, or searches itself if it fails."""
    run(tmp_path / "one", graph)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(second_process, "MOST_NODES", 100)
    monkeypatch.setattr(second_process.SecondSearch, "result", lambda self, stop: None)
    try:
        outcome = run(tmp_path / "two", graph)
    finally:
        torch.set_num_threads(threads)
    assert outcome.code == 0, outcome.err
    assert result_of(tmp_path / "one")["mean"] == result_of(tmp_path / "two")["mean"]
    names = [[p.name for p in (tmp_path / n / "compared").iterdir()] for n in ("one", "two")]
    assert names[0] == names[1]


def test_the_generated_graph_has_a_preset_and_is_not_searched(tmp_path):
    outcome = call("train", "synthetic:nodes=60,classes=3,factors=2", "--epochs", 1, "--budget",
                   "none", "--out", tmp_path / "run")  # fmt: skip
    assert "no baseline" not in outcome.out
    call(
        "train",
        "synthetic:nodes=60,classes=3,factors=2",
        "--epochs",
        1,
        "--budget",
        "1m",
        "--out",
        tmp_path / "other",
    ).refused("--budget 1m has nothing to choose from", "synthetic")
    assert not (tmp_path / "other").exists()
