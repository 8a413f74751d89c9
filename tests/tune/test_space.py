"""Search spaces: the shipped ones are sound, and every wrong file is told what is wrong with it."""

import tomllib
from pathlib import Path

import optuna
import pytest

import lgdgcn
from lgdgcn.config import Settings, preset, resolve
from lgdgcn.errors import InputError
from lgdgcn.models import MODELS, build
from lgdgcn.search.space import Space, default_space, read_space

SPACES = sorted((Path(lgdgcn.__file__).parent / "search" / "spaces").glob("*.toml"))
LR = "lr = {low = 0.001, high = 0.1, log = true}\n"


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_shipped_spaces(path):
    space = read_space(path)
    kinds = space.distributions()
    assert set(kinds) == set(tomllib.loads(path.read_text())["space"])
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    for _ in range(20):
        params = study.ask(kinds).params
        settings = space.settings_of(params)
        assert all(getattr(settings, name) == params[name] for name in params)
        build(path.stem.partition("-")[0], settings.as_dict(), 5, 2)
    for start in space.starts:
        assert space.inside(start) == start
        space.settings_of(start)


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_every_model_has_one(model, multi_label):
    space = default_space(model, multi_label)
    file = f"{model}-multilabel" if multi_label else model
    own = [path for path in SPACES if path.stem == file]
    assert space == read_space(own[0] if own else SPACES[0].with_stem(model))


@pytest.mark.parametrize("graph", ["cora", "citeseer", "pubmed", "synthetic", ""])
@pytest.mark.parametrize("model", MODELS)
def test_shipped_settings_can_be_tried_first(model, graph):
    space = default_space(model, graph == "synthetic")
    start = space.inside(preset(graph, model, "paper"))
    assert set(start) <= set(space.ranges)
    space.settings_of(start)


def test_no_space():
    with pytest.raises(InputError, match=r"'transformer', which has no search space; .* --space"):
        default_space("transformer", False)


# Files


def read(tmp_path, text):
    path = tmp_path / "space.toml"
    path.write_text(text, encoding="utf-8")
    return read_space(path)


def test_a_file(tmp_path):
    space = read(
        tmp_path,
        f"""[space]
        {LR}
        dropout = {{low = 0, high = 0.8, step = 0.2}}
        k = {{low = 1, high = 9, step = 2}}
        factors = {{low = 1, high = 16, log = true}}
        graph = {{choices = ["knn", "cknn"]}}
        space = {{choices = [true, false]}}
        hidden_channels = {{choices = [33]}}
        [settings]
        epochs = 7
        [[starts]]
        lr = 0.1
        dropout = 0.6
        [[starts]]
        k = 9
        graph = "cknn"
        """,
    )
    kind = optuna.distributions
    assert space.distributions() == {
        "lr": kind.FloatDistribution(0.001, 0.1, log=True),
        "dropout": kind.FloatDistribution(0.0, 0.8, step=0.2),
        "k": kind.IntDistribution(1, 9, step=2),
        "factors": kind.IntDistribution(1, 16, log=True),
        "graph": kind.CategoricalDistribution(["knn", "cknn"]),
        "space": kind.CategoricalDistribution([True, False]),
        "hidden_channels": kind.CategoricalDistribution([33]),
    }
    assert space.settings == {"epochs": 7}
    assert space.starts == ({"lr": 0.1, "dropout": 0.6}, {"k": 9, "graph": "cknn"})


