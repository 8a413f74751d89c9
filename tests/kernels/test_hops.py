import pytest
import torch

from kernels.checks import gradient, same_with_one_thread
from lgdgcn import kernels
from lgdgcn.errors import InputError
from literal.seeds import seeds

SEEDS = seeds(3)


def case(seed, nodes=7, hops=3, size=5, sets=2, dtype=torch.float64):
    torch.manual_seed(seed)
    x = torch.randn(nodes, hops, size, dtype=dtype)
    weights = torch.randn(sets, nodes, hops, dtype=dtype)
    return x, weights.masked_fill(torch.rand_like(weights) < 0.3, 0)


def literal(x, weights):
    """Every number by itself."""
    sets, nodes, hops = weights.shape
    out = torch.zeros(sets, nodes, x.size(2), dtype=x.dtype)
    for s in range(sets):
        for i in range(nodes):
            for k in range(hops):
                for f in range(x.size(2)):
                    out[s, i, f] += weights[s, i, k] * x[i, k, f]
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("nodes", "hops", "size", "sets"), [(7, 3, 5, 2), (1, 1, 1, 1),
                         (4, 5, 33, 3), (0, 2, 3, 2), (3, 2, 0, 2)])  # fmt: skip
def test_equals_the_literal_loop(backend, seed, nodes, hops, size, sets):
    x, weights = case(seed, nodes, hops, size, sets)
    torch.testing.assert_close(kernels.sum_hops(x, weights), literal(x, weights))


@pytest.mark.parametrize("seed", SEEDS)
def test_gradcheck(backend, seed):
    x, weights = case(seed)
    weights.requires_grad_()
    assert torch.autograd.gradcheck(kernels.sum_hops, (x, weights))
    x.requires_grad_()
    assert torch.autograd.gradcheck(kernels.sum_hops, (x, weights))


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree(monkeypatch, seed):
    pytest.importorskip("numba")
    x, weights = case(seed, nodes=500, hops=5, size=64, dtype=torch.float32)
    x = x.transpose(0, 1).contiguous().transpose(0, 1)  # strides of any kind
    results = []
    for name in ("torch", "numba"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        results += [gradient(lambda w: kernels.sum_hops(x, w), weights)]
    (a, da), (b, db) = results
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(da, db, rtol=1e-4, atol=1e-4)


def test_threads_change_nothing(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setenv("LGDGCN_BACKEND", "numba")
    x, weights = case(0, nodes=2000, hops=4, size=32, dtype=torch.float32)
    assert same_with_one_thread(lambda: gradient(lambda w: kernels.sum_hops(x, w), weights))


def test_shapes_that_do_not_fit():
    x, weights = case(0)
    for other in (weights[0], weights[:, 1:], weights[..., 1:]):
        with pytest.raises(InputError, match=r"must be \[n, K \+ 1, F\]"):
            kernels.sum_hops(x, other)
