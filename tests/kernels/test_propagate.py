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
    """Two graphs with a hub, a node without edges and doubled edges, and what they are for."""
    torch.manual_seed(seed)
    first = [torch.randint(1, NODES - 1, (2, 15)) for _ in range(graphs)]
    hub = torch.stack([torch.zeros(8, dtype=torch.long), torch.arange(1, 9)])
    edges = torch.stack([torch.cat([pairs, hub], 1) for pairs in first])  # [graphs, 2, 23]
    loops = edges[:, 0] == edges[:, 1]
    weight = torch.rand(graphs, 23, dtype=dtype).masked_fill(loops, 0)  # no weight, no edge
    edges, weight = torch.cat([edges, edges.flip(1)], 2), weight.repeat(1, 2)
    graph = normalized_adjacency(edges, NODES, weight)
    x = torch.randn(sets, NODES, size, dtype=dtype)
    return x, graph, torch.randn(sets, hops + 1, dtype=dtype), edges, weight


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("size", "hops"), [(1, 0), (5, 3), (16, 1), (33, 4)])
def test_equals_the_literal_loop(backend, seed, size, hops):
    x, graph, weights, edges, weight = case(seed, size=size, hops=hops)
    found = kernels.propagate(x, *graph, weights)
    for b in range(len(x)):
        matrix = literal.normalized(edges[b // 2].T.tolist(), NODES, weight[b // 2].tolist())
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
    plain = normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 3)
    graph = [part.unsqueeze(0) for part in plain]
    x = torch.rand(2, 3, 4)
    same = kernels.propagate(x, *graph, torch.full((2, 3), 1 / 3))  # no neighbour but itself
    torch.testing.assert_close(same, x)
    assert kernels.propagate(x[:0], *graph, torch.ones(0, 2)).numel() == 0
    assert kernels.propagate(x[..., :0], *graph, torch.ones(2, 2)).shape == (2, 3, 0)


def test_shapes_are_checked():
    x, graph, weights, *_ = case(0)
    for wrong in (weights[:3], weights[0], weights[:, :0]):
        with pytest.raises(InputError, match="x has shape"):
            kernels.propagate(x, *graph, wrong)
    with pytest.raises(InputError, match="value are"):
        kernels.propagate(x, *graph._replace(value=graph.value[:, 1:]), weights)
    with pytest.raises(InputError, match="2 matrices for 3 sets"):
        kernels.propagate(x[:3], *graph, weights[:3])
