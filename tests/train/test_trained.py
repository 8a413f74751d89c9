"""A trained model: used again as it was, refused when it is anything else."""

import hashlib
import json
import os
import pickle

import numpy as np
import pytest
import torch
from lgdgcn.train.checkpoint import save_weights
from safetensors.torch import save as encode
from torch_geometric.data import Data

from lgdgcn.config import Settings
from lgdgcn.data.validate import canonical
from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.models import MODELS
from lgdgcn.train.trained import TrainedModel, prepared
from models.toy import toy_graph
from train.one_seed import train_seed

CPU = torch.device("cpu")
SETTINGS = Settings(factors=2, hidden_channels=8, k=3, epochs=3)


def trained_on(data, model="lgdgcn", **settings):
    return train_seed(data, Settings(**SETTINGS.as_dict() | settings), model, 0, CPU)[1]


@pytest.fixture(scope="module")
def trained():
    return trained_on(toy_graph())


@pytest.fixture
def saved(trained, tmp_path):
    trained.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def reseal(path):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n")


# Round trip


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("multi_label", [False, True])
def test_every_model_comes_back_as_it_was(tmp_path, model, multi_label):
    data = toy_graph(multi_label=multi_label)
    trained = trained_on(data, model, num_layers=2, epochs=1)
    trained.save(tmp_path / "model.safetensors")
    loaded = TrainedModel.load(tmp_path / "model.safetensors")
    assert loaded.describe() == trained.describe()
    assert torch.equal(loaded(data).logits, trained(data).logits)
    assert not loaded(data).logits.requires_grad
    assert loaded.task.multi_label == multi_label


@pytest.mark.parametrize("variant", ["paper", "released", "ours"])
def test_float64_features_train_and_reload_in_float64(tmp_path, variant):
    data = toy_graph(dtype=torch.float64)
    trained = trained_on(data, variant=variant)
    trained.save(tmp_path / "model.safetensors")
    loaded = TrainedModel.load(tmp_path / "model.safetensors")
    for model in (trained, loaded):
        dtypes = {t.dtype for t in model.model.state_dict().values() if t.is_floating_point()}
        assert dtypes == {torch.float64}
        assert model(data).logits.dtype == torch.float64
    assert torch.equal(loaded(data).logits, trained(data).logits)
    assert not torch.equal(loaded(data).logits.float().double(), loaded(data).logits)


def test_a_graph_of_another_precision_is_converted(trained):
    data = toy_graph()
    expected = trained(data).logits
    data.x = data.x.double()
    assert torch.equal(trained(data).logits, expected)


def test_names_of_numpy_are_saved(tmp_path):
    data = toy_graph()
    data.classes = list(np.array([10, 20, 30]))
    trained_on(canonical(data)).save(tmp_path / "model.safetensors")
    assert TrainedModel.load(tmp_path / "model.safetensors").classes == [10, 20, 30]


def test_the_dominant_factor_adds_most_to_the_score(trained):
    output = trained(toy_graph())
    factor = trained.dominant_factors(output)
    weight = trained.model.classifier.weight.detach().view(3, 2, 4)
    for node, (units, logits) in enumerate(
        zip(output.layers[-1].units, output.logits, strict=True)
    ):
        shares = [(units[m] * weight[logits.argmax(), m]).sum().item() for m in range(2)]
        assert factor[node] == int(np.argmax(shares))


def test_the_dominant_factor_of_the_ours_variant_explains_most_of_the_label(tmp_path):
    data = toy_graph(multi_label=True)
    trained_on(data, variant="ours").save(tmp_path / "model.safetensors")
    trained = TrainedModel.load(tmp_path / "model.safetensors")
    output = trained(data)
    factor = trained.dominant_factors(output)
    shares = trained.model.classifier.shares().detach().view(6, 2, 4)
    assert (shares.flatten(1).amax(1) > 0.9).all()  # the groups came back, too
    for node, (units, logits) in enumerate(
        zip(output.layers[-1].units, output.logits, strict=True)
    ):
        classes = units.square() / units.square().sum(-1, keepdim=True)
        parts = (classes * shares[logits.argmax()]).sum(-1)
        assert factor[node] == parts.argmax()
        assert parts.sum() == pytest.approx(logits.max().sigmoid().item(), abs=1e-5)


