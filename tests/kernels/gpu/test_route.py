from importlib import import_module

import pytest
import torch

from kernels.gpu.checks import DEVICE
from literal.seeds import seeds

SEED = seeds(1)[0]
route_module = import_module("lgdgcn.kernels.gpu.route")
FLAGS = [(False, True), (True, True), (False, False), (True, False)]
TAU = (1.0, 0.5, 2.0)

# 1/sqrt of zero vectors
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")

FEW = (30, 12, 6, 3, 1, 0, 0)  # in-degrees, one for every kernel
NODES = len(FEW) + 1


def graph(seed, factors, size, members=1, hub=150):
    """Vectors with a zero among them, and edges with duplicates, self loops and isolated nodes."""
    torch.manual_seed(seed)
    z = torch.randn(members, NODES, factors, size)
    z = torch.nn.functional.normalize(z, dim=-1)
    z[:, 1, 0] = 0
    z[:, 7] = 0
    target = torch.repeat_interleave(torch.tensor((hub, *FEW)))
    source = torch.randint(0, 3, target.shape)
    source[::9] = 3
    source[hub : hub + 6] = 4
    source[hub + 10 : hub + 12] = 5
    shuffle = torch.randperm(target.numel())
    return z.to(DEVICE), torch.stack([source, target])[:, shuffle].to(DEVICE)


def expected(z, edge_index, iterations, tau, uniform_start, normalize_last):
    """The definition, member by member, in plain torch."""
    source, target = edge_index
    results = []
    for own, inverse_temperature in zip(z, 1 / tau.to(z.dtype), strict=True):
        units = own
        probability = own.new_full((source.numel(), own.size(1)), 1 / own.size(1))
        for step in range(iterations):
            if step > 0 or not uniform_start:
                score = (own[source] * units[target]).sum(-1) * inverse_temperature
                probability = score.softmax(-1)
            units = own.index_add(0, target, probability.unsqueeze(-1) * own[source])
            if step < iterations - 1 or normalize_last:
                square = (units * units).sum(-1, keepdim=True)
                units = torch.where(square > 0, units / square.where(square > 0, 1).sqrt(), 0)
        results.append((units, probability))
    return tuple(torch.stack(parts) for parts in zip(*results, strict=True))


def gradient(results, z):
    torch.manual_seed(0)
    loss = sum((x * torch.randn(x.shape).to(x)).sum() for x in results)
    return torch.autograd.grad(loss, z)[0]


def check(z, edge_index, *settings, outputs=2):
    wide = z.detach().double().requires_grad_()
    want = expected(wide, edge_index, *settings)
    z = z.detach().requires_grad_()
    found = route_module.route(z, edge_index, *settings)
    want, found = want[:outputs], found[:outputs]
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)
    want_grad, found_grad = gradient(want, wide), gradient(found, z)
    assert found_grad.dtype == torch.float32
    scale = max(1.0, want_grad.abs().max().item())
    torch.testing.assert_close(found_grad.double(), want_grad, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize(("uniform_start", "normalize_last"), FLAGS)
def test_equals_the_definition(uniform_start, normalize_last):
    z, edge_index = graph(SEED, factors=3, size=5, members=3)
    tau = torch.tensor(TAU, device=DEVICE)
    check(z, edge_index, 3, tau, uniform_start, normalize_last)


@pytest.mark.parametrize(("factors", "size", "iterations"), [(4, 16, 4), (1, 3, 2), (4, 64, 2)])
def test_sizes(factors, size, iterations):
    hub = 150 if factors * size < 256 else 20  # these read two edges at a time
    z, edge_index = graph(SEED, factors, size, hub=hub)
    check(z, edge_index, iterations, torch.ones(1, device=DEVICE), False, True)


@pytest.mark.parametrize("uniform_start", [False, True])
def test_one_iteration_without_a_gradient_of_the_probability(uniform_start):
    z, edge_index = graph(SEED, factors=4, size=4)
    check(z, edge_index, 1, torch.ones(1, device=DEVICE), uniform_start, True, outputs=1)


def test_every_kernel_is_reached():
    _, edge_index = graph(SEED, factors=3, size=5)
    known = route_module.routing_graph(edge_index, NODES)
    assert route_module.routing_graph(edge_index, NODES) is known
    for width in (32, 64, 256):
        for rows, tiles in (
            (known.incoming, route_module.forward_tiles(width)),
            (known.incoming, route_module.backward_tiles(width)),
            (known.outgoing, route_module.sum_tiles(width)),
        ):
            assert [tile for tile, *_ in rows.spans(tiles, empty=True)] == tiles


def test_no_edges():
    z = torch.randn(1, 3, 2, 4, device=DEVICE)
    none = torch.empty(2, 0, dtype=torch.long, device=DEVICE)
    check(z, none, 2, torch.ones(1, device=DEVICE), False, True, outputs=1)
    units, probability = route_module.route(z, none, 2, torch.ones(1, device=DEVICE), False, False)
    assert torch.equal(units, z)
    assert probability.shape == (1, 0, 2)


def test_pieces_layout_and_repetition_do_not_change_a_bit(monkeypatch):
    z, edge_index = graph(SEED, factors=2, size=4, members=2)
    tau = torch.tensor(TAU[:2], device=DEVICE)

    def run(z):
        z = z.detach().requires_grad_()
        results = route_module.route(z, edge_index, 2, tau, False, True)
        return *results, gradient(results, z)

    whole = run(z)
    strided = z.transpose(1, 3).contiguous().transpose(1, 3)
    monkeypatch.setattr(route_module, "_EDGE_BYTES", 1)  # one member at a time
    for a, b in zip(run(strided), whole, strict=True):
        assert torch.equal(a, b)
