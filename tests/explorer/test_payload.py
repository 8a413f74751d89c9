"""What the page is told: equal to the model's own output, and small enough."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from browser.fake import decoded
from lgdgcn.config import Settings
from lgdgcn.data.validate import canonical
from lgdgcn.errors import InputError
from lgdgcn.explorer import payload as module
from lgdgcn.explorer.payload import payload, training_curves
from lgdgcn.reasons import Explanation
from lgdgcn.storage import to_json
from models.toy import toy_graph as plain_graph
from train.one_seed import train_seed

SETTINGS = Settings(factors=2, hidden_channels=8, k=3, epochs=3)


def toy_graph(**options):
    return canonical(plain_graph(**options))


def trained_on(data, model="lgdgcn", settings=SETTINGS):
    return train_seed(data, settings, model, 0, torch.device("cpu"))[1]


def shown(data, trained=None, **more):
    explanation = Explanation.of_factors(trained or trained_on(data), data)
    return payload(explanation, dataset="toy", **more)


@pytest.fixture(scope="module", params=[False, True], ids=["classes", "label sets"])
def case(request):
    data = toy_graph(multi_label=request.param)
    trained = trained_on(data)
    return data, trained, shown(data, trained)


def test_predictions_are_the_models_own(case):
    data, trained, page = case
    logits = trained(data).logits
    probability = trained.task.probabilities(logits)
    predicted, top, truth = (decoded(page[name]) for name in ("predicted", "top", "truth"))
    assert predicted.shape == truth.shape
    chosen = trained.task.predict(logits)
    for node in range(page["nodes"]):
        mine = {int(c) for c in predicted[node] if c >= 0}
        real = {int(c) for c in truth[node] if c >= 0}
        if page["multiLabel"]:
            assert mine == set(chosen[node].nonzero().flatten().tolist())
            assert real == set((data.y[node] == 1).nonzero().flatten().tolist())
        else:
            assert mine == {int(chosen[node])}
            assert real == {int(data.y[node])}
    by_place = torch.gather(probability, 1, torch.from_numpy(top.astype(np.int64)))
    assert np.array_equal(decoded(page["topProbability"]), by_place.numpy())
    assert (np.diff(decoded(page["topProbability"]), axis=1) <= 0).all()
    assert np.array_equal(decoded(page["part"]) == 3, data.test_mask.numpy())
    if not page["multiLabel"]:
        assert np.array_equal(decoded(page["confidence"]), probability.amax(1).numpy())


def test_shapes_and_ranges(case):
    data, trained, page = case
    nodes, factors = data.x.size(0), trained.settings.factors
    assert (page["nodes"], page["factors"], page["channels"]) == (nodes, factors, 4)
    assert len(page["ids"]) == nodes
    assert len(page["classes"]) == trained.task.outputs
    assert decoded(page["position"]).shape == (nodes, 2)
    assert decoded(page["maps"]).shape == (factors, nodes, 2)
    assert max(np.abs(decoded(page[name])).max() for name in ("position", "maps")) == 1
    assert decoded(page["dominant"]).max() < factors
    assert decoded(page["correlation"]).shape == (8, 8)
    assert page["correlationStep"] == 1
    neighbours = decoded(page["latent"]["neighbours"])
    assert neighbours.shape == (nodes, factors, 8)
    source, target = data.edge_index.numpy()
    linked = set(zip(source.tolist(), target.tolist(), strict=True))
    pairs = {(i, int(j)) for i in range(nodes) for j in neighbours[i].ravel() if j >= 0}
    assert not pairs & linked
    json.dumps(to_json(page), allow_nan=False)


def test_edges_keep_their_strongest_factor(case):
    data, trained, page = case
    edges, shares = decoded(page["edges"]), decoded(page["edgeFactors"])
    both = trained(data).layers[-1].edge_factors
    mean = {}
    for (i, j), row in zip(data.edge_index.t().tolist(), both, strict=True):
        mean[min(i, j), max(i, j)] = mean.get((min(i, j), max(i, j)), 0) + row / 2
    assert {(int(i), int(j)) for i, j in edges.T} == set(mean)
    for e, (i, j) in enumerate(edges.T):
        expected = mean[int(i), int(j)]
        assert np.abs(shares[e] - 65535 * expected.numpy()).max() <= 1.5
        assert shares[e].argmax() == int(expected.argmax())


def test_confusion_counts_the_test_nodes(case):
    data, trained, page = case
    test = data.test_mask
    chosen = trained.task.predict(trained(data).logits)[test]
    assert page["confusion"]["parts"] == "test"
    if page["multiLabel"]:
        true = data.y[test] == 1
        expected = [(true & chosen).sum(0), (~true & chosen).sum(0), (true & ~chosen).sum(0)]
        assert np.array_equal(decoded(page["confusion"]["labels"]), torch.stack(expected, 1))
    else:
        matrix = np.zeros((trained.task.outputs,) * 2)
        np.add.at(matrix, (data.y[test].numpy(), chosen.numpy()), 1)
        assert np.array_equal(decoded(page["confusion"]["matrix"]), matrix)


def test_units_that_are_not_classes_have_none(case):
    assert case[2]["factorClasses"] is None
    data = toy_graph()
    assert shown(data, trained_on(data, "disengcn"))["factorClasses"] is None


def test_classes_of_the_factors():
    data = toy_graph(multi_label=True)
    trained = trained_on(data, settings=replace(SETTINGS, variant="ours"))
    page = shown(data, trained)["factorClasses"]
    of_nodes, of_labels = decoded(page["ofNodes"]), decoded(page["ofLabels"])
    units = trained(data).layers[-1].units
    assert page["ofNodes"]["type"] == "u8"
    assert np.array_equal(of_nodes, units.square().argmax(-1).numpy())
    assert len(np.unique(of_nodes)) > 1
    shares = trained.model.head.shares()
    assert (of_labels >= 0).all()
    assert (shares[torch.arange(len(shares)), of_labels.tolist()] > 0.5).all()


def test_a_label_split_between_classes_is_none_of_them():
    data = toy_graph(multi_label=True)
    trained = trained_on(data, settings=replace(SETTINGS, variant="ours"))
    with torch.no_grad():
        trained.model.head.start[0] = 0
        trained.model.head.weight[0] = 0
    of_labels = decoded(shown(data, trained)["factorClasses"]["ofLabels"])
    assert of_labels[0] == -1
    assert (of_labels[1:] >= 0).all()


def test_no_edges_no_labels_and_long_names():
    data = toy_graph()
    trained = replace(trained_on(data), classes=["a" * 10**6, "__proto__", "</script>"])
    data = data.clone()
    data.edge_index = torch.zeros(2, 0, dtype=torch.int64)
    data.y = torch.full_like(data.y, -1)
    for split in ("train", "val", "test"):
        data[f"{split}_mask"] = torch.zeros(data.x.size(0), dtype=torch.bool)
    page = shown(data, trained)
    assert page["truth"] is None
    assert page["confusion"] is None
    assert decoded(page["edges"]).shape == (2, 0)
    assert decoded(page["edgeFactors"]).shape == (0, 2)
    assert [len(name) for name in page["classes"]] == [2000, 9, 9]


def test_labels_by_name_where_the_graph_counts_them_otherwise():
    data = toy_graph()
    trained = replace(trained_on(data), classes=["c", "a", "b"])
    data.classes = ["a", "b", "new"]
    truth = decoded(shown(data, trained)["truth"])[:, 0]
    expected = torch.tensor([1, 2, -1])[data.y]
    assert np.array_equal(truth, expected.numpy())


@pytest.mark.filterwarnings("ignore:k is 3")
@pytest.mark.parametrize("nodes", [1, 2])
def test_tiny_graphs(nodes):
    data = toy_graph()
    trained = trained_on(data)
    small = Data(
        x=data.x[:nodes],
        edge_index=torch.zeros(2, 0, dtype=torch.int64),
        y=data.y[:nodes],
        classes=data.classes,
        **{f"{split}_mask": data[f"{split}_mask"][:nodes] for split in ("train", "val", "test")},
    )
    page = shown(small, trained)
    found = decoded(page["latent"]["neighbours"])
    assert found[:, :, 0].tolist() == ([[-1, -1]] if nodes == 1 else [[1, 1], [0, 0]])
    assert (found[:, :, 1:] == -1).all()


def test_many_factors_show_fewer_latent_neighbours(monkeypatch):
    data = toy_graph()
    monkeypatch.setattr(module, "LATENT_ENTRIES", 3 * 2 * data.x.size(0))
    assert decoded(shown(data)["latent"]["neighbours"]).shape[2] == 3


def test_wide_correlations_are_averaged(monkeypatch):
    data = toy_graph()
    trained = trained_on(data)
    full = decoded(shown(data, trained)["correlation"]).astype(float)
    monkeypatch.setattr("lgdgcn.explorer.payload.MOST_LINES", 5)
    page = shown(data, trained)
    blocks = full.reshape(4, 2, 4, 2).mean((1, 3))
    assert page["correlationStep"] == 2
    np.testing.assert_allclose(decoded(page["correlation"]), blocks, atol=1)


def test_what_the_page_cannot_show(monkeypatch):
    data = toy_graph()
    with pytest.raises(InputError, match=r"GCN has no factors.*lgdgcn or disengcn"):
        shown(data, trained_on(data, "gcn"))
    trained = trained_on(data, "disengcn")
    monkeypatch.setattr(module, "MOST_EDGES", 3)
    with pytest.raises(InputError, match="edges, the page shows 3 at most"):
        shown(data, trained)
    monkeypatch.setattr(module, "MOST_NODES", 5)
    with pytest.raises(InputError, match="nodes, the page shows 5 at most"):
        shown(data, trained)


def test_curves_are_thinned_and_few():
    lines = [
        json.dumps({"seed": seed, "epoch": epoch, "total": 1 / epoch, "val_loss": None})
        for seed in range(7)
        for epoch in range(1, 1002)
    ]
    curves = training_curves([*lines, "", "[]", '{"seed": 0', '{"seed": 9}'])
    assert [curve["seed"] for curve in curves] == [0, 1, 2, 3, 4]
    for curve in curves:
        assert len(curve["epochs"]) <= 400
        assert (curve["epochs"][0], curve["epochs"][-1]) == (1, 1001)
        assert curve["terms"]["total"] == [1 / epoch for epoch in curve["epochs"]]
        assert set(curve["terms"]["val_loss"]) == {None}


def test_numbers_that_no_page_can_draw_are_left_out():
    odd = ['{"seed": 0, "epoch": Infinity}', '{"seed": NaN, "epoch": 1}']
    odd.append('{"seed": 0, "epoch": 1, "a": NaN, "b": -Infinity, "c": 1' + "0" * 400 + "}")
    terms = {"a": [None], "b": [None], "c": [None]}
    assert training_curves(odd) == [{"seed": 0, "epochs": [1], "terms": terms}]


def test_texts_of_the_nodes_are_shown_and_cut(monkeypatch):
    data = toy_graph()
    trained = trained_on(data)
    assert shown(data, trained)["texts"] == []
    nodes = data.x.size(0)
    data.node_text = {"title": ["</script>" * 100] * nodes, "b" * 100: ["x"] * nodes}
    first, second = shown(data, trained)["texts"]
    assert first["name"] == "title"
    assert {len(text) for text in first["values"]} == {module.MOST_TEXT}
    assert len(second["name"]) == 60
    monkeypatch.setattr(module, "ALL_TEXT", 20 * nodes)
    assert {len(text) for text in shown(data, trained)["texts"][0]["values"]} == {10}
