"""Several seeds in a run folder: which model is kept, what is summed up, how they go on."""

import json
import signal
import statistics
from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError, DivergedError, StoppedError
from lgdgcn.runs import fit as fit_module
from lgdgcn.runs.checkpoint import Checkpoint
from lgdgcn.runs.fit import SeedResult, fit, summary
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import StopRequest
from models.toy import toy_graph
from runs.test_folder import CONFIG, lines

CPU = torch.device("cpu")
WIDE = toy_graph(dtype=torch.float64)  # where rounding does not grow to a difference
SETTINGS = Settings(factors=2, hidden_channels=8, k=3, epochs=6, checkpoint_every=2)
SEEDS = [4, 1, 3]


def result(seed=0, val=None, test=None):
    return SeedResult(seed, val, test, 5, 1.23456, {"test": {"accuracy": test}})


def one_split(seed):
    return WIDE


def split_of(seed):
    """The toy graph with a split of its own, of other sizes."""
    data = toy_graph(dtype=torch.float64)
    part = torch.rand(36, generator=torch.Generator().manual_seed(seed)) * 3
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        data[name] = part.long() == number
    return data


def weights(trained):
    return trained.model.state_dict()


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first | second)


def rows(results):
    return [replace(one, seconds=0.0) for one in results]


def begun(path):
    """A run to train in, or to go on with."""
    if not path.exists():
        with Run.create(path) as run:
            run.write_config(CONFIG)
    return Run.create(path, resume=True)


# Which model is kept, and what is said of it


