"""The command line itself: its errors are one line each, its help comes at once."""

import os
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
import torch

from commands.runner import GRAPH, call
from lgdgcn.errors import LGDWarning, one_line
from lgdgcn.models import MODELS

LGDGCN = [sys.executable, "-m", "lgdgcn"]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LGDGCN_DATA", str(tmp_path))


def config(text: str) -> str:
    Path("settings.toml").write_text(text)
    return "settings.toml"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["train", "corra"], "did you mean 'cora'"),
        (["train", "nowhere/"], "nowhere does not exist"),
        (["train", "karate_club"], "karate_club.npz"),
        (["train", "cora", "--root", "nowhere"], "nowhere' is not a folder"),
        (["train", GRAPH, "--split", "odd"], "split is 'odd'"),
        (["train", GRAPH, "--model", "gnc"], "model is 'gnc'"),
        (["train", GRAPH, "--compare", "gcn,gnc"], "model is 'gnc'"),
        (["train", GRAPH, "--variant", "other"], "variant is 'other'"),
        (["train", GRAPH, "--seeds", "0"], "--seeds is 0"),
        (["train", GRAPH, "--set", "lamda_space=1"], "lamda_space: did you mean lambda_space?"),
        (["train", GRAPH, "--set", "lr"], "'lr'; write key=value"),
        (["train", GRAPH, "--set", "lr=fast"], "lr is 'fast'; it must be a number"),
        (["train", GRAPH, "--set", "lr=nan"], "lr is nan"),
        (["train", GRAPH, "--set", "dropout=1"], "dropout is 1.0; it must be below 1"),
        (
            ["train", GRAPH, "--set", "hidden_channels=9", "--set", "factors=4"],
            "hidden_channels is 9, which 4 factors",
        ),
        (["train", GRAPH, "--config", "none.toml"], "none.toml: no such file"),
        (["train", GRAPH, "--config", "."], "not a TOML file"),
        (["train", GRAPH, "--device", "gpu"], "device is 'gpu'"),
        (["train", GRAPH, "--device", "mps"], "device is 'mps'"),
        (["train", GRAPH, "--device", "cuda:99"], "device is 'cuda:99', but torch sees"),
        (["predict", "nowhere", "--out", "p.csv"], "nowhere holds no finished run"),
        (["predict", "nowhere"], "--out"),
        (["data", "info", "corra"], "did you mean 'cora'"),
        (["data", "get", "synthetic"], "nothing to get"),
        (["data", "get", "flickr"], "flickr.npz"),
        (["train", GRAPH, "--sead", "1"], "--sead"),
        (["train", GRAPH, "--seeds", "many"], "'--seeds'"),
        (["train", GRAPH, "more"], "more"),
        (["trian"], "trian"),
    ],
    ids=lambda value: " ".join(value).replace(GRAPH, "G") if isinstance(value, list) else "",
)
def test_a_users_error_is_one_line(args, words):
    outcome = call(*args)
    assert outcome.refused(words)
    assert outcome.out == ""
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lr = 0.1\nlamda_space = 1", "unknown key lamda_space: did you mean lambda_space?"),
        ("[settings]\nk = 0", "k is 0; it must be at least 1"),
        ("settings = 3", "settings must be a table"),
        ("[settings]\nlr = 1\n[run]\n[trainig]\nk = 1", "unknown table [trainig]"),
        ("lr = ", "not a TOML file"),
    ],
)
def test_a_wrong_configuration_file(text, words):
    call("train", GRAPH, "--config", config(text)).refused(words)


def test_what_is_set_wins_over_the_file():
    args = ["train", GRAPH, "--set", "epochs=1", "--out", "run"]
    file = config('variant = "released"\nhidden_channels = 12\nlr = 0.5')
    assert call(*args, "--config", file, "--set", "lr=0.25", "--variant", "paper").code == 0
    used = tomllib.loads(Path("run/config.toml").read_text())["settings"]
    assert (used["hidden_channels"], used["lr"], used["variant"]) == (12, 0.25, "paper")


def settings_used():
    return tomllib.loads(Path("run/config.toml").read_text())["settings"]


def test_the_commonest_settings_have_options_of_their_own():
    options = ["--epochs", 2, "--lr", 0.0625, "--factors", 2, "--layers", 2]
    args = ["train", GRAPH, "--variant", "paper", "--set", "hidden_channels=8"]
    assert call(*args, *options, "--out", "run").code == 0
    wanted = {"epochs": 2, "lr": 0.0625, "factors": 2, "num_layers": 2, "hidden_channels": 8}
    assert settings_used().items() >= wanted.items()
    call(*args, "--factors", "many").refused("factors is 'many'; it must be a whole number or auto")
    call(*args, "--lr", "nan").refused("lr is nan; it must be a finite number")


def test_the_width_follows_the_factors():
    args = ["train", GRAPH, "--epochs", 1, "--factors", 5, "--out", "run"]
    outcome = call(*args)
    said = "lgdgcn: warning: hidden_channels is 65 instead of 64, which 5 factors do not divide\n"
    assert (outcome.code, outcome.err) == (0, said)
    assert settings_used()["hidden_channels"] == 65
    assert call(*args, "--resume").code == 0  # the same settings
    call(*args[:-1], "other", "--set", "hidden_channels=64").refused("64, which 5 factors do not")


