import numpy as np
import pytest
import torch

from kernels.checks import gradient, random_numbers, same_with_one_thread
from lgdgcn import kernels
from literal.seeds import seeds

SEEDS = seeds(2)  # fresh input every time; ids show the seed
DTYPES = [torch.float32, torch.float64]


# unit length


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 4, 16), (3, 5, 3, 5), (9, 6), (4,), (2, 3, 1), (2, 2, 600)])
def test_unit_length(backend, dtype, shape):
    torch.manual_seed(SEEDS[0])
    v = torch.randn(shape, dtype=dtype)
    unit, grad = gradient(kernels.unit_length, v)
    wide = v.double().requires_grad_()
    expected, wanted = gradient(lambda v: v / v.norm(dim=-1, keepdim=True), wide)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(unit.double(), expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(unit.norm(dim=-1), torch.ones_like(unit[..., 0]))
    if dtype == torch.float64:
        torch.testing.assert_close(grad, wanted, rtol=1e-10, atol=1e-10)
        small = torch.randn(2, 3, 4, dtype=dtype, requires_grad=True)
        assert torch.autograd.gradcheck(kernels.unit_length, small)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [-1.0, -0.6, -0.3, 0.4, 0.6, 0.99])
def test_unit_length_of_very_short_and_very_long_vectors(backend, dtype, exponent):
    limit = torch.finfo(dtype).max if exponent > 0 else 1 / torch.finfo(dtype).tiny
    v = torch.tensor([3.0, 4.0, 0.0], dtype=dtype) * (limit**exponent / 4)
    unit = kernels.unit_length(torch.stack([v, -v, torch.zeros_like(v)]))
    expected = torch.tensor([0.6, 0.8, 0.0], dtype=dtype)
    torch.testing.assert_close(unit, torch.stack([expected, -expected, 0 * expected]))


def test_zero_vectors_pass_no_gradient_and_nan_stays(backend):
    v = torch.randn(5, 3, 4)
    v[2, 1] = 0
    v[3, 2, 0] = torch.nan
    unit, grad = gradient(kernels.unit_length, v)
    assert not unit[2, 1].any()
    assert not grad[2, 1].any()
    assert unit[3, 2].isnan().any()
    assert unit[[0, 1, 2, 4]].isfinite().all()


def test_unit_length_takes_any_layout_and_repeats(backend, two_threads):
    torch.manual_seed(SEEDS[0])
    v = torch.randn(16, 4, 5000).permute(2, 1, 0)
    grad = torch.randn(1, 1, 16).expand(5000, 4, 16)

    def run(v=v):
        w = v.detach().requires_grad_()
        unit = kernels.unit_length(w)
        return unit.detach(), torch.autograd.grad(unit, w, grad)[0]

    assert same_with_one_thread(run)
    for a, b in zip(run(), run(v.contiguous()), strict=True):
        torch.testing.assert_close(a, b)


# dropout


@pytest.mark.parametrize(
    ("seed", "epoch", "call", "elements", "expected"),
    [
        (0, 0, 0, [0, 1, 2], [1716039760, 1448847245, 792072447]),
        (12345, 7, 1, [0, 1000], [1687845487, 1005295067]),
        (-1, 2**33 + 5, 3, [0, 2**32 - 1], [2450824492, 2284449714]),
        (2**40 + 9, 449, 15, [4], [3070479950]),
        (-(2**40) - 12345, 2**33 + 7, 3, [0, 1, 2], [3983472099, 2299983600, 1693632987]),
    ],
)
def test_known_random_numbers(seed, epoch, call, elements, expected):
    """Written down once, so that no change of the generator goes unnoticed."""
    assert random_numbers(seed, epoch, call, elements).tolist() == expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_keeps_what_the_numbers_say(backend, dtype):
    rate = torch.tensor([0.5, 0.0, 0.2, 0.999], dtype=dtype)
    seed = torch.tensor([1, 2**62 + 3, -5, -(2**50)])
    epoch = torch.tensor([0, 10, 2**31, 2**40 + 1])
    x = torch.randn(4, 37, 9, dtype=dtype)
    out, grad = gradient(kernels.dropout, x, rate, seed, epoch, 2)
    for r in range(4):
        numbers = random_numbers(int(seed[r]), int(epoch[r]), 2, np.arange(37 * 9))
        kept = numbers >= np.uint32(np.floor(float(rate[r]) * 2.0**32))
        keep = torch.from_numpy(kept).view(37, 9)
        scale = 1 / (1 - rate[r])
        assert torch.equal(out[r], torch.where(keep, x[r] * scale, 0))
        assert torch.equal(grad[r] != 0, keep)
    torch.testing.assert_close(out[1], x[1], rtol=0, atol=0)


def test_dropout_share_and_independence(backend):
    ones = torch.ones(3, 100_000)
    rate, none = torch.full((3,), 0.3), torch.zeros(3, dtype=torch.long)
    seed = torch.tensor([1, 2, 1])
    first = kernels.dropout(ones, rate, seed, none, 0) > 0
    share = first.double().mean(1)
    torch.testing.assert_close(share, torch.full_like(share, 0.7), rtol=0, atol=0.01)
    assert torch.equal(first[0], first[2])
    others = [
        first[1],
        kernels.dropout(ones, rate, seed, none + 1, 0)[0] > 0,
        kernels.dropout(ones, rate, seed, none, 1)[0] > 0,
        first[0].roll(1),
    ]
    for other in others:
        both = (first[0] & other).double().mean()
        assert abs(both - 0.49) < 0.01


def test_dropout_repeats_and_takes_any_layout(backend, two_threads):
    x = torch.randn(64, 3, 2000).permute(1, 2, 0)
    members = torch.tensor([0.1, 0.5, 0.9]), torch.arange(3), torch.arange(3)
    assert same_with_one_thread(lambda: gradient(kernels.dropout, x, *members, 0))
    plain = kernels.dropout(x.contiguous(), *members, 0)
    assert torch.equal(plain, kernels.dropout(x, *members, 0))


# Adam


def test_adam_equals_torch_for_every_member(backend):
    torch.manual_seed(SEEDS[0])
    param, grads = torch.randn(2, 7, 5), torch.randn(4, 2, 7, 5)
    lr, decay = torch.tensor([0.01, 0.1]), torch.tensor([0.0, 5e-3])
    single = [param[r].clone().requires_grad_() for r in range(2)]
    both = [
        torch.optim.Adam([p], lr=x, weight_decay=y)
        for p, x, y in zip(single, [0.01, 0.1], [0, 5e-3], strict=True)
    ]
    mean, square = torch.zeros_like(param), torch.zeros_like(param)
    version = param._version
    for step, grad in enumerate(grads):
        kernels.adam(param, grad, mean, square, lr, decay, torch.full((2,), step + 1))
        for r in range(2):
            single[r].grad = grad[r]
            both[r].step()
    torch.testing.assert_close(param, torch.stack(single).detach(), rtol=1e-5, atol=1e-6)
    assert param._version > version


def test_adam_writes_through_strides(backend):
    param, grad = torch.randn(2, 3, 4).mT, torch.randn(2, 4, 3)
    other = param.contiguous()
    ones = torch.ones(2)
    for p in (param, other):
        moments = torch.zeros_like(p), torch.zeros_like(p)
        kernels.adam(p, grad, *moments, 0.1 * ones, 0 * ones, ones.long())
    torch.testing.assert_close(param, other)
