"""Several seeds: which model is kept, what is summed up, what a folder remembers."""

import json
import signal
import statistics

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.train import checkpoint
from lgdgcn.train.run_folder import RunFolder
from lgdgcn.train.session import SeedResult, summary, train_seed, train_seeds
from models.toy import toy_graph

CPU = torch.device("cpu")
SETTINGS = Settings(factors=2, hidden_channels=8, k=3, epochs=6, checkpoint_every=2)


def result(seed=0, val=None, test=None):
    return SeedResult(seed, val, test, 5, 1.23456, {"test": {"accuracy": test}})


def weights(trained):
    return trained.model.state_dict()


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first | second)


# Several seeds


@pytest.mark.parametrize(
    ("values", "best"),
    [([0.3, 0.9, 0.5], 1), ([0.5, 0.5, 0.5], 0), ([None, None], 0), ([0.0, 0.2], 1)],
    ids=["highest", "first of equals", "no validation", "second"],
)
def test_the_model_of_the_best_seed_is_kept(monkeypatch, values, best):
    def fake(data, settings, model, seed, *args, **more):
        return result(seed, val=values[seed]), f"model {seed} on {data}"

    monkeypatch.setattr("lgdgcn.train.session.train_seed", fake)
    load = "graph {}".format
    results, kept = train_seeds(load, SETTINGS, "lgdgcn", range(len(values)), CPU)
    assert [r.seed for r in results] == list(range(len(values)))
    assert kept == f"model {best} on graph {best}"


def test_seeds_are_what_each_would_be_alone():
    data = toy_graph()
    results, kept = train_seeds(lambda seed: data, SETTINGS, "lgdgcn", [2, 5], CPU)
    alone = [train_seed(data, SETTINGS, "lgdgcn", seed, CPU) for seed in (2, 5)]
    assert [r.scores for r in results] == [r.scores for r, _ in alone]
    better = max((0, 1), key=lambda i: (results[i].val, -i))
    assert same(weights(kept), weights(alone[better][1]))
    assert not same(weights(alone[0][1]), weights(alone[1][1]))


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


def test_scores_of_an_empty_split_are_none():
    data = toy_graph()
    data.test_mask = torch.zeros_like(data.test_mask)
    found, _ = train_seed(data, SETTINGS, "lgdgcn", 0, CPU)
    assert found.test is None
    assert found.val is not None


# In a folder


def lines(folder):
    return [json.loads(line) for line in folder.metrics.read_text().splitlines()]


@pytest.mark.parametrize("stop_at", [1, 3, 5])
def test_a_stop_is_saved_and_resumed_bitwise(tmp_path, stop_at):
    data = toy_graph()
    alone, expected = train_seed(data, SETTINGS, "lgdgcn", 0, CPU)
    stop = StopRequest()

    def on_epoch(run, metrics):
        if metrics["epoch"] == stop_at - 1:
            stop.signal = signal.SIGTERM

    if stop_at == 1:
        stop.signal = signal.SIGTERM
    with (
        RunFolder(tmp_path / "run") as folder,
        pytest.raises(StoppedError, match=f"epoch {stop_at} of seed 0") as caught,
    ):
        train_seed(data, SETTINGS, "lgdgcn", 0, CPU, folder, on_epoch=on_epoch, stop=stop)
    assert caught.value.exit_code == 143
    assert checkpoint.load(folder.checkpoint(0))[1]["progress"]["epoch"] == stop_at
    assert [line["epoch"] for line in lines(folder)] == list(range(1, stop_at + 1))
    with RunFolder(tmp_path / "run", resume=True) as folder:
        found, trained = train_seed(data, SETTINGS, "lgdgcn", 0, CPU, folder)
        assert [line["epoch"] for line in lines(folder)] == list(range(1, 7))
        assert found.scores == alone.scores
        assert same(weights(trained), weights(expected))
        again, trained = train_seed(data, SETTINGS, "lgdgcn", 0, CPU, folder)  # nothing is left
        assert (again.epochs, again.seconds) == (6, found.seconds)
        assert same(weights(trained), weights(expected))


def test_lines_after_the_checkpoint_are_written_again(tmp_path):
    data = toy_graph()

    def fail(run, metrics):
        if metrics["epoch"] == 3:
            raise RuntimeError("killed")

    with RunFolder(tmp_path / "run") as folder:
        folder.append_metrics({"seed": 7, "epoch": 99})
        with pytest.raises(RuntimeError, match="killed"):
            train_seed(data, SETTINGS, "lgdgcn", 0, CPU, folder, on_epoch=fail)
        assert [line["epoch"] for line in lines(folder)] == [99, 1, 2, 3]
        train_seed(data, SETTINGS, "lgdgcn", 0, CPU, folder)
        assert [line["epoch"] for line in lines(folder)] == [99, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": {"lr": 0.5}}, "config.lr: 0.01 -> 0.5"),
        ({"model": "disengcn"}, 'config.model: "lgdgcn" -> "disengcn"'),
        ({"data": toy_graph(seed=1)}, "data: "),
    ],
)
def test_another_run_is_refused_and_nothing_changes(tmp_path, change, words):
    with RunFolder(tmp_path / "run") as folder:
        train_seed(toy_graph(), SETTINGS, "lgdgcn", 0, CPU, folder)
        before = folder.metrics.read_bytes()
        settings = Settings(**SETTINGS.as_dict() | change.get("settings", {}))
        data, model = change.get("data", toy_graph()), change.get("model", "lgdgcn")
        with pytest.raises(CheckpointError, match="of another run") as caught:
            train_seed(data, settings, model, 0, CPU, folder)
        assert words in str(caught.value)
        assert folder.metrics.read_bytes() == before


def test_checkpoints_come_when_due(tmp_path, monkeypatch):
    saved = []
    real = checkpoint.save

    def save(path, tensors, meta):
        saved.append(meta["progress"]["epoch"])
        return real(path, tensors, meta)

    monkeypatch.setattr(checkpoint, "save", save)
    settings = Settings(**SETTINGS.as_dict() | {"checkpoint_every": 4})
    with RunFolder(tmp_path / "run") as folder:
        train_seed(toy_graph(), settings, "lgdgcn", 0, CPU, folder)
    assert saved == [1, 4, 6]


def test_out_of_memory_says_what_to_do(monkeypatch):
    def fail(self):
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")

    monkeypatch.setattr("lgdgcn.train.loop.Run.epoch", fail)
    with pytest.raises(ValueError, match=r"cpu ran out of memory at a peak of .*lower"):
        train_seed(toy_graph(), SETTINGS, "lgdgcn", 0, CPU)
