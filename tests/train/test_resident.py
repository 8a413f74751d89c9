import pytest
import torch
from torch.testing import assert_close

from lgdgcn.large.rows import prepared_rows
from lgdgcn.large.sampler import NeighbourLoader
from lgdgcn.train.population import Member
from lgdgcn.train.trainer import Trainer
from train.pretended_device import DEVICE, OnDevice, pretended_device
from train.test_batch_trainer import CASES, canonical_graph, trained


def test_a_pretended_device_finds_tensors_in_the_wrong_place(monkeypatch):
    with pretended_device(monkeypatch):
        there = torch.ones(3, device=DEVICE)
        assert isinstance(there + 1, OnDevice)
        assert (there + 1).device == DEVICE
        with pytest.raises(RuntimeError, match="a tensor of the host"):
            there + torch.ones(3)
        assert (there.cpu() + torch.ones(3)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("memory", [0, 2**40], ids=["read by the host", "read by the device"])
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_trains_as_the_host_does(name, memory, monkeypatch):
    settings, data = CASES[name], canonical_graph()
    monkeypatch.setenv("LGDGCN_BACKEND", "torch")
    expected, reports = trained(settings, data, 3)
    with pretended_device(monkeypatch, memory):
        ready = prepared_rows(data, settings)
        trainer = Trainer(NeighbourLoader(ready, settings, DEVICE), [Member(settings, 3)])
        is_there = trainer.loader.source.sampler().device == DEVICE
        assert is_there == (memory > 0)
        found = [report for _ in range(3) for report in trainer.epoch()]
        state = trainer.state(0)
    for own, other in zip(found, reports, strict=True):
        assert own.metrics == pytest.approx(other.metrics, rel=1e-5, abs=1e-7)
    for key, tensor in expected.state(0).tensors.items():
        assert_close(state.tensors[key].cpu(), tensor, rtol=1e-4, atol=1e-5)
