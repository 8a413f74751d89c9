"""Members of a population are what each would be alone, whoever is trained beside them."""

import re
from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.models import LGDGCN, MODELS
from lgdgcn.train.population import Member, TrainState
from lgdgcn.train.trainer import Trainer
from models.toy import toy_graph
from train.single import part

pytestmark = pytest.mark.usefixtures("general_position")

SHARED = {"hidden_channels": 24, "num_layers": 2, "heads": 4}
MEMBERS = [
    Member(
        Settings(**SHARED, lr=0.02, dropout=0.5, k=3, epochs=6, patience=6),
        seed=0,
    ),
    Member(
        Settings(
            **SHARED,
            lr=0.03,
            weight_decay=0.0,
            dropout=0.0,
            lambda_space=0.1,
            lambda_div=0.2,
            lambda_edge=0.3,
            update_rate=0.9,
            k=5,
            tau=0.5,
            epochs=9,
            patience=2,
        ),
        seed=7,
    ),
    Member(
        Settings(
            **SHARED,
            lr=0.01,
            weight_decay=0.02,
            dropout=0.2,
            lambda_space=0.0,
            lambda_div=0.05,
            lambda_edge=0.0,
            update_rate=0.0,
            k=2,
            tau=2.0,
            epochs=4,
            patience=9,
        ),
        seed=2**40 + 3,
    ),
]
KINDS = [
    *((name, "paper") for name in MODELS),
    *((name, variant) for name in ("lgdgcn", "disengcn") for variant in ("released", "ours")),
]


def changed(member, **settings):
    return replace(member, settings=replace(member.settings, **settings))


def members_of(**settings):
    return [changed(member, **settings) for member in MEMBERS]


def trained(graphs, members, model="lgdgcn", states=None):
    """Train to the end; returns the trainer and every member's reports."""
    trainer = Trainer(graphs, members, model, states)
    reports = [[] for _ in members]
    trainer.train(lambda report: reports[report.index].append(report))
    return trainer, reports


def graph_of(dtype=torch.float64, **options):
    """In float64, where no rounding grows to a difference within a few epochs."""
    return toy_graph(dtype=dtype, **options)


def close(found, expected, tolerance=1e-8):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def assert_same_metrics(found, expected, tolerance=1e-8):
    for mine, other in zip(found, expected, strict=True):
        assert list(mine.metrics) == list(other.metrics)
        for name, value in other.metrics.items():
            wanted = value and pytest.approx(value, rel=tolerance, abs=tolerance)
            assert mine.metrics[name] == wanted, name
        assert mine.finished == other.finished


def assert_as_alone(trainer, reports, index, graph, tolerance=1e-8):
    """Compare a member with a trainer of its own."""
    single, (expected,) = trained(graph, [trainer.members[index]], trainer.model_name)
    assert_same_metrics(reports[index], expected, tolerance)
    mine, other = trainer.state(index), single.state(0)
    assert (mine.epoch, mine.best_epoch) == (
        other.epoch,
        other.best_epoch,
    )
    assert mine.best_score == other.best_score
    assert mine.best_loss == pytest.approx(other.best_loss, rel=tolerance)
    close(mine.tensors, other.tensors, tolerance)
    close(dict(trainer.model(index).state_dict()), part(other, "best"), tolerance)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize(("model", "variant"), KINDS)
def test_every_member_is_what_it_would_be_alone(model, variant, multi_label):
    data = graph_of(multi_label=multi_label)
    trainer, reports = trained(data, members_of(variant=variant), model)
    for index in range(3):
        assert_as_alone(trainer, reports, index, data)


def test_members_with_other_shares_of_free_factors():
    data = graph_of()
    members = [
        changed(member, variant="ours", free_share=share)
        for member, share in zip(MEMBERS, [0.02, 0.1, 0.7], strict=True)
    ]
    trainer, reports = trained(data, members)
    for index in range(3):
        assert_as_alone(trainer, reports, index, data)
    found = [trainer.state(index).tensors["model.layers.0.factor_weights"] for index in range(3)]
    begun = [1 - 0.05 - share for share in (0.02, 0.1, 0.7)]  # all labels own the first factor
    assert all(abs(own[0].item() - share) > 1e-6 for own, share in zip(found, begun, strict=True))
    assert found[0][0] > found[2][0]


