import pytest
import torch

from lgdgcn.nn import PropagationGraph, normalized_adjacency
from literal import structure as literal
from literal.seeds import seeds
from nn.test_propagation import NODES, dense, some_edges


def case(seed):
    edges = some_edges(seed)
    torch.manual_seed(seed)
    classes = torch.rand(NODES, 3, dtype=torch.float64)
    return edges, classes, torch.randn(NODES, 2, dtype=torch.float64)


def graph_of(structure, edges, gamma=0.4):
    graph = PropagationGraph(structure, 2, gamma).double()
    graph.begin(edges, NODES)
    return graph


@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("structure", ["local", "global", "both"])
def test_equals_the_literal_loop(seed, structure):
    edges, classes, hidden = case(seed)
    graph = graph_of(structure, edges)
    plain = dense(normalized_adjacency(edges, NODES)).double()
    torch.testing.assert_close(dense(graph.matrix()), plain)
    graph.refresh(edges, classes, hidden, torch.tensor(True))
    pairs = edges.T.tolist()
    agreement = [float(classes[a] @ classes[b]) if structure != "global" else 1 for a, b in pairs]
    listed = literal.nearest(hidden.tolist(), 2) if structure != "local" else [[]] * NODES
    want = literal.structured(pairs, agreement, listed, 0.4)
    torch.testing.assert_close(dense(graph.matrix()), torch.tensor(want, dtype=torch.float64))


def test_only_members_whose_time_it_is_are_refreshed():
    edges, classes, hidden = case(0)
    graph = PropagationGraph("both", 2, 0.3).double()
    graph.gamma = torch.tensor([0.3, 0.3, 0.9], dtype=torch.float64)
    graph.begin(edges, NODES)
    before = [part.clone() for part in graph.matrix()]
    due = torch.tensor([False, True, True])
    graph.refresh(edges, classes.expand(3, -1, -1), hidden.expand(3, -1, -1), due)
    for old, new in zip(before, graph.matrix(), strict=True):
        assert torch.equal(old[0], new[0])
    assert not torch.equal(before[2][1], graph.value[1])
    assert not torch.equal(graph.value[1], graph.value[2])  # their weights of neighbours differ


def test_another_graph_is_known():
    edges, *_ = case(0)
    graph = graph_of("both", edges)
    assert graph.is_for(edges, NODES)
    assert graph.is_for(edges[:, torch.randperm(edges.size(1))], NODES)
    assert not graph.is_for(edges, NODES + 1)
    assert not graph.is_for(edges[:, 1:], NODES)
    order = torch.arange(NODES).roll(1)
    assert not graph.is_for(order[edges], NODES)


def test_fewer_nodes_than_neighbours():
    edges = torch.tensor([[0, 1], [1, 0]])
    graph = PropagationGraph("both", 5, 0.3)
    graph.begin(edges, 2)
    graph.refresh(edges, torch.rand(2, 3), torch.rand(2, 4), torch.tensor(True))
    assert graph.value.isfinite().all()
    alone = PropagationGraph("both", 5, 0.3)
    none = torch.empty(2, 0, dtype=torch.long)
    alone.begin(none, 1)
    alone.refresh(none, torch.rand(1, 3), torch.rand(1, 4), torch.tensor(True))
    assert alone.value.tolist() == [1]
