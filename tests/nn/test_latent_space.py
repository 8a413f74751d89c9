"""Eq. 3, 5, 6 and Alg. 2, and what they do at the edge of the number range."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from lgdgcn.errors import InputError
from lgdgcn.nn import LatentSpace, diversity, diversity_loss, space_loss
from lgdgcn.nn.gaussian import precision_matrix
from literal import latent_space as literal
from literal.seeds import seeds

SEEDS = seeds(2)
PRECISIONS = ["scaled", "exact", "released"]


def mixture(seed, nodes=6, factors=3, size=4, spread=1.0):
    """Units near M random Gaussians: densities that neither vanish nor explode."""
    torch.manual_seed(seed)
    mean = torch.randn(factors, size, dtype=torch.float64)
    root = torch.randn(factors, size, size, dtype=torch.float64) / 2
    cov = root @ root.mT + 0.2 * torch.eye(size, dtype=torch.float64)
    return mean + spread * torch.randn(nodes, factors, size, dtype=torch.float64), mean, cov


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_space_loss_equals_the_literal_loop(seed, precision):
    tensors = mixture(seed)
    want = literal.space_loss(*(t.numpy() for t in tensors), precision)
    # the released precision is shrunk a little, so that it exists for any covariance
    tolerance = 1e-5 if precision == "released" else 1e-9
    np.testing.assert_allclose(space_loss(*tensors, precision), want, rtol=tolerance)
    single = space_loss(*(t.float() for t in tensors), precision)
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_scaled_precision_has_no_scale_and_is_positive_definite(seed):
    cov = mixture(seed)[2]
    matrices = precision_matrix(cov, "scaled")
    torch.testing.assert_close(precision_matrix(1e-6 * cov, "scaled"), matrices)
    torch.testing.assert_close(matrices, matrices.mT)
    assert (torch.linalg.eigvalsh(matrices) > 0).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_diversity_equals_the_determinant_of_real_densities(seed, precision):
    tensors = mixture(seed)
    want = literal.diversity(*(t.numpy() for t in tensors), precision)
    np.testing.assert_allclose(diversity(*tensors, precision), want, rtol=1e-6, atol=1e-12)
    large = want > 1e-2  # there the jitter of the loss is too small to see
    loss = diversity_loss(*tensors, precision)
    np.testing.assert_allclose(loss[large], -np.log(want[large]), rtol=1e-3, atol=1e-3)
    assert (loss >= 0).all()


def test_diversity_loss_where_the_determinant_is_known():
    mean = torch.tensor([[0.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    cov = torch.eye(2, dtype=torch.float64).expand(2, 2, 2)
    # each unit at its mean: rows (1, e^-1/2) and (e^-1/2, 1), cosine 2 e^-1/2 / (1 + e^-1)
    cosine = 2 * np.exp(-0.5) / (1 + np.exp(-1))
    loss = diversity_loss(mean[None], mean, cov, "exact")
    np.testing.assert_allclose(loss, -np.log(1 - cosine**2), rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("spread", "variance", "distance"),
    [(0, 0, 0), (0, 1e-8, 0), (1, 0, 0), (1, 1e-8, 1e3), (1, 1e4, 1e3), (1e-6, 1e-12, 1)],
    ids=["identical", "at the mean", "no variance", "vanishing", "wide", "tiny"],
)
def test_losses_and_gradients_are_finite(dtype, precision, spread, variance, distance):
    torch.manual_seed(0)
    z = (spread * torch.randn(5, 3, 4) + distance).to(dtype).requires_grad_()
    mean = torch.zeros(3, 4, dtype=dtype)
    cov = variance * torch.eye(4, dtype=dtype).repeat(3, 1, 1)
    for loss in (space_loss, diversity_loss):
        values = loss(z, mean, cov, precision)
        assert values.isfinite().all()
        (gradient,) = torch.autograd.grad(values.sum(), z)
        assert gradient.isfinite().all()
    assert diversity(z, mean, cov, precision).isfinite().all()


@pytest.mark.parametrize("precision", ["scaled", "exact"])
@pytest.mark.parametrize(("nodes", "size"), [(2, 4), (3, 16), (5, 64)])
@pytest.mark.parametrize("seed", SEEDS)
def test_fewer_nodes_than_dimensions_keep_a_positive_definite_precision(
    seed, nodes, size, precision
):
    torch.manual_seed(seed)
    space = LatentSpace(2, size, precision=precision)
    units = torch.nn.functional.normalize(torch.rand(nodes, 2, size), dim=-1)
    space.update(units)
    assert space.space_loss(units).isfinite()
    values = torch.linalg.eigvalsh(precision_matrix(space.cov, precision).double())
    # entries as large as the largest of these are rounded
    assert (values > -torch.finfo(torch.float32).eps * values.amax()).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_statistics_that_are_not_numbers_give_a_loss_that_is_not_one(precision):
    z, mean, cov = mixture(0)
    for loss in (space_loss, diversity_loss):
        assert loss(z * torch.nan, mean, cov * torch.nan, precision).isnan().all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("factors", [4, 16])
def test_single_precision_is_enough_for_factors_that_almost_coincide(seed, factors):
    torch.manual_seed(seed)
    z = torch.rand(50, 1, 4) + 1e-2 * torch.randn(50, factors, 4)
    mean, cov = torch.rand(factors, 4), 0.3 * torch.eye(4).expand(factors, 4, 4)
    want = diversity_loss(z.double(), mean.double(), cov.double())
    got = diversity_loss(z, mean, cov)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), want, rtol=0, atol=5e-3)


@pytest.mark.parametrize("precision", ["scaled", "exact"])
def test_a_matrix_that_is_no_covariance_has_no_precision(precision):
    indefinite = torch.tensor([[[1.0, 2.0], [2.0, 1.0]]])
    assert precision_matrix(indefinite, precision).isnan().all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_one_factor_has_no_diversity(seed, precision):
    tensors = mixture(seed, factors=1)
    assert (diversity_loss(*tensors, precision) == 0).all()
    assert (diversity(*tensors, precision) == 1).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_gradients(precision):
    z, mean, cov = mixture(SEEDS[0], nodes=3, factors=3, size=3, spread=0.3)
    mean, z = 3 * mean, (z + 2 * mean).requires_grad_()  # far apart: no tiny determinant
    for loss in (space_loss, diversity_loss):
        assert gradcheck(lambda z, loss=loss: loss(z, mean, cov, precision), z)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_units_are_judged_in_single_precision(dtype):
    z, mean, cov = (t.to(dtype) for t in mixture(1))
    for loss in (space_loss, diversity_loss):
        want = loss(z.float(), mean.float(), cov.float())
        assert torch.equal(loss(z, mean, cov), want)


# Alg. 2


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("centre", ["old", "new"])
def test_updates_follow_algorithm_2(seed, centre):
    torch.manual_seed(seed)
    space = LatentSpace(2, 3, update_rate=0.3, centre=centre).double()
    assert space.updates == 0
    first, *later = torch.randn(4, 9, 2, 3, dtype=torch.float64) + torch.arange(3)
    space.update(first)  # the first units set the statistics
    mean, cov = literal.updated(np.zeros((2, 3)), np.zeros((2, 3, 3)), first.numpy(), 1.0, "new")
    np.testing.assert_allclose(space.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(space.cov, cov, rtol=1e-12)
    for units in later:
        space.update(units)
        mean, cov = literal.updated(mean, cov, units.numpy(), 0.3, centre)
        np.testing.assert_allclose(space.mean, mean, rtol=1e-10)
        np.testing.assert_allclose(space.cov, cov, rtol=1e-10)
    assert space.updates == 4


def test_reset_forgets_the_statistics():
    space = LatentSpace(2, 3)
    space.update(torch.randn(9, 2, 3))
    space.reset_parameters()
    assert space.updates == 0
    assert not space.mean.any()
    assert torch.equal(space.cov, torch.eye(3).expand(2, 3, 3))
    assert str(space) == "LatentSpace(M=2, d=3, precision='exact')"


def test_statistics_carry_no_gradient():
    units = torch.randn(9, 2, 3, requires_grad=True)
    space = LatentSpace(2, 3)
    space.update(units)
    assert not space.mean.requires_grad
    space.space_loss(units).backward()
    assert units.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_stay_out_of_half_precision(dtype):
    space = LatentSpace(2, 3).to(dtype)
    space.update(torch.randn(9, 2, 3).to(dtype))
    assert space.mean.dtype == space.cov.dtype == torch.float32
    assert space.double().mean.dtype == torch.float64


@pytest.mark.parametrize("function", [space_loss, diversity, diversity_loss])
def test_an_unknown_precision_is_refused(function):
    z, mean, cov = torch.rand(3, 2, 2), torch.rand(2, 2), torch.eye(2).expand(2, 2, 2)
    with pytest.raises(InputError, match=r"precision is 'Exact'; choose from scaled, exact"):
        function(z, mean, cov, precision="Exact")
