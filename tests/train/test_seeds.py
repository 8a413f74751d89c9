"""Several seeds: which model is kept, what is summed up, what a folder remembers."""

import json
import signal
import statistics
from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import CheckpointError, DivergedError, InputError, StoppedError
from lgdgcn.runs import fit as seeds_module
from lgdgcn.runs.fit import SeedResult, fit, summary, train_seed
from lgdgcn.runs.folder import Run
from lgdgcn.runtime import StopRequest
from lgdgcn.train import checkpoint
from lgdgcn.train.memory import members_at_once
from lgdgcn.train.trained import hold_once
from lgdgcn.train.trainer import Trainer
from models.toy import toy_graph

CPU = torch.device("cpu")
WIDE = toy_graph(dtype=torch.float64)  # where rounding does not grow to a difference
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
@pytest.mark.parametrize("at_once", [1, 2, 64])
def test_the_model_of_the_best_seed_is_kept(monkeypatch, values, best, at_once):
    monkeypatch.setattr("lgdgcn.train.jobs.members_at_once", lambda *args: at_once)
    monkeypatch.setattr(seeds_module, "SeedResult", lambda seed, *rest: result(seed, values[seed]))
    seeds = range(len(values))
    results, kept = fit(lambda _: toy_graph(), SETTINGS, "gcn", seeds, CPU)
    assert [r.seed for r in results] == [*seeds]
    expected = train_seed(toy_graph(), SETTINGS, "gcn", best, CPU)[1]
    torch.testing.assert_close(weights(kept), weights(expected), rtol=1e-5, atol=1e-6)


def split_of(seed):
    """The toy graph with a split of its own, of other sizes."""
    data = toy_graph(dtype=torch.float64)
    part = torch.rand(36, generator=torch.Generator().manual_seed(seed)) * 3
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        data[name] = part.long() == number
    return data


@pytest.mark.usefixtures("general_position")
@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
@pytest.mark.parametrize("load", [lambda seed: WIDE, split_of], ids=["one split", "splits"])
def test_seeds_are_what_each_would_be_alone(model, load):
    results, kept = fit(load, SETTINGS, model, [2, 5], CPU)
    alone = [train_seed(load(seed), SETTINGS, model, seed, CPU) for seed in (2, 5)]
    assert [r.scores for r in results] == [r.scores for r, _ in alone]
    better = max((0, 1), key=lambda i: (results[i].val, -i))
    torch.testing.assert_close(weights(kept), weights(alone[better][1]), rtol=1e-8, atol=1e-8)
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


def test_a_warning_of_all_seeds_is_said_once_and_of_none():
    found = [result(0), result(1)]
    found[0].warnings += ["all", "mine"]
    found[1].warnings += ["other", "all"]
    assert summary(found)["warnings"] == ["all", "seed 0: mine", "seed 1: other"]
    assert summary(found[:1])["warnings"] == ["all", "mine"]


def test_scores_of_an_empty_split_are_none():
    data = toy_graph()
    data.test_mask = torch.zeros_like(data.test_mask)
    found, _ = train_seed(data, SETTINGS, "lgdgcn", 0, CPU)
    assert found.test is None
    assert found.val is not None


# In a folder

CONFIG = '[run]\ndataset = "g"\nmodel = "m"\nseeds = 1\nsplit = "standard"\n[settings]\n'


def lines(folder):
    return [json.loads(line) for line in folder.metrics.read_text().splitlines()]


