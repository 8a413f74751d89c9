"""Faults 19 to 23: numbers at the end of their range, and the same numbers again."""

import json

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from cli.runner import content, train
from faults.graphs import arrays, fitted, saved
from lgdgcn import tensor_file
from lgdgcn.config import model_name
from lgdgcn.models import build
from lgdgcn.nn import diversity_loss, knn_graph, route, space_loss
from models.toy import toy_graph

PRECISIONS = ["scaled", "exact", "released"]


def test_fault_19_identical_units_are_finite_and_worth_one_warning(tmp_path):
    """Units that are all the same give finite losses and steps, and one warning."""
    zeros = np.zeros_like(arrays()["x"])
    for value in (0, 1):
        for model in ("lgdgcn-paper", "lgdgcn-released", "lgdgcn"):
            run = tmp_path / f"{model} {value}"
            graph = saved(tmp_path / f"graph {model} {value}", x=zeros + value)
            assert train(run, "--model", model, graph=graph, epochs=5).code == 0
            lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
            assert np.isfinite([number for line in lines for number in line.values()]).all()
            said = json.loads((run / "result.json").read_text())["warnings"]
            assert sum("all nodes have the same features" in warning for warning in said) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_fault_20_likelihoods_that_explode_or_vanish_are_finite(precision, dtype):
    """A variance of 1e-8 and a distance of 1000 give finite losses and gradients."""
    torch.manual_seed(0)
    mean, cov = torch.zeros(3, 4, dtype=dtype), 1e-8 * torch.eye(4, dtype=dtype).repeat(3, 1, 1)
    for distance in (0.0, 1e3):
        z = (torch.randn(5, 3, 4, dtype=dtype) + distance).requires_grad_()
        for loss in (space_loss, diversity_loss):
            values = loss(z, mean, cov, precision)
            (gradient,) = torch.autograd.grad(values.sum(), z)
            assert values.isfinite().all()
            assert gradient.isfinite().all()


def test_fault_21_a_loss_that_is_not_finite_ends_the_run(tmp_path):
    """A non-finite loss ends the run with exit code 3, names term and epoch, reports no accuracy.

    The last finite checkpoint is kept.

    In part: a learning rate of 1e3 alone may leave the losses finite, because every layer's output
    has length 1; such a run ends with exit code 3 if nothing was learned, else with a warning.
    """
    outcome = train(tmp_path, "--set", "lr=1e30")
    outcome.refused("diverged: the ", " loss is ", "in epoch 2", "lower lr", code=3)
    assert "validation" not in outcome.out  # no table
    assert not {"result.json", "model.safetensors"} & content(tmp_path).keys()
    tensors, meta = tensor_file.load(tmp_path / "checkpoint.safetensors", "checkpoint")
    assert meta["progress"]["0"]["epoch"] == 1
    assert all(tensor.isfinite().all() for tensor in tensors.values())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_fault_22_gradients_are_those_of_finite_differences(precision):
    """gradcheck in float64 accepts routing and the space and diversity losses behind it."""
    torch.manual_seed(1)
    edges = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 0, 3]])  # node 4 is isolated
    z = torch.nn.functional.normalize(torch.rand(5, 3, 3, dtype=torch.float64), dim=-1)
    root = torch.randn(3, 3, 3, dtype=torch.float64) / 10
    cov, mean = root @ root.mT + 0.02 * torch.eye(3), z[0] + 0.1
    if precision == "released":  # it takes the covariance for the precision
        cov = cov.inverse()

    def all_three(z):
        units, factors = route(z, edges, iterations=3)
        losses = [loss(units, mean, cov, precision) for loss in (space_loss, diversity_loss)]
        return units, factors, *losses

    assert gradcheck(all_three, z.requires_grad_())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("variant", ["paper", "released", "ours"])
def test_fault_23_a_gpu_agrees_with_the_cpu(variant):
    """On a GPU the scores are the CPU's to 1e-4, and 99.9 % of the latent edges are the same."""
    data = toy_graph(nodes=600, features=32)
    torch.manual_seed(0)
    settings = {"variant": variant, "hidden_channels": 32, "k": 5}
    model = build("lgdgcn", settings, 32, 3).eval()
    cpu = model.disentangle(data.x, data.edge_index)
    gpu = model.cuda().disentangle(data.x.cuda(), data.edge_index.cuda())
    torch.testing.assert_close(gpu.logits.cpu(), cpu.logits, rtol=0, atol=1e-4)
    edges = [
        {(m, *pair) for m in range(4) for pair in knn_graph(z[:, m], 5).t().tolist()}
        for z in (cpu.layers[-1].local_units.detach(), gpu.layers[-1].local_units.detach())
    ]
    assert len(edges[0] & edges[1]) >= 0.999 * len(edges[0] | edges[1])


@pytest.mark.parametrize("variant", ["paper", "released", "ours"])
def test_fault_23_a_second_run_is_the_same_to_the_bit(variant):
    """On a CPU the same seed gives the same weights and scores to the bit."""
    data = toy_graph()
    name = model_name("lgdgcn", variant)
    first, second = (fitted(data, model=name, dropout=0.5) for _ in range(2))
    states = [model.trained_.model.state_dict() for model in (first, second)]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    assert np.array_equal(first.predict_proba(), second.predict_proba())
