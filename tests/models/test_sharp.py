"""The sharp network as a whole; its parts are tested in nn/sharp."""

import torch

from lgdgcn.config import Settings
from lgdgcn.models.population import stack
from lgdgcn.nn import RandomStreams
from lgdgcn.train.members import new_model
from lgdgcn.train.state import Member
from literal.consistency import consistency_loss
from models.toy import toy_graph

OPTIONS = {
    "variant": "sharp", "encoder_channels": 8, "hops": 2, "views": 3, "factors": 2, "k": 2,
    "hidden_channels": 10, "iterations": 0, "sharpening": 0.4, "latent_graph": False,
}  # fmt: skip


def output_of(data, outputs, **changes):
    member = Member(Settings(**OPTIONS, **changes), 0)
    network = stack([new_model("lgdgcn", member, data, outputs)]).train()
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
