"""No option is accepted that would have no effect: the error names it, and what speaks against."""

from pathlib import Path

import pytest
import typer

from commands.conftest import write_graph
from commands.runner import GRAPH, call, content, train
from commands.test_train_edges import untyped  # noqa: F401 - a fixture
from lgdgcn.cli import app
from lgdgcn.commands.options import _OF_EDGES
from lgdgcn.config import from_toml

_TOP = typer.main.get_command(app).commands
VERBS = {(name,): verb for name, verb in _TOP.items() if name != "data"}
VERBS |= {("data", name): verb for name, verb in _TOP["data"].commands.items()}
OPTIONS = [
    (verb, param)
    for verb, command in VERBS.items()
    for param in command.params
    if param.param_type_name == "option" and not param.is_eager
]
OF_NODES = [param for verb, param in OPTIONS if verb == ("train",) and param.name not in _OF_EDGES]


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
def test_what_is_of_nodes_is_refused_with_edges(tmp_path, param):
    outcome = call("train", GRAPH, "--task", "edges", "--out", tmp_path / "run", *given(param))
    outcome.refused(f"{param.opts[0]} is of --task nodes; leave it out with --task edges")
    assert not content(tmp_path)


FOREIGN, IDLE = "leave it out", "is used only with"
REFUSED = [
    # two that say the same, or nothing
    (["--epochs", 3, "--set", "epochs=5"], ["--epochs 3 and --set epochs=5", "leave out one"]),
    (["--layers", 1, "--set", "num_layers=1"], ["--layers 1 and --set num_layers=1"]),
    (["--variant", "paper", "--set", "variant=sharp"], ["--variant paper and --set variant"]),
    (["--set", "lr=1", "--set", "lr=2"], ["lr is set twice, to 1 and to 2; leave out one"]),
    (
        ["--set", "scaling=standard", "--set", "normalize_features=true"],
        ["normalize_features = true means scaling = rows, and scaling is standard"],
    ),
    (["--factors", "auto", "--set", "free_share=0.2"], ["factors = auto finds free_share, too"]),
    (["--compare", ",,"], ["--compare ',,' names no model"]),
    (["--compare", ""], ["--compare '' names no model"]),
    (["--compare", "gcn,mlp,gcn"], ["--compare names gcn twice"]),
    (["--features", " ,"], ["--features names nothing"]),
    # settings of other models and variants
    (["--model", "gcn", "--factors", 5], ["factors", "lgdgcn and disengcn, not of gcn", FOREIGN]),
    (["--model", "gcn", "--set", "lambda_space=0.1"], ["lambda_space", "lgdgcn, not of gcn"]),
    (["--model", "mlp", "--set", "heads=4"], ["heads is a setting of gat, not of mlp"]),
    (["--model", "gcn", "--variant", "paper"], ["variant", "lgdgcn and disengcn, not of gcn"]),
    (["--model", "grand", "--layers", 2], ["num_layers", "not of grand"]),
    (["--model", "grand", "--batch-size", 0], ["batch_size", "lgdgcn-sharp, not of grand"]),
    (["--model", "disengcn", "--set", "k=3"], ["k is a setting of lgdgcn, not of disengcn"]),
    (["--variant", "paper", "--set", "views=2"], ["views", "grand, not of lgdgcn-paper"]),
    (["--model", "disengcn", "--set", "views=2"], ["views", "grand, not of disengcn-paper"]),
    (["--set", "heads=8"], ["heads is a setting of gat, not of lgdgcn"]),
    # settings of a part that is not there
    (["--set", "k=8"], ["k", IDLE, "latent_graph = true; set that, too, or leave k out"]),
    (["--set", "lambda_space=0.1"], ["lambda_space", IDLE, "space = true"]),
    (["--set", "fan_out=4"], ["fan_out", IDLE, "batch_size > 0"]),
    (["--set", "hops=4", "--set", "encoder_layers=2"], ["hops", IDLE, "encoder_channels > 0"]),
    # what the graph leaves no room for
    (["--root", "."], ["--root is a folder of data sets", "is generated"]),
    (["--label", "y"], ["'y' is named", "is a data set"]),
    (["--budget", "5s", "--variant", "paper"], ["--budget 5s has nothing to choose from"]),
    (["--task", "links"], ["--task is 'links'", "nodes or edges"]),
    # of edges
    (["--task", "edges", "--device", "banana"], ["device is 'banana'", "use auto, cpu"]),
    (["--task", "edges", "--root", "/nope"], ["--root is a folder of data sets", "generated"]),
    (["--task", "edges", "--split", "random"], ["--split random", "--task nodes"]),
]


@pytest.mark.parametrize(("args", "words"), REFUSED, ids=lambda one: " ".join(map(str, one))[:60])
def test_training_refuses_what_it_would_not_use(tmp_path, monkeypatch, args, words):
    monkeypatch.chdir(tmp_path)
    call("train", GRAPH, *args, "--out", "run").refused(*words)
    assert not content(tmp_path)


def test_a_baseline_may_have_any_width(tmp_path):
    """The factors, which it does not have, need not divide it."""
    args = ["--model", "gcn", "--layers", 2, "--set", "hidden_channels=9"]
    assert train(tmp_path / "run", *args, epochs=1).code == 0
    assert from_toml(tmp_path / "run/config.toml")["hidden_channels"] == 9


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


def test_what_is_true_anyway_may_be_said(untyped, tmp_path):  # noqa: F811
    _, run, _ = untyped
    for device in ("cpu", "auto"):
        assert call("explain", run, "--device", device).code == 0
        out = ["--out", tmp_path / "edges.csv"]
        assert call("predict", run, "--edges", *out, "--device", device).code == 0


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        (["explain"], []),
        (["explore"], []),
        (["predict", "--edges"], []),
    ],
    ids=" ".join,
)
def test_reasons_of_edges_are_of_the_cpu(untyped, verb, words, monkeypatch):  # noqa: F811
    _, run, _ = untyped
    call(*verb, run, "--device", "banana").refused("device is 'banana'")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    call(*verb, run, "--device", "cuda").refused("device is 'cuda', but reasons of edges", "CPU")


def test_a_page_of_edges_has_no_part_to_choose(untyped):  # noqa: F811
    for args in (["--node", "n3"], ["--label", "a"], ["--hops", 2]):
        call("explore", untyped[1], *args).refused(
            f"{args[0]} is for runs of nodes", "--task edges"
        )


def test_hops_need_a_node(finished):
    call("explore", finished[0], "--hops", 3).refused("--hops", "add --node, or leave it out")


def test_packing(tmp_path):
    folder, out = write_graph(tmp_path / "graph"), ["--out", tmp_path / "graph.lgd"]
    call("data", "pack", folder, *out, "--split", "random").refused("--split random is for named")
    call("data", "pack", folder, *out, "--ignore", "f1", "--like", "run").refused("--like reads")
    call("data", "pack", folder, *out, "--ignore", "f1", "--ignore", "f2", "--ignore", "f3",
         "--half").refused("--half is for dense features")  # fmt: skip
    assert not (tmp_path / "graph.lgd").exists()


def test_methods_for_edges_are_of_the_cpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    call("reproduce", "edges", "--device", "cuda").refused("methods for edges are run on the CPU")
