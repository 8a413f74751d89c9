"""The figure of the units, also of odd ones."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.image import imread

from lgdgcn import plots
from lgdgcn.errors import InputError
from lgdgcn.reasons import ModelChoice


def units(nodes, factors, channels, seed=0):
    z = torch.rand(nodes, factors, channels, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(z, dim=-1)


@pytest.mark.parametrize(
    "z",
    [
        units(12, 1, 4),
        units(2, 2, 3),
        units(1, 2, 3),
        units(10, 2, 1),
        units(5, 1, 1),
        units(8, 11, 2),
        torch.ones(9, 3, 2),
        torch.zeros(4, 2, 2),
        units(8, 2, 3).double().requires_grad_(),
        units(6, 2, 2).half(),
    ],
    ids=["M=1", "N=2", "N=1", "d=1", "M=d=1", "M=11", "constant", "zero", "grad", "half"],
)
def test_any_units_give_a_picture(tmp_path, z):
    plots.plot_units(z, tmp_path / "units.png", "Units")
    assert [file.name for file in tmp_path.iterdir()] == ["units.png"]
    pixels = imread(tmp_path / "units.png")
    assert pixels.shape[:2] == (720, 1575)
    assert pixels[..., :3].std() > 0.05  # not blank


@pytest.mark.parametrize("title", ["a $b$ ^_{ c", "$", "größe ☃", "x" * 300])
def test_a_title_is_text(tmp_path, title, monkeypatch):
    monkeypatch.setattr(plots, "tsne_map", lambda points, seed: points[:, :2])
    plots.plot_units(units(4, 2, 2), tmp_path / "units.png", title)
    assert (tmp_path / "units.png").stat().st_size > 1000


def test_the_same_units_give_the_same_picture(tmp_path):
    for name in ("a.png", "b.png"):
        plots.plot_units(units(20, 2, 3), tmp_path / name, "Units")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_factors_have_colours_of_their_own():
    assert len({plots.factor_color(m) for m in range(16)}) == 16


def test_large_graphs_are_sampled(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(plots, "MOST_POINTS", 40)
    monkeypatch.setattr(
        plots, "tsne_map", lambda points, seed: seen.append(points) or points[:, :2]
    )
    plots.plot_units(units(500, 4, 2), tmp_path / "units.png", "Units")
    assert seen[0].shape == (40, 2)


@pytest.mark.parametrize("old", [None, b"the figure before"])
def test_a_failed_plot_leaves_nothing_half_written(tmp_path, monkeypatch, old):
    monkeypatch.setattr(plots, "tsne_map", lambda points, seed: points[:, :2])

    def fail(self, file, **options):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    if old is not None:
        (tmp_path / "units.png").write_bytes(old)
    with pytest.raises(InputError, match=r"cannot write .*units.png: No space left"):
        plots.plot_units(units(4, 2, 2), tmp_path / "units.png", "Units")
    left = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert left == ({} if old is None else {"units.png": old})


def test_correlation_against_numpy():
    values = np.random.default_rng(0).normal(size=(30, 4))
    values[:, 2] = 3.0
    found = plots.channel_correlation(values)
    kept = [0, 1, 3]
    assert np.allclose(found[np.ix_(kept, kept)], np.abs(np.corrcoef(values[:, kept].T)))
    assert not found[2].any()
    assert not found[:, 2].any()


def test_no_backend_is_chosen_for_the_user():
    code = "import sys, lgdgcn.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(("cliques", "kinds"), [(False, 0), (False, 2), (True, 5)])
def test_the_number_of_reasons_is_drawn(tmp_path, cliques, kinds):
    curve = ((1, 2, 3), (-3.0, -2.0, -1.9), (0.1, 0.2, 0.0), -1.0)
    choice = ModelChoice(cliques, 5 if kinds else 2, False, *curve, kinds)
    plots.plot_reasons(choice, tmp_path / "reasons.png", "$a_graph$ [b]")
    pixels = imread(tmp_path / "reasons.png")[..., :3]
    chosen = matplotlib.colors.to_rgb(plots.COLORS[5])  # the ring around the chosen number
    assert np.isclose(pixels, chosen, atol=0.01).all(-1).any() == (not cliques)
