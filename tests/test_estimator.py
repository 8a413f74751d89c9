"""LGDClassifier: scikit-learn's manners on a graph."""

import copy
import inspect
import logging
import math
import pickle
import re
import warnings

import networkx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from torch_geometric.data import Data

import lgdgcn
from lgdgcn import LGDClassifier, tensor_file
from lgdgcn.config import Settings, portfolio, preset
from lgdgcn.data import from_networkx
from lgdgcn.errors import InputError, LGDNote, LGDWarning
from lgdgcn.messages import said_to_caller
from lgdgcn.reasons import fit_graph
from lgdgcn.search.families import FAMILIES, candidates
from models.toy import toy_graph
from train.one_seed import train_seed

SMALL = {"factors": 2, "hidden_channels": 8, "epochs": 30}
MASKS = ("train_mask", "val_mask", "test_mask")


def fitted(data=None, **params):
    return LGDClassifier(budget="none", **SMALL | params).fit(toy_graph() if data is None else data)


@pytest.fixture(scope="module")
def model():
    return fitted(epochs=60)


def without(data, *keys):
    return Data(**{key: value for key, value in data.to_dict().items() if key not in keys})


# Parameters


def test_parameters_are_written_out_and_their_defaults_are_none():
    parameters = inspect.signature(LGDClassifier).parameters
    given = {name: one.default for name, one in parameters.items()}
    assert len(given) == 20
    usual = {"model": "lgdgcn", "batch_size": 0, "metric": "auto", "random_state": 0}
    usual |= {"device": "auto", "verbose": 0, "callbacks": ()}
    assert {name: given.pop(name) for name in usual} == usual
    assert set(given.values()) == {None}  # so that what is given is known


def test_a_default_that_is_given_is_meant():
    given = {name: getattr(Settings(), name) for name in ("hidden_channels", "dropout", "lr")}
    given |= {"weight_decay": Settings().weight_decay}
    assert not preset("", "lgdgcn").items() >= given.items()  # others, where nothing is given
    model = LGDClassifier(**given, epochs=1, budget="none", settings={"iterations": 7})
    used = model.fit(toy_graph()).trained_.settings.as_dict()
    assert used.items() >= {**given, "iterations": 7}.items()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("learning_rate", "did you mean lr?"),
        ("max_iter", "did you mean epochs?"),
        ("hidden_dim", "did you mean hidden_channels?"),
        ("seed", "did you mean random_state?"),
        ("n_factors", "did you mean factors?"),
        ("facotrs", "did you mean factors?"),
        ("variant", "did you mean model?"),
        ("tau", "it is one of the settings: LGDClassifier(settings={'tau': ...})"),
        ("lambda_spcae", "did you mean settings={'lambda_space': ...}?"),
        ("qqq", "; it has model, factors, "),
    ],
)
def test_a_parameter_that_is_not_there_names_the_one_that_is(name, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        LGDClassifier(**{name: 1})


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"factors": 3, "hidden_channels": 8}, "hidden_channels is 8, which 3 factors"),
        ({"factors": 3, "hidden_channels": 64}, "hidden_channels is 64, which 3 factors do not"),
        ({"factors": "auto"}, "factors = auto finds hidden_channels, too"),
        ({"lr": -1.0}, "lr is -1.0"),
        ({"random_state": None}, "random_state is None"),
        ({"device": "gpu"}, "device is 'gpu'"),
        ({"device": None}, "device is None"),
        ({"model": "gnn"}, "model is 'gnn'; did you mean gcn"),
        ({"model": "gcn", "factors": 2}, "factors is a setting of lgdgcn and disengcn, not of gcn"),
        ({"metric": "f1"}, "metric is 'f1'"),
        ({"class_weight": {0: 2}}, "class_weight is {0: 2}; use 'balanced' or None"),
        ({"budget": 0}, "budget is 0; give a number of settings to try"),
        ({"budget": "5m"}, "budget is '5m'; give a number of settings to try"),
        ({"model": "lgdgcn-paper", "budget": 2}, "budget is 2; .* portfolio of lgdgcn-paper has 1"),
        ({"budget": None, "time_limit": "soon"}, "is 'soon'; write 30s, 5m"),
        ({"time_limit": "5m"}, "time_limit ends a search, and one set of settings needs none"),
        ({"settings": {"lr": 0.1}, "lr": 0.1}, "settings: lr is given as a parameter, too"),
        ({"settings": {"variant": "paper"}}, "variant is a part of model, such as 'lgdgcn-paper'"),
        ({"settings": {"checkpoint_every": 2}}, "checkpoint_every has no effect here"),
        ({"settings": {"lamda": 2}}, "unknown key lamda"),
        ({"settings": {"graph": "ann"}}, "graph is 'ann'"),
        ({"model": "lgdgcn-paper", "settings": {"hops": 3}}, "hops is .* not of lgdgcn-paper"),
        ({"settings": {"k": 4}}, "k is used only with latent_graph = true; set that, too"),
        ({"settings": {"lambda_space": 0.1}}, "lambda_space is used only with space = true"),
        ({"settings": {"graph": "knn"}}, "graph is used only with latent_graph = true"),
    ],
    ids=str,
)
def test_parameters_are_checked_by_fit(params, words):
    # not before: clone and grids set anything
    model = LGDClassifier(**{"budget": "none", **SMALL, **params})
    with pytest.raises(InputError, match=words):
        model.fit(toy_graph())