def test_the_help_names_every_model():
    said = call("train", "--help").out
    assert [name for name in MODELS if name not in said] == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there():
    call("train", GRAPH, "--device", "cuda").refused("device is 'cuda', but torch sees 0 GPUs")


def test_an_internal_error_is_one_line_too(monkeypatch):
    def fail():
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("lgdgcn.commands.data.list_sets", fail)
    call("data", "list").refused("internal error: RuntimeError: two lines", code=1)
    monkeypatch.setenv("LGDGCN_DEBUG", "1")
    with pytest.raises(RuntimeError):
        call("data", "list")


@pytest.mark.parametrize("filler", ["x", "x ", "x\n", "\x1b[31m", "ü", "\udc80"], ids=ascii)
def test_a_message_of_any_length_is_one_short_line(filler):
    """What is wrong and what to do are kept, whatever was found."""
    wrong = call("train", GRAPH, "--set", f"lr={filler * 5000}")
    assert wrong.refused("lr is '", "it must be a number")
    name = filler * 5000
    paths = [["train", name], ["train", f"{name}/"], ["predict", "--out", "p", name]]
    paths += [["train", GRAPH, "--out", name], ["train", GRAPH, "--config", name]]
    for outcome in (wrong, *(call(*args) for args in paths)):
        assert outcome.refused()
        assert len(outcome.err) < 600
        assert outcome.err.removesuffix("\n").isprintable()


def test_a_warning_is_a_short_line_too(capsys):
    from lgdgcn.cli import _show_warning

    _show_warning(LGDWarning("cut " + "x " * 5000 + "\nhere and here"), LGDWarning)
    line = capsys.readouterr().err
    assert line.startswith("lgdgcn: warning: cut x x")
    assert line.endswith("x  here and here\n")
    assert len(line) < 600


def test_one_line_keeps_start_and_end():
    assert one_line("short") == "short"
    value = one_line(f"lr is {'9' * 2000}; give " + "one of these " * 20)
    assert re.fullmatch(r"lr is 9{43}\.\.\.9{42}; give (one of these ){20}", value)
    both = one_line("a " * 400 + "z " * 400)
    assert both.startswith("a a ")
    assert both.endswith("z z ")
    assert len(both) < 600
    assert one_line("tab\tbell\a\u2028") == r"tab\tbell\x07"


def test_a_full_device_is_no_internal_error(monkeypatch):
    def fail():
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 20 GiB")

    monkeypatch.setattr("lgdgcn.commands.data.list_sets", fail)
    call("data", "list").refused("ran out of memory", "lower hidden_channels")


def test_a_warning_is_shown_once(monkeypatch):
    def warn():
        for message in ("first", "second", "first"):
            warnings.warn(message, LGDWarning, stacklevel=1)
            with warnings.catch_warnings():  # as libraries do; Python then forgets what it showed
                warnings.simplefilter("ignore")

    monkeypatch.setattr("lgdgcn.commands.data.list_sets", warn)
    for _ in range(2):
        said = call("data", "list").err
        assert said == "lgdgcn: warning: first\nlgdgcn: warning: second\n"


def test_interrupted_before_there_is_anything_to_save(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("lgdgcn.commands.data.list_sets", interrupt)
    outcome = call("data", "list")
    assert (outcome.code, outcome.err) == (130, "")


# Help


@pytest.mark.parametrize(
    "verb",
    [
        ["train"],
        ["predict"],
        ["measure"],
        ["explain"],
        ["data", "list"],
        ["data", "info"],
        ["data", "get"],
    ],
    ids=" ".join,
)
def test_help_shows_an_example(verb):
    outcome = call(*verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    _, _, after = outcome.out.partition("Example")
    assert f"lgdgcn {' '.join(verb)}" in after


@pytest.mark.parametrize("args", [["--help"], ["-h"]])
def test_help_names_every_verb(args):
    outcome = call(*args)
    assert (outcome.code, outcome.err) == (0, "")
    assert all(verb in outcome.out for verb in ("train", "predict", "data"))


@pytest.mark.parametrize("args", [[], ["data"]])
def test_no_verb_shows_the_help(args):
    outcome = call(*args)
    assert "Usage: lgdgcn" in outcome.out
    assert outcome.err == ""


def test_version():
    from lgdgcn import __version__

    assert call("--version") == (0, f"lgdgcn {__version__}\n", "")


def test_help_imports_nothing_heavy():
    report = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lgdgcn", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in report.stderr.splitlines()
    }
    assert "typer" in names
    assert not names & {"torch", "numpy", "scipy", "numba", "sklearn", "matplotlib"}


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{' '.join(LGDGCN)} data list | head -1"
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=env, timeout=120)
    assert done.stdout.strip() == "Data sets"
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_output_that_cannot_be_written_is_one_line():
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [*LGDGCN, "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(
        "lgdgcn: cannot write the output: No space left"
    )
