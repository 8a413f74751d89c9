"""LGDClassifier bound to a graph: nodes by number, scikit-learn's model selection, callbacks."""

import math
import pickle
import warnings

import networkx
import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lgdgcn import LGDClassifier
from lgdgcn.data import from_networkx, from_pandas, one_split
from lgdgcn.errors import InputError
from models.toy import toy_graph

SMALL = {"factors": 2, "hidden_channels": 8, "epochs": 30}
FEW = SMALL | {"epochs": 2, "budget": "none"}
NODES = np.arange(36)

pytestmark = pytest.mark.filterwarnings("ignore::lgdgcn.errors.LGDWarning")


def bound(data=None, **params):
    return LGDClassifier(
        budget="none", graph=toy_graph() if data is None else data, **SMALL | params
    )


@pytest.fixture(scope="module")
def parts():
    """Train and test nodes, and the model fitted on the former."""
    train, test = train_test_split(NODES, stratify=toy_graph().y, random_state=0)
    return train, test, bound(epochs=60).fit(train, toy_graph().y.numpy()[train])


# Nodes by number


def test_nodes_are_fitted_and_predicted_by_number(parts):
    train, test, model = parts
    y = toy_graph().y.numpy()
    assert np.array_equal(model.predict(test), model.predict()[test])
    assert np.array_equal(model.predict(test[:, None]), model.predict(test))
    assert np.array_equal(model.predict_proba(test), model.predict_proba()[test])
    assert np.array_equal(model.transform(test), model.transform()[test])
    assert model.score(test, y[test]) == (model.predict(test) == y[test]).mean() > 0.7
    used = model._graph.train_mask | model._graph.val_mask
    assert sorted(used.nonzero().flatten().tolist()) == sorted(train)


def test_hidden_labels_cannot_reach_training(parts):
    train, test, model = parts
    data = toy_graph()
    data.y[test] = torch.arange(len(test)) % 3
    other = bound(data, epochs=60).fit(train, data.y.numpy()[train])
    assert np.array_equal(other.predict_proba(), model.predict_proba())
    with_own = bound(data, epochs=60).fit(train)  # the graph's own labels of these nodes
    assert np.array_equal(with_own.predict_proba(), model.predict_proba())


def test_a_class_that_was_not_there_is_a_wrong_prediction(parts):
    _, test, model = parts
    assert model.score(test, np.full(len(test), 9)) == 0


def test_without_a_graph_there_are_no_nodes():
    model = LGDClassifier(budget="none", **SMALL)
    with pytest.raises(InputError, match=r"fit needs the edges: .* LGDClassifier\(graph=data\)"):
        model.fit(NODES, toy_graph().y)
    with pytest.raises(InputError, match=r"there is no graph; call fit\(data\)"):
        model.fit()
    with pytest.raises(InputError, match="x is missing"):
        LGDClassifier(budget="none", graph=Data(edge_index=toy_graph().edge_index)).fit(
            NODES, toy_graph().y
        )
    with pytest.raises(InputError, match="X names node 36"):
        bound().fit([0, 1, 36], [0, 1, 2])


def test_the_bound_graph_is_fitted_by_default():
    data = toy_graph()
    assert np.array_equal(bound(data).fit().predict_proba(), fitted(data).predict_proba())
    other = toy_graph(seed=4)
    assert np.array_equal(bound(data).fit(other).predict_proba(), fitted(other).predict_proba())


def fitted(data):
    return LGDClassifier(budget="none", **SMALL).fit(data)


@pytest.mark.parametrize("names", [[f"n{i}" for i in range(36)], [str(99 - i) for i in range(36)]])
def test_nodes_go_by_their_ids_where_the_graph_has_some(names):
    data = toy_graph()
    data.node_ids = names
    model = bound(data).fit(names[:30], data.y[:30])
    assert np.array_equal(model.predict(names[30:]), model.predict()[30:])
    assert model.predict(np.array([[names[3]]])).shape == (1,)
    ids = [int(name) for name in names[:3]] if names[0].isdigit() else [0, 1, 2]
    assert np.array_equal(model.predict(ids), model.predict()[:3])
    with pytest.raises(InputError, match=r"X names node 'x'; ids of the graph are "):
        model.predict(["x"])
    with pytest.raises(InputError, match="X names node 'x', but the graph has no ids"):
        bound().fit(["x"], [0])


# Model selection


def test_cross_validation():
    data = toy_graph()
    scores = cross_val_score(bound(data), NODES, data.y.numpy(), cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    assert data.to_dict().keys() == toy_graph().to_dict().keys()


def test_cross_validation_of_names_and_label_sets():
    names = np.array(["x", "y", "z"])[toy_graph().y]
    scores = cross_val_score(bound(), NODES, names, cv=2, error_score="raise")
    assert scores.mean() > 0.5
    data = toy_graph(multi_label=True)
    scores = cross_val_score(bound(data), NODES, data.y.numpy(), cv=2, error_score="raise")
    assert scores.mean() > 0.5


def test_grid_search():
    data = toy_graph()
    grid = {"lr": [1e-9, 0.02], "settings__input_dropout": [0.5]}
    search = GridSearchCV(bound(data, epochs=40), grid, cv=2, error_score="raise")
    search.fit(NODES[:27], data.y.numpy()[:27])
    assert search.best_params_["lr"] == 0.02
    assert search.predict(NODES[27:]).shape == (9,)
    assert search.best_estimator_.graph is data  # not a copy for each fit
    assert search.n_features_in_ == 12


def test_a_pickle_keeps_the_graph_it_is_bound_to(parts):
    _, test, model = parts
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(test), model.predict(test))
    assert again.score(test, toy_graph().y[test]) == model.score(test, toy_graph().y[test])
    with pytest.raises(InputError, match="no labels to score"):
        again.score(test)


