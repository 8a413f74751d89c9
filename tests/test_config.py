"""Settings: every wrong one is refused by name, every right one survives being written."""

import dataclasses
import re
import string
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lgdgcn
from lgdgcn.config import (
    Settings,
    auto_scaling,
    check_width,
    from_toml,
    parse_assignments,
    preset,
    preset_names,
    preset_note,
    resolve,
    to_toml,
)
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS, build

PRESETS = [
    (file.stem, name, content)
    for file in sorted((Path(lgdgcn.__file__).parent / "presets").glob("*.toml"))
    for name, content in tomllib.loads(file.read_text(encoding="utf-8")).items()
]
FIELDS = {field.name: field for field in dataclasses.fields(Settings)}


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("lamda_space", "did you mean lambda_space?"),
        ("Dropout", "did you mean dropout?"),
        ("xyzzy", "known are variant, factors"),
    ],
)
def test_unknown_key(key, hint):
    with pytest.raises(InputError) as error:
        resolve({"lr": 0.1}, {key: 1})
    assert str(error.value).startswith(f"unknown key {key}: ")
    assert hint in str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("lr", "fast", "must be a number"),
        ("lr", True, "must be a number"),
        ("lr", None, "must be a number"),
        ("lr", [0.1], "must be a number"),
        ("factors", 4.0, "must be a whole number"),
        ("factors", True, "must be a whole number"),
        ("factors", "4", "must be a whole number"),
        ("space", 1, "must be true or false"),
        ("space", "false", "must be true or false"),
        ("graph", 3, "must be a word"),
        ("graph", "nn", "choose from knn, cknn"),
        ("variant", "Paper", "choose from paper, released, ours"),
        ("factors", 0, "must be at least 1"),
        ("factors", "Auto", "must be a whole number or auto"),
        ("factors", 4.0, "must be a whole number or auto"),
        ("factors", "auto", "the paper variant cannot find their number"),
        ("k", "auto", "must be a whole number$"),
        ("num_layers", 65, "must be at most 64"),
        ("hidden_channels", 2**31, "must be at most 2147483647"),
        ("heads", 10**12, "must be at most 2147483647"),
        ("tau", 0, "must be above 0"),
        ("dropout", 1, "must be below 1"),
        ("update_rate", 1.5, "must be at most 1"),
        ("lambda_div", -1e-9, "must be at least 0"),
        ("lambda_edge", -1, "must be at least 0"),
        ("label_groups", 1, "must be true or false"),
        ("lr", float("nan"), "must be a finite number"),
        ("lr", float("inf"), "must be a finite number"),
        ("lr", -float("inf"), "must be a finite number"),
        ("lr", 10**400, "must be a number"),
        ("lr", 1e38, "must be at most 1e\\+30"),
        ("epochs", -(10**400), "must be at least 1"),
    ],
)
def test_wrong_value(key, value, rule):
    with pytest.raises(InputError, match=rule) as error:
        resolve({key: value})
    assert str(error.value).startswith(f"{key} is ")


def test_hidden_channels_must_be_a_multiple_of_the_factors():
    with pytest.raises(InputError, match="hidden_channels is 64, which 5 factors"):
        check_width(Settings(factors=5))
    check_width(Settings(factors="auto", variant="ours"))  # which finds a width, too


def test_factors_may_be_found(tmp_path):
    settings = resolve({"variant": "ours"}, parse_assignments(["factors=auto"]))
    assert settings.factors == "auto"
    file = tmp_path / "config.toml"
    file.write_text(to_toml("settings", settings.as_dict()) + to_toml("auto_factors", {"free": 1}))
    assert resolve(from_toml(file)) == settings
    assert Settings(factors=2).num_factors == 2
    with pytest.raises(InputError, match="factors is 'auto', which only lgdgcn train and LGDCl"):
        _ = settings.num_factors


def test_later_layers_win_and_numbers_become_what_they_should_be():
    settings = resolve({"lr": 0.1, "k": 3}, {}, {"lr": 1})
    assert (settings.lr, settings.k) == (1.0, 3)
    assert type(settings.lr) is float
    assert Settings() == resolve()


@pytest.mark.parametrize("name", FIELDS)
def test_every_setting_is_checked_and_says_what_it_means(name):
    assert FIELDS[name].metadata["help"]
    with pytest.raises(InputError, match=f"{name} is"):
        resolve({name: object()})


@pytest.mark.parametrize("name", [name for name in FIELDS if "options" in FIELDS[name].metadata])
def test_models_name_every_choice_of_a_setting(name):
    options = FIELDS[name].metadata["options"]
    for spec in MODELS.values():
        for cls in (spec.cls, *spec.variants.values()):
            annotation = get_type_hints(cls.__init__).get(name)
            if get_origin(annotation) is Literal:
                assert get_args(annotation) == options
                said = re.search(rf"^ +{name}: (.*?)^ +\w+:", cls.__doc__, re.MULTILINE | re.DOTALL)
                quoted = re.findall(r'``"(\w+)"``', said[1])
                assert set(quoted) in (set(), set(options)), f"{cls.__name__}: {said[1]}"


