"""Members of a population that end, diverge or are given up; what is refused."""

import re
from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError, InputError
from lgdgcn.train.population import TrainState
from models.toy import toy_graph
from train.single import Member, part, trainer_of
from train.test_equivalence import MEMBERS, as_on_a_gpu, assert_as_alone, close, trained

pytestmark = pytest.mark.usefixtures("general_position")


def changed(member, **settings):
    return replace(member, settings=replace(member.settings, **settings))


def members_of(**settings):
    return [changed(member, **settings) for member in MEMBERS]


def graph_of(dtype=torch.float64, **options):
    """In float64, where no rounding grows to a difference within a few epochs."""
    return toy_graph(dtype=dtype, **options)


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
@pytest.mark.parametrize("dropout", [1 - 1e-9, 1 - 1e-16])
def test_a_rate_that_float32_rounds_to_1_drops_nearly_all(model, dropout):
    members = [changed(MEMBERS[0], dropout=dropout, epochs=3), changed(MEMBERS[1], epochs=3)]
    data = graph_of(torch.float32)
    trainer, reports = trained(data, members, model)
    assert [len(own) for own in reports] == [3, 3]
    assert not any(report.state.diverged for own in reports for report in own)
    assert_as_alone(trainer, reports, 1, data, tolerance=1e-4)


# Members that end


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_finished_members_make_room(model):
    members = [
        changed(member, epochs=n, patience=9) for member, n in zip(MEMBERS, (4, 2, 6), strict=True)
    ]
    trainer = trainer_of(toy_graph(), members, model)
    seen = []
    while not trainer.finished:
        sizes = {len(parameter) for parameter in trainer.network.parameters()}
        seen.append((*trainer.indices, *sizes))
        trainer.epoch()
    assert seen == [(0, 1, 2, 3)] * 2 + [(0, 2, 2)] * 2 + [(2, 1)] * 2
    assert [trainer.state(index).epoch for index in range(3)] == [4, 2, 6]
    assert not trainer.indices


@pytest.mark.parametrize(
    ("model", "variant"),
    [*((m, "paper") for m in ("lgdgcn", "gcn", "gat", "monet")), ("lgdgcn", "released")],
)
def test_a_diverging_member_takes_nobody_along(model, variant):
    members = members_of(variant=variant, epochs=5, patience=5)
    members[0] = changed(members[0], lr=1e30, dropout=0.5)
    data = graph_of(torch.float32)
    data.x *= 1e9  # enough for the units to overflow
    trainer, reports = trained(data, members, model)
    for index in (1, 2):
        assert_as_alone(trainer, reports, index, data, tolerance=1e-4)
        assert len(reports[index]) == 5
    *fine, last = reports[0]
    words = rf"training diverged: the \w+ loss is (nan|inf) in epoch {len(fine) + 1}"
    assert re.fullmatch(words, last.state.diverged)
    assert last.finished
    assert not any(report.state.diverged for report in fine)
    assert trainer.state(0).epoch == len(fine) < 5
    assert all(tensor.isfinite().all() for tensor in part(trainer.state(0), "best").values())


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_retired_members_stay_as_they_were_and_hold_nobody_up(model):
    data = graph_of()
    members = members_of(epochs=6, patience=9)
    trainer = trainer_of(data, members, model)
    reports = [[] for _ in members]
    while not trainer.finished:
        for report in trainer.epoch():
            reports[report.index].append(report)
        if len(reports[0]) == 2:
            kept = trainer.state(1)
            trainer.retire([1])
    assert [len(own) for own in reports] == [6, 2, 6]
    assert trainer.state(1).progress() == kept.progress()
    close(trainer.state(1).tensors, kept.tensors)
    close(dict(trainer.model(1).state_dict()), part(kept, "best"))
    for index in (0, 2):
        assert_as_alone(trainer, reports, index, data)


# Several epochs between two looks of the host, as on a GPU


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_divergence_between_two_looks_is_reported_once(monkeypatch, model):
    as_on_a_gpu(monkeypatch)
    data = graph_of()
    trainer = trainer_of(data, members_of(epochs=6, patience=9), model)
    real = trainer.population.optimizer.step

    def poisoned():
        real()
        with torch.no_grad():
            for parameter in trainer.network.parameters():
                parameter[1] = torch.where(
                    trainer.population.epoch[1] == 1, torch.nan, parameter[1]
                )

    trainer.population.optimizer.step = poisoned
    reports = trainer.epoch()
    assert [report.metrics["epoch"] for report in reports if report.index == 1] == [1, 2]
    assert [report.state.diverged for report in reports if report.state.diverged] == [
        "training diverged: the validation loss is nan in epoch 2"
    ]
    assert trainer.indices == [0, 2]
    assert trainer.state(1).epoch == trainer.state(1).best_epoch == 1
    assert [report.metrics["epoch"] for report in reports if report.index == 0] == [1, 2, 3, 4]


