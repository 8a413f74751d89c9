"""The examples run, and are as short as examples should be."""

import runpy
import subprocess
from pathlib import Path

import pytest

from cli.runner import call
from lgdgcn import models

EXAMPLES = Path(__file__).parents[1] / "examples"


def main_of(name):
    return runpy.run_path(str(EXAMPLES / name))["main"]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.name)
def test_every_example_is_short(file):
    assert len(file.read_text().splitlines()) < 80


def test_own_graph(tmp_path, monkeypatch, capsys):
    def run(command, check):
        outcome = call(*command[3:])  # after python -m lgdgcn
        assert (check, outcome.code) == (True, 0), outcome

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("lgdgcn.plots.tsne_map", lambda points, seed: points[:, :2])
    main_of("own_graph.py")(tmp_path, epochs=20)
    assert "person 0" in capsys.readouterr().out
    assert (tmp_path / "run/explore.html").stat().st_size > 100_000
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 91


def test_lgd_conv_in_pyg(capsys):
    main_of("lgd_conv_in_pyg.py")(epochs=21)
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[:3]]
    assert losses[2] < losses[0]


def test_population(capsys):
    main_of("population.py")(epochs=3)
    assert capsys.readouterr().out.count("best validation score") == 9


def test_new_loss(monkeypatch, capsys):
    monkeypatch.setitem(models.MODELS, "decided", None)  # is taken out again
    main_of("new_loss.py")(epochs=15)
    plain, decided = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert decided < plain
