"""Labels that travel along edges by their reasons, and stay where they belong."""

from copy import copy

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.kernels.graph import neighbours, set_edge_reasons
from lgdgcn.models import AlongReasons
from lgdgcn.models.population import stack
from lgdgcn.nn.label_walk import carry_labels, sum_neighbours
from lgdgcn.train.prepared import attach_edge_weights
from lgdgcn.train.trained import TrainedModel
from lgdgcn.training import Training, run
from models.toy import toy_graph

CPU = torch.device("cpu")
SETTINGS = Settings(hidden_channels=8, views=1, drop_nodes=0.0, epochs=30, propagation=4)


def reasoned(multi_label=False, dtype=torch.float64):
    """A toy graph whose first reason links nodes of a class, and the second one others."""
    data = toy_graph(dtype=dtype, multi_label=multi_label)
    classes = data.y[:, :3].argmax(1) if multi_label else data.y
    same = classes[data.edge_index[0]] == classes[data.edge_index[1]]
    data.edge_reasons = torch.stack([same, ~same], 1).to(dtype)
    return data


def model_of(data, outputs=3, multi_label=False, seed=0):
    torch.manual_seed(seed)
    model = AlongReasons(12, 8, outputs, multi_label=multi_label, drop_nodes=0.0, propagation=4)
    model = model.to(data.x.dtype)
    set_edge_reasons(data.edge_index, data.edge_reasons)
    nodes = data.train_mask.nonzero().flatten()
    y = data.y if multi_label else torch.nn.functional.one_hot(data.y, outputs)
    model.observe(nodes, y[nodes], data.edge_index, len(data.x))
    with torch.no_grad():
        model.reason_scores.copy_(torch.tensor([0.3, -0.1]))
    return model.eval()


def test_what_arrives_is_the_average_of_what_neighbours_have():
    data = reasoned()
    edges = neighbours(data.edge_index, 36)
    matrix = torch.zeros(36, 36).double()
    weight = torch.rand(36, 36).double()
    matrix[tuple(data.edge_index)] = (weight + weight.t())[tuple(data.edge_index)]
    labels = torch.rand(1, 36, 2).double()
    observed = (torch.arange(36) % 3 == 0).view(1, 36, 1)
    want = now = torch.where(observed, labels, 0)
    for _ in range(3):
        want = matrix @ now / (1 + matrix.sum(1, keepdim=True))
        now = torch.where(observed, labels, want)
    entry = matrix[edges.source, data.edge_index[1][edges.order]]
    found = carry_labels(labels, observed, entry, edges, 3)
    torch.testing.assert_close(found, want)


def test_gradients_of_weights_and_vectors():
    data = reasoned()
    edges = neighbours(data.edge_index, 36)
    x = torch.rand(2, 1, 36, 2).double().requires_grad_()
    score = torch.rand(2, 2).double().requires_grad_()

    def summed(x, score):  # weights are alike in both directions
        return sum_neighbours(x, (score @ data.edge_reasons.t())[:, edges.order], edges)

    assert torch.autograd.gradcheck(summed, (x, score))


@pytest.mark.parametrize("multi_label", [False, True])
def test_no_label_reaches_its_own_node(multi_label):
    data = reasoned(multi_label)
    outputs = 6 if multi_label else 3
    before = model_of(data, outputs, multi_label)(data.x, data.edge_index)
    nodes = data.train_mask.nonzero().flatten()
    moved = 0
    for node in nodes:
        other = copy(data)
        other.y = data.y.clone()
        other.y[node] = 1 - data.y[node] if multi_label else (data.y[node] + 1) % 3
        after = model_of(other, outputs, multi_label)(data.x, data.edge_index)
        torch.testing.assert_close(after[node], before[node])
        moved += not torch.equal(after, before)
    assert moved > len(nodes) / 2  # others hear of it


def test_training_predicts_a_label_only_where_it_is_hidden():
    data = reasoned()
    model = model_of(data).train()
    for seed in range(5):
        found = []
        for shift in (0, 1):
            other = copy(data)
            other.y = (data.y + shift) % 3  # all labels change
            model.labels = model_of(other).labels
            torch.manual_seed(seed)
            found.append(model(data.x, data.edge_index))
        torch.manual_seed(seed)
        model.labels = torch.full_like(model.labels, -1)
        alone = model(data.x, data.edge_index)
        is_alone = torch.isclose(found[0], alone).all(1) & torch.isclose(found[1], alone).all(1)
        assert 0 < is_alone[data.train_mask].sum() < data.train_mask.sum()


def trained(data, settings=SETTINGS, seed=0):
    [result] = run([Training("reasons", settings, seed, data)], CPU)
    return result, result.network().eval()


@pytest.mark.parametrize("multi_label", [False, True])
def test_labels_travel_along_the_reason_that_carries_them(multi_label):
    data = reasoned(multi_label, torch.float32)
    data.x = torch.zeros_like(data.x)  # features say nothing
    model = trained(data)[1]
    weights = model.reason_weights()
    assert weights[0] > 0.6
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0))
    logits = model(data.x, data.edge_index)
    answer = logits[:, :3].argmax(1) == torch.arange(36) % 3
    assert answer[data.test_mask].float().mean() > 0.8


