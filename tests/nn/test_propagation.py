import pytest
import torch

from lgdgcn.nn.dropout import RandomStreams
from lgdgcn.nn.propagation import Propagator, drop_nodes, normalized_adjacency, propagate
from literal import propagation as literal
from literal.seeds import seeds

SEEDS = seeds(3)
NODES = 9


def some_edges(seed):
    torch.manual_seed(seed)
    pairs = {(min(p), max(p)) for p in torch.randint(0, NODES - 1, (14, 2)).tolist()}
    pairs = sorted(p for p in pairs if p[0] != p[1])  # the last node has no edge
    return torch.tensor(pairs + [p[::-1] for p in pairs]).T


def dense(graph):
    matrix = torch.zeros(NODES, NODES, dtype=graph.value.dtype)
    rows = torch.repeat_interleave(graph.row_ptr.diff())
    return matrix.index_put((rows, graph.column), graph.value, accumulate=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_adjacency_is_the_literal_one(seed):
    edges = some_edges(seed)
    weight = torch.rand(2, edges.size(1) // 2, dtype=torch.float64).repeat(1, 2)
    order = torch.randperm(edges.size(1))
    graph = normalized_adjacency(edges[:, order], NODES, weight[:, order])
    for index in range(2):
        want = literal.normalized(edges.T.tolist(), NODES, weight[index].tolist())
        own = Propagator(*(part[index] for part in graph))
        torch.testing.assert_close(dense(own), torch.tensor(want, dtype=torch.float64))
    plain = literal.normalized(edges.T.tolist(), NODES)
    torch.testing.assert_close(dense(normalized_adjacency(edges, NODES)), torch.tensor(plain))


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_of_all_or_of_each_set(seed):
    graph = normalized_adjacency(some_edges(seed), NODES)
    x, weights = torch.rand(2, 3, NODES, 4), torch.rand(2, 3, 5)
    found = propagate(x, graph, weights)
    for a in range(2):
        for b in range(3):
            torch.testing.assert_close(found[a, b], propagate(x[a, b], graph, weights[a, b]))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_matrix_for_each_member(seed):
    edges = torch.stack([some_edges(seed)[:, :6], some_edges(seed + 1)[:, :6]])
    edges = torch.cat([edges, edges.flip(1)], -1)  # one direction may come twice
    graph = normalized_adjacency(edges, NODES, torch.rand(2, 6).repeat(1, 2))
    x, weights = torch.rand(2, 3, NODES, 4), torch.rand(2, 1, 5)
    found = propagate(x, graph, weights)
    for member in range(2):
        own = Propagator(*(part[member] for part in graph))
        torch.testing.assert_close(found[member], propagate(x[member], own, weights[member, 0]))
        literal_rows = dense(own).tolist()
        want = literal.average(literal_rows, x[member, 1].tolist(), weights[member, 0].tolist())
        torch.testing.assert_close(found[member, 1], torch.tensor(want))


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_in_another_order(seed):
    edges = some_edges(seed)
    order = torch.randperm(NODES)
    x, weights = torch.rand(NODES, 4), torch.tensor([0.2, 0.3, 0.5])
    want = propagate(x, normalized_adjacency(edges, NODES), weights)
    moved = normalized_adjacency(order.argsort()[edges], NODES)
    torch.testing.assert_close(propagate(x[order], moved, weights), want[order])


def test_whole_nodes_are_dropped_and_never_scaled():
    x = torch.rand(2, 3, 400, 5) + 1
    rate = torch.tensor([0.5, 0.2])
    one = torch.ones(2, dtype=torch.int64)
    with RandomStreams(torch.tensor([1, 2]), one, rate).active():
        found = drop_nodes(x, rate, training=True)
    kept = (found != 0).all(-1)
    assert torch.equal(kept, (found != 0).any(-1))
    assert torch.equal(found[kept], x[kept])
    share = kept.float().mean(-1)  # [2, 3]
    torch.testing.assert_close(share, (1 - rate).unsqueeze(1).expand(2, 3), rtol=0, atol=0.12)
    assert not torch.equal(kept[0, 0], kept[0, 1])  # every view drops others
    still = drop_nodes(x, rate, training=False)
    torch.testing.assert_close(still[1], 0.8 * x[1])
