"""Eq. 1."""

import pytest
import torch

from lgdgcn.errors import InputError
from lgdgcn.nn import FactorProjection
from lgdgcn.nn.projection import split_factors
from literal.latent_space import projection
from literal.seeds import seeds

SEEDS = seeds(2)


def example(seed, dtype=torch.float64):
    torch.manual_seed(seed)
    x = torch.randn(7, 5, dtype=dtype) * (torch.rand(7, 5) < 0.6)
    return FactorProjection(5, 12, factors=3).to(dtype), x


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_equals_the_literal_loop(seed, dtype, tolerance):
    layer, x = example(seed, dtype)
    want = projection(
        x.numpy(), *(p.detach().double().numpy() for p in (layer.weight, layer.bias)), 3
    )
    got = layer(x)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), torch.from_numpy(want), rtol=0, atol=tolerance)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("layout", ["to_sparse_csr", "to_sparse_coo"])
def test_sparse_input_gives_the_same_units_and_gradients(seed, layout):
    layer, x = example(seed)
    results = []
    for features in (x, getattr(x, layout)()):
        layer.zero_grad()
        z = layer(features)
        (z * torch.arange(12.0).view(3, 4)).sum().backward()
        results.append((z, layer.weight.grad, layer.bias.grad))
    for dense, sparse in zip(*results, strict=True):
        torch.testing.assert_close(sparse, dense, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 300.0])
def test_half_precision_keeps_unit_length(dtype, scale):
    z = split_factors(torch.tensor([[3.0, 4.0]], dtype=dtype) * scale, 1)
    assert z.dtype == dtype
    torch.testing.assert_close(z.float(), torch.tensor([[[0.6, 0.8]]]), rtol=0, atol=5e-3)


def test_reset_parameters_draws_new_weights():
    layer, _ = example(0)
    before = layer.weight.clone()
    layer.reset_parameters()
    assert not torch.equal(layer.weight, before)
    assert str(layer) == "FactorProjection(5, 12, M=3)"


def test_channels_that_factors_do_not_divide_are_refused():
    with pytest.raises(InputError, match="hidden_channels is 10, which 4 factors do not divide"):
        FactorProjection(8, 10, 4)
