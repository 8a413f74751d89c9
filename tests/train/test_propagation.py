"""Trainings with random propagation in front: ours and GRAND."""

from itertools import pairwise

import pytest
import torch

from lgdgcn.config import Settings
from lgdgcn.errors import LGDWarning
from lgdgcn.train.memory import _activations
from lgdgcn.train.population import Member
from lgdgcn.train.trained import TrainedModel
from lgdgcn.train.trainer import Trainer
from models.toy import toy_graph
from train.one_seed import train_seed

BASE = {
    "variant": "ours", "encoder_channels": 8, "hops": 3, "views": 3, "factors": 2,
    "hidden_channels": 8, "epochs": 6, "iterations": 0, "space": False, "diversity": False,
    "latent_graph": False, "refresh_every": 2, "structure_neighbours": 3,
}  # fmt: skip
KINDS = [
    {},
    {"iterations": 1, "hop_weights": "signed"},
    {"input_dropout": 0.3, "batch_norm": True},
    {"propagate": "features", "batch_norm": True, "hop_weights": "learned"},
    {"structure": "local"},
    {"structure": "both", "input_dropout": 0.3},
    {"unit_length": True, "structure": "both"},
    {"model": "grand", "input_dropout": 0.3, "batch_norm": True},
]


def settings_of(kind, **changes):
    return Settings(**{k: v for k, v in {**BASE, **kind, **changes}.items() if k != "model"})


def model_of(kind):
    return kind.get("model", "lgdgcn")


def same(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_says_the_same(kind, tmp_path):
    data = toy_graph()
    _, trained = train_seed(
        data, settings_of(kind, epochs=30, lr=0.05), model_of(kind), 0, torch.device("cpu")
    )
    trained.save(tmp_path / "model.safetensors")
    again = TrainedModel.load(tmp_path / "model.safetensors")
    assert torch.equal(trained(data).logits, again(data).logits)
    same(trained.model.state_dict(), again.model.state_dict())


def test_a_graph_that_was_not_trained_on_has_its_own_structure():
    data = toy_graph()
    kind = {"structure": "both", "epochs": 60, "lr": 0.05}
    _, trained = train_seed(data, settings_of(kind), "lgdgcn", 0, torch.device("cpu"))
    before = trained(data).logits
    order = torch.randperm(36, generator=torch.Generator().manual_seed(1))
    other = data.clone()  # the same graph with its nodes in another order
    other.x, other.y = data.x[order], data.y[order]
    other.edge_index = order.argsort()[data.edge_index]
    found = trained(other).logits
    agree = found.argmax(-1) == before[order].argmax(-1)
    assert agree.float().mean() > 0.8  # its own structure is not the trained one, but alike
    larger = toy_graph(nodes=48, seed=1)
    right = trained(larger).logits.argmax(-1) == larger.y
    assert right.float().mean() > 0.8
    assert torch.equal(trained(data).logits, before)


def test_the_structure_is_found_anew_every_so_many_epochs():
    data = toy_graph()
    trainer = Trainer(data, [Member(settings_of({"structure": "both"}), 0)])
    seen = []
    for _ in range(5):
        trainer.epoch()
        seen.append(trainer.state(0).tensors["model.propagation_graph.value"])
    changed = [not torch.equal(a, b) for a, b in pairwise(seen)]
    assert changed == [True, False, True, False]  # after epochs 2 and 4


def test_settings_of_the_propagation_without_it_are_named():
    for changes in ({"hops": 2}, {"views": 2}, {"structure": "local"}):
        settings = Settings(variant="ours", hidden_channels=16, k=2, **changes)
        with pytest.warns(LGDWarning, match="not used without encoder_channels"):
            Trainer(toy_graph(), [Member(settings, 0)])


@pytest.mark.parametrize("kind", [{}, {"propagate": "features"}, {"model": "grand"}])
def test_every_view_takes_memory(kind):
    data = toy_graph()
    one, four = (
        _activations(data, settings_of(kind, views=views), model_of(kind), 3) for views in (1, 4)
    )
    assert four == 4 * one
    if model_of(kind) == "lgdgcn":
        without = settings_of(kind, encoder_channels=0, views=4)
        assert _activations(data, without, "lgdgcn", 3) < one