# Files


def valid(field):
    if "options" in field.metadata:
        return st.sampled_from(field.metadata["options"])
    if type(field.default) is bool:
        return st.booleans()
    limits = field.metadata["limits"]
    if type(field.default) is int:
        return st.integers(max(limits["low"], 1), int(min(limits["high"], 10**6)))
    low, high = max(limits["low"], limits["above"], 0), min(limits["high"], limits["below"], 1e6)
    return st.floats(low, high, exclude_min=limits["above"] >= 0, exclude_max=limits["below"] == 1)


@given(st.fixed_dictionaries({}, optional={n: valid(f) for n, f in FIELDS.items()}))
def test_round_trip(tmp_path_factory, values):
    values = values | {"hidden_channels": 12 * values.get("factors", 4)}
    settings = resolve(values)
    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_text(to_toml("settings", settings.as_dict()), encoding="utf-8")
    assert resolve(from_toml(path)) == settings


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example('quote " backslash \\ newline \n tab \t bell \x07 delete \x7f separator \u2028 face 😀')
def test_any_text_survives_being_written(text):
    assert tomllib.loads(to_toml("run", {"name": text})) == {"run": {"name": text}}


def test_flat_files_and_tables(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("lr = 0.5\nspace = false\n")
    assert from_toml(path) == {"lr": 0.5, "space": False}
    path.write_text("[run]\nseeds = 3\n[settings]\nlr = 0.5\n[preset]\nnote = 'x'\n")
    assert from_toml(path) == {"lr": 0.5}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "[settings]\nlr = 0.5\n[training]\nk = 3",
            r"unknown table \[training\]: settings go under",
        ),
        ("[settings]\nlr = 0.5\n[Settings]\nk = 3", r"\[Settings\]: did you mean \[settings\]\?"),
        ("[setings]\nlr = 0.5", r"unknown table \[setings\]: did you mean \[settings\]\?"),
        ("lr = 0.5\n[run]\nseeds = 3", r"unknown table \[run\]: settings go under"),
        ("lr = 0.5\n[settings]\nk = 3", r"lr is outside of \[settings\]"),
        ("[settings]\nlr = 0.5\n[[more]]\nk = 3", r"more is outside of \[settings\]"),
    ],
)
def test_nothing_in_a_file_is_left_out_silently(tmp_path, content, words):
    path = tmp_path / "config.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"config\.toml: .*{words}"):
        from_toml(path)


def test_a_byte_order_mark_is_no_riddle(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("lr = 0.5\n", encoding="utf-8-sig")
    assert from_toml(path) == {"lr": 0.5}


@pytest.mark.parametrize(
    "content",
    [b"lr = ", b"\xff\xfe", b"lr = 1\nlr = 2", b"a = " + b"[" * 5000, b"settings = 3"],
    ids=["value", "encoding", "twice", "deep", "no table"],
)
def test_files_that_are_not_settings(tmp_path, content):
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"config\.toml"):
        from_toml(path)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        from_toml(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="not a TOML file"):
        from_toml(tmp_path)


# Command line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lr=0.05", 0.05),
        ("lr=1e-3", 1e-3),
        ("lr = 3", 3),
        ("lr=true", True),
        ("lr=knn", "knn"),
        ("lr='knn'", "knn"),
        ("lr=", ""),
        ("lr=a=b", "a=b"),
        ("lr=1\nk = 2", "1\nk = 2"),
        ("lr=" + "[" * 5000, "[" * 5000),
        ("lr=" + "9" * 5000, "9" * 5000),
    ],
)
def test_assignment(text, value):
    assert parse_assignments([text]) == {"lr": value}
    assert type(parse_assignments([text])["lr"]) is type(value)


@pytest.mark.parametrize("text", ["lr", "", "=3", " = 3"])
def test_assignment_without_a_key_or_value(text):
    with pytest.raises(InputError, match="write key=value"):
        parse_assignments([text])


def test_an_assignment_stands_alone():
    with pytest.raises(InputError, match="lr is set twice, to 1 and to 3; leave out one"):
        parse_assignments(["lr=1", "k=2", "lr = 3"])


@given(
    st.text(string.ascii_lowercase + "_", min_size=1),
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False)),
)
def test_numbers_and_flags_come_back(key, value):
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    assert parse_assignments([f"{key}={text}"]) == {key: value}


@given(st.lists(st.text()))
def test_any_text_is_parsed_or_refused(texts):
    with suppress(InputError):
        resolve(parse_assignments(texts))


# Presets


@pytest.mark.parametrize(
    ("graph", "name", "content"), PRESETS, ids=[f"{graph}-{name}" for graph, name, _ in PRESETS]
)
def test_presets(graph, name, content):
    assert content.keys() == {"preset", "settings"}
    assert "search" in content["preset"]
    settings = resolve(content["settings"])
    model, _, variant = name.removesuffix("-multilabel").partition("-")
    multi_label = name.endswith("-multilabel")
    assert model in MODELS
    assert variant in ("", "paper", "released", "ours")
    assert settings.variant == (variant or "paper")
    of = "" if graph == "defaults" else graph
    assert preset(of, model, variant or None, multi_label=multi_label) == content["settings"]
    assert build(model, settings.as_dict(), 5, 2) is not None