def test_the_score_may_be_named():
    model = fitted(metric="macro_f1", epochs=5)
    assert model.score() == model.result_.test == model.result_.scores["test"]["macro_f1"]


def test_rare_classes_can_count_more():
    settings = [fitted(class_weight=one, epochs=1).trained_.settings for one in (None, "balanced")]
    assert [one.class_weights for one in settings] == ["none", "balanced"]


def test_the_number_of_factors_can_be_found():
    params = {"factors": "auto", "hidden_channels": None, "epochs": 3}
    model, again = fitted(**params), fitted(**params)
    assert model.get_params()["factors"] == clone(model).factors == "auto"
    used = model.trained_.settings
    assert model.factors_ == used.factors == model.transform().shape[1]
    assert math.prod(model.transform().shape[1:]) == used.hidden_channels
    assert np.array_equal(again.predict_proba(), model.predict_proba())
    with pytest.raises(InputError, match="the paper variant cannot find their number"):
        fitted(model="lgdgcn-paper", **params)


def test_what_is_not_given_is_the_models_own():
    for y in (None, torch.eye(3)[toy_graph().y]):  # one label per node, then sets of labels
        kind = {"multi_label": y is not None}
        own = preset("", "lgdgcn", "ours", **kind) | portfolio("lgdgcn", "ours", **kind)[0]
        own.pop("normalize_features", None)  # the data say how features are scaled
        model = LGDClassifier(budget="none", **SMALL | {"epochs": 2})
        before = model.get_params()
        used = model.fit(toy_graph(), y).trained_.settings.as_dict()
        assert used.items() >= {**own, "epochs": 2, "scaling": "auto"}.items()
        assert model.get_params() == clone(model).get_params() == before
    paper = fitted(model="lgdgcn-paper", epochs=2).trained_.settings
    assert paper.iterations == Settings().iterations != own["iterations"]
    assert paper.lambda_space == preset("", "lgdgcn", "paper")["lambda_space"]


def test_params_clone_and_set_params(model):
    params = {**LGDClassifier().get_params(), **SMALL, "random_state": 3}
    first = LGDClassifier().set_params(**params)
    assert first.get_params() == params
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "trained_")
    with pytest.raises(ValueError, match="lamda"):
        first.set_params(lamda=1)
    further = LGDClassifier(settings={"tau": 1.0, "k": 3})
    changed = clone(further).set_params(settings__tau=2.0)
    assert changed.settings == {"tau": 2.0, "k": 3}
    assert changed.get_params()["settings__tau"] == 2.0
    assert further.settings == {"tau": 1.0, "k": 3}


def test_a_repr_fits_a_line():
    assert repr(LGDClassifier()) == "LGDClassifier()"
    given = {"factors": 2, "settings": {"tau": 0.5}, "graph": toy_graph(), "random_state": 0}
    text = "LGDClassifier(factors=2, graph=<36 nodes>, settings={'tau': 0.5})"
    assert repr(LGDClassifier(**given)) == text
    assert len(repr(LGDClassifier(settings=dict.fromkeys(map(str, range(99)))))) <= 100