@pytest.mark.parametrize(
    ("stop_at", "changes"),
    [
        (1, {}),
        (3, {}),
        (5, {}),
        (3, {"variant": "ours"}),
        (3, {"weight_average": 0.9}),
    ],
)
def test_a_stop_is_saved_and_resumed_bitwise(tmp_path, stop_at, changes):
    data, settings = toy_graph(), replace(SETTINGS, **changes)
    alone, expected = train_seed(data, settings, "lgdgcn", 0, CPU)
    stop = StopRequest()

    def on_epoch(member, report):
        assert (member.seed, report.index) == (0, 0)
        if report.metrics["epoch"] == stop_at - 1:
            stop.signal = signal.SIGTERM

    if stop_at == 1:
        stop.signal = signal.SIGTERM
    with Run.create(tmp_path / "run") as folder:
        folder.write_config(CONFIG)
        with pytest.raises(StoppedError, match=f"epoch {stop_at} of seed 0") as caught:
            train_seed(data, settings, "lgdgcn", 0, CPU, folder, on_epoch=on_epoch, stop=stop)
    assert caught.value.exit_code == 143
    assert checkpoint.load(folder.checkpoint(0))[1]["progress"]["epoch"] == stop_at
    assert [line["epoch"] for line in lines(folder)] == list(range(1, stop_at + 1))
    with Run.create(tmp_path / "run", resume=True) as folder:
        found, trained = train_seed(data, settings, "lgdgcn", 0, CPU, folder)
        assert [line["epoch"] for line in lines(folder)] == list(range(1, 7))
        assert found.scores == alone.scores
        assert same(weights(trained), weights(expected))
        again, trained = train_seed(data, settings, "lgdgcn", 0, CPU, folder)  # nothing is left
        assert (again.epochs, again.seconds) == (6, found.seconds)
        assert same(weights(trained), weights(expected))


def test_lines_after_the_checkpoint_are_written_again(tmp_path):
    data = toy_graph()

    def fail(member, report):
        if report.metrics["epoch"] == 3:
            raise RuntimeError("killed")

    with Run.create(tmp_path / "run") as folder:
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
    with Run.create(tmp_path / "run") as folder:
        train_seed(toy_graph(), SETTINGS, "lgdgcn", 0, CPU, folder)
        before = folder.metrics.read_bytes()
        settings = Settings(**SETTINGS.as_dict() | change.get("settings", {}))
        data, model = change.get("data", toy_graph()), change.get("model", "lgdgcn")
        with pytest.raises(CheckpointError, match="of another run") as caught:
            train_seed(data, settings, model, 0, CPU, folder)
        assert words in str(caught.value)
        assert folder.metrics.read_bytes() == before


def test_lines_that_no_training_writes_are_dropped(tmp_path):
    with Run.create(tmp_path / "run") as folder:
        for line in ({"a": 1}, {"seed": "0", "epoch": 1}, {"seed": 0, "epoch": None}):
            folder.append_metrics(line)
        train_seed(toy_graph(), SETTINGS, "lgdgcn", 0, CPU, folder)
        assert [line["epoch"] for line in lines(folder)] == [1, 2, 3, 4, 5, 6]


def test_a_result_says_what_data_it_is_of(tmp_path):
    results, _ = fit(split_of, SETTINGS, "gcn", SEEDS, CPU)
    assert [r.as_row()["data"] for r in results] == [fingerprint(split_of(seed)) for seed in SEEDS]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors, meta: ({}, meta), "(model|best) weights of another model: .* is missing"),
        (lambda tensors, meta: (tensors, meta | {"progress": {}}), "does not say how far"),
        (lambda tensors, meta: (tensors, meta | {"progress": None}), "does not say how far"),
    ],
    ids=["no tensors", "empty progress", "no progress"],
)
def test_a_sealed_checkpoint_with_something_missing_is_refused(tmp_path, change, words):
    def stop(member, report):
        if report.metrics["epoch"] == 3:
            raise KeyboardInterrupt

    with Run.create(tmp_path / "run") as folder:
        with pytest.raises(KeyboardInterrupt):
            train_seed(toy_graph(), SETTINGS, "lgdgcn", 0, CPU, folder, on_epoch=stop)
        path = folder.checkpoint(0)
        checkpoint.save(path, *change(*checkpoint.load(path)))
        with pytest.raises(CheckpointError, match=words):
            train_seed(toy_graph(), SETTINGS, "lgdgcn", 0, CPU, folder)


def test_checkpoints_come_when_due(tmp_path, monkeypatch):
    saved = []
    real = checkpoint.save

    def save(path, tensors, meta):
        saved.append(meta["progress"]["epoch"])
        return real(path, tensors, meta)

    monkeypatch.setattr(checkpoint, "save", save)
    settings = Settings(**SETTINGS.as_dict() | {"checkpoint_every": 4})
    with Run.create(tmp_path / "run") as folder:
        train_seed(toy_graph(), settings, "lgdgcn", 0, CPU, folder)
    assert saved == [1, 4, 6]


SEEDS = [4, 1, 3]