@pytest.mark.parametrize(("model", "variant"), KINDS)
def test_in_float32_too(model, variant):
    data = graph_of(torch.float32)
    trainer, reports = trained(data, members_of(variant=variant, epochs=3), model)
    for index in range(3):
        assert_as_alone(trainer, reports, index, data, tolerance=1e-4)


@pytest.mark.parametrize("graph", ["knn", "cknn"])
def test_sparse_features_and_either_latent_graph(graph):
    data = graph_of()
    data.x = (data.x * (data.x > 0.4)).to_sparse_csr()
    trainer, reports = trained(data, members_of(graph=graph))
    for index in range(3):
        assert_as_alone(trainer, reports, index, data)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_the_first_member_without_dropout_leaves_the_others_theirs(model, sparse):
    data = graph_of()
    if sparse:
        data.x = data.x.to_sparse_csr()
    members = [changed(member, epochs=3) for member in (MEMBERS[1], MEMBERS[0])]
    trainer, reports = trained(data, members, model)
    for index in range(2):
        assert_as_alone(trainer, reports, index, data)


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
@pytest.mark.parametrize("dropout", [1 - 1e-9, 1 - 1e-16])
def test_a_rate_that_float32_rounds_to_1_drops_nearly_all(model, dropout):
    members = [changed(MEMBERS[0], dropout=dropout, epochs=3), changed(MEMBERS[1], epochs=3)]
    data = graph_of(torch.float32)
    trainer, reports = trained(data, members, model)
    assert [len(own) for own in reports] == [3, 3]
    assert not any(report.diverged for own in reports for report in own)
    assert_as_alone(trainer, reports, 1, data, tolerance=1e-4)


@pytest.mark.filterwarnings("ignore:k is")
@pytest.mark.parametrize("graph", ["knn", "cknn"])
@pytest.mark.parametrize("k", [36, 10**30])
def test_more_neighbours_than_nodes_for_one_member(graph, k):
    data = graph_of()
    members = members_of(graph=graph)
    members[1] = changed(members[1], k=k)
    with pytest.warns(LGDWarning, match=f"k is {k}, but there are only 36 nodes"):
        trainer, reports = trained(data, members)
    for index in range(3):
        assert_as_alone(trainer, reports, index, data)


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
@pytest.mark.parametrize("empty", [("train_mask",), ("train_mask", "val_mask")])
def test_a_member_without_training_nodes(model, empty):
    data, other = graph_of(), graph_of()
    for mask in empty:
        data[mask] = torch.zeros_like(data[mask])
    trainer, reports = trained([data, other], MEMBERS[:2], model)
    for index, graph in enumerate((data, other)):
        assert not any(report.diverged for report in reports[index])
        assert_as_alone(trainer, reports, index, graph)


# Splits


def split_of(part, seed=0, **options):
    """The toy graph with random masks of these sizes."""
    data = graph_of(**options)
    order = torch.randperm(36, generator=torch.Generator().manual_seed(seed))
    for name, nodes in zip(
        ("train", "val", "test"), order.split([*part, 36 - sum(part)]), strict=True
    ):
        data[f"{name}_mask"] = torch.zeros(36, dtype=torch.bool).index_fill(0, nodes, True)
    return data


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize(
    "parts",
    [[(12, 12), (12, 12), (12, 12)], [(5, 20), (20, 5), (12, 1)], [(9, 9), (9, 0), (6, 0)]],
    ids=["same sizes", "other sizes", "some without validation"],
)
def test_splits_of_their_own(model, multi_label, parts):
    graphs = [split_of(part, seed, multi_label=multi_label) for seed, part in enumerate(parts)]
    trainer, reports = trained(graphs, MEMBERS, model)
    for index, graph in enumerate(graphs):
        assert_as_alone(trainer, reports, index, graph)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("metric", ["macro_f1", "micro_f1", "roc_auc", "average_precision"])
