"""A trained model: used again as it was, refused when it is anything else."""

import json

import numpy as np
import pytest
import torch

from lgdgcn import tensor_file
from lgdgcn.config import Settings, resolve
from lgdgcn.data import synthetic_graph
from lgdgcn.data.validate import canonical
from lgdgcn.errors import CheckpointError, InputError, LGDWarning
from lgdgcn.runs.fit import fit
from lgdgcn.train.prepared import prepared
from lgdgcn.train.trained import MODEL, TrainedModel
from models.toy import toy_graph
from train.one_seed import train_seed
from train.test_equivalence import CASES, members_of

CPU = torch.device("cpu")
SETTINGS = Settings(factors=2, hidden_channels=8, k=3, epochs=3)


def trained_on(data, model="lgdgcn", **settings):
    return train_seed(data, Settings(**SETTINGS.as_dict() | settings), model, 0, CPU)[1]


def reloaded(model, path):
    model.save(path / "model.safetensors")
    return TrainedModel.load(path / "model.safetensors")


@pytest.fixture(scope="module")
def trained():
    return trained_on(toy_graph())


@pytest.fixture
def saved(trained, tmp_path):
    trained.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


# Round trip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("multi_label", [False, True])
def test_every_model_comes_back_as_it_was(tmp_path, case, multi_label):
    data = toy_graph(multi_label=multi_label)
    settings = members_of(case, epochs=3)[1].settings
    _, trained = train_seed(data, settings, CASES[case][0], 0, CPU)
    loaded = reloaded(trained, tmp_path)
    assert loaded.describe() == trained.describe()
    assert torch.equal(loaded(data).logits, trained(data).logits)
    assert not loaded(data).logits.requires_grad
    assert loaded.task.multi_label == multi_label


@pytest.mark.parametrize("variant", ["paper", "released", "ours"])
def test_float64_features_train_and_reload_in_float64(tmp_path, variant):
    data = toy_graph(dtype=torch.float64)
    trained = trained_on(data, variant=variant)
    loaded = reloaded(trained, tmp_path)
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
    assert reloaded(trained_on(canonical(data)), tmp_path).classes == [10, 20, 30]


def test_the_tuned_thresholds_are_kept_with_the_model(tmp_path):
    data = toy_graph(nodes=120)
    data.y = torch.nn.functional.one_hot(data.y, 4).float()
    data.y[::3, 3] = 1  # sets of different sizes: every third node has a rare label besides
    result, trained = train_seed(data, SETTINGS, "mlp", 0, CPU)
    loaded = reloaded(trained, tmp_path)
    assert loaded.task == trained.task
    assert result.threshold == trained.task.threshold != 0.5
    assert len(set(loaded.task.label_thresholds)) == 4
    assert loaded.task.scores(loaded(data).logits, data.y, data.test_mask) == result.scores["test"]


# The factor that adds most to a score


def test_the_dominant_factor_adds_most_to_the_score(trained):
    output = trained(toy_graph())
    factor = trained.dominant_factors(output)
    weight = trained.model.classifier.weight.detach().view(3, 2, 4)
    for node, units in enumerate(output.layers[-1].units):
        label = output.logits[node].argmax()
        shares = [(units[m] * weight[label, m]).sum().item() for m in range(2)]
        assert factor[node] == int(np.argmax(shares))


def test_the_dominant_factor_of_our_model_explains_most_of_the_label(tmp_path):
    data = toy_graph(multi_label=True)
    trained = reloaded(trained_on(data, variant="ours"), tmp_path)
    output = trained(data)
    factor = trained.dominant_factors(output)
    shares = trained.model.classifier.shares().detach().view(6, 2, 4)
    assert (shares.flatten(1).amax(1) > 0.9).all()  # the groups came back, too
    for node, units in enumerate(output.layers[-1].units):
        logits = output.logits[node]
        classes = units.square() / units.square().sum(-1, keepdim=True)
        parts = (classes * shares[logits.argmax()]).sum(-1)
        assert factor[node] == parts.argmax()
        assert parts.sum() == pytest.approx(logits.max().sigmoid().item(), abs=1e-5)


