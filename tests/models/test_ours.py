"""The ours network as a whole; its parts are tested in nn/ours."""

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.models.population import stack
from lgdgcn.nn import RandomStreams, normalized_adjacency, route
from literal.consistency import consistency_loss
from models.toy import toy_graph
from train.single import Member, trainer_of

OPTIONS = {
    "variant": "ours", "encoder_channels": 8, "hops": 2, "views": 3, "factors": 2, "k": 2,
    "hidden_channels": 10, "iterations": 0, "sharpening": 0.4, "latent_graph": False,
}  # fmt: skip


def output_of(data, outputs, **changes):
    member = Member(Settings(**OPTIONS, **changes), 0)
    network = stack([trainer_of(data, [member]).new_model(0)]).train()
    streams = RandomStreams(torch.tensor([3]), torch.tensor([1]), torch.tensor([0.2]))
    with streams.active():
        output = network.disentangle(data.x, data.edge_index)
    loss = network.losses(output, data.edge_index)["consistency"]
    classes = output.layers[-1].units[0].square().view(3, 36, 2, -1).double()  # [V, N, M, d]
    return network, loss, classes


def test_views_agree_in_the_labels_factor_alone():
    _, loss, classes = output_of(toy_graph(), 3)
    want = consistency_loss(classes[:, :, 0, :3].tolist(), 0.4)
    torch.testing.assert_close(loss, torch.tensor([want]), check_dtype=False)
    free = consistency_loss(classes[:, :, 1].tolist(), 0.4)
    assert abs(free - want) > 1e-3


def test_views_agree_on_nodes_that_are_sure():
    _, loss, classes = output_of(toy_graph(), 3, confidence=0.42)
    likeliest = classes[:, :, 0, :3].mean(0).amax(-1)
    assert 0 < (likeliest > 0.42).sum() < 36
    want = consistency_loss(classes[:, :, 0, :3].tolist(), 0.4, 0.42)
    torch.testing.assert_close(loss, torch.tensor([want]), check_dtype=False)


def test_views_agree_in_every_factor_that_labels_own():
    data = toy_graph(multi_label=True)  # the same three labels twice: two groups
    network, loss, classes = output_of(data, 6)
    owned = network.label_classes()[0] // 5
    assert owned.unique().numel() == 2
    want = sum(consistency_loss(classes[:, :, m].tolist(), 0.4) for m in range(2)) / 2
    torch.testing.assert_close(loss, torch.tensor([want]), check_dtype=False)


# For comparison: units of length 1


@pytest.mark.parametrize("iterations", [0, 2])
def test_units_of_length_1_are_routed_as_in_the_paper(iterations):
    data = toy_graph()
    settings = Settings(**OPTIONS | {"unit_length": True, "iterations": iterations})
    network = trainer_of(data, [Member(settings, 0)]).new_model(0).eval()
    hidden = network.encoder(data.x, normalized_adjacency(data.edge_index, 36), 1)[0]
    z = network.layers[0].projection(hidden)
    torch.testing.assert_close(z.norm(dim=-1), torch.ones(36, 2))
    output = network.disentangle(data.x, data.edge_index)
    routed, edge_factors = route(z, data.edge_index, max(1, iterations))
    torch.testing.assert_close(output.layers[0].units, routed if iterations else z)
    torch.testing.assert_close(output.layers[0].edge_factors, edge_factors)
    logits = network.classifier(output.layers[0].units.flatten(1))
    torch.testing.assert_close(output.logits, logits)
    assert network.concerns() == []
    for none in (network.owned_factors(), network.label_classes(), network.factor_classes(z)):
        assert none is None


@pytest.mark.parametrize("multi_label", [False, True])
def test_views_of_units_of_length_1_agree_in_the_labels(multi_label):
    data = toy_graph(multi_label=multi_label)
    member = Member(Settings(**OPTIONS, unit_length=True), 0)
    network = stack([trainer_of(data, [member]).new_model(0)]).train()
    streams = RandomStreams(torch.tensor([3]), torch.tensor([1]), torch.tensor([0.2]))
    with streams.active():
        output = network.disentangle(data.x, data.edge_index)
    losses = network.losses(output, data.edge_index)
    assert list(losses) == ["space", "diversity", "consistency"]  # edges are no evidence
    scores = output.logits[0].double().view(3, 36, -1)  # [V, N, C]
    if multi_label:
        yes = scores.sigmoid()
        parts = [torch.stack([one, 1 - one], -1) for one in yes.unbind(-1)]
    else:
        parts = [scores.softmax(-1)]
    want = sum(consistency_loss(part.tolist(), 0.4) for part in parts) / len(parts)
    torch.testing.assert_close(losses["consistency"], torch.tensor([want]), check_dtype=False)