def test_several_seeds_share_a_folder(tmp_path):
    with Run.create(tmp_path / "run") as folder:
        results, _ = fit(split_of, SETTINGS, "lgdgcn", SEEDS, CPU, folder)
        found = [(line["seed"], line["epoch"]) for line in lines(folder)]
        assert found == [(seed, epoch) for epoch in range(1, 7) for seed in SEEDS]
        for seed in SEEDS:
            assert checkpoint.load(folder.checkpoint(seed))[1]["progress"]["epoch"] == 6
        assert [r.epochs for r in results] == [6, 6, 6]


def rows(results):
    return [replace(r, seconds=0.0) for r in results]


@pytest.mark.usefixtures("general_position")
@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
@pytest.mark.parametrize("at_once", [2, 64])
@pytest.mark.parametrize("calls", [5, 7])
def test_a_kill_between_the_checkpoints_of_two_seeds(tmp_path, monkeypatch, model, at_once, calls):
    monkeypatch.setattr("lgdgcn.train.jobs.members_at_once", lambda *args: at_once)
    sizes = []

    class Counted(Trainer):
        def __init__(self, graphs, members, *rest):
            sizes.append(len(members))
            super().__init__(graphs, members, *rest)

    monkeypatch.setattr("lgdgcn.train.jobs.Trainer", Counted)
    with Run.create(tmp_path / "whole") as whole:
        expected, best = fit(split_of, SETTINGS, model, SEEDS, CPU, whole)
    assert sizes == ([2, 1] if at_once == 2 else [3])
    real, saved = checkpoint.save, []

    def save(path, *args):
        if len(saved) == calls:
            raise RuntimeError("killed")
        saved.append(path.name)
        return real(path, *args)

    with Run.create(tmp_path / "run") as folder:
        monkeypatch.setattr(checkpoint, "save", save)
        with pytest.raises(RuntimeError, match="killed"):
            fit(split_of, SETTINGS, model, SEEDS, CPU, folder)
        monkeypatch.setattr(checkpoint, "save", real)
        results, kept = fit(split_of, SETTINGS, model, SEEDS, CPU, folder)
        assert rows(results) == rows(expected)
        torch.testing.assert_close(weights(kept), weights(best), rtol=1e-8, atol=1e-8)
        for mine, other in zip(lines(folder), lines(whole), strict=True):
            assert mine == pytest.approx(other, rel=1e-8)


@pytest.mark.usefixtures("general_position")
@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_a_stop_saves_every_seed_and_finished_ones_stay(tmp_path, model):
    seeds, settings = [4, 3, 0], replace(SETTINGS, patience=1)
    with Run.create(tmp_path / "whole") as whole:
        expected, best = fit(split_of, settings, model, seeds, CPU, whole)
    ends = {r.seed: r.epochs for r in expected}
    stop_at = max(ends.values()) - 1  # after the end of some, before the end of others
    assert min(ends.values()) <= stop_at
    stop = StopRequest()

    def on_epoch(member, report):
        if report.metrics["epoch"] == stop_at - 1:
            stop.signal = signal.SIGINT

    with Run.create(tmp_path / "run") as folder:
        with pytest.raises(StoppedError, match=f"^stopped after epoch {stop_at} of seed"):
            fit(split_of, settings, model, seeds, CPU, folder, on_epoch=on_epoch, stop=stop)
        for seed in seeds:
            progress = checkpoint.load(folder.checkpoint(seed))[1]["progress"]
            assert progress["epoch"] == min(ends[seed], stop_at)
        reported = []
        results, kept = fit(
            split_of,
            settings,
            model,
            seeds,
            CPU,
            folder,
            on_epoch=lambda member, report: reported.append((member.seed, report.metrics["epoch"])),
        )
        assert min(epoch for _, epoch in reported) == stop_at + 1
        assert {seed for seed, _ in reported} == {s for s, end in ends.items() if end > stop_at}
        assert rows(results) == rows(expected)
        torch.testing.assert_close(weights(kept), weights(best), rtol=1e-8, atol=1e-8)
        for mine, other in zip(lines(folder), lines(whole), strict=True):
            assert mine == pytest.approx(other, rel=1e-8)


