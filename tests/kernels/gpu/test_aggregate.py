from importlib import import_module

import pytest
import torch

from kernels.gpu.checks import DEVICE
from lgdgcn.kernels import reference
from lgdgcn.kernels.gpu import aggregate, row_sums, symmetrize
from literal.seeds import seeds

SEED = seeds(1)[0]
aggregate_module = import_module("lgdgcn.kernels.gpu.aggregate")

pytestmark = [  # the interpreter computes what it then masks
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def few_programs(monkeypatch):
    if DEVICE == "cpu":  # the interpreter is slow per program, whatever its size
        monkeypatch.setattr(aggregate_module, "_ROWS", 64)


def edges(union):
    """All entries that are no padding, as rows of (target, source, ends)."""
    target = torch.repeat_interleave(union.row_ptr.diff(), output_size=union.source.numel())
    entries = torch.stack([target, union.source, union.ends.long()], 1)
    return entries[union.ends > 0].unique(dim=0), entries[union.ends == 0]


@pytest.mark.parametrize("shape", [(3, 11, 4), (1, 2, 1), (2, 70, 5), (1, 40, 39)])
@pytest.mark.parametrize("drop", [0.0, 0.5, 1.0])
def test_symmetrize(shape, drop):
    torch.manual_seed(SEED)
    index = torch.randint(0, shape[1], shape, device=DEVICE)  # with self loops and repeats
    keep = torch.rand(shape, device=DEVICE) >= drop if drop else None
    found = symmetrize(index, keep)
    assert found.source.numel() == found.ends.numel() == found.row_ptr[-1] == 2 * index.numel()
    assert [part.dtype for part in found] == [torch.int64, torch.int64, torch.uint8]
    counted, padding = edges(found)
    assert torch.equal(counted, edges(reference.symmetrize(index, keep))[0])
    assert counted.size(0) == (found.ends > 0).sum()  # nothing twice
    assert torch.equal(padding[:, 0], padding[:, 1])


def operator(seed, nodes=100, hub=True):
    """A symmetric operator with padding, and a hub with more entries than are summed at once."""
    torch.manual_seed(seed)
    index = torch.randint(0, nodes - 1, (1, nodes, 5))
    if hub:
        index[:, :, 0] = 7
    union = symmetrize(index.to(DEVICE), None)
    weight = union.ends.float() * 0.5
    left, right = torch.rand(2, nodes, device=DEVICE)
    return union.row_ptr, union.source, weight, left, right


@pytest.mark.parametrize("size", [1, 5, 16, 33, 70])
def test_aggregate(size):
    rows = operator(SEED)
    x = torch.randn(100, size, device=DEVICE).requires_grad_()
    wide = x.detach().double().requires_grad_()
    got, want = aggregate(x, *rows), reference.aggregate(wide, *rows)
    upstream = torch.randn_like(got)
    got.backward(upstream)
    want.backward(upstream.double())
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(x.grad.double(), wide.grad, rtol=1e-5, atol=1e-5)


def test_aggregate_without_edges():
    rows = torch.zeros(4, dtype=torch.int64, device=DEVICE)
    none = torch.zeros(0, device=DEVICE)
    x, left, right = torch.rand(3, 3, device=DEVICE)
    out = aggregate(x.view(3, 1), rows, rows[:0], none, left, right)
    torch.testing.assert_close(out[:, 0], left * right * x)


def test_aggregate_does_not_change_its_input():
    rows = operator(SEED, hub=False)
    x = torch.randn(6, 100, device=DEVICE).t()
    before = x.clone()
    assert torch.equal(aggregate(x, *rows), aggregate(before, *rows))
    assert torch.equal(x, before)


def test_row_sums():
    row_ptr, _, weight, *_ = operator(SEED)
    weight = weight * torch.rand_like(weight)
    target = torch.repeat_interleave(row_ptr.diff(), output_size=weight.numel())
    want = torch.zeros(100, dtype=torch.float64, device=DEVICE).index_add(
        0, target, weight.double()
    )
    torch.testing.assert_close(row_sums(weight, row_ptr), want.float())
