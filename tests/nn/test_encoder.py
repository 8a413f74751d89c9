import pytest
import torch

from lgdgcn.errors import InputError
from lgdgcn.nn import PropagationEncoder, normalized_adjacency
from lgdgcn.nn.dropout import RandomStreams
from lgdgcn.nn.propagation import mean_of_hops, propagate
from models.toy import toy_graph


def encoder(**options):
    torch.manual_seed(0)
    defaults = {"hops": 3, "drop_nodes": 0.4, "dropout": 0.0}
    return PropagationEncoder(5, 8, **{**defaults, **options})


def case(dtype=torch.float64):
    data = toy_graph(dtype=dtype)
    x = data.x[:, :5].contiguous()
    return x, normalized_adjacency(data.edge_index, len(x))


@pytest.mark.parametrize("hop_weights", ["mean", "learned", "signed"])
def test_project_first_is_propagate_first_without_dropout(hop_weights):
    x, graph = case()
    hidden = encoder(order="hidden", hop_weights=hop_weights).double().eval()
    features = encoder(order="features", hop_weights=hop_weights).double().eval()
    features.load_state_dict(hidden.state_dict())
    torch.testing.assert_close(hidden(x, graph, 2), features(x, graph, 2))
    torch.testing.assert_close(hidden(x.to_sparse_csr(), graph, 2), hidden(x, graph, 2))


@pytest.mark.parametrize("hop_weights", ["mean", "learned", "separate"])
def test_no_nodes_have_no_hidden_vectors(hop_weights):
    x, graph = torch.zeros(0, 4, 5), normalized_adjacency(torch.zeros(2, 0, dtype=torch.long), 0)
    assert encoder(hop_weights=hop_weights)(x, graph, 2).shape == (2, 0, 8)


def test_hops_begin_with_equal_shares():
    for hop_weights in ("mean", "learned", "signed"):
        shares = encoder(hop_weights=hop_weights).hop_shares()
        torch.testing.assert_close(shares, torch.full((4,), 0.25))


@pytest.mark.parametrize("order", ["hidden", "features"])
@pytest.mark.parametrize("sparse", [False, True])
def test_views_differ_in_training_and_agree_otherwise(order, sparse):
    x, graph = case(torch.float32)
    x = x.to_sparse_csr() if sparse else x
    network = encoder(order=order, input_dropout=0.3)
    streams = RandomStreams(torch.tensor([3]), torch.tensor([1]), torch.tensor([0.0]))
    for name in ("node_rate", "input_rate"):
        setattr(network, name, getattr(network, name).reshape(1))
    for name in ("weight", "bias"):
        parameter = torch.nn.Parameter(getattr(network, name).detach().unsqueeze(0))
        setattr(network, name, parameter)
    with streams.active():
        views = network(x, graph, 3)
    assert views.shape == (1, 3, 36, 8)
    assert not torch.equal(views[0, 0], views[0, 1])
    same = network.eval()(x, graph, 3)
    assert torch.equal(same[0, 0], same[0, 1])


@pytest.mark.parametrize("sparse", [False, True])
def test_batch_norm(sparse):
    x, graph = case(torch.float64)
    given = x.to_sparse_csr() if sparse else x
    first = encoder(batch_norm=True, order="features").double()
    assert first(given, graph, 2).shape == (2, 36, 8)
    network = encoder(batch_norm=True, order="hidden").double()
    network.begin(given, graph)
    propagated = propagate(x, graph, mean_of_hops(network.hops, x))
    spread = propagated.sub(propagated.mean(0)).square().mean(0).sqrt()
    torch.testing.assert_close(network.input_scale * spread, torch.ones_like(spread))
    torch.nn.init.uniform_(network.gate)
    seen = []
    network.hidden_norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    network.eval()(given, graph, 1)
    wanted = 0.6 * (propagated * network.gate / spread) @ network.weight + network.bias
    torch.testing.assert_close(seen[0][0], wanted.relu())


def test_a_feature_that_is_the_same_everywhere_has_no_spread():
    x, graph = case(torch.float64)
    x[:, 1] = 0
    network = encoder(batch_norm=True, order="hidden").double()
    network.begin(x, graph)
    assert network.input_scale[1] == 0
    assert network.input_scale.isfinite().all()


def dense(graph, nodes):
    """The matrix of a propagator, entry by entry."""
    matrix = torch.zeros(nodes, nodes, dtype=torch.float64)
    for row in range(nodes):
        for entry in range(int(graph.row_ptr[row]), int(graph.row_ptr[row + 1])):
            matrix[row, graph.column[entry]] += graph.value[entry]
    return matrix


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_hop_may_have_a_matrix_of_its_own(hops, sparse):
    x, graph = case()
    network = encoder(hops=hops, hop_weights="separate").double().eval()
    matrix, kept = dense(graph, len(x)), 0.6 * x
    by_hop = network.weight.view(5, hops + 1, 8)
    wanted = network.bias + sum(
        torch.linalg.matrix_power(matrix, hop) @ kept @ by_hop[:, hop] for hop in range(hops + 1)
    )
    found = network(x.to_sparse_csr() if sparse else x, graph, 1)
    torch.testing.assert_close(found[0], wanted.relu())


def test_hops_apart_need_hidden_channels():
    with pytest.raises(InputError, match="hop_weights is separate"):
        encoder(order="features", hop_weights="separate")


def test_deeper_layers_read_a_node_and_its_neighbours_apart():
    x, graph = case()
    network = encoder(hops=1, layers=3).double().eval()
    matrix = dense(graph, len(x))
    h = encoder(hops=1).double().eval()(x, graph, 1)[0]
    for layer in network.deeper:
        own, neighbours = layer.weight.chunk(2, -1)
        h = (h @ own + matrix @ h @ neighbours + layer.bias).relu()
    network.load_state_dict(encoder(hops=1).double().state_dict(), strict=False)
    torch.testing.assert_close(network(x, graph, 1)[0], h)
