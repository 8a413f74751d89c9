import os

import pytest
import torch

from kernels.checks import NODES, gradient, same_with_one_thread, ugly_graph
from lgdgcn import kernels
from lgdgcn.errors import InputError
from literal.seeds import seeds

SEEDS = seeds(1)  # fresh input every time; ids show the seed
DTYPES = [torch.float32, torch.float64]


# features times weights


def features(seed, nodes=40, size=23, dtype=torch.float32):
    """Sparse rows, some empty, some full."""
    torch.manual_seed(seed)
    dense = torch.randn(nodes, size, dtype=dtype) * (torch.rand(nodes, size) < 0.2)
    dense[3], dense[5], dense[:, 7] = 0, 1, 0
    return dense


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [64, 1, 7, 48, 160])
@pytest.mark.parametrize("members", [None, 1, 3])
def test_matmul(backend, dtype, width, members):
    dense = features(SEEDS[0], dtype=dtype)
    weight = torch.randn(*(() if members is None else (members,)), 23, width, dtype=dtype)
    for x in (dense, dense.to_sparse_csr()):
        out, grad = gradient(lambda weight, x=x: kernels.matmul(x, weight), weight)
        expected, wanted = gradient(lambda weight: dense @ weight, weight)
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(grad, wanted, rtol=1e-5, atol=1e-5)


def test_matmul_notices_changed_features(backend):
    x = features(SEEDS[0]).to_sparse_csr()
    weight = torch.randn(23, 16)
    before = kernels.matmul(x, weight)
    wide = kernels.matmul(x.double(), weight.double())
    torch.testing.assert_close(wide.float(), before, rtol=1e-5, atol=1e-5)
    x.mul_(2)
    torch.testing.assert_close(kernels.matmul(x, weight), 2 * before)


def test_matmul_repeats(backend, two_threads):
    x = features(SEEDS[0], nodes=3000).to_sparse_csr()
    weight = torch.randn(2, 23, 64)
    assert same_with_one_thread(lambda: gradient(lambda w: kernels.matmul(x, w), weight))


def test_matmul_with_own_values_of_every_member(backend):
    x = (torch.rand(9, 7) * (torch.rand(9, 7) > 0.6)).to_sparse_csr()
    values, weight = torch.randn(3, x.values().numel()), torch.randn(3, 7, 5)
    dense = torch.stack(
        [
            torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), own, x.shape).to_dense()
            for own in values
        ]
    )
    out, grad = gradient(lambda weight: kernels.matmul(x, weight, values), weight)
    expected = gradient(lambda weight: dense @ weight, weight)
    torch.testing.assert_close((out, grad), expected)


# inner products along edges


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


def agreement(q, edge_index, weights):
    q = q.detach().requires_grad_()
    out = kernels.edge_agreement(q, edge_index)
    return out.detach(), torch.autograd.grad(out, q, weights)[0]


def weights_of(q, edge_index):
    return torch.randn(*q.shape[:-2], edge_index.size(1), dtype=q.dtype, device=q.device)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [1, 5, 112, 512])
def test_agreement_equals_the_literal_loop(device, seed, width):
    q, edge_index = ugly_graph(seed, width)
    weights = weights_of(q, edge_index)
    expected = literal(q, edge_index, weights)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-11)):
        given = q.to(device, dtype), edge_index.to(device), weights.to(device, dtype)
        for found, want in zip(agreement(*given), expected, strict=True):
            assert found.dtype == dtype
            torch.testing.assert_close(
                found.double().cpu(), want, rtol=tolerance, atol=tolerance * width**0.5
            )


@pytest.mark.parametrize("width", [3, 16])
def test_agreement_gradcheck(device, width):
    q, edge_index = ugly_graph(SEEDS[0], width, members=2, dtype=torch.float64)
    q, edge_index = q.to(device).requires_grad_(), edge_index.to(device)
    assert torch.autograd.gradcheck(lambda q: kernels.edge_agreement(q, edge_index), q)
    assert torch.autograd.gradcheck(lambda q: kernels.edge_agreement(q, edge_index), q[0])


