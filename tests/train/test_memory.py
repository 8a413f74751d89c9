"""Memory is worked out before it is taken."""

from dataclasses import replace

import pytest
import torch

from lgdgcn.config import MODEL_NAMES, Settings, model_and_variant
from lgdgcn.errors import InputError
from lgdgcn.models import build
from lgdgcn.train import memory
from lgdgcn.training import Training, loader
from models.toy import toy_graph

CPU = torch.device("cpu")
SETTINGS = Settings(factors=2, hidden_channels=8, num_layers=3, heads=2, k=3, epochs=2)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_weights_are_counted_without_making_them(name):
    model, variant = model_and_variant(name)
    settings = replace(SETTINGS, variant=variant or "paper")
    network = build(model, settings.as_dict(), 5, 3)
    count = sum(tensor.numel() for tensor in network.state_dict().values())
    assert memory._weights(model, settings, 5, 3) == count


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
        loader([Training("lgdgcn", settings, seed, toy_graph()) for seed in range(64)], CPU)


def test_finished_members_take_none(monkeypatch):
    monkeypatch.setattr("lgdgcn.runtime.available_memory", lambda device=None: 0)
    memory.check_memory(toy_graph(), [], "lgdgcn", CPU)


def test_passes_stand_side_by_side_only_where_main_memory_has_room(monkeypatch):
    graph, models = toy_graph(), [("lgdgcn", SETTINGS), ("gcn", SETTINGS)]
    for free, passes in ((2**40, 512), (2**33, 4), (2**20, 1)):
        monkeypatch.setattr(memory, "available_memory", lambda device=None, free=free: free)
        assert memory.passes_at_once(graph, models) == passes
    monkeypatch.setattr(memory, "available_memory", lambda device=None: 2**33)
    monkeypatch.setattr(memory, "_bytes", lambda *args: 2**31)
    assert memory.passes_at_once(graph, models) == 2
