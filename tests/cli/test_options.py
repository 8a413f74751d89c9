"""No option is accepted that would have no effect: the error names it, and what speaks against."""

from pathlib import Path

import pytest
import typer

from cli.edge_graph import write
from cli.runner import GRAPH, call, content, train
from lgdgcn.cli import app
from lgdgcn.cli.options import assigned, features_of
from lgdgcn.cli.train import WITHOUT_LABELS
from lgdgcn.config import from_toml
from lgdgcn.errors import InputError

_TOP = typer.main.get_command(app).commands
VERBS = {(name,): verb for name, verb in _TOP.items() if name != "data"}
VERBS |= {("data", name): verb for name, verb in _TOP["data"].commands.items()}
OPTIONS = [
    (verb, param)
    for verb, command in VERBS.items()
    for param in command.params
    if param.param_type_name == "option" and not param.is_eager
]
OF_NODES = [
    param for verb, param in OPTIONS if verb == ("train",) and param.name not in WITHOUT_LABELS
]


def given(param):
    """An option with what it needs behind it; 1 is a value for all but a few of them."""
    return [param.opts[0], *([] if param.is_flag else ["1"] * param.nargs)]


@pytest.mark.parametrize(
    ("verb", "param"),
    [one for one in OPTIONS if not one[1].multiple],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value.opts[0],
)
def test_an_option_is_given_once(verb, param):
    name = param.opts[0]
    needed = [str(one.name) for one in VERBS[verb].params if one.required]
    call(*verb, *needed, *given(param) * 2).refused(f"{name} is given 2 times; leave out all but")


@pytest.mark.parametrize("param", OF_NODES, ids=lambda param: param.opts[0])
def test_without_labels_what_is_about_labels_is_refused(tmp_path, param):
    graph = write(tmp_path / "graph", pairs=10)
    before = content(tmp_path)
    outcome = call("train", graph, "--out", tmp_path / "run", *given(param))
    assert outcome.code == 2, outcome
    assert content(tmp_path) == before


def test_options_and_settings_together():
    given = assigned(["dropout=0.1", "space=true"], epochs=3, factors="auto", metric=None)
    assert given == {"dropout": 0.1, "space": True, "epochs": 3, "factors": "auto"}
    with pytest.raises(InputError, match="--batch-size 3 and --set batch_size=4 are one setting"):
        assigned(["batch_size=4"], batch_size=3)
    assert features_of([" degree", "text:a"]) == " degree,text:a"


def test_a_baseline_may_have_any_width(tmp_path):
    """The factors, which it does not have, need not divide it."""
    args = ["--model", "gcn", "--set", "num_layers=2", "--set", "hidden_channels=9"]
    assert train(tmp_path / "run", *args, epochs=1).code == 0
    assert from_toml(tmp_path / "run/config.toml")["hidden_channels"] == 9


def test_what_is_set_wins_over_the_file_and_the_width_follows_the_factors(tmp_path):
    (tmp_path / "mine.toml").write_text("hidden_channels = 12\nlr = 0.5")
    args = ["train", GRAPH, "--epochs", 1, "--config", tmp_path / "mine.toml"]
    assert call(*args, "--set", "lr=0.25", "--out", tmp_path / "run").code == 0
    used = from_toml(tmp_path / "run/config.toml")
    assert (used["hidden_channels"], used["lr"], used["epochs"]) == (12, 0.25, 1)
    wide = ["train", GRAPH, "--epochs", 1, "--factors", 5, "--out", tmp_path / "wide"]
    outcome = call(*wide)
    said = "lgdgcn: warning: hidden_channels is 65 instead of 64, which 5 factors do not divide\n"
    assert (outcome.code, outcome.err) == (0, said)
    assert from_toml(tmp_path / "wide/config.toml")["hidden_channels"] == 65
    assert call(*wide, "--resume").code == 0  # the same settings


def test_the_settings_of_a_run_train_it_again_and_no_other_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for model in ("gcn", "grand", "lgdgcn"):
        assert train(Path(model), "--model", model, epochs=1).code == 0
        again = ["--model", model, "--config", f"{model}/config.toml"]
        assert call("train", GRAPH, *again, "--out", f"{model} again").code == 0
        same = [from_toml(Path(run) / "config.toml") for run in (model, f"{model} again")]
        assert same[0] == same[1]
    other = ["--model", "gcn", "--config", "lgdgcn/config.toml", "--out", "other"]
    call("train", GRAPH, *other).refused("is a setting of lgdgcn and disengcn, not of gcn")
    own = ["--config", "lgdgcn/config.toml", "--out", "other"]  # which says latent_graph = false
    call("train", GRAPH, *own, "--set", "k=8").refused("k is used only with latent_graph = true")
    assert call("train", GRAPH, *own, "--set", "latent_graph=true", "--set", "k=8").code == 0


def test_what_is_true_anyway_may_be_said(untyped, tmp_path):
    _, run, _ = untyped
    for device in ("cpu", "auto"):
        assert call("explain", run, "--device", device).code == 0
        out = ["--out", tmp_path / "edges.csv"]
        assert call("predict", run, *out, "--device", device).code == 0


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        (["explain"], []),
        (["explore"], []),
        (["predict"], []),
    ],
    ids=" ".join,
)
def test_reasons_of_edges_are_of_the_cpu(untyped, verb, words, monkeypatch):
    _, run, _ = untyped
    call(*verb, run, "--device", "banana").refused("device is 'banana'")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    call(*verb, run, "--device", "cuda").refused("device is 'cuda', but reasons of edges", "CPU")