@pytest.mark.parametrize(
    "text",
    [
        "hidden_channels = {choices = [60, 120]}\n[settings]\nfactors = 6",
        "factors = {choices = [3, 6]}\n[settings]\nhidden_channels = 66",
        "[settings]\nfactors = 7",
    ],
)
def test_channels_need_not_be_a_multiple_of_the_factors(tmp_path, text):
    space = read(tmp_path, f"[space]\n{LR}{text}")
    assert space.settings_of({"lr": 0.01}).lr == 0.01


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no [space] with settings to search, such as lr = {low"),
        ("[space]", "no [space]"),
        ("space = 3", "no [space]"),
        (f"[spaces]\n{LR}", "unknown table spaces; use space, settings and starts"),
        (LR, "unknown table lr"),
        ("[space]\nlearning_rate = {low = 0, high = 1}", "unknown key learning_rate"),
        ("[space]\nlamda_div = {low = 0, high = 1}", "did you mean lambda_div?"),
        (f"[space]\n{LR}[settings]\nepoch = 3", "unknown key epoch: did you mean epochs?"),
        (f"[space]\n{LR}[settings]\nepochs = 0", "epochs is 0; it must be at least 1"),
        (f"[space]\n{LR}[settings]\nfactors = 0", "factors is 0; it must be at least 1"),
        (f"[space]\n{LR}[settings]\nfactors = '2'", "factors is '2'; it must be a whole number"),
        (f"[space]\n{LR}[settings]\nlr = 0.1", "lr is in space and in settings; leave it out"),
        (f"settings = 3\n[space]\n{LR}", "settings must be a table"),
        ("[space]\nlr = 0.1", "lr is 0.1; write {low = …, high = …} or {choices = […]}"),
        ("[space]\nlr = {low = 0, top = 1}", "lr is {'low': 0, 'top': 1}; write"),
        ("[space]\nlr = {low = 0.1}", "lr needs low and high, or choices"),
        ("[space]\nlr = {low = 'a', high = 1}", "lr: low and high must be numbers"),
        ("[space]\nlr = {low = true, high = 1}", "lr: low and high must be numbers"),
        ("[space]\nlr = {low = 0.2, high = 0.1}", "lr goes from 0.2 to 0.1; low must not be above"),
        ("[space]\nlr = {low = nan, high = 0.1}", "lr goes from nan to 0.1"),
        ("[space]\nlr = {low = 0.1, high = inf}", "lr is inf; it must be a finite number"),
        ("[space]\nlr = {low = 0, high = 0.1}", "lr is 0.0; it must be above 0"),
        ("[space]\ndropout = {low = 0, high = 1}", "dropout is 1.0; it must be below 1"),
        ("[space]\ndropout = {low = 0, high = 0.5, log = true}", "low must be above 0, not 0"),
        ("[space]\nlr = {low = 0.1, high = 1, log = 'yes'}", "log is 'yes'; write true or false"),
        ("[space]\nlr = {low = 0.1, high = 1, log = true, step = 0.1}", "has log and step"),
        ("[space]\nlr = {low = 0.1, high = 1, step = 0}", "step is 0; give a number above 0"),
        ("[space]\nlr = {low = 0.1, high = 1, step = inf}", "step is inf; give a number above 0"),
        ("[space]\nk = {low = 1, high = 9, step = 0.5}", "step is 0.5; give a whole number"),
        ("[space]\nk = {low = 1.0, high = 9}", "k is 1.0; it must be a whole number"),
        ("[space]\nk = {low = 0, high = 9}", "k is 0; it must be at least 1"),
        ("[space]\ngraph = {low = 0, high = 1}", "graph is 0; it must be a word"),
        ("[space]\nlr = {choices = []}", "lr: choices must be a list, not empty"),
        ("[space]\nlr = {choices = 0.1}", "lr: choices must be a list"),
        ("[space]\nlr = {choices = [0.1], low = 0.1}", "stand alone"),
        ("[space]\ngraph = {choices = ['knn', 'nn']}", "graph is 'nn'; choose from knn, cknn"),
        ("[space]\nk = {choices = [[1]]}", "k is [1]; it must be a whole number"),
        (f"[space]\n{LR}[starts]\nlr = 0.01", "starts a list of tables"),
        (f"starts = [0.01]\n[space]\n{LR}", "starts must be tables, written [[starts]]"),
        (f"[space]\n{LR}[[starts]]\nk = 3", "starts names k, which is not searched"),
        (f"[space]\n{LR}[[starts]]\nlrr = 3", "unknown key lrr: did you mean lr?"),
        (f"[space]\n{LR}[[starts]]\nlr = 'fast'", "lr is 'fast'; it must be a number"),
        (f"[space]\n{LR}[[starts]]\nlr = 0.2", "starts has lr = 0.2, which its range {'low'"),
        ("[space]\nk = {choices = [1, 2]}\n[[starts]]\nk = 3", "{'choices': [1, 2]} lacks"),
        ("[space]\nk = {low = 1, high = 9, step = 2}\n[[starts]]\nk = 4", "starts has k = 4"),
        ("[space", "not a TOML file"),
    ],
)
def test_wrong_files(tmp_path, text, words):
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'space.toml'}: ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_no_files(tmp_path):
    with pytest.raises(InputError, match=r"absent\.toml: no such file"):
        read_space(tmp_path / "absent.toml")
    with pytest.raises(InputError, match=r"not a TOML file .*Is a directory"):
        read_space(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"binary\.toml: not a TOML file"):
        read_space(tmp_path / "binary.toml")


