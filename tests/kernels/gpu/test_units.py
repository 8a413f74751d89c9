import numpy as np
import pytest
import torch

from kernels.checks import random_numbers
from kernels.gpu.checks import DEVICE, check_gradient
from lgdgcn.kernels import reference
from lgdgcn.kernels.gpu import adam, dropout, unit_length
from literal.seeds import seeds

SEEDS = seeds(1)

# the interpreter computes what it then masks
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", [(3, 25, 4, 16), (70, 5), (4, 1), (2, 1500), (0, 3), (7,)])
def test_unit_length(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape)
    x += 0.2 * x.sign()  # rounding grows with 1 / length, which float32 cannot help
    check_gradient(unit_length, lambda v: v / v.norm(dim=-1, keepdim=True), x)


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
        numbers = random_numbers(number, count, call, np.arange(x[0].numel()))
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
