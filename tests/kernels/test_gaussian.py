import pytest
import torch

from kernels.checks import gradient, same_with_one_thread
from lgdgcn import kernels
from literal.seeds import seeds

SEEDS = seeds(2)


# distances, quadratic forms, covariance


def mixture(seed, members=2, nodes=37, factors=3, size=5, dtype=torch.float64):
    torch.manual_seed(seed)
    z = torch.randn(members, nodes, factors, size, dtype=dtype)
    mean = torch.randn(members, factors, size, dtype=dtype)
    return z, mean, torch.randn(members, factors, size, size, dtype=dtype)


def literal(z, mean, maps):
    out = torch.zeros(*z.shape[:-1], z.size(2), dtype=z.dtype)
    for r in range(z.size(0)):
        for n in range(z.size(1)):
            for m in range(z.size(2)):
                for e in range(z.size(2)):
                    out[r, n, m, e] = (maps[r, e] @ (z[r, n, m] - mean[r, e])).norm() ** 2
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("factors", "size"), [(3, 5), (4, 16), (1, 1)])
def test_distances_equal_the_literal_loop(backend, seed, factors, size):
    z, mean, maps = mixture(seed, nodes=9, factors=factors, size=size)
    want = literal(z, mean, maps)
    torch.testing.assert_close(kernels.square_distances(z, mean, maps), want)
    found = kernels.square_distances(z.float(), mean.float(), maps.float())
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-4)
    single = kernels.square_distances(z[0], mean[0], maps[0])
    torch.testing.assert_close(single, want[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_distances(backend, seed):
    z, mean, maps = mixture(seed)
    grads = []
    for dtype in (torch.float64, torch.float32):
        leaf = z.to(dtype).requires_grad_()
        out = kernels.square_distances(leaf, mean.to(dtype), maps.to(dtype))
        weight = torch.linspace(-1, 1, out.numel(), dtype=dtype).view_as(out)
        grads.append(torch.autograd.grad((out * weight).sum(), leaf)[0].double())
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-3)
    z, mean, maps = mixture(seed, nodes=3, factors=2, size=2)
    assert torch.autograd.gradcheck(
        lambda z: kernels.square_distances(z, mean, maps), z.requires_grad_()
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("factors", "size"), [(3, 5), (4, 16)])
def test_quadratic_forms(backend, seed, factors, size):
    z, mean, matrices = mixture(seed, factors=factors, size=size)
    diff = z - mean[:, None]
    want = torch.einsum("rnma,rmab,rnmb->rnm", diff, matrices, diff)
    torch.testing.assert_close(kernels.quadratic_forms(z, mean, matrices), want)
    single = kernels.quadratic_forms(z[1], mean[1], matrices[1])
    torch.testing.assert_close(single, want[1])


@pytest.mark.parametrize("seed", SEEDS)
def test_covariance(backend, seed):
    z, centre, _ = mixture(seed)
    diff = z - centre[:, None]
    want = torch.einsum("rnma,rnmb->rmab", diff, diff) / z.size(1)
    torch.testing.assert_close(kernels.covariance(z, centre), want)
    torch.testing.assert_close(kernels.covariance(z[1], centre[1]), want[1])


# diversity loss


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 16])
def test_diversity_loss(backend, dtype, size):
    torch.manual_seed(SEEDS[0])
    log_rows = 3 * torch.randn(21, size, size, dtype=dtype) - 100
    loss, grad = gradient(kernels.diversity_loss, log_rows, 1e-6)
    wide = log_rows.double().requires_grad_()
    rows = (wide - wide.max(-1, keepdim=True).values).exp()
    rows = rows / rows.norm(dim=-1, keepdim=True)
    gram = rows @ rows.mT + 1e-6 * torch.eye(size, dtype=torch.float64)
    expected = -torch.logdet(gram / (1 + 1e-6))
    tolerance = 1e-9 if dtype == torch.float64 else 1e-3
    torch.testing.assert_close(loss.double(), expected.detach(), rtol=tolerance, atol=tolerance)
    if dtype == torch.float64:
        small = torch.randn(5, size, size, dtype=dtype, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: kernels.diversity_loss(x, 1e-3), small)
    assert grad.dtype == dtype


def test_diversity_loss_of_equal_and_of_separate_rows(backend):
    equal = torch.zeros(1, 3, 3)
    separate = torch.full((1, 3, 3), -1e4) + 1e4 * torch.eye(3)
    loss, grad = gradient(kernels.diversity_loss, torch.cat([equal, separate]), 1e-6)
    torch.testing.assert_close(loss[0], torch.tensor(26.5324), rtol=1e-3, atol=0)
    torch.testing.assert_close(loss[1], torch.tensor(0.0), rtol=0, atol=1e-5)
    assert grad.isfinite().all()


def test_diversity_loss_repeats(backend, two_threads):
    log_rows = torch.randn(5000, 4, 4)
    assert same_with_one_thread(lambda: gradient(kernels.diversity_loss, log_rows, 1e-6))
