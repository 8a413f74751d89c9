"""Edge weights: models that can use them do, and the others say that they do not."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgdgcn.config import Settings, preset, resolve
from lgdgcn.data.validate import canonical
from lgdgcn.nn import normalized_adjacency
from lgdgcn.train.seeds import train_seed
from lgdgcn.train.trained import prepared

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
    [("mlp", {}), ("gat", {}), ("monet", {}), ("lgdgcn", {"hops": 0}), ("disengcn", {})],
)
def test_models_that_cannot_say_so(model, changes):
    result, network = trained(noisy(), model, epochs=3, **changes)
    assert not network.model.uses_edge_weights
    (line,) = [line for line in result.warnings if "weights of edges" in line]
    assert line.endswith("all count the same")
    plain, _ = trained(noisy(weighed=False), model, epochs=3, **changes)
    assert plain.scores == result.scores
    assert not [line for line in plain.warnings if "weights of edges" in line]


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
