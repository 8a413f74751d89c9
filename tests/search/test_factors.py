"""How many factors: the edges held back, the rule, and what is found."""

import math
import statistics
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lgdgcn.config import Settings, preset, resolve
from lgdgcn.data import synthetic_graph
from lgdgcn.data.features import features_without_edges
from lgdgcn.data.validate import canonical, with_features
from lgdgcn.errors import InputError, StoppedError
from lgdgcn.runtime import StopRequest
from lgdgcn.search import factors as auto_factors
from lgdgcn.search.choose import choose
from lgdgcn.search.factors import (
    fewest_within_one_error,
    find_factors,
    hold_back_edges,
    least_factors,
)
from lgdgcn.search.families import Candidate
from lgdgcn.training import run

CPU = torch.device("cpu")


def graph_of(edges=60, nodes=40, label_sets=None, seed=0):
    """A random graph whose last ten nodes are isolated."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.combinations(torch.arange(nodes - 10))
    chosen = ends[torch.randperm(len(ends), generator=generator)[:edges]].t()
    y = torch.arange(nodes) % 3 if label_sets is None else label_sets
    return canonical(
        Data(
            x=torch.rand(nodes, 5, generator=generator),
            edge_index=to_undirected(chosen, num_nodes=nodes),
            y=y,
            train_mask=torch.arange(nodes) < 30,
            val_mask=torch.arange(nodes) >= 35,
        ),
        require_labels=True,
    )


def auto(epochs=3, **given):
    own = preset("", "lgdgcn", "ours", multi_label=True)
    return resolve(own, {"factors": "auto", "epochs": epochs} | given)


def find(graph, settings=None, seed=0, **options):
    return find_factors(settings or auto(), graph, "lgdgcn", seed, CPU, **options)


# Edges held back


def as_set(edge_index):
    return {(int(a), int(b)) for a, b in edge_index.t()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("edges", "expected"), [(1, 1), (20, 2), (60, 6), (200, 20)])
def test_an_edge_is_kept_or_held_back_in_both_directions(edges, expected, seed):
    edge_index = graph_of(edges, seed=seed).edge_index
    kept, held = hold_back_edges(edge_index, 0.1, seed)
    assert as_set(kept) | as_set(held) == as_set(edge_index)
    assert not as_set(kept) & as_set(held)
    assert kept.size(1) + held.size(1) == edge_index.size(1) == 2 * edges
    for some in (kept, held):
        assert as_set(some) == {(b, a) for a, b in as_set(some)}
    assert torch.equal(held[:, expected:], held[:, :expected].flip(0))
    assert held.size(1) == 2 * expected
    assert (kept[0] * 40 + kept[1]).diff().gt(0).all()  # in their order


def test_the_seed_alone_chooses_them():
    edge_index = graph_of().edge_index
    torch.manual_seed(1)
    first = hold_back_edges(edge_index, 0.1, 5)[1]
    torch.manual_seed(2)
    assert torch.equal(hold_back_edges(edge_index, 0.1, 5)[1], first)
    assert not torch.equal(hold_back_edges(edge_index, 0.1, 6)[1], first)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("diagonal", [0.0, 1.0])
def test_features_that_are_the_adjacency_matrix_lose_the_edges(layout, diagonal):
    graph = graph_of()
    _, held = hold_back_edges(graph.edge_index, 0.1, 0)
    x = torch.eye(40) * diagonal
    x[graph.edge_index[0], graph.edge_index[1]] = 2.0
    wanted = x.clone()
    for a, b in as_set(held):
        wanted[a, b] = 0
    given = x.to_sparse_csr() if layout == "sparse" else x.clone()
    found = features_without_edges(given, graph.edge_index, held)
    assert found.layout == given.layout
    assert torch.equal(found.to_dense(), wanted)
    assert torch.equal(given.to_dense(), x)  # not changed in place


@pytest.mark.parametrize("x", [torch.rand(40, 40), torch.eye(40), torch.rand(40, 3)])
def test_other_features_stay(x):
    edge_index = graph_of().edge_index
    assert features_without_edges(x, edge_index, edge_index) is x


# The rule


def literal_rule(losses):
    means = [statistics.fmean(row) for row in losses]
    best = means.index(min(means))
    for number, row in enumerate(losses):
        apart = [a - b for a, b in zip(row, losses[best], strict=True)]
        error = statistics.stdev(apart) / math.sqrt(len(apart))
        if means[number] - means[best] <= error:
            return number
    raise AssertionError


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_beside_its_literal_form(seed):
    generator = torch.Generator().manual_seed(seed)
    shared = 5 * torch.randn(1, 30, generator=generator)  # what drops out of differences
    losses = shared + torch.randn(4, 30, generator=generator, dtype=torch.float64)
    assert fewest_within_one_error(losses)[0] == literal_rule(losses.tolist())


def test_the_fewest_win_ties_and_diverged_ones_are_out():
    row = torch.tensor([1.0, 2.0, 4.0])
    lost = torch.full((3,), torch.inf)
    assert fewest_within_one_error(torch.stack([row, row, row]))[0] == 0
    assert fewest_within_one_error(torch.stack([row, row - 1]))[0] == 1  # better, without spread
    assert fewest_within_one_error(torch.stack([lost, row * torch.nan, row + 0.1, row]))[0] == 3
    assert fewest_within_one_error(torch.stack([lost, lost]))[0] == 0
    assert fewest_within_one_error(torch.tensor([[1.0], [0.5]]))[0] == 1  # a single edge


# What is found


@pytest.fixture(scope="module")
def planted():
    """A graph that two factors have made."""
    made = synthetic_graph(factors=2, nodes=150, classes=3, average_degree=24)
    return canonical(made, require_labels=True)


def test_labels_of_all_factors_need_no_free_one(planted):
    settings, found = find(planted, auto(40))
    assert (found.labelled, found.free, found.channels) == (2, 0, 8)  # at least 4 classes each
    assert (settings.factors, settings.hidden_channels, settings.epochs) == (2, 8, 40)
    assert found.tried == (2, 3, 4, 6)
    assert found.edge_losses[0] == min(found.edge_losses) < 0
    assert found.errors[0] == 0 < min(found.errors[1:])
    assert found.held_out_edges == round(0.1 * planted.edge_index.size(1) / 2)
    text = "factors: 2 own labels, 0 free (held-out edge likelihood); 8 channels"
    assert str(found) == text


def test_edges_of_a_factor_without_labels_ask_for_a_free_one(planted):
    half = planted.clone()
    half.y, half.classes = planted.y[:, :3], planted.classes[:3]
    found = find(half, auto(40))[1]
    assert found.labelled == 1
    assert found.free >= 1
    assert found.edge_losses[0] > min(found.edge_losses) + 5 * found.errors[0] / 2


def test_hidden_labels_have_no_part_and_the_same_is_found_again(planted):
    first = find(planted, auto(5))[1]
    torch.manual_seed(77)
    other = planted.clone()
    hidden = ~planted.train_mask
    other.y = planted.y.clone()
    other.y[hidden] = planted.y[hidden].flip(0)
    assert not torch.equal(other.y, planted.y)
    assert find(other, auto(5))[1] == first
    assert find(planted, auto(5), seed=1)[1] != first


def test_models_never_see_held_out_edges(planted, monkeypatch):
    seen = []

    def watched(trainings, device, on_epoch):
        seen.extend(trainings)
        return run(trainings, device, on_epoch)

    monkeypatch.setattr(auto_factors, "run", watched)
    find(planted, auto(2), seed=3)
    kept, held = hold_back_edges(planted.edge_index, 0.1, 3)
    assert len(seen) == 12
    assert {one.seed for one in seen} == {3, 4, 5}
    for one in seen:
        assert torch.equal(one.graph.edge_index, kept)
        assert not one.graph.x.to_dense()[held[0], held[1]].any()  # its features are the edges
        assert not (one.graph.val_mask | one.graph.test_mask).any()
        assert torch.equal(one.graph.train_mask, planted.train_mask)


def test_one_label_per_node_is_one_factor_of_all_classes():
    y = torch.arange(40) % 6
    settings, found = find(graph_of(label_sets=y))
    assert found.labelled == 1
    assert settings.hidden_channels == 6 * settings.factors


@pytest.mark.parametrize(("missing", "classes"), [(False, 5), (True, 6)])
def test_nodes_without_a_label_of_a_group_have_a_class_there(missing, classes):
    y = torch.cat([F.one_hot(torch.arange(40) % 5, 5), F.one_hot(torch.arange(40) // 5 % 2, 2)], 1)
    if missing:
        y[3, :5] = 0
    settings, found = find(graph_of(label_sets=y), auto(label_groups=False))
    assert found.labelled == 2
    assert settings.hidden_channels == classes * settings.factors


@pytest.mark.parametrize("edges", [0, 19])
def test_few_edges_say_nothing_of_free_factors(edges):
    settings, found = find(graph_of(edges))
    assert (settings.factors, settings.hidden_channels) == (1, 4)
    assert (found.tried, found.held_out_edges) == ((), 0)
    assert "0 free (fewer than 20 edges" in str(found)
    assert find(graph_of(20))[1].held_out_edges == 2


def test_if_all_diverge_there_are_no_free_factors():
    found = find(graph_of(), auto(3, lr=1e30))[1]
    assert (found.factors, found.free) == (1, 0)
    assert found.edge_losses == (math.inf,) * 4


def test_a_signal_ends_the_search():
    stop = StopRequest()
    stop.signal = 15
    with pytest.raises(StoppedError, match="while finding the number of factors"):
        find(graph_of(), stop=stop)


def test_a_number_stays_as_it_is():
    settings = replace(auto(), factors=4)
    choice = choose([Candidate("lgdgcn", settings)], graph_of(), CPU)
    assert (choice.best.settings, choice.factors) == (settings, None)
    assert least_factors(settings, "gcn") is settings


def test_models_without_factors_are_refused():
    assert least_factors(auto(), "disengcn").factors == 1
    with pytest.raises(InputError, match="factors is 'auto', but GCN has none"):
        least_factors(auto(), "gcn")


def test_with_an_encoder():
    given = {"encoder_channels": 8, "hops": 2, "views": 2, "iterations": 0, "structure": "both"}
    settings, found = find(graph_of(), auto(4, refresh_every=2, **given))
    assert isinstance(settings, Settings)
    assert found.labelled == 1
    assert all(math.isfinite(loss) for loss in found.edge_losses)


def test_degrees_lose_the_edges():
    graph = graph_of()
    held = graph.edge_index[:, [0]]
    held = torch.cat([held, held.flip(0)], 1)
    gone = torch.isin(graph.edge_index[0] * 40 + graph.edge_index[1], held[0] * 40 + held[1])
    rest = graph.edge_index[:, ~gone]
    x = with_features(Data(edge_index=graph.edge_index, num_nodes=40), "degree").x
    wanted = with_features(Data(edge_index=rest, num_nodes=40), "degree").x
    assert not torch.equal(x, wanted)
    assert torch.equal(features_without_edges(x, graph.edge_index, held), wanted)
