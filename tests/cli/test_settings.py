import dataclasses

from rich.console import Console

from cli.runner import call, rows, widest_table
from lgdgcn.cli import console
from lgdgcn.config import Settings


def test_every_setting_is_listed():
    outcome = call("settings")
    assert outcome.code == 0
    keys = [line.split()[0] for line in outcome.out.splitlines() if line.strip()]
    assert {field.name for field in dataclasses.fields(Settings)} <= set(keys)
    assert "knn, cknn" in outcome.out
    assert rows(outcome.out)["variant"][0] == "ours"  # as train has it


def test_in_a_pipe_they_fit_80_columns():
    text = call("settings").out
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_on_a_terminal_only_their_meaning_is_wrapped(monkeypatch):
    monkeypatch.setattr(console, "out", Console(highlight=False, width=80))
    text = call("settings").out
    assert widest_table(text) <= 80
    assert {field.name for field in dataclasses.fields(Settings)} <= rows(text).keys()
    assert "…" not in text
