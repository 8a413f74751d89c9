import pytest
import torch

from lgdgcn import kernels
from lgdgcn.errors import InputError
from literal import neighbours as literal
from literal.seeds import seeds

SEEDS = seeds(1)
SHAPES = [(2, 37, 5, 4), (1, 2, 1, 1), (3, 20, 3, 19), (1, 130, 16, 7), (2, 40, 1, 3)]


def clusters(sets, size, width, dtype=torch.float32):
    """Unit vectors in the positive orthant, in clusters and partly equal: what units are like."""
    centre = torch.randn(sets, max(1, size // 40), width, dtype=dtype)
    chosen = torch.randint(0, centre.size(1), (sets, size, 1)).expand(-1, -1, width)
    noise = 0.05 * torch.randn(sets, size, width, dtype=dtype)
    z = (centre.gather(1, chosen) + noise * (torch.rand(sets, size, 1) < 0.9)).relu()
    return torch.nn.functional.normalize(z, dim=-1)


def check(z, k):
    want_index, want_distance = map(torch.from_numpy, literal.nearest(z, k))
    index, distance = kernels.nearest(z, k)
    assert index.dtype == torch.int64
    assert torch.equal(index, want_index)
    torch.testing.assert_close(distance.double(), want_distance, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_the_literal_loop(backend, seed, shape, dtype):
    *points, k = shape
    # a fine grid: every distance is exact in float32, so rounding decides nothing
    generator = torch.Generator().manual_seed(seed)
    check((torch.randint(-500, 500, points, generator=generator) / 256).to(dtype), k)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ties_go_to_the_lower_index(backend, seed, shape):
    *points, k = shape
    generator = torch.Generator().manual_seed(seed)
    check(torch.randint(0, 3, points, generator=generator).float(), k)


def test_random_points(backend):
    torch.manual_seed(SEEDS[0])
    check(torch.randn(1, 67, 6, dtype=torch.float64), 5)


def test_all_points_equal(backend):
    index, distance = kernels.nearest(torch.ones(1, 300, 4), 3)
    assert not distance.any()
    assert index[0, 0].tolist() == [1, 2, 3]
    assert index[0, 1].tolist() == [0, 2, 3]
    assert (index[0, 3:] == torch.arange(3)).all()


def test_distances_too_large_for_the_type(backend):
    z = torch.tensor([[[0.0], [3e38], [-3e38], [1.0]]])
    index, distance = kernels.nearest(z, 3)
    assert index.tolist() == [[[3, 1, 2], [0, 2, 3], [0, 1, 3], [0, 1, 2]]]
    assert distance[0, 1].isinf().all()


@pytest.mark.parametrize("size", [257, 1000, 4100])
def test_backends_agree_beyond_one_tile(monkeypatch, size):
    pytest.importorskip("numba")
    torch.manual_seed(SEEDS[0])
    points = torch.randint(-2, 3, (1, size, 3))
    results = []
    for name in ("torch", "numba"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        results.append(kernels.nearest(points.float(), 6))
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [17, 256, 300, 1030])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_short_lists_begin_the_longest(backend, seed, size, dtype):
    torch.manual_seed(seed)  # the longest list compares all pairs, so nothing can be left out
    z = clusters(2, size, 16, dtype)
    index, distance = kernels.nearest(z, size - 1)
    for k in (1, 4, 16):
        found = kernels.nearest(z, k)
        assert torch.equal(found[0], index[..., :k])
        assert torch.equal(found[1], distance[..., :k])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [1e-22, 1.0, 1e18])
def test_no_neighbour_is_lost_to_rounding(backend, seed, scale):
    torch.manual_seed(seed)
    z = torch.cat([torch.randn(1, 400, 7).relu(), torch.randn(1, 200, 7) * 1e-4], 1) * scale
    index, distance = kernels.nearest(z, 599)
    found = kernels.nearest(z, 5)
    assert torch.equal(found[0], index[..., :5])
    assert torch.equal(found[1], distance[..., :5])


@pytest.mark.parametrize("count", [2, 3])
def test_threads_change_nothing(monkeypatch, count):
    monkeypatch.setenv("LGDGCN_BACKEND", "numba")
    pytest.importorskip("numba")
    z = clusters(3, 700, 16)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, count):
            torch.set_num_threads(threads)
            results.append(kernels.nearest(z, 8))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_points_without_coordinates(backend):
    index, distance = kernels.nearest(torch.empty(2, 5, 0), 2)
    assert index[0].tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]
    assert not distance.any()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_points_that_are_not_finite_are_infinitely_far(backend, bad):
    torch.manual_seed(SEEDS[0])
    z = torch.randint(-9, 9, (1, 60, 3)).float()
    usual = kernels.nearest(z[:, :40], 39)
    z[0, 40:, 1] = bad
    index, distance = kernels.nearest(z, 42)
    assert torch.equal(index[:, :40, :39], usual[0])
    assert torch.equal(distance[:, :40, :39], usual[1])
    assert index[0, :40, 39:].tolist() == [[40, 41, 42]] * 40
    assert index[0, 40].tolist() == [*range(40), 41, 42]
    assert distance[0, 40:].isinf().all()


def test_distance_is_symmetric_to_the_bit(backend):
    torch.manual_seed(SEEDS[0])
    index, distance = kernels.nearest(torch.randn(1, 100, 7), 99)
    full = torch.zeros(100, 100).scatter(1, index[0], distance[0])
    assert torch.equal(full, full.t())


def test_repeatable_and_does_not_change_its_input(backend):
    z = torch.randn(2, 6, 300).transpose(1, 2).requires_grad_()
    before = z.detach().clone()
    once, again = kernels.nearest(z, 4), kernels.nearest(z, 4)
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))
    assert torch.equal(z, before)
    assert not once[1].requires_grad
    same = kernels.nearest(before.contiguous(), 4)
    assert all(torch.equal(a, b) for a, b in zip(once, same, strict=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_searched_in_float32(backend, dtype):
    z = torch.randn(1, 50, 8).to(dtype)
    index, distance = kernels.nearest(z, 4)
    assert distance.dtype == torch.float32
    assert torch.equal(index, kernels.nearest(z.double(), 4)[0])


@pytest.mark.parametrize("k", [0, 5, -1])
def test_refuses_bad_k(backend, k):
    with pytest.raises(InputError, match=f"k is {k}; with 5 points it must be 1 to 4"):
        kernels.nearest(torch.randn(1, 5, 2), k)
