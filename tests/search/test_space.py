"""Search spaces: the shipped ones are sound, and every wrong file is told what is wrong with it."""

from pathlib import Path

import optuna
import pytest

import lgdgcn
from lgdgcn.config import MODEL_NAMES, model_and_variant, preset
from lgdgcn.errors import InputError
from lgdgcn.models import build
from lgdgcn.search.space import Space, default_space, read_space, space_of
from search.problems import space_with

SPACES = sorted((Path(lgdgcn.__file__).parent / "search" / "spaces").glob("*.toml"))
LR = "lr = {low = 0.001, high = 0.1, log = true}\n"


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.stem)
def test_shipped_spaces(path):
    space = read_space(path)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(20):
        params = study.ask(space.ranges).params
        settings = space.settings_of(params)
        assert all(getattr(settings, name) == params[name] for name in params)
        build(path.stem.partition("-")[0], settings.as_dict(), 5, 2)
    for start in space.starts:
        assert space.inside(start) == start


@pytest.mark.parametrize("graph", ["cora", "synthetic", ""])
@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_model_has_one_and_can_try_its_shipped_settings_first(name, graph):
    model, variant = model_and_variant(name)
    space = default_space(model, graph == "synthetic", variant)
    start = space.inside(preset(graph, model, variant))
    assert set(start) <= set(space.ranges)
    space.settings_of(start)


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
        [settings]
        epochs = 7
        [[starts]]
        lr = 0.1
        dropout = 0.6
        [[starts]]
        k = 9
        """,
    )
    kind = optuna.distributions
    assert space.ranges == {
        "lr": kind.FloatDistribution(0.001, 0.1, log=True),
        "dropout": kind.FloatDistribution(0.0, 0.8, step=0.2),
        "k": kind.IntDistribution(1, 9, step=2),
        "factors": kind.IntDistribution(1, 16, log=True),
        "graph": kind.CategoricalDistribution(["knn", "cknn"]),
    }
    assert space.settings == {"epochs": 7}
    assert space.starts == ({"lr": 0.1, "dropout": 0.6}, {"k": 9})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no [space] with settings to search, such as lr = {low"),
        (f"[spaces]\n{LR}", "unknown table spaces; use space, settings and starts"),
        ("[space]\nlamda_div = {low = 0, high = 1}", "did you mean lambda_div?"),
        (f"[space]\n{LR}[settings]\nepoch = 3", "unknown key epoch: did you mean epochs?"),
        (f"[space]\n{LR}[settings]\nlr = 0.1", "lr is in space and in settings; leave it out"),
        (f"[space]\n{LR}[settings]\nfactors = 'auto'", "which a search does not know"),
        (f"[space]\n{LR}[settings]\nvariant = 'paper'", "choose it with --model"),
        (f"settings = 3\n[space]\n{LR}", "settings must be a table"),
        ("[space]\nlr = 0.1", "lr is 0.1; write {low = …, high = …}"),
        ("[space]\nlr = {low = 0.1, high = 1, top = 1}", "'top': 1}; write {low"),
        ("[space]\nlr = {low = 0.1}", "lr is {'low': 0.1}; write {low"),
        ("[space]\nlr = {low = 0.2, high = 0.1}", "lr: `low <= high` must hold"),
        ("[space]\nlr = {low = 0.1, high = inf}", "lr is inf; it must be a finite number"),
        ("[space]\ndropout = {low = 0, high = 0.5, log = true}", "dropout: `low > 0` must hold"),
        ("[space]\nlr = {low = 0.1, high = 1, log = 'yes'}", "log is 'yes'; write true or false"),
        ("[space]\nlr = {low = 0.1, high = 1, log = true, step = 0.1}", "lr: The parameter `step`"),
        ("[space]\nk = {low = 1, high = 9, step = 0.5}", "'step': 0.5}; write {low"),
        ("[space]\ngraph = {low = 0, high = 1}", "graph is 0; it must be a word"),
        ("[space]\nlr = {choices = []}", "lr: The `choices` must contain one or more"),
        ("[space]\nlr = {choices = 0.1}", "lr is {'choices': 0.1}; write"),
        ("[space]\ngraph = {choices = ['knn', 'nn']}", "graph is 'nn'; choose from knn, cknn"),
        ("[space]\nvariant = {choices = ['paper']}", "variant is part of the model"),
        ("[space]\nmetric = {choices = ['accuracy']}", "metric cannot be searched"),
        (f"starts = [0.01]\n[space]\n{LR}", "starts must be tables, written [[starts]]"),
        (f"[space]\n{LR}[[starts]]\nk = 3", "starts names k, which is not searched"),
        (f"[space]\n{LR}[[starts]]\nlr = 0.2", "starts has lr = 0.2, which {'low'"),
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

GIVEN = {"lr": {"low": 0.001, "high": 0.1}, "factors": {"choices": [6, 12]}}


def test_what_is_given_is_not_searched():
    space = Space(space_with(GIVEN).ranges, {"hidden_channels": 90}, ({"factors": 6, "lr": 0.01},))
    fixed = space.fixing({"factors": 9, "hidden_channels": 27})
    assert [*fixed.ranges] == ["lr"]
    assert fixed.settings == {"factors": 9, "hidden_channels": 27}
    assert fixed.starts == ({"lr": 0.01},)
    assert space.fixing({}) == space
    assert space.fixing({"factors": 7}).settings_of({}).hidden_channels == 91
    for given, words in [
        ({"factors": "six"}, "must be a whole number"),
        ({"factors": "auto"}, "a search does not know; give numbers"),
        ({"factors": 4, "hidden_channels": 90}, "4 factors do not divide"),
        ({"factors": 6, "lr": 0.1}, "nothing to search"),
        ({"checkpoint_every": 3}, "a search keeps none"),
    ]:
        with pytest.raises(InputError, match=words):
            space.fixing(given)


def test_settings_stand_on_the_models_preset_for_any_graph():
    shipped = preset("", "appnp")
    file = space_with({"lr": {"low": 0.01, "high": 0.3}}, propagation=3)
    known = space_of("appnp", None, "cora", {}, file)
    assert known.settings == {k: v for k, v in {**shipped, "propagation": 3}.items() if k != "lr"}
    unknown = space_of("appnp", None, "", {}, file)
    assert unknown.settings["scaling"] == "auto"
    assert "scaling" not in space_of("appnp", None, "", {"normalize_features": True}).settings
    ours = space_of("lgdgcn", "ours", "", {"tau": 0.2, "factors": 3}, multi_label=True)
    assert ours.settings.items() >= {"tau": 0.2, "factors": 3, "variant": "ours"}.items()
    assert "lambda_edge" in ours.ranges
    assert ours.settings_of({}).hidden_channels == 63  # the nearest multiple
    for given, words in [
        ({"heads": 2}, "heads is a setting of gat, not of lgdgcn; leave it out"),
        ({"k": 3}, "k is used only with latent_graph = true"),
    ]:
        with pytest.raises(InputError, match=words):
            space_of("lgdgcn", "ours", "", given)


def test_settings_are_brought_inside():
    space = space_with(
        {
            "lr": {"low": 0.01, "high": 0.1, "log": True},
            "k": {"low": 2, "high": 8, "step": 3},
            "graph": {"choices": ["knn"]},
        }
    )
    assert space.inside({}) == {}
    assert space.inside({"lr": 0.05, "tau": 3.0, "graph": "knn"}) == {"lr": 0.05, "graph": "knn"}
    assert space.inside({"lr": 0.5, "k": 1}) == {"lr": 0.1, "k": 2}  # the nearest end
    assert space.inside({"k": 3, "graph": "cknn"}) == {}  # nothing is near