def test_models_without_factors_have_no_dominant_one():
    gcn = trained_on(toy_graph(), "gcn", epochs=1)
    assert gcn.dominant_factors(gcn(toy_graph())) is None


# Features: scaled as in training, made sparse, matched by name


def test_features_are_scaled_as_in_training():
    data = toy_graph()
    trained = trained_on(data, normalize_features=True)
    scaled = data.clone()
    scaled.x = data.x * torch.rand(36, 1).add(0.5)  # row sums do not matter
    assert torch.allclose(trained(scaled).logits, trained(data).logits, atol=1e-5)
    before = data.x.clone()
    assert prepared(data, trained.settings, CPU).x.sum(1).allclose(torch.ones(36))
    assert torch.equal(data.x, before)


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


def test_a_seed_scales_by_its_own_split_whatever_is_trained_beside_it():
    def graph(seed):
        data = canonical(synthetic_graph(factors=2, nodes=60, classes=3, average_degree=10))
        data.x = torch.randn(60, 5, generator=torch.manual_seed(0)) * 3 + 1
        part = torch.rand(60, generator=torch.manual_seed(seed))
        data.train_mask, data.test_mask = part < 0.5, part > 0.75
        data.val_mask = ~(data.train_mask | data.test_mask)
        return data

    settings = resolve({"scaling": "auto", "epochs": 5})
    results, best = fit(graph, settings, "mlp", [0, 1, 2], CPU)
    assert [result.seed for result in results] == [0, 1, 2]
    alone = [train_seed(graph(seed), settings, "mlp", seed, CPU) for seed in range(3)]
    assert [result.scores for result in results] == [result.scores for result, _ in alone]
    assert len({trained.scaling.mean for _, trained in alone}) == 3
    assert best.scaling in [trained.scaling for _, trained in alone]


def named(data, names):
    data = data.clone()
    data.feature_names = names
    return data


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_matched_by_name(sparse, tmp_path):
    data = toy_graph()
    data.x = data.x * (data.x > 0.5)
    names = [f"f{i}" for i in range(12)]
    trained = reloaded(trained_on(named(data, names)), tmp_path)
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


def test_features_that_are_not_the_models(trained):
    with pytest.raises(InputError, match="5 features, the model was trained with 12"):
        trained(toy_graph(features=5))
    data, names = toy_graph(), [f"f{i}" for i in range(12)]
    with_names = trained_on(named(data, names))
    for wrong, words in (
        (names[:-1], "11 names for 12 columns"),
        (["a"] * 12, "different words"),
        ([*range(12)], "different words"),
        ([f"g{i}" for i in range(12)], r"missing 'f0', .* and 7 more; new 'g0', .* and 7 more"),
    ):
        with pytest.raises(InputError, match=words):
            with_names(named(data, wrong))
    with pytest.raises(InputError, match="11 names for 12 columns"):
        trained_on(named(data, names[:-1]))
    trained(named(data, names))  # a model without names takes them by position


# Files that hold no model


def refused(path, words):
    with pytest.raises(CheckpointError, match=words) as caught:
        TrainedModel.load(path)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def write(path, trained, weights=None, **change):
    """A file of ours in which something is not that of the model."""
    weights = trained.model.state_dict() if weights is None else weights
    tensor_file.save(path, weights, {**trained.describe(), **change}, MODEL)
    return path


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "model.safetensors", "cannot read")
    refused(tmp_path, "not a regular file")


def of_task(**change):
    task = {"outputs": 3, "multi_label": True, "labels_per_node": None, "threshold": 0.5}
    return {"task": {**task, "label_thresholds": None, "metric": "micro_f1", **change}}


