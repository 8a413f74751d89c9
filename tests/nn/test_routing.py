"""Neighbourhood routing (Alg. 1, line 5); the backends are tested in tests/kernels."""

import pytest
import torch
from torch.autograd import gradcheck

from lgdgcn import kernels
from lgdgcn.nn import LGDConv, diversity_loss, route, space_loss

EDGES = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 1, 0, 3]])  # node 4 is isolated


def units(seed, nodes=5, factors=3, size=4):
    torch.manual_seed(seed)
    z = torch.rand(nodes, factors, size, dtype=torch.float64)
    return z / z.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize("loss", [space_loss, diversity_loss])
@pytest.mark.parametrize("precision", ["scaled", "released"])
def test_gradients_through_routing_and_loss(loss, precision):
    torch.manual_seed(1)
    root = torch.randn(3, 4, 4, dtype=torch.float64) / 10
    cov, mean = root @ root.mT + 0.02 * torch.eye(4), units(2)[0]
    if precision == "released":  # narrow again, so that no determinant is tiny
        cov = cov.inverse()

    def composed(z):
        return loss(route(z, EDGES, iterations=3)[0], mean, cov, precision)

    assert gradcheck(composed, units(1).requires_grad_())


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
    layer(torch.rand(5, 6, dtype=dtype), EDGES)
    assert seen == [wanted]
