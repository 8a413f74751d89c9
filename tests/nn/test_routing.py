"""Neighbourhood routing (Alg. 1, line 5); the backends are tested in tests/kernels."""

import pytest
import torch

from lgdgcn import kernels
from lgdgcn.nn import LGDConv


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
    ],
)
def test_the_temperature_of_a_layer_has_the_type_of_its_units(monkeypatch, dtype, wanted):
    """The kernels of a GPU are compiled for one type; ``model.cuda()`` leaves buffers theirs."""
    seen = []
    real = kernels.route

    def spy(z, edge_index, iterations, tau, **options):
        seen.append(tau.dtype)
        return real(z, edge_index, iterations, tau, **options)

    monkeypatch.setattr(kernels, "route", spy)
    layer = LGDConv(6, 12, k=2)
    layer.projection.to(dtype)
    layer(torch.rand(5, 6, dtype=dtype), torch.tensor([[0, 1], [1, 0]]))
    assert seen == [wanted]
