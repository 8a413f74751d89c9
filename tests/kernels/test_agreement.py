import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is imported

from lgdgcn import kernels
from lgdgcn.errors import InputError
from lgdgcn.kernels.graph import incident
from literal.seeds import seeds

SEEDS = seeds(2)  # fresh input every time; ids show the seed
NODES = 23


@pytest.fixture(params=["torch", "numba", "triton"])
def device(request, monkeypatch):
    """Where the tensors of a backend are, which is then in use."""
    monkeypatch.setenv("LGDGCN_BACKEND", request.param)
    if request.param == "triton":
        gpu = request.getfixturevalue("gpu")
        if gpu == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
            pytest.skip("triton has neither a GPU nor its interpreter")
        return gpu
    if request.param == "numba":
        pytest.importorskip("numba")
    return "cpu"


def ugly(seed, width, members=3, dtype=torch.float32):
    """Vectors, one of them zero, and directed, doubled and mutual edges, self loops and a hub."""
    torch.manual_seed(seed)
    q = torch.randn(members, NODES, width, dtype=dtype)
    q[:, 4] = 0
    edges = torch.randint(1, NODES - 2, (2, 40))  # the last two nodes have none
    hub = torch.stack([torch.arange(NODES - 2), torch.zeros(NODES - 2, dtype=torch.long)])
    edges = torch.cat([edges, edges[:, :7], edges[:, 5:9].flip(0), hub, hub.new_ones(2, 2)], dim=1)
    return q, edges[:, torch.randperm(edges.size(1))]


def literal(q, edge_index, weights):
    """Products and the gradient of their weighted sum, edge by edge in float64."""
    q, weights = q.double(), weights.double()
    out, grad = torch.zeros_like(weights), torch.zeros_like(q)
    for r in range(len(q)):
        for e, (s, t) in enumerate(edge_index.t().tolist()):
            out[r, e] = sum(a * b for a, b in zip(q[r, s].tolist(), q[r, t].tolist(), strict=True))
            grad[r, s] += weights[r, e] * q[r, t]
            grad[r, t] += weights[r, e] * q[r, s]
    return out, grad


def run(q, edge_index, weights):
    q = q.detach().requires_grad_()
    out = kernels.edge_agreement(q, edge_index)
    return out.detach(), torch.autograd.grad(out, q, weights)[0]


def weights_of(q, edge_index):
    return torch.randn(*q.shape[:-2], edge_index.size(1), dtype=q.dtype, device=q.device)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [1, 5, 64, 112, 256, 512])
def test_equals_the_literal_loop(device, seed, width):
    q, edge_index = ugly(seed, width)
    weights = weights_of(q, edge_index)
    expected = literal(q, edge_index, weights)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-11)):
        given = q.to(device, dtype), edge_index.to(device), weights.to(device, dtype)
        for found, want in zip(run(*given), expected, strict=True):
            assert found.dtype == dtype
            torch.testing.assert_close(
                found.double().cpu(), want, rtol=tolerance, atol=tolerance * width**0.5
            )


@pytest.mark.parametrize("width", [3, 16])
def test_gradcheck(device, width):
    q, edge_index = ugly(SEEDS[0], width, members=2, dtype=torch.float64)
    q, edge_index = q.to(device).requires_grad_(), edge_index.to(device)
    assert torch.autograd.gradcheck(lambda q: kernels.edge_agreement(q, edge_index), q)
    assert torch.autograd.gradcheck(lambda q: kernels.edge_agreement(q, edge_index), q[0])


@pytest.mark.parametrize(
    ("members", "nodes", "width", "edges"),
    [(2, 4, 5, 0), (2, 0, 5, 0), (2, 4, 0, 3), (0, 4, 5, 3), (1, 0, 0, 0), (1, 1, 1, 1)],
)
def test_nothing_to_multiply(device, members, nodes, width, edges):
    q = torch.ones(members, nodes, width, device=device)
    edge_index = torch.zeros(2, edges, dtype=torch.long, device=device)
    out, grad = run(q, edge_index, weights := weights_of(q, edge_index))
    assert torch.equal(out, torch.full_like(weights, width))
    assert torch.equal(grad, torch.zeros_like(q) if nodes != 1 else 2 * weights.view_as(q))


