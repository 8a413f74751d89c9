import pytest
import torch

from lgdgcn import kernels
from lgdgcn.errors import InputError
from literal import routing as literal
from literal.seeds import seeds

SEEDS = seeds(2)  # fresh input every time; ids show the seed
FLAGS = [(False, True), (True, True), (False, False), (True, False)]


def graph(seed, nodes=23, factors=3, size=3, dtype=torch.float64):
    """Random vectors and edges with duplicates, self loops, a hub (0) and isolated nodes."""
    torch.manual_seed(seed)
    z = torch.randn(nodes, factors, size, dtype=dtype)
    edges = torch.randint(0, nodes - 2, (2, 3 * nodes))
    hub = torch.stack([torch.arange(nodes - 2), torch.zeros(nodes - 2, dtype=torch.long)])
    return z, torch.cat([edges, edges[:, :5], hub, torch.tensor([[1, 2], [1, 2]])], dim=1)


def gradients(z, edge_index, **options):
    z = z.detach().requires_grad_()
    units, probability = kernels.route(z, edge_index, **options)
    torch.manual_seed(0)
    loss = (units * torch.randn_like(units)).sum()
    loss = loss + (probability * torch.randn_like(probability)).sum()
    return units.detach(), probability.detach(), torch.autograd.grad(loss, z)[0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("uniform_start", "normalize_last"), FLAGS)