def test_numbers_of_numpy_are_numbers():
    params = {"factors": np.int64(2), "lr": np.float32(0.125), "random_state": np.int32(1)}
    other = fitted(**params, settings={"input_dropout": np.float64(0.25)}, epochs=2)
    plain = fitted(factors=2, lr=0.125, random_state=1, settings={"input_dropout": 0.25}, epochs=2)
    assert np.array_equal(other.predict_proba(), plain.predict_proba())


# Models and races


@pytest.mark.parametrize("method", ["transform", "edge_factors"])
def test_what_needs_factors_says_so_where_the_model_has_none(method):
    model = fitted(model="gcn", factors=None, epochs=2)
    assert (model.factors_, model.predict().shape) == (0, (36,))
    with pytest.raises(InputError, match=r"the model is GCN, which has no factors; fit model='lgd"):
        getattr(model, method)()


def test_settings_are_chosen_in_a_race_and_training_goes_on_from_there(monkeypatch):
    monkeypatch.setattr("lgdgcn.search.choose.RUNGS", (2, 4))
    monkeypatch.setattr("lgdgcn.search.choose.KEPT", {2: 2})
    model = LGDClassifier(epochs=6, lr=0.02, budget=3).fit(toy_graph())
    tried = candidates("", "lgdgcn", {"epochs": 6, "lr": 0.02}, multi_label=False)
    assert model.trained_.settings in [candidate.settings for candidate in tried[:3]]
    assert model.choice_.tried == 3
    assert [row["epoch"] for row in model.history_] == [1, 2, 3, 4, 5, 6]
    every = LGDClassifier("auto", epochs=2, budget=len(FAMILIES)).fit(toy_graph())
    assert {row.candidate.model for row in every.choice_.ranking} == {*FAMILIES}
    assert every.trained_.name == every.choice_.best.model
    assert set(every.predict()) <= {0, 1, 2}


def test_a_race_goes_on_beyond_the_portfolio_and_a_time_limit_ends_it_with_a_word(monkeypatch):
    monkeypatch.setattr("lgdgcn.search.choose.RUNGS", (2, 4))
    monkeypatch.setattr("lgdgcn.search.choose.KEPT", {2: 2})
    portfolio = len(candidates("", "mlp", {}, multi_label=False))
    model = LGDClassifier("mlp", epochs=2, budget=portfolio + 2).fit(toy_graph())
    assert (model.choice_.tried, model.choice_.searched) == (portfolio + 2, 2)
    with pytest.warns(LGDWarning, match=r"time was over after 2 epochs"):
        LGDClassifier("mlp", epochs=6, time_limit="0.001s").fit(toy_graph())


# What a fitted model says


def test_shapes_and_ranges(model):
    data = toy_graph()
    assert model.predict().shape == (36,)
    proba = model.predict_proba()
    assert proba.shape == (36, 3)
    assert np.allclose(proba.sum(1), 1, atol=1e-6)
    assert np.array_equal(model.classes_[proba.argmax(1)], model.predict())
    assert model.transform().shape == (36, 2, 4)
    edges = model.edge_factors()
    assert edges.shape == (data.edge_index.size(1), 2)
    assert np.allclose(edges.sum(1), 1, atol=1e-6)
    check_is_fitted(model)
    right = model.predict() == data.y.numpy()
    assert model.score() == pytest.approx(right[data.test_mask].mean())
    assert model.score() == model.result_.test > 0.6


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "transform", "edge_factors", "score", "save"]
)
def test_unfitted(method, tmp_path):
    for args in [[tmp_path / "model"]] if method == "save" else [[], [toy_graph()]]:
        with pytest.raises(NotFittedError, match=r"call fit"):
            getattr(LGDClassifier(), method)(*args)