@pytest.mark.parametrize(
    ("members", "nodes", "width", "edges"),
    [(2, 4, 5, 0), (2, 0, 5, 0), (2, 4, 0, 3), (0, 4, 5, 3), (1, 0, 0, 0), (1, 1, 1, 1)],
)
def test_agreement_of_nothing(device, members, nodes, width, edges):
    q = torch.ones(members, nodes, width, device=device)
    edge_index = torch.zeros(2, edges, dtype=torch.long, device=device)
    out, grad = agreement(q, edge_index, weights := weights_of(q, edge_index))
    assert torch.equal(out, torch.full_like(weights, width))
    assert torch.equal(grad, torch.zeros_like(q) if nodes != 1 else 2 * weights.view_as(q))


def test_agreement_members_layout_and_index_type_do_not_matter(device):
    q, edge_index = (x.to(device) for x in ugly_graph(SEEDS[0], 20))
    weights = weights_of(q, edge_index)
    together = agreement(q, edge_index, weights)
    strided = q.transpose(0, 2).contiguous().transpose(0, 2)
    flipped = edge_index.t().contiguous().t().int()
    for a, b in zip(agreement(strided, flipped, weights), together, strict=True):
        assert torch.equal(a, b)
    for r in range(len(q)):
        for a, b in zip(agreement(q[r], edge_index, weights[r]), together, strict=True):
            torch.testing.assert_close(a, b[r], rtol=1e-6, atol=1e-5)


def test_agreement_an_expanded_gradient_is_read_right(device):
    q, edge_index = (x.to(device) for x in ugly_graph(SEEDS[0], 6))
    ones = torch.ones(len(q), edge_index.size(1), device=device)
    leaf = q.clone().requires_grad_()
    kernels.edge_agreement(leaf, edge_index).sum().backward()
    assert torch.equal(leaf.grad, agreement(q, edge_index, ones)[1])


def test_agreement_repeatable_at_any_thread_count(device):
    torch.manual_seed(SEEDS[0])
    nodes = 12 if os.environ["LGDGCN_BACKEND"] == "triton" else 2000
    q = torch.randn(2, nodes, 20, device=device)
    edge_index = torch.randint(nodes, (2, 10 * nodes), device=device)
    weights = weights_of(q, edge_index)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 3, 3):
        torch.set_num_threads(threads)
        results.append(agreement(q, edge_index, weights))
    torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_agreement_broken_numbers_stay_at_their_edges(device):
    q, edge_index = (x.to(device) for x in ugly_graph(SEEDS[0], 7))
    q[:, 5, 2] = torch.nan
    out, grad = agreement(q, edge_index, torch.ones(3, edge_index.size(1), device=device))
    touched = (edge_index == 5).any(0)
    assert torch.equal(out.isnan(), touched.expand_as(out))
    near = torch.zeros(NODES, dtype=torch.bool, device=device)
    near[edge_index[1, edge_index[0] == 5]] = True
    near[edge_index[0, edge_index[1] == 5]] = True
    assert torch.equal(grad[..., 2].isnan(), near.expand(3, -1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_agreement_half_precision(device, dtype):
    q, edge_index = (x.to(device) for x in ugly_graph(SEEDS[0], 9))
    weights = weights_of(q, edge_index)
    wide = agreement(q.to(dtype).float(), edge_index, weights)
    for a, b in zip(agreement(q.to(dtype), edge_index, weights.to(dtype)), wide, strict=True):
        assert a.dtype == dtype
        torch.testing.assert_close(a.float(), b, rtol=0.05, atol=0.1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_agreement_can_be_recorded(monkeypatch):
    pytest.importorskip("triton")
    monkeypatch.setenv("LGDGCN_BACKEND", "triton")
    q, edge_index = (x.cuda() for x in ugly_graph(SEEDS[0], 112, members=64))
    weights = weights_of(q, edge_index)
    expected = agreement(q, edge_index, weights)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = agreement(q, edge_index, weights)
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
def test_agreement_refuses_bad_arguments(device, shape, edge_index, message):
    with pytest.raises(InputError, match=message):
        kernels.edge_agreement(torch.zeros(shape, device=device), edge_index.to(device))
