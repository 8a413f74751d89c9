"""Batches of nodes: interrupted, from files or on another device, a training is the same."""

import warnings

import pytest
import torch
from torch.testing import assert_close

from large import graphs
from large.graphs import NODES, changed, packed_from
from large.pretended_device import DEVICE, OnDevice, pretended_device
from lgdgcn.data import labels, node_arrays
from lgdgcn.data.labels import SPLITS
from lgdgcn.data.packed import PackedGraph
from lgdgcn.data.validate import fingerprint
from lgdgcn.errors import InputError
from lgdgcn.large import rows
from lgdgcn.large.rows import mapped_graph, prepared_rows
from lgdgcn.large.sampler import NeighbourLoader
from lgdgcn.train import task
from lgdgcn.train.targets import Targets
from lgdgcn.training import Training, run
from train.single import Member, trainer_of

VOTES = changed(graphs.VOTES, fan_out=3, epochs=6)
SEVERAL = {"fan_out": 3, "epochs": 6, "input_dropout": 0.2, "views": 2, "batch_parts": 2}
ENCODER = changed(graphs.ENCODER, **SEVERAL, weight_average=0.9)
BATCH_NORM = changed(ENCODER, batch_norm=True, encoder_layers=2)
DRAWN = changed(ENCODER, hop_table="never")
OF_ITS_OWN = {"structure": "both", "structure_neighbours": 3, "refresh_every": 2}
STRUCTURE = changed(ENCODER, **OF_ITS_OWN)
CASES = {
    "votes": VOTES,
    "encoder": ENCODER,
    "batch norm": BATCH_NORM,
    "drawn": DRAWN,
    "structure": STRUCTURE,
    "structure and votes": changed(BATCH_NORM, **OF_ITS_OWN, iterations=1),
    "drawn structure": changed(DRAWN, **OF_ITS_OWN, iterations=1),
}


def canonical_graph():
    return graphs.graph_of(0, torch.float32)


def trained(settings, data, epochs, state=None, device="cpu"):
    loader = NeighbourLoader(prepared_rows(data, settings), settings, device)
    trainer = trainer_of(loader, [Member(settings, 3)], "lgdgcn", [state])
    return trainer, [report for _ in range(epochs) for report in trainer.epoch()]


def same_tensors(a, b):
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("name", CASES)
def test_a_training_that_goes_on_is_the_same_to_the_bit(name):
    before = 3  # a structure was found before it, and another is found after it
    settings, data = CASES[name], canonical_graph()
    whole, reports = trained(settings, data, 5)
    begun, first = trained(settings, data, before)
    resumed, rest = trained(settings, data, 5 - before, begun.state(0))
    assert [r.metrics for r in first + rest] == [r.metrics for r in reports]
    same_tensors(resumed.state(0).tensors, whole.state(0).tensors)


@pytest.mark.parametrize("name", CASES)
def test_a_mapped_graph_trains_as_the_same_graph_in_memory(name, tmp_path):
    settings, data = CASES[name], canonical_graph()
    packed = packed_from(data, tmp_path / "graph.lgd")
    graph = mapped_graph(packed)
    assert graph.edge_index is None
    assert fingerprint(graph) == fingerprint(packed.to_data())
    same_tensors(
        trained(settings, data, 3)[0].state(0).tensors,
        trained(settings, graph, 3)[0].state(0).tensors,
    )


ON_GPU = [(name, 2**40) for name in CASES]  # whose memory has room for the graph, or not
ON_GPU += [("batch norm", 0), ("drawn structure", 0)]


@pytest.mark.parametrize(("name", "memory"), ON_GPU)
def test_a_gpu_trains_as_the_host_does(name, memory, monkeypatch):
    settings, data = CASES[name], canonical_graph()
    monkeypatch.setenv("LGDGCN_BACKEND", "torch")
    expected, reports = trained(settings, data, 3)
    with pretended_device(monkeypatch, memory):
        trainer, found = trained(settings, data, 3, device=DEVICE)
        assert (trainer.loader.source.sampler().device == DEVICE) == (memory > 0)
        state = trainer.state(0)
    for own, other in zip(found, reports, strict=True):
        assert own.metrics == pytest.approx(other.metrics, rel=1e-5, abs=1e-7)
    for key, tensor in expected.state(0).tensors.items():
        assert_close(state.tensors[key].cpu(), tensor, rtol=1e-4, atol=1e-5)


def test_a_pretended_device_finds_tensors_in_the_wrong_place(monkeypatch):
    with pretended_device(monkeypatch):
        there = torch.ones(3, device=DEVICE)
        assert isinstance(there + 1, OnDevice)
        assert (there + 1).device == DEVICE
        with pytest.raises(RuntimeError, match="a tensor of the host"):
            there + torch.ones(3)
        assert (there.cpu() + torch.ones(3)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["votes", "encoder", "structure and votes", "drawn structure"])
