"""What a GPU can repeat without the host, as far as that can be told without one."""

import gc
from types import SimpleNamespace

import pytest
import torch

from lgdgcn.kernels.dispatch import is_recordable
from lgdgcn.models import LGDGCN
from lgdgcn.train import cuda_graph


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"hidden_channels": 64, "factors": 1}, True),
        ({"hidden_channels": 128, "factors": 1}, False),
        ({"hidden_channels": 128, "factors": 2}, True),
        ({"hidden_channels": 128, "factors": 1, "space": False, "diversity": False}, True),
    ],
)
def test_large_covariances_are_not_recorded(settings, expected):
    assert LGDGCN(5, out_channels=3, **settings).can_be_captured is expected


def test_the_reference_is_not_recorded(monkeypatch):
    """It asks the host for sizes; float64 and LGDGCN_BACKEND=torch run it on a GPU, too."""
    pytest.importorskip("triton")
    gpu = {"is_cuda": True, "device": torch.device("cuda")}
    single, double = (SimpleNamespace(**gpu, dtype=t) for t in (torch.float32, torch.float64))
    assert is_recordable(single)
    assert not is_recordable(double)
    assert not is_recordable(torch.zeros(1))
    monkeypatch.setenv("LGDGCN_BACKEND", "torch")
    assert not is_recordable(single)


def test_nothing_is_collected_while_recording():
    with cuda_graph._no_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="spoiled"), cuda_graph._no_garbage_collection():
        raise ValueError("spoiled")
    assert gc.isenabled()