# What is given

GIVEN = f"[space]\n{LR}factors = {{choices = [6, 12]}}\n[settings]\nhidden_channels = 90\n"


def test_what_is_given_is_not_searched(tmp_path):
    space = read(tmp_path, GIVEN + "[[starts]]\nfactors = 6\nlr = 0.01\n[[starts]]\nfactors = 12")
    fixed = space.fixing({"factors": 9, "hidden_channels": 27})
    assert [*fixed.ranges] == ["lr"]
    assert fixed.settings == {"factors": 9, "hidden_channels": 27}
    assert fixed.starts == ({"lr": 0.01}, {})
    assert space.fixing({}) == space
    assert space.fixing({"factors": 7}).settings_of({}).hidden_channels == 91


def test_given_values_are_checked(tmp_path):
    space = read(tmp_path, GIVEN)
    for given, words in [
        ({"factors": "six"}, "must be a whole number"),
        ({"factors": "auto"}, "a search does not know; give numbers"),
        ({"hidden_channels": -2}, "hidden_channels is -2"),
        ({"factors": 4, "hidden_channels": 90}, "4 factors do not divide"),
        ({"factors": 6, "lr": 0.1}, "nothing to search"),
    ]:
        with pytest.raises(InputError, match=words):
            space.fixing(given)


# Trials


@pytest.mark.parametrize(
    ("hidden", "factors", "expected"),
    [(64, 4, 64), (64, 6, 66), (64, 7, 63), (2, 8, 8), (256, 12, 252), (5, 1, 5)],
)
def test_channels_become_the_nearest_multiple_of_the_factors(hidden, factors, expected):
    space = Space({}, {"hidden_channels": hidden, "epochs": 3})
    settings = space.settings_of({"factors": factors, "lr": 0.5})
    assert settings == resolve(
        {"hidden_channels": expected, "factors": factors, "lr": 0.5, "epochs": 3}
    )
    assert Space({}, {"factors": 5}).settings_of({}).hidden_channels == 65
    assert Space({}, {}).settings_of({}) == Settings()


def test_settings_are_brought_inside():
    ranges = {
        "lr": {"low": 0.01, "high": 0.1, "log": True},
        "k": {"low": 2, "high": 8, "step": 3},
        "graph": {"choices": ["knn"]},
        "hidden_channels": {"choices": [256, 512]},
    }
    space = Space(ranges, {})
    assert space.inside({}) == {}
    assert space.inside({"lr": 0.05, "tau": 3.0, "graph": "knn"}) == {"lr": 0.05, "graph": "knn"}
    assert space.inside({"lr": 0.5, "k": 1}) == {"lr": 0.1, "k": 2}  # the nearest end
    assert space.inside({"lr": 1e-9, "k": 99}) == {"lr": 0.01, "k": 8}
    assert space.inside({"k": 3, "graph": "cknn", "hidden_channels": 64}) == {}  # nothing is near