@pytest.mark.parametrize(
    "change",
    [
        {"model": "bert"},
        {"model": None},
        {"model": ["lgdgcn"]},
        {"model": "x" * 10**6},
        {"model": "gcn"},
        {"settings": {"factors": 0}},
        {"settings": {"unheard_of": 1}},
        {"settings": None},
        {"settings": {"factors": 2, "hidden_channels": 10**12}},
        {"settings": {"factors": 2, "hidden_channels": 2 * 10**30}},
        {"settings": {"factors": 10**9, "hidden_channels": 10**9}},
        {"model": "gat", "settings": {"heads": 10**9}},
        {"model": "monet", "settings": {"kernel_size": 10**12}},
        {"model": "appnp", "settings": {"propagation": 10**12}},
        {"task": {"kind": 1}},
        of_task(outputs="three"),
        of_task(outputs=True),
        of_task(multi_label="yes"),
        of_task(labels_per_node=4),
        of_task(labels_per_node=1.5),
        of_task(threshold=0.0),
        of_task(threshold=float("nan")),
        of_task(label_thresholds=[0.5, 0.5]),
        of_task(label_thresholds=[0.5, 0.5, 1.0]),
        of_task(label_thresholds=0.5),
        of_task(metric="luck"),
        *({"in_channels": value} for value in (-4, "12", 13, 10**12, 10**30, True, float("nan"))),
        *({"classes": value} for value in (["a"], None, "abc", {"a": 1, "b": 2, "c": 3})),
        *({"classes": value} for value in (["a", None, "c"], [["a"], "b", "c"])),
        *({"feature_names": value} for value in ("abcdefghijkl", ["a", "b"], ["a"] * 12)),
        {"feature_names": [*range(12)]},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_descriptions_that_make_no_model(trained, tmp_path, change):
    refused(write(tmp_path / "m.safetensors", trained, **change), r"m\.safetensors")


@pytest.mark.parametrize("missing", ["model", "settings", "task", "classes", "in_channels"])
def test_descriptions_with_a_gap(trained, tmp_path, missing):
    meta = {key: value for key, value in trained.describe().items() if key != missing}
    tensor_file.save(tmp_path / "m.safetensors", trained.model.state_dict(), meta, MODEL)
    refused(tmp_path / "m.safetensors", missing)


def test_weights_of_another_network(trained, tmp_path):
    weights, path = trained.model.state_dict(), tmp_path / "m.safetensors"
    name = next(iter(weights))
    for other in ({name: weights[name].half()}, {"more": torch.ones(1)}):
        refused(write(path, trained, {**weights, **other}), next(iter(other)))
    without = {key: value for key, value in weights.items() if key != name}
    refused(write(path, trained, without), f"{name} is missing")
    for dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn):
        low = {key: t.to(dtype) if t.is_floating_point() else t for key, t in weights.items()}
        refused(write(path, trained, low), "float32")


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_weights_that_are_not_finite_never_predict(trained, tmp_path, value):
    for name, tensor in trained.model.state_dict().items():
        if tensor.is_floating_point():
            broken = tensor.clone()
            broken.view(-1)[-1] = value
            weights = {**trained.model.state_dict(), name: broken}
            path = write(tmp_path / "m.safetensors", trained, weights)
            refused(path, f"{name} has values that are not finite")


def test_scores_that_overflow_never_predict(trained, tmp_path):
    weights = {
        name: torch.full_like(tensor, 3e38) if name.startswith("classifier") else tensor
        for name, tensor in trained.model.state_dict().items()
    }
    loaded = TrainedModel.load(write(tmp_path / "m.safetensors", trained, weights))
    with pytest.raises(InputError, match="36 of 36 nodes are not finite"):
        loaded(toy_graph())
    gcn, data = trained_on(toy_graph(), "gcn"), toy_graph()
    data.x[7] *= 1.6e38
    with torch.no_grad():
        for weight in gcn.model.parameters():
            weight *= 100
    with pytest.raises(InputError, match=r"of 36 nodes are not finite; the features may be too"):
        gcn(data)
