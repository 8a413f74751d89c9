from functools import partial

import pytest
import torch

from kernels.gpu.checks import DEVICE, check_gradient
from kernels.test_gaussian import mixture
from lgdgcn import kernels
from lgdgcn.kernels import reference
from lgdgcn.kernels.gpu import diversity_loss
from literal.seeds import seeds

SEEDS = seeds(1)
JITTER = 1e-6

diversity = partial(diversity_loss, jitter=JITTER)
exact_diversity = partial(reference.diversity_loss, jitter=JITTER)

# the interpreter computes what it then masks
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


@pytest.mark.parametrize(("factors", "size"), [(3, 5), (4, 16), (2, 33)])
def test_distances(monkeypatch, factors, size):
    sizes = {"factors": factors, "size": size, "dtype": torch.float32}
    z, mean, maps = (part.to(DEVICE) for part in mixture(SEEDS[0], **sizes))
    results = []
    for name in ("torch", "triton"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        leaf = z.clone().requires_grad_()
        out = kernels.square_distances(leaf, mean, maps)
        results.append((out.detach(), torch.autograd.grad(out.square().sum(), leaf)[0]))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(a.abs().max()))


@pytest.mark.parametrize(("factors", "size", "nodes"), [(3, 5, 70), (4, 16, 300), (2, 33, 9)])
def test_quadratic_forms_and_covariance(monkeypatch, factors, size, nodes):
    sizes = {"factors": factors, "size": size, "nodes": nodes, "dtype": torch.float32}
    z, mean, matrices = (part.to(DEVICE) for part in mixture(SEEDS[0], **sizes))
    results = []
    for name in ("torch", "triton"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        leaf = z.clone().requires_grad_()
        out = kernels.quadratic_forms(leaf, mean, matrices)
        grad = torch.autograd.grad(out.square().sum(), leaf)[0]
        results.append((out.detach(), grad, kernels.covariance(z, mean)))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(a.abs().max()))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("size", "nodes"), [(1, 3), (2, 150), (3, 37), (4, 65), (8, 9), (16, 3)])
def test_diversity_loss(seed, size, nodes):
    torch.manual_seed(seed)
    log_rows = 3 * torch.randn(nodes, size, size) + 100 * torch.randn(nodes, size, 1)
    log_rows[0] *= 10
    check_gradient(diversity, exact_diversity, log_rows)


def test_many_rows_take_the_reference():
    log_rows = torch.randn(3, 17, 17, device=DEVICE)
    assert torch.equal(diversity(log_rows), exact_diversity(log_rows))


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("apart", [0.0, 1e-4, 1e-2])
def test_diversity_loss_of_rows_that_coincide(size, apart):
    torch.manual_seed(0)
    log_rows = torch.randn(6, size, size)
    log_rows[:, 1] = log_rows[:, 0] + apart * torch.randn(6, size)
    log_rows[0] = log_rows[0, 0]  # all of them
    assert diversity(log_rows.to(DEVICE)).isfinite().all()
    check_gradient(diversity, exact_diversity, log_rows)


def test_diversity_loss_shows_nan_and_takes_float64():
    log_rows = torch.randn(3, 4, 4, dtype=torch.float64, device=DEVICE)
    want = exact_diversity(log_rows)
    torch.testing.assert_close(diversity(log_rows), want, rtol=1e-9, atol=1e-12)
    log_rows[1, 2, 3] = torch.nan
    assert diversity(log_rows).isnan().tolist() == [False, True, False]
