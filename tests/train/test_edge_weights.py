"""Edge weights: models that can use them do, and the others say that they do not."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from large.graphs import packed_from
from lgdgcn.config import Settings, preset, resolve
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError
from lgdgcn.estimator import LGDClassifier
from lgdgcn.kernels.graph import edge_weights
from lgdgcn.large.rows import mapped_graph
from lgdgcn.models import MODELS
from lgdgcn.nn import normalized_adjacency
from lgdgcn.reasons.edges import Edges
from lgdgcn.reasons.explanation import without_edges
from lgdgcn.train.prepared import hold_once, prepared, prepared_alike
from train.one_seed import train_seed
from train.single import Member, trainer_of

CPU = torch.device("cpu")


def noisy(scale=1.0, weighed=True):
    """Strong edges within two classes, as many weak ones between them, and features of noise."""
    random = np.random.default_rng(0)
    y = np.arange(80) % 2
    pairs = random.integers(0, 80, (1200, 2))
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    weight = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 10.0, 0.01) * scale
    x = np.random.default_rng(1).normal(size=(80, 8)) + 0.5 * y[:, None]
    graph = Data(x=torch.from_numpy(x).float(), y=torch.from_numpy(y))
    graph.edge_index = torch.from_numpy(np.concatenate([pairs, pairs[:, ::-1]]).T.copy())
    if weighed:
        graph.edge_weight = torch.from_numpy(np.concatenate([weight, weight])).float()
    split = torch.from_numpy(random.permutation(np.arange(80) % 4))
    graph.train_mask, graph.val_mask, graph.test_mask = split == 0, split == 1, split > 1
    return canonical(graph)


def trained(graph, model, **changes):
    if model == "gcnii":
        changes |= {"num_layers": 4}  # of 16, which take longer
    settings = resolve(preset("", model), {"scaling": "standard", "epochs": 60, **changes})
    return train_seed(graph, settings, model, 0, CPU)


@pytest.mark.parametrize("model", ["gcn", "appnp", "gcnii", "grand", "lgdgcn"])
def test_models_that_propagate_use_weights(model):
    with_weights, network = trained(noisy(), model)
    without, _ = trained(noisy(weighed=False), model)
    assert not [line for line in with_weights.warnings if "weights of edges" in line]
    assert network.model.uses_edge_weights
    assert with_weights.test >= 0.95 > without.test


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("mlp", {}),
        ("gat", {}),
        ("monet", {}),
        ("lgdgcn", {"hops": 0}),
        ("lgdgcn", {"structure": "both"}),
        ("disengcn", {}),
    ],
)
def test_models_that_cannot_say_so(model, changes):
    result, network = trained(noisy(), model, epochs=3, **changes)
    assert not network.model.uses_edge_weights
    (line,) = [line for line in result.warnings if "weights of edges" in line]
    cause = "".join(f" with {name}={value}" for name, value in changes.items())
    assert line.startswith(f"{MODELS[model].title}{cause} has no use for the weights")
    assert line.endswith("all count the same")
    plain, _ = trained(noisy(weighed=False), model, epochs=3, **changes)
    assert plain.scores == result.scores
    assert not [line for line in plain.warnings if "weights of edges" in line]


def test_a_mapped_graph_says_so_too(tmp_path):
    graph = mapped_graph(packed_from(noisy(), tmp_path / "graph.lgd"))
    for structure, count in (("both", 1), ("none", 0)):
        result, _ = trained(graph, "lgdgcn", epochs=2, batch_size=64, structure=structure)
        assert len([line for line in result.warnings if "weights of edges" in line]) == count


def test_weights_count_by_their_proportions():
    graphs = [prepared(noisy(scale), Settings(), CPU) for scale in (1.0, 1000.0)]
    values = [normalized_adjacency(graph.edge_index, 80).value for graph in graphs]
    assert torch.allclose(*values, rtol=1e-4)
    even = prepared(noisy(weighed=False), Settings(), CPU)
    assert not torch.allclose(normalized_adjacency(even.edge_index, 80).value, values[0])


def test_a_trained_model_uses_the_weights_of_the_graph_it_predicts():
    _, network = trained(noisy(), "gcn", epochs=5)
    first, second = network(noisy()).logits, network(noisy(weighed=False)).logits
    assert not torch.allclose(first, second)
    assert torch.equal(first, network(noisy()).logits)


# Copies of the edges, which by themselves would lose the weights


def test_splits_of_one_graph_share_weights_and_refuse_others():
    ready = prepared_alike([noisy(), noisy()], Settings(scaling="none"), CPU)
    assert all(edge_weights(graph.edge_index) is not None for graph in ready)
    with pytest.raises(InputError, match="graphs differ"):
        hold_once([noisy(), noisy(scale=2.0)])
    with pytest.raises(InputError, match="graphs differ"):
        hold_once([noisy(), noisy(weighed=False)])


def test_a_copy_of_a_prepared_graph_keeps_them():
    settings = resolve(preset("", "gcn"), {"epochs": 2})
    ready = prepared(noisy(), settings, CPU)
    copied = ready.clone()
    assert edge_weights(copied.edge_index) is None  # what is to be made good
    logits = []
    for graph in (ready, copied):
        trainer = trainer_of(graph, [Member(settings, 0)], "gcn")
        trainer.train()
        assert edge_weights(trainer.loader.edge_index) is not None
        logits.append(trainer.model(0).eval()(graph.x, graph.edge_index))
    assert torch.equal(*logits)
    _, network = trained(noisy(), "gcn", epochs=2)
    ready = prepared(noisy(), network.settings, CPU, scaling=network.scaling)
    assert torch.equal(network.run(ready.clone()).logits, network.run(ready).logits)


def test_a_graph_without_some_edges_keeps_the_others_weights():
    graph = noisy()
    pairs = Edges.of(graph.edge_index, 80)
    removed = np.zeros(graph.edge_index.size(1) // 2, dtype=bool)
    removed[:5] = True
    rest = without_edges(graph, pairs, removed)
    assert rest.edge_weight.numel() == rest.edge_index.size(1) < graph.edge_index.size(1)
    known = dict(zip(map(tuple, graph.edge_index.t().tolist()), graph.edge_weight, strict=True))
    kept = zip(map(tuple, rest.edge_index.t().tolist()), rest.edge_weight, strict=True)
    assert all(known[edge] == weight for edge, weight in kept)
    _, network = trained(graph, "gcn", epochs=3)
    del (plain := rest.clone()).edge_weight
    assert not torch.allclose(network(rest).logits, network(plain).logits)


def test_the_estimator_uses_them_for_all_nodes_and_some():
    graph = noisy()
    given = Data(**{k: graph[k] for k in ("x", "y", "edge_index", "edge_weight")})
    model = LGDClassifier(graph=given, epochs=60, budget="none", random_state=0)
    nodes = np.flatnonzero(graph.train_mask | graph.val_mask)
    model.fit(nodes, graph.y[nodes].numpy())
    asked = np.flatnonzero(graph.test_mask)
    assert model.score(asked, graph.y[asked].numpy()) >= 0.95
    by_number, by_graph = model.predict_proba(asked), model.predict_proba(given)[asked]
    np.testing.assert_allclose(by_number, by_graph, rtol=1e-5)
    plain = Data(**{k: graph[k] for k in ("x", "y", "edge_index")})
    assert not np.allclose(model.predict_proba(plain)[asked], by_number, atol=1e-3)
