"""What is missing is trained, once, and what comes out is what a lone training gives."""

import signal
from dataclasses import replace

import numpy as np
import pytest
import torch

from lgdgcn.data.source import GraphSource
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.models import build
from lgdgcn.reproduce import runs
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.runs import merged, train_cells
from lgdgcn.runs.fit import fit
from lgdgcn.runs.folder import only_process
from lgdgcn.runtime import StopRequest
from lgdgcn.train.trainer import Trainer
from reproduce.tiny import GRAPH, cell

CPU = torch.device("cpu")


@pytest.fixture
def results(tmp_path) -> Results:
    return Results(tmp_path / "cells")


@pytest.fixture
def populations(monkeypatch):
    """The sizes of the populations that are trained."""
    sizes = []

    class Counted(Trainer):
        def __init__(self, trainings, loader):
            sizes.append(len(trainings))
            super().__init__(trainings, loader)

    monkeypatch.setattr("lgdgcn.training.Trainer", Counted)
    return sizes


def scores_of(results: Results, *cells) -> list[dict[int, dict]]:
    return [{seed: run.scores for seed, run in results.runs(one).items()} for one in cells]


def test_a_cell_gives_what_training_its_seeds_gives(results):
    one = cell()
    assert train_cells([one], results, CPU) == 2
    runs, _ = fit(lambda _: GraphSource(GRAPH).load(), one.settings, "lgdgcn", (0, 1), CPU)
    found = results.runs(one)
    for expected in runs:
        run = found[expected.seed]
        assert run.scores == {part: expected.scores[part] for part in ("val", "test")}
        assert (run.epochs, run.diverged) == (expected.epochs, "")
        assert run.data == fingerprint(GraphSource(GRAPH).load())
        assert 0 <= run.factors["routing_entropy"] <= 1
        assert 0 < run.factors["edge_attribution"] <= 1
        assert 0 <= run.factors["dci_disentanglement"] <= 1
        assert run.factors["correlation_ratio"] > 0
    assert {"micro_f1", "macro_f1_at_0.5"} < set(found[0].scores["test"])


def test_nothing_is_trained_twice(results, populations):
    cells = [cell(), cell("gcn"), cell(seeds=(1, 2)), cell("gcn")]
    assert train_cells(cells, results, CPU) == 5
    assert populations == [3, 2]
    assert train_cells(cells, results, CPU) == 0
    assert train_cells([cell(seeds=(0, 3))], results, CPU) == 1
    assert populations == [3, 2, 1]


def test_cells_of_one_architecture_trained_together_are_what_they_are_alone(
    results, tmp_path, populations, monkeypatch
):
    cells = [cell(k=k, lambda_space=weight) for k, weight in ((2, 0.0), (3, 0.5), (5, 2.0))]
    cells += [cell("gcn"), cell("gcn", dropout=0.0, epochs=3)]
    train_cells(cells, results, CPU)
    monkeypatch.setattr(runs, "_cells_together", lambda device: True)
    beside = Results(tmp_path / "beside")
    train_cells(cells, beside, CPU)
    assert populations == [2, 2, 2, 2, 2, 6, 4]
    assert scores_of(results, *cells) == scores_of(beside, *cells)


def test_random_splits_differ_and_share_the_graph(results):
    one = cell("mlp", (0, 1, 2), split="random")
    train_cells([one], results, CPU)
    runs = results.runs(one)
    assert len({run.data for run in runs.values()}) == 3
    alone = Results(results.folder.parent / "alone")
    train_cells([replace(one, seeds=(2,))], alone, CPU)
    assert alone.runs(one)[2].scores == runs[2].scores


def test_local_scores_are_those_of_the_same_weights_without_latent_graphs(results):
    one = cell(seeds=(0,), num_layers=2, epochs=30, k=10, lambda_space=1e-5)
    train_cells([one, cell("disengcn"), cell("gcn")], results, CPU)
    run = results.runs(one)[0]
    assert run.local_scores != run.scores
    data = GraphSource(GRAPH).load()
    _, trained = fit(lambda _: data, one.settings, "lgdgcn", (0,), CPU)
    local = build("lgdgcn", {**one.settings.as_dict(), "latent_graph": False}, 60, 6)
    local.load_state_dict(trained.model.state_dict())
    logits = replace(trained, model=local).run(data).logits
    for part in ("val", "test"):
        mask = data[f"{part}_mask"]
        assert run.local_scores[part] == trained.task.scores(logits, data.y, mask)
    assert results.runs(cell("disengcn"))[0].local_scores == {}
    assert results.runs(cell("gcn"))[0].factors == {}


def test_a_folder_of_the_same_name_is_not_the_graph(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / GRAPH).mkdir()
    assert train_cells([cell("mlp", (0,))], results, CPU) == 1