def test_a_preset_can_be_changed_without_changing_the_shipped_one():
    preset("cora", "gcn")["lr"] = 17
    assert preset("cora", "gcn")["lr"] != 17


@pytest.mark.parametrize(
    ("dataset", "variant", "names"),
    [
        ("cora", None, ["cora-gcn-paper", "cora-gcn", "gcn-paper", "gcn"]),
        ("Cora", "released", ["cora-gcn-released", "cora-gcn", "gcn-released", "gcn"]),
        (
            "synthetic:factors=8,seed=1",
            None,
            [
                "synthetic_factors_8_seed_1-gcn-paper",
                "synthetic_factors_8_seed_1-gcn",
                "synthetic-gcn-paper",
                "synthetic-gcn",
                "gcn-paper",
                "gcn",
            ],
        ),
    ],
)
def test_where_a_preset_is_looked_for(dataset, variant, names):
    assert preset_names(dataset, "gcn", variant) == names


def test_a_generated_graph_has_the_presets_of_all():
    assert preset("synthetic:seed=17,nodes=99", "gcn") == preset("synthetic", "gcn") != {}
    assert preset("unheard-of", "gcn") == preset("", "gcn") == preset("", "gcn", "released")


def test_the_ours_variant_has_settings_for_any_graph():
    assert preset("unheard-of", "lgdgcn", "ours") == preset("", "lgdgcn", "ours") != {}
    assert preset("unheard-of", "lgdgcn", "released") == {}


@pytest.mark.parametrize("graph", ["cora", "lgd_syn_fac4", "unheard-of"])
def test_the_literal_space_loss_has_small_weights(graph):
    """At the text's own, 0.1 and more, the units collapse (docs/paper.md)."""
    for multi_label in (False, True):
        own = preset(graph, "lgdgcn", "paper", multi_label=multi_label)
        assert own["variant"] == "paper"
        assert 0 < own["lambda_space"] < 1e-3


def test_without_a_variant_lgd_gcn_is_ours_and_disengcn_the_papers():
    for graph in ("cora", "synthetic", ""):
        for multi_label in (False, True):
            found = preset(graph, "lgdgcn", multi_label=multi_label)
            assert found["variant"] == "ours"
            assert found == preset(graph, "lgdgcn", "ours", multi_label=multi_label)
    assert preset("synthetic", "disengcn") == preset("synthetic", "disengcn", "paper") != {}


def test_label_sets_have_settings_of_their_own_where_the_graph_has_none():
    single, multi = (preset("", "lgdgcn", multi_label=kind) for kind in (False, True))
    assert (single["encoder_channels"], multi.get("encoder_channels")) == (64, None)
    assert preset("synthetic:factors=8", "lgdgcn", multi_label=True) == multi
    for graph in ("cora", "lgd_syn_fac4"):  # the graph's own file comes first
        assert preset(graph, "lgdgcn", multi_label=True) == preset(graph, "lgdgcn") != multi
    for model in ("gcn", "mlp"):
        assert preset("", model, multi_label=True) == preset("", model) != {}


def test_where_presets_of_label_sets_are_looked_for():
    assert preset_names("mine", "lgdgcn", "ours", multi_label=True) == [
        f"{file}lgdgcn{ending}"
        for file in ("mine-", "")
        for ending in ("-ours-multilabel", "-ours", "-multilabel", "")
    ]


def test_no_preset():
    assert preset("no-such-graph", "no-such-model") == {}


def test_preset_note():
    assert "one layer" in preset_note("synthetic", "gcn")
    assert preset_note("cora", "gcn") is None
    assert preset_note("", "lgdgcn") is None


# Scaling


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([{}], "none"),
        ([{"normalize_features": True}], "rows"),
        ([{"normalize_features": True}, {"scaling": "auto"}], "auto"),
        ([{"normalize_features": True}, {"scaling": "none"}], "none"),
        ([{"scaling": "auto"}, {"normalize_features": True}], "rows"),
        ([{"scaling": "auto"}, {"normalize_features": False}], "none"),
        ([{"scaling": "standard"}, {"lr": 0.1}], "standard"),
        ([Settings(normalize_features=True).as_dict()], "rows"),
        ([Settings(scaling="auto").as_dict(), {"factors": 2}], "auto"),
    ],
)
def test_of_two_settings_for_scaling_the_later_wins(layers, expected):
    assert resolve(*layers).feature_scaling == expected


def test_only_graphs_without_presets_are_scaled_by_what_they_are():
    assert auto_scaling("") == auto_scaling("amazon_photo") == {"scaling": "auto"}
    for graph in ("cora", "Cora", "synthetic", "synthetic:factors=8", "lgd_syn_fac4"):
        assert auto_scaling(graph) == {}