def test_models_without_factors_have_no_dominant_one():
    gcn = trained_on(toy_graph(), "gcn", epochs=1)
    assert gcn.dominant_factors(gcn(toy_graph())) is None


def test_features_are_scaled_as_in_training():
    data = toy_graph()
    trained = trained_on(data, normalize_features=True)
    scaled = data.clone()
    scaled.x = data.x * torch.rand(36, 1).add(0.5)  # row sums do not matter
    assert torch.allclose(trained(scaled).logits, trained(data).logits, atol=1e-5)
    before = data.x.clone()
    assert prepared(data, trained.settings, CPU).x.sum(1).allclose(torch.ones(36))
    assert torch.equal(data.x, before)


def test_sparse_features_are_scaled_alike():
    dense = toy_graph()
    dense.x = dense.x * (dense.x > 0.7)
    dense.x[4] = 0
    sparse = Data(**dense.to_dict())
    sparse.x = dense.x.to_sparse_csr()
    settings = Settings(normalize_features=True)
    found = prepared(sparse, settings, CPU, torch.float64).x
    assert found.layout == torch.sparse_csr
    assert torch.allclose(found.to_dense(), prepared(dense, settings, CPU).x.double())
    assert not found.to_dense()[4].any()


@pytest.mark.parametrize("features", [2000, 4000])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
def test_large_features_that_are_mostly_zero_are_made_sparse(features, share):
    data = toy_graph(features=features)
    data.x = data.x * (torch.rand(data.x.shape) < share)
    before = data.x.clone()
    found = prepared(data, Settings(normalize_features=False), CPU).x
    is_large = data.x.numel() >= 100_000
    assert (found.layout == torch.sparse_csr) == (is_large and share < 0.1)
    assert torch.equal(found.to_dense(), before)
    assert torch.equal(data.x, before)
    assert data.x.layout == torch.strided


def test_another_number_of_features(trained):
    with pytest.raises(InputError, match="5 features, the model was trained with 12"):
        trained(toy_graph(features=5))


# What is no model


def refused(path, words):
    with pytest.raises(CheckpointError, match=words):
        TrainedModel.load(path)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda payload: b"", "is empty"),
        (lambda payload: payload[:-1], "damaged, cut short or altered"),
        (lambda payload: payload[:40], "cut short"),
        (lambda payload: payload[:-3] + bytes([payload[-3] ^ 1]) + payload[-2:], "damaged"),
        (lambda payload: b"hello " * 50, "not a safetensors file"),
    ],
    ids=["empty", "truncated", "header only", "bit flipped", "text"],
)
def test_damaged_files(saved, damage, words):
    saved.write_bytes(damage(saved.read_bytes()))
    refused(saved, words)


def test_a_file_without_its_seal_or_that_is_not_there(saved):
    saved.with_name(saved.name + ".sha256").unlink()
    refused(saved, "copy both files")
    saved.unlink()
    refused(saved, "cannot read")
    refused(saved.parent, "not a regular file")


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("kind", ["pickle", "torch"])
def test_a_pickle_never_runs(tmp_path, kind):
    path, marker = tmp_path / "model.safetensors", tmp_path / "marker"
    if kind == "pickle":
        path.write_bytes(pickle.dumps(Payload(marker)))
    else:
        torch.save({"w": Payload(marker)}, path)
    reseal(path)
    refused(path, "never loaded")
    assert not marker.exists()


