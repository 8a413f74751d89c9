import pytest
import torch

from lgdgcn import kernels
from literal import routing as literal
from literal.seeds import seeds

SEEDS = seeds(2)


def operator(seed, nodes=31, size=5, dtype=torch.float64):
    """A random symmetric operator with an unlisted node, and what it applies to."""
    torch.manual_seed(seed)
    keep = torch.rand(1, nodes, 3) < 0.6
    rows = kernels.symmetrize(torch.randint(0, nodes - 1, (1, nodes, 3)), keep)
    weight = 0.5 * rows.ends.to(dtype)
    left, right = torch.rand(2, nodes, dtype=dtype)
    return torch.randn(nodes, size, dtype=dtype), rows.row_ptr, rows.source, weight, left, right


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [1, 5, 16, 24, 32])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 5e-2)]
)
def test_equals_the_literal_loop(backend, seed, size, dtype, tolerance):
    x, *rest = operator(seed, size=size)
    want = torch.from_numpy(literal.aggregate(x.to(dtype).double(), *rest))
    got = kernels.aggregate(x.to(dtype), *rest)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)


def test_gradcheck(backend):
    x, *rest = operator(SEEDS[0], nodes=9, size=2)
    assert torch.autograd.gradcheck(lambda x: kernels.aggregate(x, *rest), x.requires_grad_())


def test_only_x_is_differentiated(backend):
    x, row_ptr, source, weight, left, right = operator(SEEDS[0])
    out = kernels.aggregate(x, row_ptr, source, weight.requires_grad_(), left, right)
    assert not out.requires_grad


def test_repeatable_and_leaves_its_input_alone(backend):
    x, *rest = operator(SEEDS[0])
    strided = x.t().contiguous().t()
    before = x.clone()
    once = kernels.aggregate(x, *rest)
    assert torch.equal(once, kernels.aggregate(x, *rest))
    assert torch.equal(once, kernels.aggregate(strided, *rest))
    assert torch.equal(x, before)