@pytest.mark.parametrize(
    ("factors", "size", "iterations", "tau"),
    [(3, 3, 3, 0.7), (4, 16, 7, 1.0), (1, 4, 2, 2.0), (4, 1, 1, 0.2)],
)
def test_equals_the_literal_loop(
    backend, seed, uniform_start, normalize_last, factors, size, iterations, tau
):
    z, edge_index = graph(seed, factors=factors, size=size)
    z[4] = 0
    flags = {"uniform_start": uniform_start, "normalize_last": normalize_last}
    expected = literal.route(z, edge_index, iterations, tau, **flags)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 2e-4)):
        found = kernels.route(z.to(dtype), edge_index, iterations, tau, **flags)
        for got, want in zip(found, expected, strict=True):
            assert got.dtype == dtype
            torch.testing.assert_close(
                got.double(), torch.from_numpy(want), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize(("uniform_start", "normalize_last"), FLAGS)
def test_gradcheck(backend, iterations, uniform_start, normalize_last):
    z, edge_index = graph(SEEDS[0], nodes=5)

    def run(z):
        return kernels.route(
            z,
            edge_index,
            iterations,
            0.8,
            uniform_start=uniform_start,
            normalize_last=normalize_last,
        )

    assert torch.autograd.gradcheck(run, z.requires_grad_())
    assert torch.autograd.gradcheck(lambda z: run(z)[0], z)
    assert torch.autograd.gradcheck(lambda z: run(z)[1], z)


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree(monkeypatch, seed):
    pytest.importorskip("numba")
    z, edge_index = graph(seed, nodes=200, factors=4, size=16)
    z = torch.nn.functional.normalize(z, dim=-1)
    results = []
    for name in ("torch", "numba"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        results.append(gradients(z.float(), edge_index, iterations=4))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def population(seed, members=3, **options):
    """Vectors of several members on one graph, and a temperature for each."""
    z, edge_index = graph(seed, **options)
    z = torch.stack([torch.randn_like(z) for _ in range(members)])
    return z, edge_index, torch.linspace(0.5, 2, members, dtype=z.dtype)


@pytest.mark.parametrize("seed", SEEDS)
def test_members_do_not_see_each_other(backend, seed):
    z, edge_index, tau = population(seed)
    together = gradients(z, edge_index, tau=tau)
    for r in range(3):
        leaf = z[r].clone().requires_grad_()
        units, probability = kernels.route(leaf, edge_index, tau=float(tau[r]))
        torch.manual_seed(0)
        weights = torch.randn_like(together[0])[r], torch.randn_like(together[1])[r]
        loss = (units * weights[0]).sum() + (probability * weights[1]).sum()
        single = units.detach(), probability.detach(), torch.autograd.grad(loss, leaf)[0]
        for a, b in zip(together, single, strict=True):
            torch.testing.assert_close(a[r], b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("edges", [0, 1, 10, 70, 100, 250])
def test_gradient_in_pieces_is_the_same(monkeypatch, edges):
    route_module = pytest.importorskip("lgdgcn.kernels.cpu.route")
    monkeypatch.setenv("LGDGCN_BACKEND", "numba")
    z, edge_index, tau = population(SEEDS[0])
    whole = gradients(z, edge_index, tau=tau)
    row = route_module.row_shape(*z.shape[2:]).lanes * z.element_size()
    monkeypatch.setattr(route_module, "_EDGE_BYTES", edges * row)
    for a, b in zip(whole, gradients(z, edge_index, tau=tau), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e18])
def test_very_short_and_very_long_vectors(backend, scale):
    z, edge_index = graph(SEEDS[0], dtype=torch.float32)
    units = kernels.route(z * scale, edge_index, iterations=2, uniform_start=True)[0]
    if scale < 1:  # all scores vanish, so the sums have equal shares
        share = torch.full((edge_index.size(1), 3, 1), 1 / 3, dtype=torch.float64)
        sums = z.double().index_add(0, edge_index[1], share * z.double()[edge_index[0]])
        expected = torch.nn.functional.normalize(sums, dim=-1)
        torch.testing.assert_close(units.double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(units.norm(dim=-1), torch.ones_like(units[..., 0]))


def test_broken_numbers_stay_in_their_neighbourhood(backend):
    z, edge_index = graph(SEEDS[0])
    z[5, 1, 2] = torch.nan
    units, probability = kernels.route(z, edge_index)
    touched = (edge_index == 5).any(0)
    assert probability[touched].isnan().all()
    near = torch.isin(torch.arange(len(z)), edge_index[:, touched])
    assert units[near & (torch.arange(len(z)) == 5)].isnan().any()
    assert units[~near].isfinite().all()


def test_gradient_without_edges(backend):
    z, _ = graph(SEEDS[0])
    none = torch.empty(2, 0, dtype=torch.long)
    leaf = z.clone().requires_grad_()
    units, probability = kernels.route(leaf, none)
    expected = torch.nn.functional.normalize(leaf, dim=-1)
    weights = torch.randn_like(z)
    found, wanted = (torch.autograd.grad((x * weights).sum(), leaf)[0] for x in (units, expected))
    torch.testing.assert_close(found, wanted)
    assert probability.shape == (0, 3)


def test_rows_too_long_for_registers(backend):
    z, edge_index = graph(SEEDS[0], factors=2, size=600)
    units, probability = kernels.route(z, edge_index, iterations=2)
    expected = literal.route(z, edge_index, 2, 1.0)
    torch.testing.assert_close(units, torch.from_numpy(expected[0]))
    torch.testing.assert_close(probability, torch.from_numpy(expected[1]))


def test_isolated_nodes_keep_their_direction(backend):
    z, edge_index = graph(SEEDS[0])
    unit = torch.nn.functional.normalize(z, dim=-1)
    torch.testing.assert_close(kernels.route(z, edge_index)[0][-2:], unit[-2:])
    plain = kernels.route(z, edge_index, normalize_last=False)[0]
    assert torch.equal(plain[-2:], z[-2:])
    none = torch.empty(2, 0, dtype=torch.long)
    units, probability = kernels.route(z, none)
    torch.testing.assert_close(units, unit)
    assert probability.shape == (0, 3)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-25])
def test_equal_and_zero_vectors_give_finite_gradients(backend, value):
    z, edge_index = graph(SEEDS[0], dtype=torch.float32)
    units, probability, grad = gradients(torch.full_like(z, value), edge_index)
    assert torch.isfinite(grad).all()
    torch.testing.assert_close(probability, torch.full_like(probability, 1 / 3))
    if value == 0:
        assert not units.any()
        assert not grad.any()


def test_repeatable_and_does_not_change_its_input(backend):
    z, edge_index = graph(SEEDS[0], nodes=300)
    before = z.clone(), edge_index.clone()
    once, again = gradients(z, edge_index), gradients(z, edge_index)
    assert all(torch.equal(a, b) for a, b in zip(once, again, strict=True))
    assert torch.equal(z, before[0])
    assert torch.equal(edge_index, before[1])


def test_thread_count_does_not_change_a_bit(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setenv("LGDGCN_BACKEND", "numba")
    z, edge_index, tau = population(SEEDS[0], nodes=2000)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.append(gradients(z, edge_index, tau=tau))
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_memory_layout_and_index_type_do_not_matter(backend):
    z, edge_index = graph(SEEDS[0])
    expected = gradients(z, edge_index)
    strided = z.transpose(0, 2).contiguous().transpose(0, 2)
    flipped = edge_index.t().contiguous().t().int()
    assert not strided.is_contiguous()
    for a, b in zip(gradients(strided, flipped), expected, strict=True):
        torch.testing.assert_close(a, b)


def test_edge_order_only_reorders_probabilities(backend):
    z, edge_index = graph(SEEDS[0])
    shuffle = torch.randperm(edge_index.size(1))
    units, probability = kernels.route(z, edge_index)
    found = kernels.route(z, edge_index[:, shuffle])
    torch.testing.assert_close(found[0], units)
    torch.testing.assert_close(found[1], probability[shuffle])


def test_hub(backend):
    degree = 100_000
    torch.manual_seed(SEEDS[0])
    z = torch.nn.functional.normalize(torch.randn(degree + 1, 3, 3) + 0.3, dim=-1)
    edge_index = torch.stack([torch.arange(1, degree + 1), torch.zeros(degree, dtype=torch.long)])
    units, probability, grad = gradients(z, edge_index, iterations=2)
    wide = gradients(z.double(), edge_index, iterations=2)
    torch.testing.assert_close(units.double(), wide[0], rtol=0, atol=1e-4)
    torch.testing.assert_close(probability.double(), wide[1], rtol=0, atol=1e-4)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(backend, dtype):
    z, edge_index = graph(SEEDS[0])
    units, probability, grad = gradients(z.to(dtype), edge_index)
    assert units.dtype == probability.dtype == grad.dtype == dtype
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iterations": 0}, "iterations is 0"),
        ({"tau": 0.0}, "tau is 0"),
        ({"tau": float("nan")}, "tau is nan"),
        ({"edge_index": torch.tensor([[0], [99]])}, "node 99"),
        ({"edge_index": torch.tensor([[-1], [0]])}, "node -1"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "integers"),
        ({"edge_index": torch.zeros(3, 2, dtype=torch.long)}, r"\[2, E\]"),
    ],
)
def test_refuses_bad_arguments(backend, change, message):
    z, edge_index = graph(SEEDS[0])
    with pytest.raises(InputError, match=message):
        kernels.route(**({"z": z, "edge_index": edge_index} | change))