@pytest.mark.parametrize("masks", [("val_mask", "test_mask"), ("test_mask",)])
def test_labels_that_are_not_trained_on_change_nothing(masks):
    data = reasoned(dtype=torch.float32)
    other = copy(data)
    other.y = data.y.clone()
    for mask in masks:
        nodes = data[mask].nonzero().flatten()
        other.y[nodes] = data.y[nodes[torch.randperm(len(nodes))]]
    settings = Settings(**SETTINGS.as_dict() | {"epochs": 5})
    first, second = (trained(graph, settings)[0] for graph in (data, other))
    best = "model" if "val_mask" in masks else "best"
    for name, tensor in first.state.weights(best).items():
        assert torch.equal(tensor, second.state.weights(best)[name]), name


def test_members_have_labels_and_weights_of_their_own():
    data = reasoned()
    other = copy(data)
    other.train_mask, other.val_mask = data.val_mask, data.train_mask
    models = [model_of(graph, seed=seed) for seed, graph in enumerate((data, other))]
    together = stack(models).eval()(data.x, data.edge_index)
    for found, model in zip(together, models, strict=True):
        torch.testing.assert_close(found, model(data.x, data.edge_index))


def test_a_part_of_the_edges_keeps_labels_and_reasons():
    data = reasoned()
    model = model_of(data)
    kept = data.edge_index.sum(0) % 3 > 0
    part = data.edge_index[:, kept]
    want = model_of(data)
    want.edges, want.reasons = part, model.reasons[kept]
    found = model.adapted(data.x, part)
    torch.testing.assert_close(found(data.x, part), want(data.x, part))
    assert model.adapted(data.x, data.edge_index) is model


def test_another_graph_has_no_labels_and_usual_reasons():
    data = reasoned()
    model = model_of(data)
    edge_index, x = data.edge_index.clone(), torch.cat([data.x, data.x[:1]])
    edge_index[edge_index == 0] = 36
    found = model.adapted(x, edge_index)
    changed = copy(data)
    changed.y = (data.y + 1) % 3
    again = model_of(changed).adapted(x, edge_index)
    torch.testing.assert_close(found(x, edge_index), again(x, edge_index))
    torch.testing.assert_close(found.reasons[0], model.reasons.mean(0))


def test_nodes_that_another_graph_shares_bring_their_labels():
    data = reasoned()
    model = model_of(data)
    want = model(data.x, data.edge_index)
    order = torch.randperm(36)  # the same graph, its nodes in another order
    moved, edge_index = model.for_nodes(order), order.argsort()[data.edge_index]
    assert torch.equal(moved.labels, model.labels[order])
    found = moved.adapted(data.x[order], edge_index)
    observed = model.labels >= 0  # of which others hold labels back in other parts
    torch.testing.assert_close(
        found(data.x[order], edge_index)[~observed[order]], want[order][~observed[order]]
    )
    more = torch.cat([edge_index, torch.tensor([[0, 20], [20, 0]])], 1)  # and a new edge
    new = moved.adapted(data.x[order], more)
    torch.testing.assert_close(new.reasons[-1], model.reasons.mean(0))
    assert torch.equal(new.labels, moved.labels)
    strangers = model.for_nodes(torch.full((5,), -1))
    assert not (strangers.labels >= 0).any()
    nothing = strangers.adapted(data.x[:5], torch.tensor([[0, 1], [1, 0]]))
    assert nothing(data.x[:5], torch.tensor([[0, 1], [1, 0]])).isfinite().all()


def test_without_any_edge_features_predict():
    data = reasoned()
    none = data.edge_index[:, :0]
    model = model_of(data).adapted(data.x, none)
    assert model(data.x, none).isfinite().all()


def test_a_saved_model_says_the_same(tmp_path):
    data = reasoned(dtype=torch.float32)
    result, model = trained(data)
    kept = TrainedModel("reasons", model, SETTINGS, result.task, [0, 1, 2], 12)
    kept.save(tmp_path / "model.safetensors")
    del data.edge_reasons
    again = TrainedModel.load(tmp_path / "model.safetensors")
    assert torch.equal(again(data).logits, kept(data).logits)


def test_given_weights_of_edges_count():
    data = reasoned(dtype=torch.float32)
    data.edge_weight = torch.ones(data.edge_index.size(1))
    heavy = copy(data)
    heavy.edge_index = data.edge_index.clone()
    ends = data.edge_index.sum(0)
    heavy.edge_weight = torch.where(ends % 2 == 0, 9.0, 0.1)
    first, second = (trained(graph)[1] for graph in (data, heavy))
    second.load_state_dict(first.state_dict())
    for graph in (data, heavy):
        attach_edge_weights(graph)
    same = first(data.x, data.edge_index), second(heavy.x, heavy.edge_index)
    assert not torch.allclose(*same)