def test_splits_of_their_own_by_any_score(metric, multi_label):
    graphs = [split_of(part, 3, multi_label=multi_label) for part in ((5, 20), (20, 5), (12, 1))]
    for graph in graphs:
        if multi_label:
            graph.y[::2, 5] = 1  # label sets of different sizes
    trainer, reports = trained(graphs, members_of(metric=metric), "gcn")
    for index, graph in enumerate(graphs):
        assert_as_alone(trainer, reports, index, graph)


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_node_without_label_is_never_learnt_from(multi_label):
    parts = {1: (9, 9), 2: (5, 4)}
    graphs = [split_of(part, seed, multi_label=multi_label) for seed, part in parts.items()]
    for graph in graphs:
        graph.y[0] = torch.nan if multi_label else -1
        for name in ("train_mask", "val_mask", "test_mask"):
            graph[name][0] = False
    trainer, reports = trained(graphs, MEMBERS[:2])
    for index, graph in enumerate(graphs):
        assert not any(report.diverged for report in reports[index])
        assert_as_alone(trainer, reports, index, graph)


def test_a_split_may_decide_how_label_sets_are_predicted():
    graphs = [split_of((10, 12), seed, multi_label=True) for seed in (0, 1)]
    more = graphs[0].train_mask & ~graphs[1].train_mask
    for graph in graphs:  # only the second one's training nodes all have two labels
        graph.y[more.nonzero()[0]] = 1.0
    members = [changed(MEMBERS[0], epochs=9), MEMBERS[0]]
    trainer, reports = trained(graphs, members)
    assert [task.labels_per_node for task in trainer.tasks] == [None, 2]
    for index, graph in enumerate(graphs):
        assert_as_alone(trainer, reports, index, graph)


# Members that end


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_finished_members_make_room(model):
    members = [
        changed(member, epochs=n, patience=9) for member, n in zip(MEMBERS, (4, 2, 6), strict=True)
    ]
    trainer = Trainer(toy_graph(), members, model)
    seen = []
    while not trainer.finished:
        sizes = {len(parameter) for parameter in trainer.network.parameters()}
        seen.append((*trainer.indices, *sizes))
        trainer.epoch()
    assert seen == [(0, 1, 2, 3)] * 2 + [(0, 2, 2)] * 2 + [(2, 1)] * 2
    assert [trainer.state(index).epoch for index in range(3)] == [4, 2, 6]
    assert not trainer.indices


@pytest.mark.parametrize(("model", "variant"), [kind for kind in KINDS if "ours" not in kind])
def test_a_diverging_member_takes_nobody_along(model, variant):
    members = members_of(variant=variant, epochs=5, patience=5)
    members[1] = changed(members[1], lr=1e30, dropout=0.5)
    data = graph_of(torch.float32)
    data.x *= 1e9  # enough for the units to overflow
    trainer, reports = trained(data, members, model)
    for index in (0, 2):
        assert_as_alone(trainer, reports, index, data, tolerance=1e-4)
        assert len(reports[index]) == 5
    *fine, last = reports[1]
    words = rf"training diverged: the \w+ loss is (nan|inf) in epoch {len(fine) + 1}"
    assert re.fullmatch(words, last.diverged)
    assert last.finished
    assert not any(report.diverged for report in fine)
    assert trainer.state(1).epoch == len(fine) < 5
    assert all(tensor.isfinite().all() for tensor in part(trainer.state(1), "best").values())


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_nan_in_one_members_weights_stays_there(model):
    data = graph_of()
    trainer = Trainer(data, members_of(epochs=4, patience=9), model)
    reports = [[] for _ in MEMBERS]

    def run_an_epoch():
        for report in trainer.epoch():
            reports[report.index].append(report)

    run_an_epoch()
    kept = part(trainer.state(1), "best")
    with torch.no_grad():
        for parameter in trainer.network.parameters():
            parameter[1].fill_(torch.nan)
    trainer.loader.known = []
    while not trainer.finished:
        run_an_epoch()
    assert [report.diverged for report in reports[1]] == [
        None,
        "training diverged: the classification loss is nan in epoch 2",
    ]
    close(part(trainer.state(1), "best"), kept)
    for index in (0, 2):
        assert_as_alone(trainer, reports, index, data)


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_retired_members_stay_as_they_were_and_hold_nobody_up(model):
    data = graph_of()
    members = members_of(epochs=6, patience=9)
    trainer = Trainer(data, members, model)
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