def test_a_score_of_an_earlier_version_is_not_compared(tmp_path):
    data = toy_graph(multi_label=True)
    data.y[::2, 5] = 1  # label sets of different sizes
    with Run.create(tmp_path / "run") as folder:
        train_seed(data, SETTINGS, "gcn", 0, CPU, folder)
    path = tmp_path / "run/checkpoints/seed-0"
    tensors, meta = checkpoint.load(path)
    assert meta.pop("selection") == "average_precision"
    checkpoint.save(path, tensors, meta)
    words = r"selection: \(absent\) -> \"average_precision"
    run = '[run]\ndataset = "toy"\nmodel = "gcn"\nseeds = 1\nsplit = "standard"\n[settings]\n'
    (tmp_path / "run/config.toml").write_text(run)
    resumed = Run.create(tmp_path / "run", resume=True)
    with resumed as folder, pytest.raises(CheckpointError, match=words):
        train_seed(data, SETTINGS, "gcn", 0, CPU, folder)


def test_a_checkpoint_from_before_a_setting_was_there(tmp_path):
    data, stop = toy_graph(), StopRequest()
    stop.signal = signal.SIGTERM
    with Run.create(tmp_path / "run") as folder:
        folder.write_config(CONFIG)
        with pytest.raises(StoppedError):
            train_seed(data, SETTINGS, "lgdgcn", 0, CPU, folder, stop=stop)
    tensors, meta = checkpoint.load(folder.checkpoint(0))
    for name in ("consistency_warmup", "confidence", "weight_average"):
        del meta["config"][name]
    checkpoint.save(folder.checkpoint(0), tensors, meta)
    with Run.create(tmp_path / "run", resume=True) as folder:
        _, trained = train_seed(data, SETTINGS, "lgdgcn", 0, CPU, folder)
    _, whole = train_seed(data, SETTINGS, "lgdgcn", 0, CPU)
    assert same(weights(trained), weights(whole))


def test_as_many_seeds_at_once_whatever_k_is():
    wide = replace(SETTINGS, k=35)
    endless = replace(SETTINGS, k=10**400)
    at_once = [members_at_once(toy_graph(), s, CPU) for s in (SETTINGS, wide, endless)]
    assert at_once == [64, 64, 64]


def test_weights_that_diverged_are_not_saved(tmp_path, monkeypatch):
    """A GPU reports several epochs at once: after the good ones the weights may be spoilt."""
    real = Trainer.epoch

    def two_reports(self):
        (report,) = real(self)
        if report.metrics["epoch"] < 3:
            return [report]
        self.states[0] = replace(self.states[0], diverged=True)
        return [report, replace(report, diverged="training diverged: here")]

    monkeypatch.setattr(Trainer, "epoch", two_reports)
    settings = replace(SETTINGS, checkpoint_every=1000)
    with Run.create(tmp_path / "run") as folder:
        with pytest.raises(DivergedError, match="here"):
            train_seed(toy_graph(), settings, "gcn", 0, CPU, folder)
        _, meta = checkpoint.load(folder.checkpoint(0))
    assert meta["progress"]["epoch"] == 1


def test_graphs_of_seeds_are_held_once_and_must_be_alike():
    graphs = [toy_graph() for _ in range(3)]
    first, *others = hold_once(graphs)
    assert all(other.x is first.x and other.edge_index is first.edge_index for other in others)
    assert others[0].train_mask is graphs[1].train_mask
    graphs[2].x = graphs[2].x + 1
    with pytest.raises(InputError, match="only their splits may"):
        fit(lambda seed: graphs[seed], SETTINGS, "gcn", [0, 1, 2], CPU)


def test_a_seed_that_diverges_names_its_learning_rate():
    settings = replace(SETTINGS, lr=1e30, weight_decay=0.0, num_layers=2)
    words = r"^training diverged: the \w+ loss is \w+ in epoch \d; lower lr \(now 1e\+30\)$"
    with pytest.raises(DivergedError, match=words):
        fit(lambda seed: toy_graph(), settings, "gcn", SEEDS, CPU)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        MemoryError(),
    ],
    ids=["GPU", "CPU", "Python"],
)
def test_out_of_memory_says_what_to_do(monkeypatch, error):
    def fail(self):
        raise error

    monkeypatch.setattr("lgdgcn.train.trainer.Trainer.epoch", fail)
    with pytest.raises(InputError, match=r"^cpu ran out of memory; lower hidden_channels or"):
        train_seed(toy_graph(), SETTINGS, "lgdgcn", 0, CPU)
