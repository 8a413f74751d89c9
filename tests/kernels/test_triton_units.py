import gc
import os
from functools import partial

import numpy as np
import pytest
import torch

from lgdgcn.kernels import reference
from literal.seeds import seeds

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is first imported
pytest.importorskip("triton")

from lgdgcn.kernels.gpu import adam, diversity_loss, dropout, matmul, products, unit_length

SEEDS = seeds(2)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
JITTER = 1e-6

diversity = partial(diversity_loss, jitter=JITTER)
exact_diversity = partial(reference.diversity_loss, jitter=JITTER)

# the interpreter computes what it then masks
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


def check(function, exact, x, tolerance=1e-5):
    """Value and gradient of a float32 function against the same one in float64."""
    x = x.to(DEVICE).requires_grad_()
    wide = x.detach().double().requires_grad_()
    got, want = function(x), exact(wide)
    upstream = torch.randn_like(want).float()
    got.backward(upstream)
    want.backward(upstream.double())
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)
    scale = wide.grad.abs().amax(-1, keepdim=True).clamp_min(1e-3)
    torch.testing.assert_close(x.grad / scale, wide.grad / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", [(3, 25, 4, 16), (70, 5), (4, 1), (2, 1500), (0, 3), (7,)])
def test_unit_length(seed, shape):
    torch.manual_seed(seed)
    check(unit_length, lambda v: v / v.norm(dim=-1, keepdim=True), torch.randn(shape))


@pytest.mark.parametrize("size", [1e-37, 1e-30, 1e30, 3e38])
def test_unit_length_of_any_size(size):
    v = torch.tensor([[3.0, -4.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 1.0, 1e-3]]) / 4 * size
    v = v.to(DEVICE).requires_grad_()
    unit = unit_length(v)
    want = torch.tensor([0.6, -0.8, 0.0], device=DEVICE)
    torch.testing.assert_close(unit[0], want)
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(3, device=DEVICE))
    upstream = torch.tensor([[1.0, 1.0, 0.0]], device=DEVICE).expand(3, 3)
    unit.backward(upstream)
    length = v.detach()[0].double().norm()
    slope = torch.tensor([1 + 0.12, 1 - 0.16, 0.0], device=DEVICE).double() / length
    torch.testing.assert_close(
        v.grad[0].double() / slope.max(), slope / slope.max(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("size", [0.0, 1e-40])
def test_nothing_has_no_direction_and_no_gradient(size):
    v = torch.full((2, 3), size, device=DEVICE, requires_grad=True)
    unit = unit_length(v)
    unit.sum().backward()
    assert torch.equal(unit, torch.zeros_like(v))
    assert torch.equal(v.grad, torch.zeros_like(v))


@pytest.mark.parametrize("size", [3, 4])
def test_unit_length_shows_nan(size):
    v = torch.zeros(2, size, device=DEVICE)
    v[0, 1] = torch.nan
    unit = unit_length(v)
    assert unit[0, 1].isnan()
    assert torch.equal(unit[1], torch.zeros(size, device=DEVICE))


def mix(x):
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def drawn(seed, epoch, call, elements):
    """The numbers of one member's elements, in wrapping 32-bit arithmetic."""
    low = lambda x: np.array([x & 0xFFFFFFFF], np.uint32)  # noqa: E731
    a = mix(low(seed) + low(0x9E3779B9 * (call + 1)))
    b = mix(mix(low(epoch) + a) ^ low(seed >> 32))
    return mix(mix(np.asarray(elements, np.uint32) ^ a) + b)


def test_known_numbers():
    assert drawn(0, 0, 0, [0, 1, 2]).tolist() == [1716039760, 1448847245, 792072447]
    assert drawn(12345, 7, 1, [0, 1000]).tolist() == [1687845487, 1005295067]
    assert drawn(-1, 2**33 + 5, 3, [0, 2**32 - 1]).tolist() == [2450824492, 2284449714]
    assert drawn(2**40 + 9, 449, 15, [4]).tolist() == [3070479950]


MEMBERS = [(0, 0, 0.0), (12345, 7, 0.5), (-1, 2**33 + 5, 0.25), (2**40 + 9, 449, 0.999)]


def members():
    seed, epoch, rate = zip(*MEMBERS, strict=True)
    numbers = torch.tensor(seed), torch.tensor(epoch)
    return torch.tensor(rate).to(DEVICE), *(number.to(DEVICE) for number in numbers)


@pytest.mark.parametrize("call", [0, 1, 15, 16])
@pytest.mark.parametrize("shape", [(41, 30), (16,), (0, 3)])
def test_dropout_keeps_exactly_the_counted_elements(call, shape):
    rate, seed, epoch = members()
    x = torch.randn(4, *shape, device=DEVICE, requires_grad=True)
    out = dropout(x, rate, seed, epoch, call)
    upstream = torch.randn_like(x)
    out.backward(upstream)
    for member, (number, count, share) in enumerate(MEMBERS):
        numbers = drawn(number, count, call, np.arange(x[0].numel()))
        keep = torch.from_numpy(numbers >= int(np.float32(share) * 2.0**32)).view(shape)
        mask = keep.to(DEVICE) / (1 - rate[member])
        assert torch.equal(out[member], x[member] * mask)
        assert torch.equal(x.grad[member], upstream[member] * mask)
    assert torch.equal(out, reference.dropout(x, rate, seed, epoch, call))


def test_dropout_drops_its_share_whatever_the_layout():
    rate, seed, epoch = members()
    x = torch.ones(100, 100, 4, device=DEVICE).permute(2, 0, 1)
    out = dropout(x, rate, seed, epoch, 2)
    share = (out == 0).double().mean((1, 2))
    torch.testing.assert_close(share, rate.double(), rtol=0, atol=0.02)
    assert torch.equal(out, dropout(x.contiguous(), rate, seed, epoch, 2))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("size", "nodes"), [(1, 3), (2, 150), (3, 37), (4, 65), (8, 9), (16, 3)])
def test_diversity_loss(seed, size, nodes):
    torch.manual_seed(seed)
    log_rows = 3 * torch.randn(nodes, size, size) + 100 * torch.randn(nodes, size, 1)
    log_rows[0] *= 10
    check(diversity, exact_diversity, log_rows)


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
    check(diversity, exact_diversity, log_rows)


def test_diversity_loss_shows_nan_and_takes_float64():
    log_rows = torch.randn(3, 4, 4, dtype=torch.float64, device=DEVICE)
    want = exact_diversity(log_rows)
    torch.testing.assert_close(diversity(log_rows), want, rtol=1e-9, atol=1e-12)
    log_rows[1, 2, 3] = torch.nan
    assert diversity(log_rows).isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("before", [0, 1, 999, 100_000])
@pytest.mark.parametrize("shape", [(50, 30), (7,)])
def test_adam_equals_torch(before, shape):
    torch.manual_seed(before)
    lr, decay = [1e-3, 0.1, 3e-2], [0.0, 0.1, 5e-4]
    steps = [before, 2 * before, before + 3]
    param, grad, mean = torch.randn(3, 3, *shape, device=DEVICE)
    square = (0.1 + torch.rand_like(param)) * (before > 0)
    mean *= before > 0
    grad[:, 0], square[:, 0], mean[:, 0] = 0, 0, 0
    want = [part.clone().requires_grad_() for part in param]
    optimizers = []
    for member, part in enumerate(want):
        optimizer = torch.optim.Adam([part], lr[member], weight_decay=decay[member], foreach=False)
        optimizer.state[part] = {
            "step": torch.tensor(float(steps[member])),
            "exp_avg": mean[member].clone(),
            "exp_avg_sq": square[member].clone(),
        }
        part.grad = grad[member].clone()
        optimizer.step()
        optimizers.append(optimizer)
    numbers = torch.tensor([lr, decay], device=DEVICE)
    now = torch.tensor(steps, device=DEVICE) + 1
    version = param._version
    adam(param, grad, mean, square, *numbers, now)
    assert param._version > version
    for member, part in enumerate(want):
        state = optimizers[member].state[part]
        close = {"rtol": 1e-6, "atol": 5e-7}
        torch.testing.assert_close(mean[member], state["exp_avg"], **close)
        torch.testing.assert_close(square[member], state["exp_avg_sq"], **close)
        torch.testing.assert_close(param[member], part.detach(), **close)


def sparse(rows, columns, share=0.2, index=torch.int64):
    """A random matrix with empty rows, empty columns and one full column."""
    dense = torch.randn(rows, columns) * (torch.rand(rows, columns) < share)
    dense[[0, rows // 2, -1]] = 0
    dense[:, [0, columns // 2, -1]] = 0
    dense[1:-1, columns // 3] = 1.5
    x = dense.to_sparse_csr()
    parts = x.crow_indices().to(index), x.col_indices().to(index), x.values()
    return torch.sparse_csr_tensor(*parts, dense.shape).to(DEVICE)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize(("members", "width"), [(1, 64), (3, 7), (2, 70), (1, 1)])
def test_matmul(index, members, width):
    torch.manual_seed(width)
    x = sparse(23, 31, index=index)
    dense = x.to_dense().double()
    check(partial(matmul, x), partial(torch.matmul, dense), torch.randn(members, 31, width))


def test_matmul_of_long_and_missing_rows():
    torch.manual_seed(0)
    for x in (sparse(300, 9), torch.zeros(4, 9).to_sparse_csr().to(DEVICE)):
        dense = x.to_dense().double()
        check(partial(matmul, x), partial(torch.matmul, dense), torch.randn(2, 9, 5))


def test_matmul_takes_dense_features_and_strided_weights():
    x, weight = torch.randn(6, 5, device=DEVICE), torch.randn(2, 4, 5, device=DEVICE).mT
    torch.testing.assert_close(matmul(x, weight), matmul(x.to_sparse_csr(), weight))


def test_matmul_is_repeatable_and_sees_changes_of_its_matrix():
    x, weight = sparse(20, 11), torch.randn(2, 11, 8, device=DEVICE)
    once = matmul(x, weight)
    assert torch.equal(once, matmul(x, weight))
    x.values().mul_(2)
    assert torch.equal(2 * once, matmul(x, weight))


def test_matmul_forgets_a_matrix_that_is_gone():
    x = sparse(20, 11)
    before = len(products._remembered)
    matmul(x, torch.randn(1, 11, 2, device=DEVICE))
    assert len(products._remembered) == before + 1
    del x
    gc.collect()
    assert len(products._remembered) == before


def test_matmul_with_own_values_of_every_member():
    x = (torch.rand(9, 7) * (torch.rand(9, 7) > 0.6)).to_sparse_csr().to(DEVICE)
    values = torch.randn(3, x.values().numel(), device=DEVICE)
    dense = torch.stack(
        [
            torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), own, x.shape).to_dense()
            for own in values
        ]
    )
    own = partial(matmul, x, values=values)
    check(own, partial(torch.matmul, dense.double()), torch.randn(3, 7, 5))
