"""``lgdgcn reproduce``: trains, reports, and goes on where it stopped."""

import os
import signal
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cli.runner import call, rows
from lgdgcn.cli import console, reproduce
from lgdgcn.reproduce import edges, exhibits
from lgdgcn.reproduce.cells import FULL
from lgdgcn.reproduce.exhibits import CurveFigure, Entry, Panel, ResultRow, Series
from reproduce.made_up import table
from reproduce.tiny import cell

CELLS = [cell("gcn", epochs=5), cell(epochs=5)]
PANELS = ("cora", "citeseer")  # that claims are about


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A table and a curve that share a cell, whatever is asked for."""
    paper = Entry(CELLS[0], "micro_f1", (50.0, 1.0))
    series = Series("LGD-GCN", (4.0,), (Entry(CELLS[1], "micro_f1"),))
    made_up = [
        table(["A"], ResultRow("gcn", "GCN", (paper,)), name="table1"),
        CurveFigure(
            "fig-k", "Smaller", tuple(Panel(one, "P", "k", "F1", (series,)) for one in PANELS)
        ),
    ]
    monkeypatch.setattr("lgdgcn.reproduce.exhibits.exhibits", lambda names, plan: made_up)


def test_a_report_is_written_and_nothing_trained_twice(tmp_path):
    first = call("reproduce", "--quick", "--out", tmp_path / "out", "--device", "cpu")
    assert first.code == 0, first.err
    printed = rows(first.out)
    assert printed["table1"][:3] == ["1", "2", "0"]
    assert printed["fig-k"][:3] == ["1", "2", "0"]
    assert f"report: {tmp_path / 'out/report.html'}" in first.out
    assert "100 %: 4 of 4 trainings" in first.err
    assert {"report.md", "report.html"} <= {file.name for file in (tmp_path / "out").iterdir()}
    again = call("reproduce", "--quick", "--out", tmp_path / "out", "--device", "cpu")
    assert (again.code, again.err) == (0, "")
    assert again.out == first.out


def test_a_signal_saves_and_the_command_goes_on(tmp_path, monkeypatch):
    @contextmanager
    def progress(what, *, after=0.0, tenths=False):
        seen = []

        def update(share, note):
            seen.append(note)
            if tenths and len(seen) == 8:
                os.kill(os.getpid(), signal.SIGINT)

        yield update

    args = ["reproduce", "table1", "--out", tmp_path / "out", "--device", "cpu"]
    with monkeypatch.context() as patch:
        patch.setattr(console, "progress", progress)
        stopped = call(*args)
    assert stopped.refused("stopped after 2 of 4 trainings", "repeat the command", code=130)
    assert not (tmp_path / "out/report.md").exists()
    assert len(list((tmp_path / "out/cells").glob("*.json"))) == 1
    done = call(*args)
    assert "100 %: 2 of 2 trainings" in done.err
    assert (tmp_path / "out/report.md").exists()


def test_without_the_published_graphs_the_rest_is_done(tmp_path, monkeypatch):
    small, curves = exhibits.exhibits([], None)
    entry = replace(curves.panels[0].series[0].entries[0], cell=cell("gcn", graph="lgd_syn_fac4"))
    series = replace(curves.panels[0].series[0], entries=(entry,))
    needy = replace(curves, panels=(replace(curves.panels[0], series=(series,)),))
    monkeypatch.setattr("lgdgcn.reproduce.exhibits.exhibits", lambda names, plan: [small, needy])
    monkeypatch.delenv("LGDGCN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = call("reproduce", "--quick", "--out", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    assert "without fig-k: lgd_syn_fac4" in result.err
    assert "table1" in rows(result.out)
    assert "fig-k" not in rows(result.out)
    named = call("reproduce", "fig-k", "--quick", "--out", tmp_path / "out", "--device", "cpu")
    assert named.code == 2
    assert "lgd_syn_fac4" in named.err


def test_a_report_keeps_what_earlier_commands_have_trained(tmp_path, monkeypatch):
    out = tmp_path / "out"
    one = exhibits.exhibits(["table1"], FULL)[0]
    both = [one, replace(one, name="table2")]
    monkeypatch.setattr("lgdgcn.reproduce.runs.train_cells", lambda *args, **kwargs: 0)
    monkeypatch.setattr("lgdgcn.reproduce.graphs.data_tables", lambda *args: [])
    monkeypatch.setattr(reproduce, "_print", lambda *args: None)
    shown = []
    monkeypatch.setattr(
        "lgdgcn.reproduce.report.write_report",
        lambda path, exhibits, *args, **kwargs: shown.append(exhibits),
    )
    monkeypatch.setattr(reproduce, "_done", lambda exhibit, results: exhibit is both[1])
    monkeypatch.setattr(
        "lgdgcn.reproduce.exhibits.exhibits",
        lambda names, plan: both[:1] if names != ["all"] else both,
    )
    reproduce.reproduce(["table1"], out=out, device="cpu")
    assert shown == [both]
    monkeypatch.setattr(reproduce, "_done", lambda exhibit, results: False)
    reproduce.reproduce(["table1"], out=out, device="cpu")
    assert shown[1] == both[:1]
    assert (out / "figures").is_dir()


def test_types_of_edges(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    ends = [(a, b) for a in range(12) for b in range(a + 1, 12) if (a < 6) == (b < 6)]
    text = "".join(f"{a},{b},{'low' if a < 6 else 'high'}\n" for a, b in ends)
    (folder / "edges.csv").write_text(f"source,target,type\n{text}")
    fast = [method for method in edges.METHODS if method.id in ("majority", "line-spectral")]
    monkeypatch.setattr(edges.run_graph, "__defaults__", (fast, lambda text: None))
    args = ["reproduce", f"edges:{folder}", "--quick", "--out", tmp_path / "out"]
    first = call(*args)
    assert first.code == 0, first.err
    assert "mine, no help: line-graph spectral clustering" in first.err
    assert "| majority | 0.500 ± 0.000 |" in (tmp_path / "out/edges.md").read_text()
    assert (tmp_path / "out/figures/edges.png").is_file()
    again = call(*args)
    assert again.code == 0
    assert "no help" not in again.err  # nothing is run twice
    (folder / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    refused = call(*args)
    assert refused.code == 2
    assert "column 'type'" in refused.err
