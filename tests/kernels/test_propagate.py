import pytest
import torch

from kernels.checks import gradient, same_with_one_thread
from lgdgcn import kernels
from lgdgcn.errors import InputError
from lgdgcn.nn.propagation import normalized_adjacency
from literal import propagation as literal
from literal.seeds import seeds

SEEDS = seeds(3)
NODES = 13


def case(seed, sets=4, graphs=2, size=5, hops=3, dtype=torch.float64):
    """A graph with a hub and a node without edges, weighted in two ways, and what it is for."""
    torch.manual_seed(seed)
    pairs = torch.randint(1, NODES - 1, (2, 15)).T.tolist() + [[0, i] for i in range(1, 9)]
    pairs = sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})
    edges = torch.tensor(pairs + [pair[::-1] for pair in pairs]).T
    weight = torch.rand(graphs, len(pairs), dtype=dtype).repeat(1, 2)
    weight[:, 0] = weight[:, len(pairs)] = 0
    graph = normalized_adjacency(edges, NODES, weight)
    x = torch.randn(sets, NODES, size, dtype=dtype)
    return x, graph, torch.randn(sets, hops + 1, dtype=dtype), edges, weight


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("size", "hops"), [(1, 0), (5, 3), (16, 1), (33, 4)])
def test_equals_the_literal_loop(backend, seed, size, hops):
    x, graph, weights, edges, weight = case(seed, size=size, hops=hops)
    found = kernels.propagate(x, *graph, weights)
    for b in range(len(x)):
        matrix = literal.normalized(edges.T.tolist(), NODES, weight[b // 2].tolist())
        want = literal.average(matrix, x[b].tolist(), weights[b].tolist())
        torch.testing.assert_close(found[b], torch.tensor(want, dtype=x.dtype))


@pytest.mark.parametrize("seed", SEEDS)
def test_gradcheck(backend, seed):
    x, graph, weights, *_ = case(seed, size=3, hops=2)
    x.requires_grad_()
    weights.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w: kernels.propagate(x, *graph, w), (x, weights))


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree(monkeypatch, seed):
    pytest.importorskip("numba")
    x, graph, weights, *_ = case(seed, size=40, hops=5, dtype=torch.float32)
    results = []
    for name in ("torch", "numba"):
        monkeypatch.setenv("LGDGCN_BACKEND", name)
        results += [gradient(lambda x: kernels.propagate(x, *graph, weights), x)]
        results += [gradient(lambda w: kernels.propagate(x, *graph, w), weights)]
    for (a, da), (b, db) in zip(results[:2], results[2:], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(da, db, rtol=1e-4, atol=1e-4)


def test_results_do_not_depend_on_threads(backend, two_threads):
    x, graph, weights, *_ = case(SEEDS[0], size=50, dtype=torch.float32)
    assert same_with_one_thread(
        lambda: gradient(lambda w: kernels.propagate(x, *graph, w), weights)
    )


def test_nothing_is_fine(backend):
    graph = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 3)
    x = torch.rand(2, 3, 4)
    same = kernels.propagate(x, *graph, torch.full((2, 3), 1 / 3))  # no neighbour but itself
    torch.testing.assert_close(same, x)
    assert (
        kernels.propagate(x[:0], *graph._replace(value=graph.value), torch.ones(0, 2)).numel() == 0
    )
    assert kernels.propagate(x[..., :0], *graph, torch.ones(2, 2)).shape == (2, 3, 0)


def test_shapes_are_checked():
    x, graph, weights, *_ = case(0)
    for wrong in (weights[:3], weights[0], weights[:, :0]):
        with pytest.raises(InputError, match="x has shape"):
            kernels.propagate(x, *graph, wrong)
    with pytest.raises(InputError, match="value has shape"):
        kernels.propagate(x, *graph._replace(value=graph.value[:, 1:]), weights)
    with pytest.raises(InputError, match="value has shape"):
        kernels.propagate(x[:3], *graph, weights[:3])