def test_a_retired_member_that_is_still_carried_along_says_nothing(monkeypatch):
    """A GPU drops members only when they are many: a new record costs more."""
    data = graph_of()
    members = members_of(epochs=6, patience=9) * 2
    trainer = trainer_of(data, members)
    monkeypatch.setattr(trainer, "_release_finished", lambda: None)
    trainer.epoch()
    trainer.retire([1])
    assert trainer.indices == [*range(6)]
    assert [report.index for report in trainer.epoch()] == [0, 2, 3, 4, 5]
    assert trainer.states[1].epoch == 1


# Members that go on


# What is refused


@pytest.mark.parametrize("change", [{"factors": 3}, {"variant": "released"}, {"graph": "knn"}])
def test_members_of_another_kind(change):
    with pytest.raises(InputError, match="differ in more than their rates"):
        trainer_of(toy_graph(), [MEMBERS[0], changed(MEMBERS[1], **change)])


@pytest.mark.parametrize("key", ["x", "edge_index"])
def test_graphs_that_differ_in_more_than_the_split(key):
    other = toy_graph()
    other[key] = other[key][:, :3]
    with pytest.raises(InputError, match=rf"in their split only; {key} has the shapes"):
        trainer_of([toy_graph(), other], MEMBERS[:2])


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("model.classifier.bias", None, "model weights .*classifier.bias is missing"),
        ("best.classifier.bias", torch.zeros(4), "best weights .*float32.4., expected"),
        ("mean.classifier.bias", torch.zeros(3).double(), "optimizer state .*float64"),
        ("square.classifier.bias", None, "optimizer state .*classifier.bias is missing"),
        ("mean.other", torch.zeros(3), "optimizer state .*other is unknown"),
    ],
)
def test_a_state_of_another_model(name, change, words):
    trainer = trainer_of(toy_graph(), MEMBERS[:1])
    trainer.epoch()
    state = trainer.state(0)
    if change is None:
        del state.tensors[name]
    else:
        state.tensors[name] = change
    with pytest.raises(CheckpointError, match=words):
        trainer_of(toy_graph(), MEMBERS[:1], states=[state])


def test_a_finished_state_of_another_model():
    whole, _ = trained(toy_graph(), MEMBERS[:1])
    other = changed(MEMBERS[0], hidden_channels=2 * MEMBERS[0].settings.hidden_channels)
    trainer = trainer_of(toy_graph(), [other], states=[whole.state(0)])
    with pytest.raises(CheckpointError, match="best weights of another model"):
        trainer.model(0)


def test_a_copy_of_a_finished_state_is_a_copy():
    trainer, _ = trained(toy_graph(), MEMBERS[:1])
    trainer.state(0).tensors.clear()
    assert trainer.state(0).tensors


# Progress


@pytest.mark.parametrize(
    ("epoch", "best_epoch", "finished"),
    [(0, 0, False), (9, 9, False), (10, 10, True), (5, 2, True), (5, 3, False)],
)
def test_when_a_member_is_finished(epoch, best_epoch, finished):
    settings = Settings(epochs=10, patience=3)
    assert TrainState(epoch=epoch, best_epoch=best_epoch).is_finished(settings) == finished


@pytest.mark.parametrize(("variant", "layers", "epochs"), [("paper", 2, 1), ("ours", 1, 2)])
def test_the_gpu_kernels_train_the_same(monkeypatch, variant, layers, epochs):
    pytest.importorskip("triton")
    device = "cuda" if torch.cuda.is_available() else "cpu"  # there in Triton's interpreter
    data = toy_graph(nodes=12).to(device)
    data.x = data.x.to_sparse_csr()
    settings = Settings(
        hidden_channels=8,
        num_layers=layers,
        iterations=2,
        k=2,
        dropout=0.3,
        precision="scaled",  # the exact one enlarges rounding where variances are next to 0
        variant=variant,
        epochs=epochs,
    )
    losses = []
    for backend in ("torch", "triton"):
        monkeypatch.setenv("LGDGCN_BACKEND", backend)
        trainer = trainer_of(data, [Member(settings, 0), Member(settings, 1)])
        reports = []
        trainer.train(reports.append)
        losses.append([tuple(report.metrics.values()) for report in reports])
    assert len(losses[0]) == 2 * epochs
    for want, found in zip(*losses, strict=True):
        assert found == pytest.approx(want, rel=1e-3, abs=1e-4)