def test_members_layout_and_index_type_do_not_matter(device):
    q, edge_index = (x.to(device) for x in ugly(SEEDS[0], 20))
    weights = weights_of(q, edge_index)
    together = run(q, edge_index, weights)
    strided = q.transpose(0, 2).contiguous().transpose(0, 2)
    flipped = edge_index.t().contiguous().t().int()
    for a, b in zip(run(strided, flipped, weights), together, strict=True):
        assert torch.equal(a, b)
    for r in range(len(q)):
        for a, b in zip(run(q[r], edge_index, weights[r]), together, strict=True):
            torch.testing.assert_close(a, b[r], rtol=1e-6, atol=1e-5)


def test_an_expanded_gradient_is_read_right(device):
    q, edge_index = (x.to(device) for x in ugly(SEEDS[0], 6))
    ones = torch.ones(len(q), edge_index.size(1), device=device)
    leaf = q.clone().requires_grad_()
    kernels.edge_agreement(leaf, edge_index).sum().backward()
    assert torch.equal(leaf.grad, run(q, edge_index, ones)[1])


def test_repeatable_at_any_thread_count(device):
    torch.manual_seed(SEEDS[0])
    nodes = 12 if os.environ["LGDGCN_BACKEND"] == "triton" else 2000
    q = torch.randn(2, nodes, 20, device=device)
    edge_index = torch.randint(nodes, (2, 10 * nodes), device=device)
    weights = weights_of(q, edge_index)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 3, 3):
        torch.set_num_threads(threads)
        results.append(run(q, edge_index, weights))
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_broken_numbers_stay_at_their_edges(device):
    q, edge_index = (x.to(device) for x in ugly(SEEDS[0], 7))
    q[:, 5, 2] = torch.nan
    out, grad = run(q, edge_index, torch.ones(3, edge_index.size(1), device=device))
    touched = (edge_index == 5).any(0)
    assert torch.equal(out.isnan(), touched.expand_as(out))
    near = torch.zeros(NODES, dtype=torch.bool, device=device)
    near[edge_index[1, edge_index[0] == 5]] = True
    near[edge_index[0, edge_index[1] == 5]] = True
    assert torch.equal(grad[..., 2].isnan(), near.expand(3, -1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(device, dtype):
    q, edge_index = (x.to(device) for x in ugly(SEEDS[0], 9))
    weights = weights_of(q, edge_index)
    wide = run(q.to(dtype).float(), edge_index, weights)
    for a, b in zip(run(q.to(dtype), edge_index, weights.to(dtype)), wide, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.float(), b, rtol=0.05, atol=0.1)


def test_edges_at_every_node_are_listed_and_remembered():
    _, edge_index = ugly(SEEDS[0], 1)
    graph = incident(edge_index, NODES)
    assert incident(edge_index, NODES) is graph
    pairs = edge_index.t().tolist()
    for v in range(NODES):
        here = slice(graph.row_ptr[v], graph.row_ptr[v + 1])
        found = list(zip(graph.edge[here].tolist(), graph.other[here].tolist(), strict=True))
        coming = [(e, s) for e, (s, t) in enumerate(pairs) if t == v]
        going = [(e, t) for e, (s, t) in enumerate(pairs) if s == v]
        assert found[: len(coming)] == coming
        assert sorted(found[len(coming) :]) == going


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_can_be_recorded(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("LGDGCN_BACKEND", "triton")
    q, edge_index = (x.cuda() for x in ugly(SEEDS[0], 112, members=64))
    weights = weights_of(q, edge_index)
    expected = run(q, edge_index, weights)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = run(q, edge_index, weights)
    graph.replay()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("shape", "edge_index", "message"),
    [
        ((5,), torch.zeros(2, 1, dtype=torch.long), r"\[\*, N, D\]"),
        ((3, 2), torch.tensor([[0], [3]]), "node 3"),
        ((3, 2), torch.tensor([[-1], [0]]), "node -1"),
        ((0, 2), torch.tensor([[0], [0]]), "node 0"),
        ((3, 2), torch.tensor([[0.0], [1.0]]), "integers"),
        ((3, 2), torch.zeros(3, 0, dtype=torch.long), r"\[2, E\]"),
    ],
)
def test_refuses_bad_arguments(device, shape, edge_index, message):
    with pytest.raises(InputError, match=message):
        kernels.edge_agreement(torch.zeros(shape, device=device), edge_index.to(device))
