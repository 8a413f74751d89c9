"""Every registered model; one that is added is tested here without another line."""

import copy

import pytest
import torch
import torch.nn.functional as F

from lgdgcn.config import Settings
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS, build
from lgdgcn.models.population import stack
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task
from lgdgcn.train.trainer import loss_terms
from models.toy import toy_graph

EVERY = pytest.mark.parametrize("name", MODELS)
SETTINGS = Settings(hidden_channels=24, num_layers=2, k=3, dropout=0.0)


def model_of(name, dtype=torch.float64, **changes):
    torch.manual_seed(0)
    return build(name, SETTINGS.as_dict() | changes, 12, 3).to(dtype)


@EVERY
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_shape_and_dtype(name, dtype, num_layers):
    data = toy_graph(dtype=dtype)
    logits = model_of(name, dtype, num_layers=num_layers)(data.x, data.edge_index)
    assert logits.shape == (36, 3)
    assert logits.dtype == dtype
    assert logits.isfinite().all()


@EVERY
def test_sparse_features_give_the_same_scores(name):
    data = toy_graph(dtype=torch.float64)
    data.x *= torch.rand_like(data.x) < 0.5
    model = model_of(name, dropout=0.5).eval()
    want = model(data.x, data.edge_index)
    got = model(data.x.to_sparse_csr(), data.edge_index)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-10)


@EVERY
def test_sparse_features_in_training(name):
    data = toy_graph()
    model = model_of(name, torch.float32, dropout=0.5).train()
    F.cross_entropy(model(data.x.to_sparse_csr(), data.edge_index), data.y).backward()
    for parameter in model.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()


@EVERY
def test_node_order_does_not_matter(name):
    data = toy_graph(dtype=torch.float64)
    model = model_of(name).eval()
    order = torch.randperm(36)
    want = model(data.x, data.edge_index)[order]
    got = model(data.x[order], order.argsort()[data.edge_index])
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5)


@EVERY
@pytest.mark.parametrize("edges", ["none", "some"])
def test_isolated_nodes_and_zero_rows_are_finite(name, edges):
    data = toy_graph(dtype=torch.float64)
    data.x[:5] = 0
    keep = (data.edge_index > 5).all(0) & (edges == "some")
    model = model_of(name)
    logits = model(data.x, data.edge_index[:, keep])
    assert logits.isfinite().all()
    logits.square().sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()


def total_loss(network, data, task):
    output = network.disentangle(data.x, data.edge_index)
    targets = Targets.of([data], "train_mask")
    weights = {"space": torch.tensor([0.5]), "diversity": torch.tensor([0.01])}
    output = output._replace(logits=targets.pick(output.logits))
    return loss_terms(network, output, task, targets, data.edge_index, weights)["total"]


@EVERY
@pytest.mark.parametrize("multi_label", [False, True])
def test_one_step_lowers_the_loss(name, multi_label):
    data = toy_graph(dtype=torch.float64, multi_label=multi_label)
    task = Task.of(data)
    torch.manual_seed(0)
    settings = SETTINGS.as_dict() | {"drop_nodes": 0.0}  # nothing is random
    network = stack([build(name, settings, 12, task.outputs).double()])
    before = total_loss(network, data, task)
    before.backward()
    gradients = {n: p.grad for n, p in network.named_parameters()}
    assert all(g is not None and g.isfinite().all() for g in gradients.values())
    assert sum(g.abs().sum() for g in gradients.values()) > 0
    after = copy.deepcopy(network)
    with torch.no_grad():
        for parameter, gradient in zip(after.parameters(), gradients.values(), strict=True):
            parameter -= 1e-3 * gradient
    assert total_loss(after, data, task) < before


def test_unknown_model():
    with pytest.raises(InputError, match=r"resnet.*lgdgcn"):
        build("resnet", {}, 12, 3)


def test_settings_that_a_model_does_not_know_are_left_out():
    assert build("mlp", {"hidden_channels": 8, "heads": 4}, 12, 3) is not None
    with pytest.raises(TypeError):
        MODELS["mlp"].cls(12, 8, 3, heads=4)


@EVERY
def test_reset_parameters_draws_new_weights(name):
    model = model_of(name)
    before = copy.deepcopy(model.state_dict())
    torch.manual_seed(1)
    model.reset_parameters()
    weights = [key for key in before if key.endswith("weight") and before[key].std() > 0]
    assert weights
    assert not any(torch.equal(model.state_dict()[key], before[key]) for key in weights)
