import pytest
import torch

from lgdgcn import kernels
from literal.seeds import seeds

SEEDS = seeds(2)


def mixture(seed, members=2, nodes=37, channels=3, size=5, dtype=torch.float64):
    torch.manual_seed(seed)
    z = torch.randn(members, nodes, channels, size, dtype=dtype)
    mean = torch.randn(members, channels, size, dtype=dtype)
    return z, mean, torch.randn(members, channels, size, size, dtype=dtype)


def literal(z, mean, maps):
    out = torch.zeros(*z.shape[:-1], z.size(2), dtype=z.dtype)
    for r in range(z.size(0)):
        for n in range(z.size(1)):
            for m in range(z.size(2)):
                for e in range(z.size(2)):
                    out[r, n, m, e] = (maps[r, e] @ (z[r, n, m] - mean[r, e])).norm() ** 2
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("channels", "size"), [(3, 5), (4, 16), (1, 1)])
def test_equals_the_literal_loop(backend, seed, channels, size):
    z, mean, maps = mixture(seed, nodes=9, channels=channels, size=size)
    want = literal(z, mean, maps)
    torch.testing.assert_close(kernels.square_distances(z, mean, maps), want)
    found = kernels.square_distances(z.float(), mean.float(), maps.float())
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-4)
    alone = kernels.square_distances(z[0], mean[0], maps[0])
    torch.testing.assert_close(alone, want[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient(backend, seed):
    z, mean, maps = mixture(seed)
    grads = []
    for dtype in (torch.float64, torch.float32):
        leaf = z.to(dtype).requires_grad_()
        out = kernels.square_distances(leaf, mean.to(dtype), maps.to(dtype))
        weight = torch.linspace(-1, 1, out.numel(), dtype=dtype).view_as(out)
        grads.append(torch.autograd.grad((out * weight).sum(), leaf)[0].double())
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-3)
    z, mean, maps = mixture(seed, nodes=3, channels=2, size=2)
    assert torch.autograd.gradcheck(
        lambda z: kernels.square_distances(z, mean, maps), z.requires_grad_()
    )


@pytest.mark.parametrize(("channels", "size"), [(3, 5), (4, 16), (2, 33)])
def test_triton_agrees(monkeypatch, gpu, channels, size):
    sizes = {"channels": channels, "size": size, "dtype": torch.float32}
    z, mean, maps = (part.to(gpu) for part in mixture(SEEDS[0], **sizes))
    results = []
    for name in ("torch", "triton"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        leaf = z.clone().requires_grad_()
        out = kernels.square_distances(leaf, mean, maps)
        results.append((out.detach(), torch.autograd.grad(out.square().sum(), leaf)[0]))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(a.abs().max()))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("channels", "size"), [(3, 5), (4, 16)])
def test_quadratic_forms(backend, seed, channels, size):
    z, mean, matrices = mixture(seed, channels=channels, size=size)
    diff = z - mean[:, None]
    want = torch.einsum("rnma,rmab,rnmb->rnm", diff, matrices, diff)
    torch.testing.assert_close(kernels.quadratic_forms(z, mean, matrices), want)
    alone = kernels.quadratic_forms(z[1], mean[1], matrices[1])
    torch.testing.assert_close(alone, want[1])


@pytest.mark.parametrize("seed", SEEDS)
def test_covariance(backend, seed):
    z, centre, _ = mixture(seed)
    diff = z - centre[:, None]
    want = torch.einsum("rnma,rnmb->rmab", diff, diff) / z.size(1)
    torch.testing.assert_close(kernels.covariance(z, centre), want)
    torch.testing.assert_close(kernels.covariance(z[1], centre[1]), want[1])


@pytest.mark.parametrize(("channels", "size", "nodes"), [(3, 5, 70), (4, 16, 300), (2, 33, 9)])
def test_triton_statistics_agree(monkeypatch, gpu, channels, size, nodes):
    sizes = {"channels": channels, "size": size, "nodes": nodes, "dtype": torch.float32}
    z, mean, matrices = (part.to(gpu) for part in mixture(SEEDS[0], **sizes))
    results = []
    for name in ("torch", "triton"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        leaf = z.clone().requires_grad_()
        out = kernels.quadratic_forms(leaf, mean, matrices)
        grad = torch.autograd.grad(out.square().sum(), leaf)[0]
        results.append((out.detach(), grad, kernels.covariance(z, mean)))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 * float(a.abs().max()))
