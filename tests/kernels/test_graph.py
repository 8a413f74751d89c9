import gc
import weakref

import torch

from kernels.checks import NODES, ugly_graph
from lgdgcn import kernels
from lgdgcn.kernels.graph import incident_edges
from literal.seeds import seeds

SEED = seeds(1)[0]


def test_rows_and_their_transpose():
    edge_index = torch.tensor([[3, 0, 1, 0, 3], [1, 2, 1, 1, 1]])
    rows = kernels.neighbours(edge_index, 4)
    assert rows.row_ptr.tolist() == [0, 0, 4, 5, 5]
    assert rows.source.tolist() == [3, 1, 0, 3, 0]
    assert rows.order.tolist() == [0, 2, 3, 4, 1]
    assert rows.out_ptr.tolist() == [0, 2, 3, 3, 5]
    assert rows.out_entry.tolist() == [2, 4, 1, 0, 3]


def test_cached_until_the_edges_change(backend):
    z = torch.randn(4, 2, 3)
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 3]])
    rows = kernels.neighbours(edge_index, 4)
    assert kernels.neighbours(edge_index, 4) is rows
    assert kernels.neighbours(edge_index, 5) is not rows
    before = kernels.route(z, edge_index)[0]
    edge_index[1, 0] = 3
    after = kernels.route(z, edge_index)[0]
    assert kernels.neighbours(edge_index, 4).row_ptr.tolist() == [0, 0, 0, 1, 3]
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, kernels.route(z, edge_index.clone())[0])


def test_freed_with_the_edges():
    edge_index = torch.tensor([[0], [1]])
    watch = weakref.ref(kernels.neighbours(edge_index, 2).source)
    del edge_index
    gc.collect()
    assert watch() is None


def test_inference_edges_are_never_cached():
    with torch.inference_mode():
        edge_index = torch.tensor([[0], [1]])
        kernels.neighbours(edge_index, 3)
        edge_index[1, 0] = 2
        assert kernels.neighbours(edge_index, 3).row_ptr.tolist() == [0, 0, 0, 1]


def test_edges_at_every_node_are_listed_and_cached():
    _, edge_index = ugly_graph(SEED, 1)
    graph = incident_edges(edge_index, NODES)
    assert incident_edges(edge_index, NODES) is graph
    pairs = edge_index.t().tolist()
    for v in range(NODES):
        here = slice(graph.row_ptr[v], graph.row_ptr[v + 1])
        found = list(zip(graph.edge[here].tolist(), graph.other[here].tolist(), strict=True))
        coming = [(e, s) for e, (s, t) in enumerate(pairs) if t == v]
        going = [(e, t) for e, (s, t) in enumerate(pairs) if s == v]
        assert found[: len(coming)] == coming
        assert sorted(found[len(coming) :]) == going
