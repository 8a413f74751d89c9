"""What the table of settings says of every model holds: it reads these settings, and no others."""

import dataclasses

import pytest
import torch

from lgdgcn.config import Settings, belongs, check_used, resolve
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS
from models.toy import VARIANTS, toy_graph
from train.one_seed import train_seed

FIELDS = {field.name: field for field in dataclasses.fields(Settings)}
KINDS = [  # every model, and every variant of those that have some
    (model, variant)
    for model in MODELS
    for variant in (VARIANTS if belongs("variant", model) else ("paper",))
]
SETS, ONE = (toy_graph(nodes=40, multi_label=sets) for sets in (True, False))
# every part is there
FULL = {
    "factors": 4, "hidden_channels": 16, "num_layers": 2, "iterations": 2, "k": 3, "dropout": 0.2,
    "encoder_channels": 6, "encoder_layers": 2, "hops": 2, "hop_weights": "learned", "views": 2,
    "drop_nodes": 0.3, "input_dropout": 0.2, "consistency_warmup": 3, "structure": "both",
    "structure_neighbours": 4, "refresh_every": 1, "heads": 2, "propagation": 3, "lr": 0.02,
    "epochs": 3, "lambda_space": 1e-5,
}  # fmt: skip
BATCHES = {
    **FULL, "batch_size": 10, "fan_out": 3, "space": False, "diversity": False,
    "latent_graph": False, "structure": "none", "iterations": 1,
}  # fmt: skip
OF_NETWORK = ("hidden_channels", "dropout", "weight_average")
OF_BATCHES = ("batch_size", "batch_parts", "fan_out", "hop_table")
# where the next value would be none, or change nothing on this graph
OTHERS = {
    "factors": 8, "hidden_channels": 32, "patience": 1, "scaling": "standard",
    "metric": "average_precision", "hop_table": "never", "free_share": 0.4, "confidence": 0.9,
    "weight_average": 0.5, "batch_size": 20, "precision": "scaled", "lambda_space": 0.3,
}  # fmt: skip


def another(name, value):
    """Another value of a setting."""
    if name in OTHERS:
        return OTHERS[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        options = FIELDS[name].metadata["options"]
        return options[options.index(value) - 1]
    return value + 1 if isinstance(value, int) else value / 2


def trained(model, settings, data=SETS):
    """Everything a training comes to: total loss and scores, class scores, and edges' factors."""
    log = []
    _, best = train_seed(
        data,
        settings,
        model,
        0,
        torch.device("cpu"),
        on_epoch=lambda epoch: log.append(
            {k: v for k, v in epoch.metrics.items() if k == "total" or k.startswith("val")}
        ),
    )
    output = best(data)
    edges = [layer.edge_factors.tolist() for layer in output.layers]
    return repr((log, output.logits.tolist(), edges))


def changed(settings, names):
    values = {name: another(name, getattr(settings, name)) for name in names}
    return resolve(settings.as_dict(), values)


def test_the_table_names_models_that_there_are():
    named = {one for field in FIELDS.values() for one in field.metadata["models"]}
    kinds = {*MODELS, *(f"{model}-{variant}" for model, variant in KINDS)}
    assert named <= kinds


@pytest.fixture(autouse=True)
def no_kernels(monkeypatch):
    """Sizes are settings, and kernels would be compiled for each of them."""
    monkeypatch.setenv("LGDGCN_BACKEND", "torch")


@pytest.mark.parametrize(
    ("model", "variant"), KINDS, ids=[f"{model}-{variant}" for model, variant in KINDS]
)
def test_a_model_reads_its_own_settings_and_no_others(model, variant):
    full = resolve(FULL, {"variant": variant})
    own = [name for name in FIELDS if belongs(name, model, variant)]
    before = trained(model, full)
    others = FIELDS.keys() - own - {"batch_size"}  # which other models refuse themselves
    assert trained(model, changed(full, others)) == before
    for name in own:
        of_trainer = not FIELDS[name].metadata["models"] and name not in OF_NETWORK
        if of_trainer and (model, variant) != KINDS[0]:  # which is one for all models
            continue
        if name == "checkpoint_every":  # changes files on the way, and nothing in the end
            continue
        base = resolve(BATCHES, {"variant": variant}) if name in OF_BATCHES else full
        if name == "patience":  # no epoch is better than the first
            base = resolve(FULL, {"lr": 1e-30})
        if name == "precision":  # in a loss above rounding; ours is scaled by itself
            base = resolve(full.as_dict(), {"lambda_space": 0.1, "precision": "exact"})
        check_used({name: 0}, [base], model, multi_label=True)
        reference = before if base is full else trained(model, base)
        assert trained(model, changed(base, [name])) != reference, name


NEEDS = [
    (name, need)
    for name, field in FIELDS.items()
    for need in field.metadata["needs"]
    if need != "hops > 0" or name not in OF_BATCHES  # whose tables are tested where they are made
]


def without(need):
    """Settings in which a need is not met, and a graph."""
    values, data = {}, SETS
    for way in need.split(" or "):
        name, sign, wanted = way.split()
        if name == "labels":
            data = ONE
        elif sign == ">":
            values[name] = type(FIELDS[name].default)(wanted)
        elif sign == "not":
            values[name] = wanted
        elif isinstance(FIELDS[name].default, str):
            values[name] = "mean" if name == "hop_weights" else "local"
        else:
            values[name] = 1 if wanted == "0" else wanted != "true"
    return values, data


@pytest.mark.parametrize(("name", "need"), NEEDS, ids=[f"{name}: {need}" for name, need in NEEDS])
def test_without_what_it_needs_a_setting_changes_nothing_and_is_refused(name, need):
    where = FIELDS[name].metadata
    kinds = [kind for kind in KINDS if belongs(name, *kind) and kind[0] != "disengcn"]
    model, variant = [kind for kind in kinds if kind[0] in (where["needed_by"] or MODELS)][-1]
    if variant == "ours" or belongs(name, "lgdgcn", "ours"):
        model, variant = "lgdgcn", "ours"
    if where["needed_by"]:
        model = where["needed_by"][0]
    values, data = without(need)
    base = BATCHES if name in OF_BATCHES else FULL
    settings = resolve(base, {"variant": variant}, values)
    kind = {"multi_label": data is SETS}
    with pytest.raises(InputError, match=f"{name} is used only with .*leave {name} out"):
        check_used({name: 0}, [settings], model, **kind)
    check_used({name: 0} | values, [settings], model, **kind)  # who says so knows it
    used = [settings, resolve(base, {"variant": variant})]
    check_used({name: 0}, used, model, multi_label=True)  # one of both does
    other = changed(settings, [name])
    assert trained(model, other, data) == trained(model, settings, data)
