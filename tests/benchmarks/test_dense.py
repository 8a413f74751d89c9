"""The yardstick of the benchmark is the same network as ours."""

from dataclasses import replace

import dense
import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.models import build
from models.toy import toy_graph

SETTINGS = Settings(
    variant="released", graph="knn", hidden_channels=16, factors=4, num_layers=2, k=3, dropout=0.0
)


def twins(settings, in_channels=12, classes=3):
    """Our network and the dense one with the same weights, in float64."""
    torch.manual_seed(0)
    ours = build("lgdgcn", settings.as_dict(), in_channels, classes).double()
    names = ("factors", "iterations", "k", "dropout", "update_rate")
    theirs = dense.DenseLGDGCN(
        in_channels, settings.hidden_channels, classes, settings.num_layers,
        **{name: getattr(settings, name) for name in names},
    ).double()  # fmt: skip
    with torch.no_grad():
        theirs.projection.weight.copy_(ours.projection.weight.T)
        theirs.projection.bias.copy_(ours.projection.bias)
        theirs.classifier.load_state_dict(ours.classifier.state_dict())
    return ours, theirs


@pytest.mark.parametrize("layers", [1, 3])
def test_scores_losses_and_gradients_agree(layers):
    data = toy_graph(nodes=60, dtype=torch.float64)
    ours, theirs = twins(replace(SETTINGS, num_layers=layers))
    table = dense.NeighbourTable(data.edge_index, 60)
    for _ in range(2):  # statistics: set by the first, moved by the second
        output = ours.disentangle(data.x, data.edge_index)
        for moment in ("first_epoch", "before_loss"):
            ours.update_statistics(output, moment)
        mine = ours.losses(output, data.edge_index)
        logits, units = theirs(data.x, table.sample())
        space, diversity = theirs.losses(units)
    torch.testing.assert_close(logits, output.logits, atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(space, mine["space"], atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(diversity, mine["diversity"], atol=1e-8, rtol=1e-6)

    weight = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    ((logits * weight).sum() + space + diversity).backward()
    ((output.logits * weight).sum() + mine["space"] + mine["diversity"]).backward()
    torch.testing.assert_close(
        theirs.projection.weight.grad, ours.projection.weight.grad.T, atol=1e-7, rtol=1e-5
    )


def test_neighbourhoods_are_padded_or_drawn():
    nodes, hub = 80, 3
    source = torch.arange(nodes)[torch.arange(nodes) != hub]
    edges = torch.stack([source, torch.full_like(source, hub)])
    edges = torch.cat([edges, torch.tensor([[5, 7], [0, 0]])], dim=1)
    table = dense.NeighbourTable(edges, nodes)
    rows = table.sample().clone()
    assert rows.shape == (nodes, 50)
    assert rows[0].tolist() == [5, 7, *[nodes] * 48]
    assert (rows[1] == nodes).all()
    assert ((rows[hub] < nodes) & (rows[hub] != hub)).all()
    assert not torch.equal(table.sample()[hub], rows[hub])


def test_a_step_trains():
    data = toy_graph(nodes=60)
    step = dense.training_step(data, SETTINGS)
    for _ in range(2):
        step()