def test_the_input_is_unchanged():
    data = toy_graph()
    data.edge_index = data.edge_index[:, torch.randperm(data.edge_index.size(1))]
    before = copy.deepcopy(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(data, epochs=30)
    model.predict(data)
    model.edge_factors(data)
    model.score(data)
    model.score(data, y=torch.zeros(36))
    assert data.to_dict().keys() == before.to_dict().keys()
    for key, value in before.to_dict().items():
        assert torch.equal(data[key], value)


def test_the_same_seed_is_bitwise_the_same():
    first, second, other = (fitted(random_state=seed, epochs=5) for seed in (1, 1, 2))
    assert np.array_equal(first.predict_proba(), second.predict_proba())
    assert np.array_equal(first.transform(), second.transform())
    assert not np.array_equal(first.predict_proba(), other.predict_proba())


def test_another_graph_of_the_same_features(model):
    other = toy_graph(nodes=20, seed=4)
    assert model.predict(without(other, "y", *MASKS)).shape == (20,)
    assert model.score(other) > 0.5
    with pytest.raises(InputError, match="5 features, the model was trained with 12"):
        model.predict(toy_graph(features=5))
    for call in (model.predict, LGDClassifier().fit):
        with pytest.raises(InputError, match=r"X has shape|fit needs the edges"):
            call(np.zeros((3, 12)))
    with pytest.raises(InputError, match="labels"):
        fitted(without(toy_graph(), "y"))


# Edges


LOOPS = torch.tensor([[0, 7], [0, 7]])
AS_GIVEN = {
    "any order and twice": lambda edges: torch.cat([edges.flip(1), edges[:, :5]], 1),
    "one direction": lambda edges: torch.cat([edges[:, :1], edges[:, edges[0] < edges[1]]], 1),
    "loops": lambda edges: torch.cat([LOOPS, edges], 1).int(),
}


@pytest.mark.filterwarnings("ignore:edge_index was directed")
@pytest.mark.parametrize("way", AS_GIVEN)
def test_edge_rows_follow_the_edges_as_they_are_given(model, way):
    data = toy_graph()
    known = {}
    for a, b, row in zip(*data.edge_index.tolist(), model.edge_factors(data), strict=True):
        known[a, b] = row
    data.edge_index = AS_GIVEN[way](data.edge_index)
    fresh = fitted(data, epochs=2)
    assert np.array_equal(fresh.edge_factors(), fresh.edge_factors(data), equal_nan=True)
    rows = model.edge_factors(data)
    for a, b, row in zip(*data.edge_index.tolist(), rows, strict=True):
        assert np.isnan(row).all() if a == b else np.allclose(row, known[a, b], atol=1e-6)


def typed_graph():
    """Edges within a class are of one type and all others of another; some are not known."""
    data = toy_graph(nodes=60)
    data.edge_index = torch.cat([data.edge_index.flip(1), torch.tensor([[3], [3]])], 1)
    first, second = data.edge_index
    data.edge_type = (data.y[first] != data.y[second]).long()
    data.edge_type[(first + second) % 2 == 0] = -1
    data.edge_type_names = ["within", "between"]
    return data


def test_types_of_edges_are_predicted_as_the_edges_were_given(monkeypatch):
    data, fits = typed_graph(), []

    def counted(*args, **options):
        fits.append(options)
        return fit_graph(*args, **options)

    monkeypatch.setattr("lgdgcn.reasons.model.fit_graph", counted)
    model = fitted(data, epochs=2)
    assert not fits
    rows = model.predict_edges()
    assert model.edge_types_ == ["within", "between"]
    assert len(fits) == 1
    assert rows.shape == (data.edge_index.size(1), 2)
    assert np.isnan(rows[-1]).all()  # the self loop
    assert np.allclose(rows[:-1].sum(1), 1, atol=1e-5)
    within = (data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).numpy()[:-1]
    known = (data.edge_type >= 0).numpy()[:-1]
    assert (rows[:-1].argmax(1) == ~within)[known].mean() > 0.9
    assert (rows[:-1].argmax(1) == ~within)[~known].mean() > 0.9


def test_known_types_of_edges_change_nothing_about_nodes():
    data, bare = typed_graph(), typed_graph()
    del bare.edge_type, bare.edge_type_names
    with_types, without_types = fitted(data, epochs=5), fitted(bare, epochs=5)
    with_types.predict_edges()
    rows = with_types.predict_proba(data), without_types.predict_proba(bare)
    assert np.array_equal(*rows)  # bit for bit


def test_labels_of_test_nodes_have_no_part_in_the_types_of_edges():
    data, other = typed_graph(), typed_graph()
    test = other.test_mask.nonzero().flatten()
    other.y[test] = other.y[test].roll(1)
    assert not torch.equal(data.y, other.y)
    rows = [fitted(one, epochs=2).predict_edges() for one in (data, other)]
    assert np.array_equal(*rows, equal_nan=True)


def test_reasons_of_edges_where_no_type_is_known():
    data = toy_graph()
    model = fitted(data, epochs=2)
    rows = model.predict_edges()
    assert rows.shape == (data.edge_index.size(1), len(model.edge_types_))
    assert len(set(model.edge_types_)) == len(model.edge_types_)
    model.fit(typed_graph())
    assert model.edge_types_ == ["within", "between"]  # those of the graph before are forgotten


def test_edges_of_an_unfitted_and_of_a_loaded_model(model, tmp_path):
    assert not hasattr(LGDClassifier(), "edge_types_")
    with pytest.raises(NotFittedError, match=r"call fit"):
        LGDClassifier().predict_edges()
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="keeps no graph"):
        LGDClassifier.load(tmp_path / "model").predict_edges()