def test_retiring_all_ends_a_population():
    trainer = Trainer(graph_of(), members_of(epochs=6, patience=9))
    trainer.epoch()
    trainer.retire(range(3))
    assert trainer.finished
    trainer.retire([0])  # again, and finished ones too
    assert [trainer.state(index).epoch for index in range(3)] == [1, 1, 1]


# Several epochs between two looks of the host, as on a GPU


class Repeated:
    """Runs the program a few times at once, without what an evaluation could carry over."""

    def __init__(self, function, capture):
        self.program, self.capture = function, True

    def run(self, most=None):
        return [self.program() for _ in range(4 if most is None else min(4, most))]


@pytest.mark.parametrize(("model", "variant"), KINDS)
def test_epochs_beyond_a_members_end_leave_no_trace(monkeypatch, model, variant):
    data = graph_of()
    members = members_of(variant=variant)
    members[2] = changed(members[2], patience=1)
    alone = [trained(data, [member], model) for member in members]
    monkeypatch.setattr("lgdgcn.train.trainer.CudaGraphRunner", Repeated)
    trainer, reports = trained(data, members, model)
    for index, (single, (expected,)) in enumerate(alone):
        assert_same_metrics(reports[index], expected)
        mine, other = trainer.state(index), single.state(0)
        ignored = {"seconds": 0, "best_loss": 0}
        assert mine.progress() | ignored == other.progress() | ignored
        close(part(mine, "best"), part(other, "best"))


@pytest.mark.parametrize("model", ["lgdgcn", "gcn"])
def test_divergence_between_two_looks_is_reported_once(monkeypatch, model):
    monkeypatch.setattr("lgdgcn.train.trainer.CudaGraphRunner", Repeated)
    data = graph_of()
    trainer = Trainer(data, members_of(epochs=6, patience=9), model)
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
    assert [report.diverged for report in reports if report.diverged] == [
        "training diverged: the validation loss is nan in epoch 2"
    ]
    assert trainer.indices == [0, 2]
    assert trainer.state(1).epoch == trainer.state(1).best_epoch == 1
    assert [report.metrics["epoch"] for report in reports if report.index == 0] == [1, 2, 3, 4]


def test_a_retired_member_that_is_still_carried_along_says_nothing(monkeypatch):
    """A GPU drops members only when they are many: a new record costs more."""
    data = graph_of()
    members = members_of(epochs=6, patience=9) * 2
    trainer = Trainer(data, members)
    monkeypatch.setattr(trainer, "_release_finished", lambda: None)
    trainer.epoch()
    trainer.retire([1])
    assert trainer.indices == [*range(6)]
    assert [report.index for report in trainer.epoch()] == [0, 2, 3, 4, 5]
    assert trainer.states[1].epoch == 1


# Members that go on


