"""A training is the same whoever is trained beside it, and however often it is interrupted.

Every case is trained as a population of three and member by member; interrupted and resumed; and
with several epochs between two looks of the host, as on a GPU. In float64, where no rounding grows
to a difference within a few epochs.
"""

from dataclasses import replace

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import LGDWarning
from lgdgcn.models import MODELS
from models.toy import toy_graph
from train.single import Member, part, trainer_of

pytestmark = pytest.mark.usefixtures("general_position")

SHARED = {"hidden_channels": 24, "num_layers": 2, "heads": 4}
OWN = (  # the first one drops nothing, which must not keep the others from it
    {"lr": 0.03, "weight_decay": 0.0, "dropout": 0.0, "lambda_space": 0.1, "lambda_div": 0.2,
     "lambda_edge": 0.3, "update_rate": 0.9, "k": 5, "tau": 0.5, "epochs": 9, "patience": 2},
    {"lr": 0.02, "dropout": 0.5, "k": 3, "epochs": 6, "patience": 9, "free_share": 0.02},
    {"lr": 0.01, "weight_decay": 0.02, "dropout": 0.2, "lambda_space": 0.0, "lambda_div": 0.05,
     "lambda_edge": 0.0, "update_rate": 0.0, "k": 2, "tau": 2.0, "epochs": 4, "patience": 9},
)  # fmt: skip
SEEDS = (7, 0, 2**40 + 3)
MEMBERS = [Member(Settings(**SHARED, **own), seed) for own, seed in zip(OWN, SEEDS, strict=True)]

PLAIN = {"space": False, "diversity": False, "latent_graph": False, "iterations": 0}
ENCODER = {
    **PLAIN, "variant": "ours", "encoder_channels": 8, "hops": 3, "views": 3, "factors": 2,
    "hidden_channels": 8, "refresh_every": 2, "structure_neighbours": 3,
}  # fmt: skip
AVERAGES = (  # settings that only some members have
    {"consistency_warmup": 4, "confidence": 0.4, "weight_average": 0.7, "drop_nodes": 0.3},
    {"drop_nodes": 0.5, "structure_weight": 0.2},
    {"weight_average": 0.9, "drop_nodes": 0.2},
)
CASES = {  # model, settings of all members, settings of each
    **{name: (name, {}, ()) for name in MODELS},
    **{
        f"{name}, {variant}": (name, {"variant": variant}, ())
        for name in ("lgdgcn", "disengcn")
        for variant in ("released", "ours")
    },
    "knn": ("lgdgcn", {"graph": "knn"}, ()),
    "balanced": ("gcn", {"class_weights": "balanced"}, ()),
    "views": ("lgdgcn", ENCODER, AVERAGES),
    "signed hops and votes": ("lgdgcn", {**ENCODER, "iterations": 1, "hop_weights": "signed"}, ()),
    "features are propagated": (
        "lgdgcn",
        {**ENCODER, "propagate": "features", "batch_norm": True, "hop_weights": "learned"},
        AVERAGES,
    ),
    "local structure": ("lgdgcn", {**ENCODER, "structure": "local"}, ()),
    "structure": ("lgdgcn", {**ENCODER, "structure": "both", "input_dropout": 0.3}, AVERAGES),
    "unit length": ("lgdgcn", {**ENCODER, "structure": "both", "unit_length": True}, ()),
    "grand, batch norm": ("grand", {**ENCODER, "input_dropout": 0.3, "batch_norm": True}, AVERAGES),
}


SCORES = {
    metric: ("gcn", {"metric": metric}, ())
    for metric in ("macro_f1", "roc_auc", "average_precision")
}


def members_of(case, **changes):
    _, shared, own = (CASES | SCORES)[case]
    return [
        replace(one, settings=replace(one.settings, **shared, **more, **changes))
        for one, more in zip(MEMBERS, own or ({},) * 3, strict=True)
    ]


def trained(graphs, members, model="lgdgcn", states=None):
    """Train to the end; returns the trainer and every member's reports."""
    trainer = trainer_of(graphs, members, model, states)
    reports = [[] for _ in members]
    trainer.train(lambda report: reports[report.index].append(report))
    return trainer, reports


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
    own = trainer.trainings[index]
    single, (expected,) = trained(graph, [own], own.model)
    assert_same_metrics(reports[index], expected, tolerance)
    mine, other = trainer.state(index), single.state(0)
    assert (mine.epoch, mine.best_epoch) == (other.epoch, other.best_epoch)
    assert mine.best_score == other.best_score
    assert mine.best_loss == pytest.approx(other.best_loss, rel=tolerance)
    close(mine.tensors, other.tensors, tolerance)
    close(dict(trainer.model(index).state_dict()), part(other, "best"), tolerance)


def split_of(sizes, seed, data):
    """A graph with random masks of these sizes, whose first node has no label."""
    order = torch.randperm(36, generator=torch.Generator().manual_seed(seed))
    for name, nodes in zip(
        ("train", "val", "test"), order.split([*sizes, 36 - sum(sizes)]), strict=True
    ):
        data[f"{name}_mask"] = torch.zeros(36, dtype=torch.bool).index_fill(0, nodes, True)
        data[f"{name}_mask"][0] = False
    data.y[0] = torch.nan if data.y.dim() == 2 else -1
    return data


def shared_graph(**options):
    return [toy_graph(**{"dtype": torch.float64} | options)] * 3


def splits(sizes, multi_label=False):
    return [
        split_of(own, seed, toy_graph(dtype=torch.float64, multi_label=multi_label))
        for seed, own in enumerate(sizes)
    ]


