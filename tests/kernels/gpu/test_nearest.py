from importlib import import_module

import pytest
import torch

from kernels.gpu.checks import DEVICE
from lgdgcn.kernels import reference
from lgdgcn.kernels.gpu import nearest
from literal.seeds import seeds

SEED = seeds(1)[0]
nearest_module = import_module("lgdgcn.kernels.gpu.nearest")

pytestmark = [  # the interpreter computes what it then masks
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def few_programs(monkeypatch):
    if DEVICE == "cpu":  # the interpreter is slow per program, whatever its size
        monkeypatch.setattr(nearest_module, "_MEASURED", 128)


def grid(seed, *shape, steps=500):
    """Points between which every squared distance is exact in float32."""
    torch.manual_seed(seed)
    return torch.randint(0, steps, shape) / 256


def clustered(seed, size, width, spread):
    torch.manual_seed(seed)
    centres = torch.rand(5, width)[torch.randint(0, 5, (size,))]
    z = (centres + spread * torch.randn(size, width)).clamp_min(0)
    return (z / z.norm(dim=1, keepdim=True)).unsqueeze(0)


def check(z, k):
    index, distance = nearest(z.to(DEVICE), k)
    want_index, want_distance = reference.nearest(z.to(DEVICE), k)
    assert index.dtype == torch.int64
    assert torch.equal(index, want_index)
    torch.testing.assert_close(distance, want_distance)


def check_rounded(z, k):
    """Rounding may exchange points that are equally far but for the last bits."""
    index, distance = nearest(z.to(DEVICE), k)
    exact = torch.cdist(z.double(), z.double()).square().to(DEVICE)
    exact.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    scale = distance.amax(-1, keepdim=True).double()
    found = exact.gather(2, index)
    want = exact.sort(-1).values[..., :k]
    torch.testing.assert_close(found / scale, want / scale, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(distance.double() / scale, found / scale, rtol=1e-5, atol=1e-6)
    assert (index.sort(-1).values.diff(dim=-1) > 0).all()


@pytest.mark.parametrize(
    "shape", [(2, 37, 5, 4), (1, 2, 1, 1), (2, 20, 3, 19), (1, 140, 16, 7), (1, 129, 33, 6)]
)
def test_nearest_on_a_grid(shape):
    *points, k = shape
    check(grid(SEED, *points), k)


@pytest.mark.parametrize("shape", [(2, 37, 5, 4), (1, 150, 3, 9)])
def test_nearest_ties_go_to_the_lower_index(shape):
    *points, k = shape
    check(grid(SEED, *points, steps=3), k)


def test_nearest_of_equal_points():
    check(torch.ones(1, 140, 4), 3)


@pytest.mark.parametrize("spread", [0.3, 0.01, 1e-4])
def test_nearest_of_clusters(spread):
    check_rounded(clustered(SEED, 140, 16, spread), 8)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_nearest_at_any_scale(scale):
    torch.manual_seed(SEED)
    z = torch.randn(1, 60, 5) * scale
    index, distance = nearest(z.to(DEVICE), 4)
    want_index, want_distance = reference.nearest(z.to(DEVICE), 4)
    torch.testing.assert_close(distance, want_distance, atol=1e-44, rtol=1e-5)
    if 1e-15 < scale < 1e15:
        assert torch.equal(index, want_index)


def test_nearest_far_from_the_origin_and_with_an_outlier():
    z = 3000 + grid(SEED, 1, 200, 6)
    z[0, 77] = 2e5
    check_rounded(z, 5)


def test_nearest_with_distances_too_large_for_the_type():
    z = torch.tensor([[[0.0], [3e38], [-3e38], [1.0], [torch.nan]]])
    index, distance = nearest(z.to(DEVICE), 4)
    assert index.tolist() == [
        [[3, 1, 2, 4], [0, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3]]
    ]
    assert distance[0, [1, 2, 4]].isinf().all()


def test_nearest_is_symmetric_to_the_bit():
    torch.manual_seed(SEED)
    index, distance = nearest(torch.randn(1, 50, 7, device=DEVICE), 49)
    full = torch.zeros(50, 50, device=DEVICE).scatter(1, index[0], distance[0])
    assert torch.equal(full, full.t())


@pytest.mark.parametrize(
    "setting",
    [
        ("_GROUPS", ()),
        ("_UNORDERED", 100),
        ("_LIST_SIZE", 4),
        ("_BOUNDS", 1),
        ("_MOST_NEIGHBOURS", 4),
    ],
)
def test_nearest_in_other_ways(monkeypatch, setting):
    monkeypatch.setattr(nearest_module, "_JOBS", 1)
    monkeypatch.setattr(nearest_module, *setting)
    check(grid(SEED, 1, 140, 6), 5)
    check(grid(SEED, 1, 140, 3, steps=3), 5)


def test_nearest_does_not_change_its_input():
    z = torch.randn(2, 6, 40, device=DEVICE).transpose(1, 2).requires_grad_()
    before = z.detach().clone()
    once, again = nearest(z, 4), nearest(before, 4)
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))
    assert torch.equal(z, before)
    assert not once[1].requires_grad