def test_a_single_known_type_of_edges_is_refused():
    data = typed_graph()
    data.edge_type.clamp_(max=0)
    with pytest.raises(InputError, match="'within' is the only known type"):
        fitted(data, epochs=2).predict_edges()


@pytest.mark.parametrize("empty", [torch.empty(2, 0, dtype=torch.int64), []])
def test_no_edges(empty):
    data = toy_graph()
    data.edge_index = empty
    model = fitted(data, epochs=2)
    assert model.edge_factors().shape == (0, 2)
    assert np.isfinite(model.predict_proba()).all()


@pytest.mark.parametrize("model", ["lgdgcn-paper", "lgdgcn-released", "lgdgcn"])
@pytest.mark.parametrize("nodes", [2, 6])
def test_fewer_nodes_than_neighbours_and_factors(nodes, model):
    data = Data(
        x=torch.eye(nodes, 5),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        y=torch.arange(nodes) % 2,
        train_mask=torch.arange(nodes) < 2,
        val_mask=torch.arange(nodes) >= 2,
    )
    params = {"factors": 8, "hidden_channels": 16, "epochs": 3, "model": model}
    params["settings"] = {"k": 6, "latent_graph": True}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = LGDClassifier(budget="none", **params).fit(data)
        assert model.transform().shape == (nodes, 8, 2)
        assert np.isfinite(model.predict_proba()).all()
        assert model.edge_factors().shape == (2, 8)
    assert f"k is 6, but there are only {nodes} nodes" in " ".join(str(w.message) for w in seen)


# Labels


@pytest.mark.parametrize(
    "names",
    [["b", "a", "=1+1"], [5, 0, 2], [1, 2, 3], [10.0, 30.0, 20.0]],
    ids=["strings", "gaps", "from 1", "floats"],
)
def test_labels_of_any_kind_come_back(names, tmp_path):
    data = toy_graph()
    data.y = [names[int(c)] for c in data.y]
    if not isinstance(names[0], str):
        data.y = torch.tensor(data.y)
    model = fitted(data)
    model.save(tmp_path / "model.safetensors")
    for other in (model, LGDClassifier.load(tmp_path / "model.safetensors")):
        assert list(other.classes_) == sorted(names)
        assert set(other.predict(data)) <= set(names)
        truth = np.asarray([names[c] for c in toy_graph().y])
        right = (other.predict(data) == truth)[data.test_mask.numpy()]
        assert other.score(data) == other.score(data, y=data.y) == pytest.approx(right.mean())
    assert model.score() == model.score(data) > 0.5


def test_score_with_other_labels_leaves_the_model_as_it_was():
    data = toy_graph()
    model = fitted(data)
    before = model.score()
    rotated = (data.y + 1) % 3
    wrong = (model.predict() == rotated.numpy())[data.test_mask.numpy()].mean()
    assert model.score(y=rotated) == pytest.approx(wrong)
    assert model.score() == before