@pytest.mark.parametrize(
    ("values", "best"),
    [([0.3, 0.9, 0.5], 1), ([0.5, 0.5, 0.5], 0), ([None, None], 0), ([0.0, 0.2], 1)],
    ids=["highest", "first of equals", "no validation", "second"],
)
def test_the_model_of_the_best_seed_is_kept(monkeypatch, values, best):
    monkeypatch.setattr(fit_module, "SeedResult", lambda seed, *_: result(seed, values[seed]))
    seeds = range(len(values))
    results, kept = fit(one_split, SETTINGS, "gcn", seeds, CPU)
    assert [one.seed for one in results] == [*seeds]
    _, expected = fit(one_split, SETTINGS, "gcn", [best], CPU)
    torch.testing.assert_close(weights(kept), weights(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("tests", "mean", "std"),
    [
        ([0.5], 0.5, 0.0),
        ([0.5, 0.7, 0.9], 0.7, statistics.stdev([0.5, 0.7, 0.9])),
        ([None, None], None, None),
        ([], None, None),
    ],
)
def test_summary(tests, mean, std):
    found = summary([result(seed, test=test) for seed, test in enumerate(tests)])
    assert found["mean"] == (mean if mean is None else pytest.approx(mean))
    assert found["std"] == (std if std is None else pytest.approx(std))
    for seed, row in enumerate(found["runs"]):
        assert row.items() >= {"seed": seed, "epochs": 5, "seconds": 1.235}.items()
    json.dumps(found, allow_nan=False)


def test_a_warning_of_all_seeds_is_said_once():
    found = [result(0), result(1)]
    found[0].warnings += ["all", "mine"]
    found[1].warnings += ["other", "all"]
    assert summary(found)["warnings"] == ["all", "seed 0: mine", "seed 1: other"]
    assert summary(found[:1])["warnings"] == ["all", "mine"]


# Stopped, killed and gone on with


@pytest.mark.parametrize(
    ("model", "seeds", "changes", "stop_at"),
    [
        ("lgdgcn", [0], {}, 1),
        ("lgdgcn", [0], {"variant": "ours"}, 3),
        ("gcn", [0], {"weight_average": 0.9}, 3),
        ("lgdgcn", SEEDS, {}, 3),
        ("gcn", SEEDS, {"patience": 1}, 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_run_goes_on_bit_for_bit(tmp_path, model, seeds, changes, stop_at, how):
    settings = replace(SETTINGS, **changes)
    with begun(tmp_path / "whole") as whole:
        expected, best = fit(split_of, settings, model, seeds, CPU, whole)
    stop = StopRequest()

    def on_epoch(epoch):
        if epoch.state.epoch == stop_at and how == "kill":
            raise RuntimeError("killed")  # after the log, before the checkpoint
        if epoch.state.epoch == max(stop_at - 1, 1):
            stop.signal = signal.SIGTERM  # ends the next epoch

    if stop_at == 1:
        stop.signal = signal.SIGTERM
    with begun(tmp_path / "run") as run:
        with pytest.raises((StoppedError, RuntimeError), match=r"killed|stopped after") as caught:
            fit(split_of, settings, model, seeds, CPU, run, on_epoch=on_epoch, stop=stop)
        if how == "stop":
            assert caught.value.exit_code == 143
            states, _ = Checkpoint(run.checkpoint).load()
            ends = {one.seed: min(one.epochs, stop_at) for one in expected}
            assert {seed: one.epoch for seed, one in states.items()} == ends
            assert len(lines(run)) == sum(ends.values())
    with begun(tmp_path / "run") as run:
        for _ in range(2):  # the second time nothing is left to train
            results, kept = fit(split_of, settings, model, seeds, CPU, run)
            assert rows(results) == rows(expected)
            assert same(weights(kept), weights(best))
            assert lines(run) == lines(whole)


def test_the_log_is_the_same_whatever_was_trained_first(tmp_path, monkeypatch):
    state, log = None, []

    def first(epoch):
        nonlocal state
        log.append(epoch.metrics)
        state = epoch.snapshot()

    fit(split_of, SETTINGS, "gcn", SEEDS[:1], CPU, on_epoch=first)  # as a search has
    with begun(tmp_path / "run") as run:
        for metrics in log:
            run.append_metrics({"seed": SEEDS[0], **metrics})
        fit(split_of, SETTINGS, "gcn", SEEDS, CPU, run, begun=state)
    found = [(line["epoch"], line["seed"]) for line in lines(run)]
    assert found == [(epoch, seed) for epoch in range(1, 7) for seed in SEEDS]


def test_lines_that_the_checkpoint_does_not_know_are_dropped(tmp_path):
    with begun(tmp_path / "run") as run:
        for line in ({"a": 1}, {"seed": 7, "epoch": 1}, {"seed": "0", "epoch": 1}, {"seed": 0}):
            run.append_metrics(line)
        fit(one_split, SETTINGS, "gcn", [0], CPU, run)
        assert [line["epoch"] for line in lines(run)] == [1, 2, 3, 4, 5, 6]


def test_a_sound_checkpoint_of_other_weights_is_refused(tmp_path):
    with begun(tmp_path / "run") as run:
        fit(one_split, SETTINGS, "lgdgcn", [0], CPU, run)
        checkpoint = Checkpoint(run.checkpoint)
        states, about = checkpoint.load()
        states[0].tensors.clear()
        checkpoint.save(states, about)
        with pytest.raises(CheckpointError, match=r"weights of another model: .* is missing"):
            fit(one_split, SETTINGS, "lgdgcn", [0], CPU, run)


@pytest.mark.parametrize(
    ("every", "saved"), [(4, [1, 4, 6]), (1000, [1, 6]), (2, [1, 2, 4, 6])], ids=str
)
def test_checkpoints_come_when_due(tmp_path, monkeypatch, every, saved):
    found = []
    real = Checkpoint.save

    def save(self, states, about):
        found.append({state.epoch for state in states.values()})
        real(self, states, about)

    monkeypatch.setattr(Checkpoint, "save", save)
    with begun(tmp_path / "run") as run:
        fit(one_split, replace(SETTINGS, checkpoint_every=every), "gcn", SEEDS, CPU, run)
    assert found == [{epoch} for epoch in saved]  # all seeds at once


def test_weights_that_diverged_are_not_saved(tmp_path):
    settings = replace(SETTINGS, lr=1e30, weight_decay=0.0, num_layers=2)
    words = r"^training diverged: the \w+ loss is \w+ in epoch \d; lower lr \(now 1e\+30\)$"
    with begun(tmp_path / "run") as run:
        with pytest.raises(DivergedError, match=words):
            fit(lambda _: toy_graph(), settings, "gcn", SEEDS, CPU, run)
        found = Checkpoint(run.checkpoint).load()
        for state in found[0].values() if found else ():
            assert all(tensor.isfinite().all() for tensor in state.tensors.values())
            assert state.last_loss is not None
