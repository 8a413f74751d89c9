from itertools import pairwise

import pytest
import torch

from lgdgcn import kernels
from literal import neighbours as literal_neighbours
from literal import routing as literal
from literal.seeds import seeds

SEEDS = seeds(3)


# union of neighbour lists


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("drop", [False, True])
def test_union_equals_the_literal_loop(backend, seed, drop):
    torch.manual_seed(seed)
    index = torch.randint(0, 11, (3, 11, 4))  # with self loops and repeated entries
    keep = torch.rand(index.shape) < 0.5 if drop else None
    found = kernels.symmetrize(index, keep)
    row_ptr, source, mutual = literal_neighbours.symmetrize(index, keep)
    assert found.row_ptr.tolist() == row_ptr
    assert found.source.tolist() == source
    assert found.ends.tolist() == [2 if both else 1 for both in mutual]
    assert found.source.dtype == found.row_ptr.dtype == torch.int64
    assert found.ends.dtype == torch.uint8


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree_on_the_union(monkeypatch, seed):
    pytest.importorskip("numba")
    torch.manual_seed(seed)
    index = torch.rand(3, 300, 299).topk(9).indices
    index += index >= torch.arange(300).view(1, -1, 1)  # never the node itself
    keep = torch.rand(index.shape) < 0.7
    results = []
    for name in ("torch", "numba"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        results.append(kernels.symmetrize(index, keep))
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_union_of_nothing(backend):
    index = torch.tensor([[[1], [0], [0]]])
    found = kernels.symmetrize(index, torch.zeros_like(index, dtype=torch.bool))
    assert found.row_ptr.tolist() == [0, 0, 0, 0]
    assert found.source.numel() == found.ends.numel() == 0


# row sums


def test_row_sums(backend):
    weight = torch.rand(100_003)
    row_ptr = torch.tensor([0, 0, 1, 1, 100_000, 100_003, 100_003])
    sums = kernels.row_sums(weight, row_ptr)
    pairs = pairwise(row_ptr)
    expected = [weight[first:last].double().sum().item() for first, last in pairs]
    torch.testing.assert_close(sums, torch.tensor(expected), rtol=1e-6, atol=1e-6)


# aggregation


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


def test_repeatable_and_does_not_change_its_input(backend):
    x, *rest = operator(SEEDS[0])
    strided = x.t().contiguous().t()
    before = x.clone()
    once = kernels.aggregate(x, *rest)
    assert torch.equal(once, kernels.aggregate(x, *rest))
    assert torch.equal(once, kernels.aggregate(strided, *rest))
    assert torch.equal(x, before)