def test_safetensors_of_others(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(encode({"w": torch.ones(2)}, metadata={"format": "pt"}))
    reseal(path)
    refused(path, "was not written by lgdgcn")


@pytest.mark.parametrize(
    "change",
    [
        {"model": "bert"},
        {"model": None},
        {"settings": {"factors": 0}},
        {"settings": {"unheard_of": 1}},
        {"settings": None},
        {"task": {"outputs": "three", "multi_label": False}},
        {"task": {"kind": 1}},
        {"in_channels": -4},
        {"in_channels": "12"},
        {"in_channels": 13},
        {"model": "gcn"},
        {"classes": ["a"]},
        {"classes": None},
        {"classes": "abc"},
        {"classes": {"a": 1, "b": 2, "c": 3}},
        {"classes": ["a", None, "c"]},
        {"classes": [["a"], "b", "c"]},
        {"task": {"outputs": 3, "multi_label": "yes"}},
        {"task": {"outputs": True, "multi_label": False}},
        {"task": {"outputs": 3, "multi_label": True, "labels_per_node": 4}},
        {"task": {"outputs": 3, "multi_label": True, "labels_per_node": 1.5}},
        {"task": {"outputs": 3, "multi_label": True, "threshold": 0.0}},
        {"task": {"outputs": 3, "multi_label": True, "threshold": float("nan")}},
        {"task": {"outputs": 3, "multi_label": True, "label_thresholds": [0.5, 0.5]}},
        {"task": {"outputs": 3, "multi_label": True, "label_thresholds": [0.5, 0.5, 1.0]}},
        {"task": {"outputs": 3, "multi_label": True, "label_thresholds": 0.5}},
        {"task": {"outputs": 3, "multi_label": False, "metric": "luck"}},
        {"in_channels": 10**12},
        {"in_channels": 10**30},
        {"in_channels": True},
        {"in_channels": float("nan")},
        {"settings": {"factors": 2, "hidden_channels": 10**12}},
        {"settings": {"factors": 2, "hidden_channels": 2 * 10**30}},
        {"settings": {"factors": 10**9, "hidden_channels": 10**9}},
        {"model": "gat", "settings": {"heads": 10**9}},
        {"model": "monet", "settings": {"kernel_size": 10**12}},
        {"model": "appnp", "settings": {"propagation": 10**12}},
        {"model": ["lgdgcn"]},
        {"model": "x" * 10**6},
        {"feature_names": "abcdefghijkl"},
        {"feature_names": ["a", "b"]},
        {"feature_names": ["a"] * 12},
        {"feature_names": [*range(12)]},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_descriptions_that_make_no_model(trained, tmp_path, change):
    meta = {**trained.describe(), **change}
    save_weights(tmp_path / "m.safetensors", trained.model.state_dict(), meta)
    with pytest.raises(CheckpointError, match=r"m\.safetensors") as caught:
        TrainedModel.load(tmp_path / "m.safetensors")
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["model", "settings", "task", "classes", "in_channels"])
def test_descriptions_with_a_gap(trained, tmp_path, missing):
    meta = {key: value for key, value in trained.describe().items() if key != missing}
    save_weights(tmp_path / "m.safetensors", trained.model.state_dict(), meta)
    refused(tmp_path / "m.safetensors", missing)


def test_weights_with_a_gap_or_of_another_type(trained, tmp_path):
    weights = trained.model.state_dict()
    name = next(iter(weights))
    for changed in ({name: weights[name].half()}, {"more": torch.ones(1)}):
        save_weights(tmp_path / "m.safetensors", {**weights, **changed}, trained.describe())
        refused(tmp_path / "m.safetensors", next(iter(changed)))
    rest = {key: value for key, value in weights.items() if key != name}
    save_weights(tmp_path / "m.safetensors", rest, trained.describe())
    refused(tmp_path / "m.safetensors", f"{name} is missing")


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_not_finite_never_predict(trained, tmp_path, value):
    for name, tensor in trained.model.state_dict().items():
        if tensor.is_floating_point():
            broken = tensor.clone()
            broken.view(-1)[-1] = value
            weights = {**trained.model.state_dict(), name: broken}
            save_weights(tmp_path / "m.safetensors", weights, trained.describe())
            refused(tmp_path / "m.safetensors", f"{name} has values that are not finite")


def test_weights_that_overflow_never_predict(trained, tmp_path):
    weights = {
        name: torch.full_like(tensor, 3e38) if name.startswith("classifier") else tensor
        for name, tensor in trained.model.state_dict().items()
    }
    save_weights(tmp_path / "m.safetensors", weights, trained.describe())
    loaded = TrainedModel.load(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="36 of 36 nodes are not finite"):
        loaded(toy_graph())


def test_features_that_overflow_never_predict():
    gcn, data = trained_on(toy_graph(), "gcn"), toy_graph()
    data.x[7] *= 1.6e38
    with torch.no_grad():
        for weight in gcn.model.parameters():
            weight *= 100
    with pytest.raises(InputError, match=r"of 36 nodes are not finite; the features may be too"):
        gcn(data)


def test_half_precision_is_none_of_ours(trained, tmp_path):
    for dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn):
        weights = {
            name: tensor.to(dtype) if tensor.is_floating_point() else tensor
            for name, tensor in trained.model.state_dict().items()
        }
        save_weights(tmp_path / "m.safetensors", weights, trained.describe())
        refused(tmp_path / "m.safetensors", "float32")


# Files of earlier versions, and names of features


def test_files_without_threshold_and_names_still_load(trained, tmp_path):
    meta = trained.describe()
    del meta["feature_names"]
    for name in ("threshold", "label_thresholds", "metric"):
        del meta["task"][name]
    save_weights(tmp_path / "m.safetensors", trained.model.state_dict(), meta)
    loaded = TrainedModel.load(tmp_path / "m.safetensors")
    assert loaded.task == trained.task
    assert loaded.feature_names is None
    assert torch.equal(loaded(toy_graph()).logits, trained(toy_graph()).logits)


def sets_of_different_sizes(nodes=120):
    """Every node has the label of its class, every third one a rare label besides."""
    data = toy_graph(nodes=nodes)
    data.y = torch.nn.functional.one_hot(data.y, 4).float()
    data.y[::3, 3] = 1
    return data


def test_the_tuned_thresholds_are_kept_with_the_model(tmp_path):
    data = sets_of_different_sizes()
    result, trained = train_seed(data, SETTINGS, "mlp", 0, CPU)
    trained.save(tmp_path / "m.safetensors")
    loaded = TrainedModel.load(tmp_path / "m.safetensors")
    assert loaded.task == trained.task
    assert result.threshold == trained.task.threshold != 0.5
    assert len(set(loaded.task.label_thresholds)) == 4
    logits = loaded(data).logits
    assert loaded.task.scores(logits, data.y, data.test_mask) == result.scores["test"]


def named(data, names):
    data = data.clone()
    data.feature_names = names
    return data


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_matched_by_name(sparse, tmp_path):
    data = toy_graph()
    data.x = data.x * (data.x > 0.5)
    names = [f"f{i}" for i in range(12)]
    trained_on(named(data, names)).save(tmp_path / "m.safetensors")
    trained = TrainedModel.load(tmp_path / "m.safetensors")
    assert trained.feature_names == names
    order = torch.randperm(12)
    other = named(data, [names[i] for i in order])
    other.x = data.x[:, order].to_sparse_csr() if sparse else data.x[:, order]
    before = other.x.clone()
    with pytest.warns(LGDWarning, match="matched by name"):
        found = trained(other).logits
    assert torch.allclose(found, trained(named(data, names)).logits, atol=1e-5)
    assert torch.equal(other.x.to_dense(), before.to_dense())
    assert torch.equal(trained(data).logits, trained(named(data, names)).logits)  # by position


def test_names_that_cannot_be_matched():
    data = toy_graph()
    names = [f"f{i}" for i in range(12)]
    trained = trained_on(named(data, names))
    for given, words in (
        (names[:-1], "11 names for 12 columns"),
        (["a"] * 12, "different words"),
        ([*range(12)], "different words"),
        ([f"g{i}" for i in range(12)], r"missing 'f0', .* and 7 more; new 'g0', .* and 7 more"),
    ):
        with pytest.raises(InputError, match=words):
            trained(named(data, given))
    with pytest.raises(InputError, match="11 names for 12 columns"):
        trained_on(named(data, names[:-1]))
    trained_on(data)(named(data, names))  # a model without names takes them by position