def test_score_refuses_what_it_cannot_compare(model):
    data = toy_graph()
    for y, words in (
        (["x"] * 36, "'x'"),
        (torch.full((36,), 9), "9"),
        (torch.zeros(36, 3), "shape"),
    ):
        with pytest.raises(InputError, match=words):
            model.score(y=y)
    with pytest.raises(InputError, match="no labels"):
        model.score(without(data, "y"))
    with pytest.raises(InputError, match="no labelled nodes"):
        model.score(data, y=torch.full((36,), -1))


def test_score_without_test_nodes_is_refused():
    data = toy_graph()
    data.train_mask |= data.test_mask
    data.test_mask = torch.zeros(36, dtype=torch.bool)
    model = fitted(data)
    for arguments in ((), (data,), (None, data.y), (data, data.y), (without(data, *MASKS),)):
        with pytest.raises(InputError, match=r"no test nodes: fit has used every labelled node"):
            model.score(*arguments)


def test_score_without_test_nodes_leaves_out_what_was_fitted(tmp_path):
    data = toy_graph()
    held_back = data.test_mask.clone()
    data.test_mask = torch.zeros(36, dtype=torch.bool)
    model = fitted(data)
    right = (model.predict() == data.y.numpy())[held_back].mean()
    assert model.score() == model.score(data) == model.score(y=data.y) == pytest.approx(right)
    other = toy_graph(nodes=20, seed=4)  # of which none were fitted
    other.test_mask = torch.zeros(20, dtype=torch.bool)
    assert model.score(other) == pytest.approx((model.predict(other) == other.y.numpy()).mean())
    model.save(tmp_path / "model.safetensors")
    loaded = LGDClassifier.load(tmp_path / "model.safetensors")
    assert loaded.score(data) == pytest.approx(right)
    with pytest.warns(LGDWarning, match="no test nodes are named: all labelled nodes are scored"):
        loaded.score(without(data, *MASKS))


def test_the_split_that_fit_made_is_the_one_that_is_scored():
    data = without(toy_graph(), *MASKS)
    data.y[::5] = (data.y[::5] + 1) % 3  # so that splits differ in their scores
    with pytest.warns(LGDWarning, match="no split was given"):
        model = fitted(data, epochs=60, lr=0.05)
    assert model.score(data) == model.score(y=data.y) == model.score() == model.result_.test


def test_test_nodes_that_were_fitted_are_worth_a_warning(model):
    data = toy_graph()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(data)
    data.train_mask, data.test_mask = data.test_mask, data.train_mask
    with pytest.warns(LGDWarning, match=f"{int(data.test_mask.sum())} of the .* used by fit"):
        model.score(data)


def test_named_labels_are_matched_by_name():
    data = toy_graph(multi_label=True)
    data.classes = list("abcdef")
    model = fitted(data)
    order = [5, 2, 0, 1, 4, 3]
    other = toy_graph(multi_label=True)
    other.y, other.classes = data.y[:, order], [data.classes[i] for i in order]
    assert model.score(other) == model.score(data) == model.score(y=data.y)
    other.classes = list("uvwxyz")
    with pytest.raises(InputError, match=r"labels are \['u', .* those of the model \['a'"):
        model.score(other)


def test_features_are_matched_by_name():
    data = toy_graph()
    data.feature_names = [f"f{i}" for i in range(12)]
    model = fitted(data)
    assert list(model.feature_names_in_) == data.feature_names
    other = toy_graph()
    other.x, other.feature_names = data.x.flip(1), data.feature_names[::-1]
    with pytest.warns(LGDWarning, match="matched by name"):
        assert np.array_equal(model.predict(other), model.predict())
    other.feature_names = [*other.feature_names[:-1], "g"]
    with pytest.raises(InputError, match="missing 'f0'; new 'g'"):
        model.predict(other)
    assert not hasattr(model.fit(toy_graph()), "feature_names_in_")