@pytest.mark.parametrize(("model", "variant"), KINDS)
def test_a_resumed_member_beside_a_fresh_one(model, variant):
    data = graph_of()
    members = members_of(variant=variant, patience=9)
    first = Trainer(data, [members[0]], model)
    for _ in range(3):
        first.epoch()
    saved = first.state(0)
    first.epoch()  # which must not change what was saved
    assert saved.epoch == 3
    trainer, reports = trained(data, members, model, [saved, None, None])
    assert [report.metrics["epoch"] for report in reports[0]] == [4, 5, 6]
    assert saved.epoch == 3
    whole, (expected,) = trained(data, [members[0]], model)
    assert_same_metrics(reports[0], expected[3:])
    close(trainer.state(0).tensors, whole.state(0).tensors)
    found, want = trainer.state(0).progress(), whole.state(0).progress()
    assert found | {"seconds": 0} == want | {"seconds": 0}
    for index in (1, 2):
        assert_as_alone(trainer, reports, index, data)


def test_a_finished_member_stays_as_it_is():
    data = graph_of()
    whole, _ = trained(data, MEMBERS[:1])
    saved = whole.state(0)
    trainer, reports = trained(data, MEMBERS[:2], states=[saved, None])
    assert reports[0] == []
    assert trainer.state(0).progress() == saved.progress()
    close(dict(trainer.model(0).state_dict()), part(saved, "best"))
    assert_as_alone(trainer, reports, 1, data)


def test_a_population_of_finished_members_is_finished():
    data = graph_of()
    whole, _ = trained(data, MEMBERS)
    trainer = Trainer(data, MEMBERS, states=[whole.state(index) for index in range(3)])
    assert trainer.finished
    close(dict(trainer.model(2).state_dict()), dict(whole.model(2).state_dict()))


# What is refused


@pytest.mark.parametrize(
    "change",
    [{"factors": 3}, {"variant": "released"}, {"num_layers": 3, "graph": "knn"}],
    ids=lambda change: " ".join(change),
)
def test_members_of_another_kind(change):
    with pytest.raises(InputError, match=f"may not differ in {', '.join(change)}$"):
        Trainer(toy_graph(), [MEMBERS[0], changed(MEMBERS[1], **change)])


def test_a_graph_and_a_state_for_each():
    with pytest.raises(InputError, match="2 graphs for 3 members"):
        Trainer([toy_graph(), toy_graph()], MEMBERS)
    with pytest.raises(InputError, match="1 states for 3 members"):
        Trainer(toy_graph(), MEMBERS, states=[None])


@pytest.mark.parametrize("key", ["x", "edge_index"])
def test_graphs_that_differ_in_more_than_the_split(key):
    other = toy_graph()
    other[key] = other[key][:, :3]
    with pytest.raises(InputError, match=rf"in their split only; {key} has the shapes"):
        Trainer([toy_graph(), other], MEMBERS[:2])


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
    trainer = Trainer(toy_graph(), MEMBERS[:1])
    trainer.epoch()
    state = trainer.state(0)
    if change is None:
        del state.tensors[name]
    else:
        state.tensors[name] = change
    with pytest.raises(CheckpointError, match=words):
        Trainer(toy_graph(), MEMBERS[:1], states=[state])


def test_a_finished_state_of_another_model():
    whole, _ = trained(toy_graph(), MEMBERS[:1])
    other = changed(MEMBERS[0], hidden_channels=2 * MEMBERS[0].settings.hidden_channels)
    trainer = Trainer(toy_graph(), [other], states=[whole.state(0)])
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


def test_the_network_of_a_population_has_one_axis_more():
    trainer = Trainer(toy_graph(), MEMBERS)
    assert isinstance(trainer.network, LGDGCN)
    single = trainer.model(1, "model").state_dict()
    for name, tensor in trainer.network.state_dict().items():
        assert torch.equal(tensor[1], single[name])


@pytest.mark.parametrize(
    ("variant", "layers", "epochs"), [("paper", 1, 1), ("released", 2, 1), ("ours", 1, 2)]
)
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
        trainer = Trainer(data, [Member(settings, 0), Member(settings, 1)])
        reports = []
        trainer.train(reports.append)
        losses.append([tuple(report.metrics.values()) for report in reports])
    assert len(losses[0]) == 2 * epochs
    for want, found in zip(*losses, strict=True):
        assert found == pytest.approx(want, rel=1e-3, abs=1e-4)
