"""``lgdgcn train`` in batches of nodes: asked for, or because not all of them fit."""

import json
import tomllib
import warnings
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from cli.conftest import write_graph
from cli.runner import call, result_of, train
from lgdgcn.cli import batches as batching
from lgdgcn.cli import console
from lgdgcn.cli import train_nodes as training
from lgdgcn.data.packed import PackedWriter
from lgdgcn.data.packed.whole import write_arrays
from lgdgcn.data.source import GraphSource
from lgdgcn.errors import LGDWarning
from lgdgcn.train.memory import TooLargeError

BATCHES = ("--batch-size", 50)


@pytest.fixture
def folder(tmp_path):
    """A user's graph of tables, and the same graph packed."""
    tables, packed = write_graph(tmp_path / "tables"), tmp_path / "graph.lgd"
    with PackedWriter(packed) as writer:
        writer.finish(write_arrays(GraphSource(str(tables)).load(), writer))
    return tables, packed


def settings_of(run):
    return tomllib.loads((run / "config.toml").read_text())["settings"]


def test_a_run_in_batches_is_a_run_as_any_other(tmp_path):
    run = tmp_path / "run"
    assert train(run, *BATCHES, epochs=3).code == 0
    assert settings_of(run)["batch_size"] == 50
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert call("predict", run).code == 0
    again = train(run, *BATCHES, "--resume", epochs=3)
    assert again.code == 0
    assert "LGD-GCN" in again.out


def test_packed_and_tables_give_the_same_run_and_a_model_of_all_nodes_beside_it(folder, tmp_path):
    options = ["--epochs", 2, "--batch-size", 10, "--budget", "none", "--compare", "gcn"]
    scores = []
    for graph in folder:
        run = tmp_path / f"run-{graph.name}"
        outcome = call("train", graph, *options, "--out", run)
        assert outcome.code == 0, outcome
        scores.append([result_of(one)["runs"] for one in (run, run / "compared" / "gcn")])
        assert call("predict", run).code == 0
    assert scores[0] == scores[1]


def test_batches_are_chosen_where_not_all_nodes_fit(folder, tmp_path, monkeypatch):
    def refuse(*_, nodes=None):
        if nodes is None:
            raise TooLargeError("training on 24 nodes would take about 9 GiB; lower something")

    monkeypatch.setattr("lgdgcn.cli.batches.check_memory", refuse)
    run = tmp_path / "run"
    outcome = call("train", folder[0], "--epochs", 2, "--out", run, "--set", "structure=both")
    assert outcome.code == 0, outcome
    said = outcome.out.splitlines()
    assert (
        "training on 24 nodes would take about 9 GiB: trained in batches of 8,192 nodes "
        "(--batch-size)" in said
    )
    assert not any("left out" in line for line in said)
    assert settings_of(run)["structure"] == "both"
    # a model that cannot be trained so is refused as it was
    other = call("train", folder[0], "--model", "gcn", "--out", tmp_path / "gcn")
    assert other.refused("9 GiB", "lower something")


def test_settings_are_searched_on_a_sample(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("lgdgcn.search.sample.MOST_NODES", 15)
    outcomes, chosen = [], []
    for graph in folder:
        run = tmp_path / f"run-{graph.name}"
        words = ("train", graph, "--epochs", 2, "--batch-size", 10, "--out", run, "--budget", 5)
        outcomes.append(call(*words))
        assert outcomes[-1].code == 0, outcomes[-1]
        chosen.append(settings_of(run))
        assert chosen[-1]["batch_size"] == 10
        assert result_of(run)["search"]["sample"] == 15
        assert [(row["model"], row["tried"]) for row in result_of(run)["ranking"]] == [
            ("lgdgcn", 5)  # others are not trained in batches
        ]
        assert call(*words, "--resume").code == 0
    assert chosen[0] == chosen[1]
    assert "on a sample of 15 nodes" in outcomes[0].out


@pytest.mark.parametrize("is_first", [True, False])
def test_the_first_of_several_ranks_warns(is_first, monkeypatch):
    ranks = SimpleNamespace(size=2, is_first=is_first, end=lambda: None)
    monkeypatch.setattr(batching.Ranks, "start", lambda device: ranks)
    monkeypatch.setattr(console.out, "quiet", False)
    with (
        warnings.catch_warnings(record=True) as told,
        batching.several_ranks("cpu", {"batch_parts": 2}, []),
    ):
        warnings.warn("one class is missing", LGDWarning, stacklevel=1)
    assert len(told) == is_first


def test_every_rank_keeps_freed_memory(monkeypatch):
    """One that does not is slower, and all wait for it."""
    done = []
    ranks = SimpleNamespace(size=2, is_first=False, check_same=lambda facts: None)

    @contextmanager
    def second_rank(*arguments):
        yield ranks, torch.device("cpu")

    monkeypatch.setattr(training, "several_ranks", second_rank)
    monkeypatch.setattr(training, "keep_freed_memory", lambda: done.append("kept"))
    monkeypatch.setattr(training, "follow", lambda *arguments: done.append("followed"))
    call("train", "synthetic:nodes=50")
    assert done == ["kept", "followed"]