def test_a_fit_that_routes_nothing_says_so_once_and_so_does_its_page(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(model="lgdgcn-paper", settings={"tau": 1e6}, epochs=3)
    said = [str(one.message) for one in caught if "routing entropy is" in str(one.message)]
    assert len(said) == 1, said
    assert said[0].startswith("routing entropy is 1.0000: every edge is shared")
    model.explore(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count("every edge is shared by all") == 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted(model="lgdgcn-paper", settings={"tau": 0.05}, epochs=3)
    assert not [one for one in caught if "routing" in str(one.message)]


def test_unlabelled_nodes_teach_nothing_but_are_predicted():
    data = toy_graph()
    hidden = data.test_mask
    data.y[hidden] = -1
    model = fitted(data)
    assert list(model.classes_) == [0, 1, 2]
    assert model.result_.test is None
    assert model.predict().shape == (36,)
    assert model.predict()[hidden].min() >= 0
    truth = toy_graph().y
    assert model.score(data, y=truth) == pytest.approx(
        (model.predict() == truth.numpy())[hidden].mean()
    )


def test_label_sets():
    data = toy_graph(multi_label=True)
    model = fitted(data, epochs=60)
    assert list(model.classes_) == [0, 1, 2, 3, 4, 5]
    predicted, proba = model.predict(), model.predict_proba()
    assert predicted.shape == proba.shape == (36, 6)
    assert predicted.dtype.kind == "i"
    assert set(predicted.sum(1)) == {2}  # every training node has two
    assert ((proba >= 0) & (proba <= 1)).all()
    truth = data.y.numpy()[data.test_mask]
    hits = (predicted[data.test_mask] * truth).sum()
    assert model.score() == pytest.approx(
        2 * hits / (predicted[data.test_mask].sum() + truth.sum())
    )
    assert model.score() == model.score(data) > 0.6
    with pytest.raises(InputError, match="shape"):
        model.score(y=toy_graph().y)


# Saved and loaded


@pytest.mark.parametrize("how", ["load", "pickle"])
def test_round_trip(model, tmp_path, how):
    path = tmp_path / "model.safetensors"
    model.save(str(path))
    loaded = LGDClassifier.load(str(path))
    if how == "pickle":
        loaded = pickle.loads(pickle.dumps(model))
    assert loaded.get_params() == model.get_params()
    for name in ("history_", "result_", "n_iter_", "factors_", "n_features_in_", "_warnings"):
        assert getattr(loaded, name) == getattr(model, name)
    data = toy_graph()
    for method in ("predict", "predict_proba", "transform", "edge_factors", "score"):
        assert np.array_equal(getattr(loaded, method)(data), getattr(model, method)(data))
        with pytest.raises(InputError, match="keeps no graph; give one"):
            getattr(loaded, method)()
    loaded.save(tmp_path / "again.safetensors")
    (_, meta), (_, again) = (tensor_file.load(file, "model") for file in tmp_path.iterdir())
    assert meta == again
    assert np.array_equal(loaded.fit(data).predict_proba(), model.predict_proba())


@pytest.mark.parametrize("name", ["gcn", "disengcn", "lgdgcn"])
def test_the_model_of_a_run_can_be_loaded_and_fitted_again(tmp_path, name):
    file, data = tmp_path / "model.safetensors", toy_graph()
    settings = Settings(**SMALL | {"epochs": 2, "variant": "paper"})
    trained = train_seed(data, settings, name, 0, torch.device("cpu"))[1]
    trained.save(file)
    loaded = LGDClassifier.load(file)
    assert loaded.model == ("lgdgcn-paper" if name == "lgdgcn" else name)
    expected = loaded.predict_proba(data)
    assert np.array_equal(loaded.set_params(device="cpu").fit(data).predict_proba(), expected)


# Notes and warnings


def test_warnings_point_at_the_users_line_and_notes_go_to_the_log(caplog):
    data = without(toy_graph(), *MASKS)
    with caplog.at_level(logging.INFO, "lgdgcn"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(data, epochs=3)
        warnings.warn("mine", LGDNote, stacklevel=1)
    assert "no split was given" in str(caught[0].message)
    assert {one.filename for one in caught} == {__file__}
    assert [one for one in caught if issubclass(one.category, LGDNote)] == caught[-1:]
    with caplog.at_level(logging.INFO, "lgdgcn"), said_to_caller():
        from_networkx(networkx.DiGraph([(0, 1), (1, 2)]))
    assert "the graph is directed: made undirected" in caplog.messages
    assert model.n_iter_ == len(model.history_) == 3


def test_names_of_the_package():
    assert dir(lgdgcn) == ["LGDClassifier", "LGDConv", "LGDGCN", "__version__", "metrics"]
