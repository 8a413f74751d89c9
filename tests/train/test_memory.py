"""Memory is worked out before it is taken."""

from dataclasses import replace

import pytest
import torch

from cli.runner import GRAPH, call
from lgdgcn.config import Settings
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS, build
from lgdgcn.train import memory
from lgdgcn.train.population import Member
from lgdgcn.train.trainer import Trainer
from models.toy import toy_graph

CPU = torch.device("cpu")
SETTINGS = Settings(factors=2, hidden_channels=8, num_layers=3, heads=2, k=3, epochs=2)


@pytest.mark.parametrize("model", MODELS)
def test_weights_are_counted_without_making_them(model):
    network = build(model, SETTINGS.as_dict(), 5, 3)
    count = sum(tensor.numel() for tensor in network.state_dict().values())
    assert memory._weights(model, SETTINGS, 5, 3) == count


@pytest.mark.parametrize("variant", ["paper", "released", "ours"])
def test_weights_of_every_variant(variant):
    settings = replace(SETTINGS, variant=variant)
    network = build("lgdgcn", settings.as_dict(), 5, 3)
    count = sum(tensor.numel() for tensor in network.state_dict().values())
    assert memory._weights("lgdgcn", settings, 5, 3) == count


HUGE = [
    ("lgdgcn", "hidden_channels=1000000000", "lower hidden_channels (now 1000000000)"),
    ("gcn", "hidden_channels=2147483647", "lower hidden_channels (now 2147483647)"),
    ("gat", "heads=1000000000", "lower heads (now 1000000000)"),
    ("monet", "kernel_size=1000000000", "lower kernel_size (now 1000000000)"),
]


@pytest.mark.parametrize(("model", "setting", "way_out"), HUGE)
def test_what_cannot_fit_is_refused_before_it_is_tried(tmp_path, model, setting, way_out):
    args = ["--model", model, "--set", setting, "--out", tmp_path / "run"]
    outcome = call("train", GRAPH, *args)
    assert outcome.refused("would take about", "GiB of memory, and", "GiB are free", way_out)
    assert not (tmp_path / "run").exists()


def test_more_columns_than_fit(tmp_path):
    data = toy_graph()
    row_ptr = torch.arange(37).clamp(max=1)
    parts = (row_ptr, torch.tensor([5]), torch.ones(1))
    data.x = torch.sparse_csr_tensor(*parts, (36, 10**13), dtype=torch.float32)
    with pytest.raises(InputError, match=r"use fewer features \(now 10000000000000\)"):
        Trainer(data, [Member(SETTINGS)])


def test_layers_and_neighbours_count(monkeypatch):
    monkeypatch.setattr("lgdgcn.runtime.available_memory", lambda device=None: 5 * 10**4)
    few = replace(SETTINGS, num_layers=1, hidden_channels=2)
    memory.check_memory(toy_graph(), [few] * 2, "lgdgcn", CPU)
    for changes, words in (
        ({"num_layers": 64}, r"lower num_layers \(now 64\)"),
        ({"k": 10**9}, r"lower k \(now 1000000000\)"),
    ):
        with pytest.raises(InputError, match=words):
            memory.check_memory(toy_graph(), [replace(few, **changes)] * 2, "lgdgcn", CPU)


def test_many_models_at_once_are_too_large_for_less_memory(monkeypatch):
    settings = replace(SETTINGS, k=3)
    monkeypatch.setattr("lgdgcn.runtime.available_memory", lambda device=None: 10**6)
    memory.check_memory(toy_graph(), [settings], "lgdgcn", CPU)
    with pytest.raises(torch.OutOfMemoryError, match="training 64 models at once of LGD-GCN"):
        Trainer(toy_graph(), [Member(settings, seed) for seed in range(64)])


def test_finished_members_take_none(monkeypatch):
    monkeypatch.setattr("lgdgcn.runtime.available_memory", lambda device=None: 0)
    memory.check_memory(toy_graph(), [], "lgdgcn", CPU)