def test_no_validation_nodes_and_no_edges_are_fine(name):
    data = canonical_graph()
    data.val_mask = torch.zeros_like(data.val_mask)
    data.edge_index = data.edge_index[:, :0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, reports = trained(CASES[name], data, 2)
    assert all(report.state.diverged is None for report in reports)
    assert reports[-1].state.best_epoch == 2


@pytest.mark.parametrize("y", [None, torch.full((NODES,), -1), torch.full((NODES, 3), torch.nan)])
@pytest.mark.filterwarnings("ignore:no split was given")
def test_a_mapped_graph_without_labels_is_refused(y, tmp_path, monkeypatch):
    data = canonical_graph()
    data.y = torch.full((NODES,), -1) if y is None else y
    for split in SPLITS:
        data[f"{split}_mask"][:] = False
    packed = packed_from(data, tmp_path / "graph.lgd")
    if y is None:
        monkeypatch.setattr(PackedGraph, "y", None)
    with pytest.raises(InputError, match="has no labels; training needs some"):
        mapped_graph(packed)


LABELS = {  # what every node has, and by which scores an epoch may be chosen
    "classes": ("accuracy", "balanced_accuracy", "macro_f1", "roc_auc", "average_precision"),
    "sets of one size": ("micro_f1", "macro_f1", "roc_auc"),
    "sets": ("micro_f1", "macro_f1", "average_precision"),
}
QUIET = pytest.mark.filterwarnings("ignore::lgdgcn.errors.LGDWarning")  # on purpose, as below
LABELLED = [(kind, metric) for kind, metrics in LABELS.items() for metric in metrics]


def labelled_graph(kind):
    """A graph whose classes or labels are not all there; a node has none."""
    data = canonical_graph()
    data.classes = list("abcdef")
    data.y = 2 * data.y
    if kind == "classes":
        data.y[2] = -1
    else:
        extra = (data.y * torch.arange(NODES) % 3 if kind == "sets" else 0 * data.y).bool()
        data.y = torch.nn.functional.one_hot(data.y, 6).float()
        data.y[:, 1], data.y[:, 5] = 1, extra.float()
        data.y[2] = torch.nan
    data.test_mask[2] = False
    return data


@QUIET
@pytest.mark.parametrize(("kind", "metric"), LABELLED)
def test_validation_in_chunks_scores_as_all_nodes_at_once(kind, metric):
    data = labelled_graph(kind)
    settings = changed(ENCODER, batch_size=5, metric=metric)
    trainer, _ = trained(settings, data, 1)
    score, loss, _ = trainer.loader.validate()
    with torch.no_grad(), trainer.population.averaged():
        logits = trainer.loader.scores(trainer.network.eval(), trainer.loader.val_nodes, 1)
    targets = Targets.of([data], "val_mask")
    assert score.item() == trainer.tasks[0].selection_score(logits, targets).item()
    assert_close(loss, trainer.tasks[0].loss(logits, targets).double(), rtol=1e-6, atol=0)


@QUIET
@pytest.mark.parametrize("kind", LABELS)
def test_rare_classes_count_as_much_in_a_batch_as_in_all_nodes(kind):
    data = labelled_graph(kind)
    settings = changed(ENCODER, batch_size=10, class_weights="balanced")
    trainer, _ = trained(settings, data, 0)
    whole = Targets.of([data], "train_mask").balanced(6)
    part = (3, 1, 2, 0)  # seed, epoch, step, part
    order = trainer.loader.order
    found = trainer.loader.batch(order.nodes_of_epoch(3, 1), *part[1:]).targets
    chosen = order.training(*part)
    assert len(chosen) < whole.y.size(1)
    assert torch.equal(found.y, whole.y[:, chosen])
    assert torch.equal(found.weight, whole.weight[:, chosen])
    assert kind == "classes" or torch.equal(found.positive_weight, whole.positive_weight)


@QUIET
@pytest.mark.parametrize("kind", LABELS)
def test_labels_in_files_and_in_pieces_are_the_same(kind, tmp_path, monkeypatch):
    data, found = labelled_graph(kind), []
    given = data.clone()
    given.test_mask[2] = True  # a node without a label is in no split
    packed = packed_from(given, tmp_path / "graph.lgd")
    settings = changed(ENCODER, batch_size=10, class_weights="balanced")
    logits = torch.rand(NODES, 6, generator=torch.Generator().manual_seed(0))
    for small in (False, True):
        if small:
            for module, name in ((labels, "_ENTRIES"), (rows, "_PIECE"), (task, "_ENTRIES"),
                                 (node_arrays, "_SMALL"), (node_arrays, "_PIECE")):  # fmt: skip
                monkeypatch.setattr(module, name, 13)
        graph = mapped_graph(packed) if small else data
        trainer, reports = trained(settings, graph, 2)
        same_tensors(trainer.state(0).tensors, (found or [trainer])[0].state(0).tensors)
        scores = [trainer.tasks[0].scores(logits, graph.y, graph[f"{one}_mask"]) for one in SPLITS]
        met = trainer.loader.label_meetings(6).tolist()
        found += [trainer, ([report.metrics for report in reports], trainer.tasks[0], scores, met)]
    assert found[1] == found[3]


@pytest.mark.parametrize("name", ["encoder", *(name for name in CASES if "structure" in name)])
def test_all_nodes_in_one_batch_score_as_the_whole_graph(name):
    data = canonical_graph()
    settings = changed(CASES[name], batch_size=NODES, fan_out=0)
    trainer, _ = trained(settings, data, 3)
    model = trainer.model(0, "model").eval()
    x, nodes = trainer.graphs[0].x, data.val_mask.nonzero().squeeze(1)
    with torch.no_grad():
        expected = model.adapted(x, data.edge_index)(x, data.edge_index)[nodes]
        found = trainer.loader.scores(model, nodes)
        assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_trainings_in_batches_are_trained_one_after_the_other():
    settings = changed(VOTES, epochs=1)
    both = [Training("lgdgcn", settings, seed, canonical_graph(), group=1) for seed in (5, 6)]
    ended = [(one.training.seed, one.state.epoch) for one in run(both, torch.device("cpu"))]
    assert ended == [(5, 1), (6, 1)]