# Ways in


def test_features_and_edges_apart():
    data = toy_graph()
    plain = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    model = LGDClassifier(budget="none", **SMALL).fit(
        data.x.numpy(), data.y.numpy(), edge_index=data.edge_index.numpy()
    )
    assert np.array_equal(model.predict_proba(), fitted(plain).predict_proba())
    for method in ("predict", "predict_proba", "transform"):
        again = getattr(model, method)(data.x, edge_index=data.edge_index)
        assert np.array_equal(again, getattr(model, method)())
    assert model.score(data.x, data.y, edge_index=data.edge_index) == model.score(plain)


def test_one_of_several_splits_is_taken_before():
    data = toy_graph()
    for mask in ("train_mask", "val_mask", "test_mask"):
        data[mask] = torch.stack([torch.zeros(36, dtype=torch.bool), data[mask]], dim=1)
    with pytest.raises(InputError, match=r"shape \[36, 2\]; .* lgdgcn\.data\.one_split"):
        fitted(data)
    model = fitted(one_split(data, 1))
    assert np.array_equal(model.predict_proba(), fitted(toy_graph()).predict_proba())
    assert np.array_equal(model.predict(data), model.predict())  # which needs no split
    with pytest.raises(InputError, match="split is 2; train_mask has 2 splits, 0 to 1"):
        one_split(data, 2)


def test_a_networkx_graph():
    graph = networkx.Graph(toy_graph().edge_index.t().tolist())
    for node, (x, y) in enumerate(zip(toy_graph().x.tolist(), toy_graph().y.tolist(), strict=True)):
        graph.add_node(node, x=x, kind="abc"[y])
    model = bound(from_networkx(graph, label="kind")).fit()
    assert list(model.classes_) == ["a", "b", "c"]
    assert model.score() > 0.5
    assert list(model.feature_names_in_[:2]) == ["x_0", "x_1"]
    places = [list(graph).index(node) for node in (3, 7)]
    assert np.array_equal(model.predict([3, 7]), model.predict()[places])


@pytest.mark.parametrize("blank", [None, math.nan, np.float32("nan")])
def test_labels_of_nan_are_no_labels(blank):
    pandas = pytest.importorskip("pandas")
    data = toy_graph()
    labels = ["abc"[y] if i % 4 else blank for i, y in enumerate(data.y)]
    graph = networkx.Graph(data.edge_index.t().tolist())
    nodes = pandas.DataFrame(data.x.numpy()).rename(columns="f{}".format).assign(label=labels)
    edges = pandas.DataFrame(data.edge_index.t().numpy())
    for node, (x, label) in enumerate(zip(data.x.tolist(), labels, strict=True)):
        graph.add_node(node, x=x, label=label)
    own = Data(x=data.x, edge_index=data.edge_index)
    for model in (
        LGDClassifier(graph=from_networkx(graph), **FEW).fit(),
        LGDClassifier(graph=from_pandas(nodes, edges), **FEW).fit(),
        LGDClassifier(**FEW).fit(own, labels),
        LGDClassifier(**FEW).fit(own, nodes["label"]),
    ):
        assert list(model.classes_) == ["a", "b", "c"]
        assert int((model._graph.y < 0).sum()) == 9


# New nodes


def test_nodes_that_were_not_there_in_training(parts):
    model = parts[2]
    data = toy_graph()
    new = torch.rand(3, 12, generator=torch.Generator().manual_seed(0))
    new[torch.arange(3), torch.arange(3)] += 1  # node 36 + c looks like class c and knows its nodes
    ends = torch.tensor([[36 + c, c + 3 * i] for c in range(3) for i in range(4)]).t()
    grown = Data(
        x=torch.cat([data.x, new]), edge_index=torch.cat([data.edge_index, to_undirected(ends)], 1)
    )
    predicted = model.predict(grown)
    assert predicted.shape == (39,)
    assert predicted[36:].tolist() == [0, 1, 2]


# Told while and after fitting


def test_history_and_callbacks(capsys):
    seen = []
    model = bound(epochs=7, patience=100, verbose=3, callbacks=[seen.append]).fit()
    assert [report.state.epoch for report in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [report.finished for report in seen] == [False] * 6 + [True]
    assert model.history_ == [report.metrics for report in seen]
    assert [row["epoch"] for row in model.history_] == [1, 2, 3, 4, 5, 6, 7]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 3", "epoch 6", "epoch 7"]
    assert "best validation" in lines[-1]
    assert model.n_features_in_ == 12
    model.set_params(verbose=0, epochs=2).fit()
    assert len(model.history_) == 2
    assert capsys.readouterr().out == ""


def test_without_validation_nodes_none_are_spoken_of(capsys):
    data = toy_graph()
    data.val_mask[:] = False
    bound(data, epochs=2, verbose=True).fit()
    assert "validation" not in capsys.readouterr().out


def test_the_page(parts, tmp_path):
    model = parts[2]
    model.explore(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "<title>LGD-GCN" in text
    assert "on graph</title>" in text
    model.save(tmp_path / "model.safetensors")
    loaded = LGDClassifier.load(tmp_path / "model.safetensors")
    loaded.explore(str(tmp_path / "other.html"), toy_graph())
    assert (tmp_path / "other.html").is_file()
    with pytest.raises(InputError, match="keeps no graph"):
        loaded.explore(tmp_path / "none.html")
    with pytest.raises(InputError, match="absent"):
        model.explore(tmp_path / "absent" / "page.html")


def test_a_good_fit_by_number_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bound(epochs=60).fit(NODES, toy_graph().y.numpy())