def sparse_graph():
    graph = toy_graph(dtype=torch.float64)
    graph.x = (graph.x * (graph.x > 0.4)).to_sparse_csr()
    return [graph] * 3


def weighted_graph():
    graph = toy_graph(dtype=torch.float64)
    graph.edge_weight = (graph.edge_index.sum(0) % 5 + 1).double()  # alike in both directions
    return [graph] * 3


def sets_of_different_sizes():
    graphs = splits([(5, 20), (20, 5), (12, 1)], multi_label=True)
    for graph in graphs:
        graph.y[2::2, 5] = 1
    return graphs


GRAPHS = {
    "classes": shared_graph,
    "sets of labels": lambda: shared_graph(multi_label=True),
    "sparse features": sparse_graph,
    "other splits, some without validation": lambda: splits([(9, 9), (5, 20), (6, 0)]),
    "some without training nodes": lambda: splits([(0, 9), (9, 9), (0, 0)]),
    "sets, other splits": lambda: splits([(12, 12), (20, 5), (12, 1)], multi_label=True),
    "sets of different sizes": sets_of_different_sizes,
    "weighted edges": weighted_graph,
}


ON_GRAPHS = [(case, "classes") for case in CASES]
ON_GRAPHS += [(case, graph) for case in ("lgdgcn", "gat", "structure") for graph in [*GRAPHS][1:]]
ON_GRAPHS += [("macro_f1", "other splits, some without validation")]
ON_GRAPHS += [(metric, "sets of different sizes") for metric in ("roc_auc", "average_precision")]
ON_GRAPHS += [
    (case, "weighted edges") for case in ("gcn", "gcnii", "appnp", "grand", "lgdgcn, ours")
]


@pytest.mark.parametrize(("case", "graph"), ON_GRAPHS)
def test_every_member_is_what_it_would_be_alone(case, graph):
    graphs = GRAPHS[graph]()
    trainer, reports = trained(graphs, members_of(case), (CASES | SCORES)[case][0])
    for index, own in enumerate(graphs):
        assert not any(report.state.diverged for report in reports[index])
        assert_as_alone(trainer, reports, index, own)


@pytest.mark.parametrize("case", CASES)
def test_resumed_it_is_the_same_to_the_bit_alone_and_beside_others(case):
    stop = 3  # a structure was found before it, and another is found after it
    model, members, [data, *_] = CASES[case][0], members_of(case, patience=9), shared_graph()
    first = trainer_of(data, members[1:2], model)
    for _ in range(stop):
        first.epoch()
    saved = first.state(0)
    first.epoch()  # which must not change what was saved
    assert saved.epoch == stop
    whole, (expected,) = trained(data, members[1:2], model)
    alone, (rest,) = trained(data, members[1:2], model, [saved])
    assert [one.metrics for one in rest] == [one.metrics for one in expected[stop:]]
    want = whole.state(0)
    assert want.tensors.keys() == alone.state(0).tensors.keys()
    for name, tensor in want.tensors.items():
        assert torch.equal(alone.state(0).tensors[name], tensor), name
    trainer, reports = trained(data, members, model, [None, saved, None])
    assert_same_metrics(reports[1], expected[stop:])
    close(trainer.state(1).tensors, want.tensors)
    found = trainer.state(1).progress()
    assert found | {"seconds": 0} == want.progress() | {"seconds": 0}
    assert_as_alone(trainer, reports, 0, data)


class Repeated:
    """Runs the program a few times at once, without what an evaluation could carry over."""

    def __init__(self, function):
        self.program = function

    def run(self, most=None):
        return [self.program() for _ in range(4 if most is None else min(4, most))]


def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr("lgdgcn.train.loader.is_recordable", lambda x: True)
    monkeypatch.setattr("lgdgcn.train.trainer.CudaGraphRunner", Repeated)


@pytest.mark.parametrize("case", CASES)
def test_epochs_beyond_a_members_end_leave_no_trace(monkeypatch, case):
    """A GPU makes several epochs between two looks of the host."""
    model, [data, *_] = CASES[case][0], shared_graph()
    members = members_of(case)
    members[2] = replace(members[2], settings=replace(members[2].settings, patience=1))
    alone = [trained(data, [member], model) for member in members]
    as_on_a_gpu(monkeypatch)
    trainer, reports = trained(data, members, model)
    for index, (single, (expected,)) in enumerate(alone):
        assert_same_metrics(reports[index], expected)
        mine, other = trainer.state(index), single.state(0)
        ignored = {"seconds": 0, "best_loss": 0}
        assert mine.progress() | ignored == other.progress() | ignored
        close(part(mine, "best"), part(other, "best"))


def test_a_split_may_decide_how_label_sets_are_predicted():
    graphs = splits([(10, 12), (10, 12)], multi_label=True)
    more = graphs[0].train_mask & ~graphs[1].train_mask
    for graph in graphs:  # only the second one's training nodes all have two labels
        graph.y[more.nonzero()[0]] = 1.0
    trainer, reports = trained(graphs, MEMBERS[:2])
    assert [task.labels_per_node for task in trainer.tasks] == [None, 2]
    for index, graph in enumerate(graphs):
        assert_as_alone(trainer, reports, index, graph)


@pytest.mark.filterwarnings("ignore:k is")
def test_more_neighbours_than_nodes_for_one_member():
    k = 10**30
    data, members = shared_graph()[0], members_of("lgdgcn")
    members[1] = replace(members[1], settings=replace(members[1].settings, k=k))
    with pytest.warns(LGDWarning, match=f"k is {k}, but there are only 36 nodes"):
        trainer, reports = trained(data, members)
    for index in range(3):
        assert_as_alone(trainer, reports, index, data)
