import tempfile
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from large.graphs import NODES, graph_of
from lgdgcn.large.batch_input import _place
from lgdgcn.large.batches import BatchSampler
from lgdgcn.large.hops import hop_table, left_variance
from lgdgcn.large.rows import GraphRows
from lgdgcn.large.sampler import EpochOrder, prefetch
from lgdgcn.large.structure import structure_rows
from lgdgcn.models import ClassUnitGCN
from lgdgcn.models.population import stack
from lgdgcn.nn.ours.batch_edges import EdgeMoments
from lgdgcn.nn.propagation import normalized_adjacency, propagate
from lgdgcn.train.targets import Targets
from lgdgcn.train.task import Task
from lgdgcn.train.trainer import loss_terms
from literal.seeds import seeds

SEEDS = seeds(2)


@pytest.fixture
def _float64():
    """Matrices of plain edges are of the default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def model_of(data, **options):
    torch.manual_seed(0)
    plain = {"dropout": 0.0, "space": False, "diversity": False, "latent_graph": False}
    encoder = {"encoder_channels": 5, "drop_nodes": 0.3, "views": 2, "tau": 0.5, "factors": 2}
    encoder |= {"hidden_channels": 6, "out_channels": 3, "multi_label": False, "iterations": 0}
    model = ClassUnitGCN(data.x.size(1), **{**plain, **encoder, **options}).to(data.x.dtype)
    y = torch.nn.functional.one_hot(data.y[data.train_mask], 3)
    model.begin(y, data.x, data.edge_index)
    return model


def gradients(network):
    return {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}


def full_gradients(network, data, weights):
    """Losses and gradients of the whole graph, and what the edge loss knows of all nodes."""
    targets = Targets.of([data], "train_mask")
    output = network.disentangle(data.x, data.edge_index, (), targets.pick)
    losses = loss_terms(network, output, Task(3, False), targets, data.edge_index, weights)
    network.zero_grad()
    losses["total"].sum().backward()
    return losses, gradients(network), output.layers


def slope_of(shares, edges, weights):
    """Derivative of the edge loss by the agreement of any two nodes, [1, M]."""
    by_chance = []
    for own in shares[0].unbind(1):
        gram = own @ own.T
        pairs = len(gram) * (len(gram) - 1)
        by_chance.append((gram.sum() - gram.diagonal().sum()) / pairs + 1e-6)
    by_chance = torch.stack(by_chance).requires_grad_()
    source, target = edges
    agreement = (shares[0, source] * shares[0, target]).sum(-1)
    lift = (weights[0] / by_chance * agreement).sum(-1)
    (-(1 - weights.sum() + lift).log().mean()).backward()
    return by_chance.grad.unsqueeze(0)


STRUCTURE = {"structure_neighbours": 3, "structure_weight": 0.7}
CASES = {
    "local structure of hops": {"hops": 2, "structure": "local", **STRUCTURE},
    "global structure of hops": {"hops": 2, "structure": "global", **STRUCTURE},
    "both, hops and votes": {"hops": 2, "structure": "both", "iterations": 2, **STRUCTURE},
    "both, learned hops": {"hops": 1, "structure": "both", "hop_weights": "learned", **STRUCTURE},
    "both, two hidden layers": {"hops": 1, "structure": "both", "encoder_layers": 2, **STRUCTURE},
    "hops": {"hops": 2},
    "learned hops": {"hops": 2, "hop_weights": "learned"},
    "a matrix for each hop": {"hops": 2, "hop_weights": "separate"},
    "propagated features": {"hops": 2, "propagate": "features"},
    "two hidden layers": {"hops": 1, "encoder_layers": 2},
    "votes": {"hops": 0, "iterations": 2},
    "two layers of votes": {"hops": 1, "iterations": 1, "num_layers": 2},
    "no encoder": {"encoder_channels": 0, "iterations": 2, "views": 1, "multi_label": True},
}


@pytest.mark.usefixtures("_float64")
@pytest.mark.parametrize(("weighted", "seed"), zip([False, True], SEEDS, strict=True))
@pytest.mark.parametrize(
    ("case", "table"),
    [(case, table) for case in CASES for table in (False, True) if not table or "hop" in case],
)
def test_all_neighbours_give_the_gradients_of_the_whole_graph(case, table, weighted, seed):
    options = {"hops": 0, **CASES[case]}
    data = graph_of(seed, weighted=weighted)
    # nodes cannot be dropped alike; in evaluation they are not
    model = model_of(data, **{**options, "drop_nodes": 0.0})
    model.eval()
    for _ in range(2):
        model.refresh(data.x, data.edge_index, torch.tensor(True))
    graph = GraphRows.of(data)
    along = structure_rows(graph, model)
    network = stack([model.train()])
    weights = {name: torch.tensor([0.7], dtype=torch.float64) for name in ("edge", "consistency")}
    losses, expected, layers = full_gradients(network, data, weights)
    views = network.views
    edges = torch.cat([data.edge_index + view * NODES for view in range(views)], 1)
    for layer, found in zip(network.layers, layers, strict=True):
        shares = found.local_units.detach().square()  # [1, V N, M, d]
        layer.moments = EdgeMoments(layer.factor_weights, shares.size(-1), rate=0.0)
        layer.moments.mean.copy_(shares.mean(-3))
        layer.moments.square.copy_(shares.square().sum(-1).mean(-2))
        layer.moments.count.fill_(views * NODES)
        layer.moments.slope.copy_(slope_of(shares, edges, layer.factor_weights))
    features = graph.features
    if table:
        features = hop_table(along, options["hops"]).rows
    votes = options.get("iterations", 0) * options.get("num_layers", 1)
    drawn = (0 if table else options["hops"]) + options.get("encoder_layers", 1) - 1
    sampler = BatchSampler(graph, features, votes, drawn, fan_out=0, along=along)
    places = EpochOrder(NODES, int(data.train_mask.sum()), batch_size=24, parts=2)
    order = places.nodes_of_epoch(seed, 0)
    train = data.train_mask.nonzero().squeeze(1)
    network.zero_grad()
    found = dict.fromkeys(losses, 0.0)
    for step in range(places.steps):
        for part in range(places.parts):
            batch = sampler.batch(places.seeds(order, step, part), train, 5, 4, loss_edges=0)
            own = Targets(batch.others[None], data.y[train][None], torch.ones(1, len(train)))
            with batch.subgraph.active():
                output = network.disentangle(batch.x, batch.edge_index, (), own.pick)
                parts = loss_terms(network, output, Task(3, False), own, batch.edge_index, weights)
            (parts["total"].sum() / 4).backward()
            found = {name: found[name] + float(loss.detach()) / 4 for name, loss in parts.items()}
    for name, loss in losses.items():
        assert found[name] == pytest.approx(float(loss.detach()), rel=1e-9), name
    for name, grad in gradients(network).items():
        assert_close(grad, expected[name], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize(("weighted", "seed"), zip([False, True], SEEDS, strict=True))
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_table_of_hops_is_the_propagation_of_all_nodes(seed, weighted, is_sparse, tmp_path):
    data = graph_of(seed, weighted=weighted)
    matrix = normalized_adjacency(data.edge_index, NODES)
    shares = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    expected = propagate(data.x, matrix, shares)
    if is_sparse:
        data.x = data.x.to_sparse_csr()
    graph = GraphRows.of(data)
    nodes = torch.tensor([3, 0, NODES - 1, 3])
    for folder in (None, tmp_path):
        summed = hop_table(graph, 2, shares, folder)
        assert_close(summed.rows(nodes), expected[nodes].unsqueeze(1), rtol=1e-6, atol=1e-6)
        hops = hop_table(graph, 2, folder=folder)
        rows = torch.einsum("nkf,k->nf", hops.rows(nodes), shares)
        assert_close(rows, expected[nodes], rtol=1e-6, atol=1e-6)
        spread = expected.std(0, correction=0)
        assert_close(hops.spread(shares), spread, rtol=1e-5, atol=1e-6)
        assert_close(summed.spread(shares), spread, rtol=1e-5, atol=1e-6)
    assert not list(tmp_path.iterdir())  # the files have no names


def test_the_table_knows_what_averaging_leaves_of_dropout():
    data = graph_of(0)
    matrix = normalized_adjacency(data.edge_index, NODES)
    mean = propagate(torch.eye(NODES, dtype=torch.float64), matrix, torch.full((4,), 0.25))
    exact = mean.square().sum(1) / mean.sum(1).square()
    found = left_variance(GraphRows.of(data), 3)
    assert float(found[1]) == pytest.approx(1)  # a node without edges
    assert bool((found <= 1).all())
    assert float(found.mean()) == pytest.approx(float(exact.mean()), rel=0.15)
    assert float(torch.corrcoef(torch.stack([found, exact]))[0, 1]) > 0.8


def test_every_part_has_its_share_of_nodes_and_training_nodes():
    places = EpochOrder(nodes=103, train=17, batch_size=20, parts=2)
    order = places.nodes_of_epoch(7, 3)
    parts = [places.seeds(order, step, part) for step in range(places.steps) for part in range(2)]
    assert torch.equal(torch.cat(parts), order.long())
    assert {len(part) for part in parts} <= {8, 9}
    size = places.train_size
    assert size == 5
    places = [
        places.training(7, epoch, step, part)
        for epoch in range(3)
        for step in range(places.steps)
        for part in range(2)
    ]
    dealt = torch.cat(places)
    for cycle in dealt[: len(dealt) // 17 * 17].view(-1, 17):  # no card twice before all were dealt
        assert torch.equal(cycle.sort().values, torch.arange(17))
    assert torch.equal(EpochOrder(10, 3, 20).training(0, 5, 0, 0), torch.arange(3))


def test_results_come_in_order_and_errors_where_they_are_asked_for():
    def fail():
        raise ValueError("broken")

    assert list(prefetch([lambda i=i: i for i in range(9)])) == list(range(9))
    results = prefetch([lambda: 1, fail, lambda: 3])
    assert next(results) == 1
    with pytest.raises(ValueError, match="broken"):
        next(results)
    unfinished = prefetch([lambda i=i: i for i in range(100)])
    assert next(unfinished) == 0
    unfinished.close()  # the thread that waits for room ends, too


@pytest.mark.parametrize("weighted", [False, True])
def test_drawn_neighbours_and_edges_are_right_on_average(weighted):
    data = graph_of(SEEDS[0], weighted=weighted)
    graph, every = GraphRows.of(data), torch.arange(NODES)
    sampler = BatchSampler(graph, graph.features, votes=1, drawn=1, fan_out=2, along=graph)
    one_hop = torch.tensor([0.0, 1.0], dtype=torch.float64)
    sums, votes, ends = [], [], []
    for key in range(600):
        batch = sampler.batch(every, every[:0], key, loss_edges=1)
        part = batch.subgraph
        sums.append(propagate(batch.x, part.propagator, one_hop))
        source, target = batch.edge_index
        vote = torch.zeros_like(batch.x).index_add(0, target, batch.x[source])
        votes.append(vote * part.vote_scale.unsqueeze(1))
        own, other = part.edges
        ends.append((part.edge_weight * data.x[own, 0] * data.x[other, 1]).sum())
    source, target = data.edge_index
    exact = {
        "propagated": propagate(data.x, normalized_adjacency(data.edge_index, NODES), one_hop),
        "votes": torch.zeros_like(data.x).index_add(0, target, data.x[source]),
        "edges": (data.x[source, 0] * data.x[target, 1]).sum(),
    }
    for name, drawn in (("propagated", sums), ("votes", votes), ("edges", ends)):
        values = torch.stack(drawn)
        error = values.std(0) / len(values) ** 0.5
        assert bool(((values.mean(0) - exact[name]).abs() <= 5 * error + 1e-6).all()), name


def test_a_wide_table_stays_in_memory_where_there_is_much(monkeypatch):
    graph = GraphRows.of(graph_of(1))
    monkeypatch.setattr("lgdgcn.large.hops._IN_MEMORY", 0)
    assert _place(graph, 2, False, "auto") == (True, Path(tempfile.gettempdir()))
    monkeypatch.setattr("lgdgcn.large.batch_input._WIDEST", 1)
    assert _place(graph, 2, False, "auto") == (True, None)
    monkeypatch.setattr("lgdgcn.large.batch_input.available_memory", lambda: 0)
    assert _place(graph, 2, False, "auto") == (False, None)
