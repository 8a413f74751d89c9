"""The command line itself: its errors are one line each, and what needs no graph comes at once."""

import json
import os
import re
import subprocess
import sys
import warnings

import pytest

from cli.runner import call
from lgdgcn.cli import console
from lgdgcn.errors import LGDNote, LGDWarning, one_line
from lgdgcn.models import MODELS

LGDGCN = [sys.executable, "-m", "lgdgcn"]
HEAVY = {"torch", "numpy", "scipy", "numba", "sklearn", "matplotlib", "optuna", "duckdb"}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LGDGCN_DATA", str(tmp_path))


WITHOUT_A_GRAPH = [
    (["--help"], 0),
    (["train", "--help"], 0),
    (["data", "list"], 0),
    (["train", "nothing-there/"], 2),
    (["train", "corra"], 2),
    (["train", "cora", "--set", "lamda=1"], 2),
    (["train", "cora", "--epochs", "0"], 2),
    (["train", "cora", "--seeds", "0"], 2),
    (["train", "cora", "--features", "age"], 2),
    (["tune", "cora", "--seeds", "1"], 2),
    (["predict", "nothing-there"], 2),
    (["predict", ".", "--device", "gpu"], 2),
]
IMPORTED = """
import json, sys
from lgdgcn.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        print(json.dumps([end.code or 0, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_what_needs_no_graph_imports_nothing_heavy():
    words = json.dumps([args for args, _ in WITHOUT_A_GRAPH])
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, words], capture_output=True, text=True, check=True
    )
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(reports) == len(WITHOUT_A_GRAPH)
    for (args, expected), (code, modules) in zip(WITHOUT_A_GRAPH, reports, strict=True):
        assert code == expected, args
        assert "typer" in modules
        assert not HEAVY & {*modules}, args


def test_one_line_keeps_start_and_end():
    assert one_line("short") == "short"
    value = one_line(f"lr is {'9' * 2000}; give " + "one of these " * 20)
    assert re.fullmatch(r"lr is 9{43}\.\.\.9{42}; give (one of these ){20}", value)
    both = one_line("a " * 400 + "z " * 400)
    assert both.startswith("a a ")
    assert both.endswith("z z ")
    assert len(both) < 600
    assert one_line("tab\tbell\a\u2028") == r"tab\tbell\x07"


def test_where_an_internal_error_is_from(monkeypatch):
    monkeypatch.setattr("lgdgcn.cli.data.available", None)
    call("data", "list").refused("internal error: TypeError: ", code=1)
    monkeypatch.setenv("LGDGCN_DEBUG", "1")
    with pytest.raises(TypeError):
        call("data", "list")


def test_a_warning_is_shown_once(monkeypatch):
    def warn():
        for message in ("first", "cut " + "x " * 5000 + "\nhere", "first"):
            warnings.warn(message, LGDWarning, stacklevel=1)
            with warnings.catch_warnings():  # as libraries do; Python then forgets what it showed
                warnings.simplefilter("ignore")
        return []

    monkeypatch.setattr("lgdgcn.cli.data.available", warn)
    for _ in range(2):
        first, second = call("data", "list").err.splitlines()
        assert first == "lgdgcn: warning: first"
        assert re.fullmatch("lgdgcn: warning: cut x x .{,570}  here", second)


def test_quiet_hides_notes_and_results_but_no_warnings(capsys):
    console.begin(quiet=True)
    console.say("a result")
    console.table("a table", ["a"], [["b"]])
    console.show_warning(LGDNote("a note"), LGDNote)
    console.show_warning(LGDWarning("wrong"), LGDWarning)
    console.warn("weak")
    said = capsys.readouterr()
    console.begin()
    assert (said.out, said.err) == ("", "lgdgcn: warning: wrong\nlgdgcn: warning: weak\n")


def test_json_has_standard_output_to_itself(capsys):
    console.begin(as_json=True)
    console.say("a result")
    console.as_json({"ü": 1})
    said = capsys.readouterr()
    console.begin()
    assert (said.out, said.err) == ('{\n  "ü": 1\n}\n', "a result\n")


# Help


VERBS = [
    *(
        ["train"],
        ["tune"],
        ["predict"],
        ["measure"],
        ["explain"],
        ["explore"],
        ["settings"],
        ["show"],
    ),
    *(["reproduce"], ["data", "list"], ["data", "check"], ["data", "pack"], ["data", "get"]),
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_shows_an_example(verb):
    outcome = call(*verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    _, _, after = outcome.out.partition("Examples:")
    assert f"lgdgcn {' '.join(verb)}" in after


def test_help_names_every_verb_and_model():
    for words in (["--help"], ["-h"], []):
        outcome = call(*words)
        assert outcome.err == ""
        assert all(f" {verb[0]} " in outcome.out for verb in VERBS)
    assert "Usage: lgdgcn data" in call("data").out
    said = call("train", "--help").out
    assert [name for name in MODELS if name not in said] == []


def test_how_a_graph_is_read_is_declared_once():
    panels = {
        call(*verb, "--help").out.partition("How the graph is read")[2].partition("╰")[0]
        for verb in (["train"], ["tune"], ["data", "check"], ["data", "pack"])
    }
    [panel] = panels
    assert re.findall(r"--\w+", panel) == ["--label", "--id", "--split", "--ignore", "--features"]


def test_version():
    from lgdgcn import __version__

    assert call("--version") == (0, f"lgdgcn {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "completed"),
    [("lgdgcn tr", "train"), ("lgdgcn train cite", "citeseer"), ("lgdgcn train --ep", "--epochs")],
)
def test_a_shell_completes(words, completed):
    env = {**os.environ, "_LGDGCN_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": words}
    program = "import sys; sys.argv = ['lgdgcn']; from lgdgcn.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
    )
    assert completed in done.stdout


# Whom it writes to


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{' '.join(LGDGCN)} data list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
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