def test_a_diverged_run_is_kept_as_such(results):
    wild = cell("mlp", lr=1e30, dropout=0.0)
    assert train_cells([wild], results, CPU) == 2
    for run in results.runs(wild).values():
        assert run.scores == {}
        assert "diverged" in run.diverged
    assert train_cells([wild], results, CPU) == 0


def test_runs_of_other_data_are_not_used(results, monkeypatch):
    train_cells([cell()], results, CPU)
    before = results.runs(cell())
    results.add(cell(), [replace(before[1], data="other")])
    assert train_cells([cell()], results, CPU) == 1
    assert results.runs(cell())[1].scores == before[1].scores
    assert results.runs(cell())[1].data == before[1].data


def test_units_of_the_best_run_are_kept(results, populations):
    one = cell(seeds=(0, 1, 2), num_layers=2, keeps_units=True)
    plain = replace(one, keeps_units=False)
    train_cells([plain, one], results, CPU)
    arrays = results.arrays(one)
    assert int(arrays["seed"]) == results.best(one).seed
    data = GraphSource(GRAPH).load()
    _, trained = fit(lambda _: data, one.settings, "lgdgcn", one.seeds, CPU)
    layers = trained.run(data).layers
    for depth, layer in enumerate(layers, start=1):
        assert arrays[f"units_{depth}"].dtype == np.float32
        np.testing.assert_array_equal(arrays[f"units_{depth}"], layer.units.numpy())
    assert set(arrays) == {"units_1", "units_2", "y", "test_mask", "y_factor", "seed", "data"}

    (results.folder / f"{one.key}.npz").unlink()
    results = Results(results.folder)  # as the next command reads it
    runs = results.runs(one)
    assert train_cells([plain], results, CPU) == 0
    assert train_cells([one], results, CPU) == 1
    assert results.runs(one) == runs
    again = results.arrays(one)
    assert (again["seed"], again["data"]) == (arrays["seed"], arrays["data"])
    for name in ("units_1", "units_2", "y"):  # trained alone it differs in rounding
        np.testing.assert_allclose(again[name], arrays[name], rtol=1e-4, atol=1e-5)
    assert populations == [3, 3, 1]  # the second is ours


def test_a_stop_keeps_what_is_finished(results):
    stop = StopRequest()
    cells = [cell(seeds=(0, 1, 2)), cell("gcn", epochs=50)]
    seen = []

    def on_progress(progress):
        seen.append(progress)
        if progress.finished == 3 and len(seen) > 6:
            stop.signal = signal.SIGTERM

    with pytest.raises(StoppedError, match="stopped after 3 of 5 trainings") as error:
        train_cells(cells, results, CPU, on_progress=on_progress, stop=stop)
    assert error.value.exit_code == 143
    assert results.missing(cells[0]) == []
    assert results.missing(cells[1]) == [0, 1]
    assert seen[0].share == 0
    assert [one.share for one in seen] == sorted(one.share for one in seen)
    shares = []
    train_cells(cells, results, CPU, on_progress=lambda progress: shares.append(progress.share))
    assert shares[-1] == pytest.approx(1)
    assert results.missing(cells[1]) == []


def test_a_member_that_finishes_early_is_kept_at_once(results, monkeypatch):
    monkeypatch.setattr(runs, "_cells_together", lambda device: True)
    stop = StopRequest()
    cells = [cell(epochs=1), cell(epochs=100)]

    def on_progress(progress):
        if progress.finished:
            stop.signal = signal.SIGINT

    with pytest.raises(StoppedError, match="2 of 4"):
        train_cells(cells, results, CPU, on_progress=on_progress, stop=stop)
    assert [results.missing(one) for one in cells] == [[], [0, 1]]


def test_too_little_memory_means_smaller_populations(results, monkeypatch):
    class Greedy(Trainer):
        def __init__(self, trainings, loader):
            if len(trainings) > 2:
                raise torch.OutOfMemoryError
            super().__init__(trainings, loader)

    monkeypatch.setattr("lgdgcn.training.Trainer", Greedy)
    assert train_cells([cell(seeds=(0, 1, 2, 3, 4))], results, CPU) == 5


def test_one_process_at_a_time(results):
    with only_process(results.folder), pytest.raises(InputError, match="in use by"):
        train_cells([cell()], results, CPU)
    train_cells([cell()], results, CPU)
    assert sorted(file.name for file in results.folder.iterdir() if file.is_file()) == [
        f"{cell().key}.json",
        "run.lock",
    ]


def test_equal_cells_become_one_with_all_seeds():
    cells = merged([cell(seeds=(0, 1)), cell(k=9), cell(seeds=(1, 2), keeps_units=True)])
    assert [one.seeds for one in cells] == [(0, 1, 2), (0, 1)]
    assert [one.keeps_units for one in cells] == [True, False]
