"""Where nothing is routed, every command that names factors of edges says so, once."""

import json
import shutil

import pytest

from commands.conftest import write_graph
from commands.runner import call, result_of, train
from commands.test_explore import page_of

SAID = "warning: routing entropy is 1.0000: every edge is shared by all factors almost alike"


@pytest.fixture
def quick_measures(monkeypatch):
    """The measures without resamples, which take most of the time."""
    from lgdgcn.metrics.controls import measure

    def quick(trained, data):
        return measure(trained, data, resamples=0)

    monkeypatch.setattr("lgdgcn.commands.measure.measure", quick)
    monkeypatch.setattr("lgdgcn.metrics.controls.measure", quick)


def test_train_says_it_once_for_all_seeds_and_keeps_it(unrouted):
    folder, outcome = unrouted
    assert outcome.code == 0
    assert outcome.out.count(SAID.replace("warning: ", "warning: LGD-GCN (paper): ")) == 1
    assert outcome.out.count("nothing is routed") == 1  # nor of a model without factors
    result = json.loads((folder / "result.json").read_text())
    assert [text for text in result["warnings"] if "nothing is routed" in text] == [
        text for text in result["warnings"] if text.startswith("routing entropy is 1.0000: ")
    ]
    assert result["warnings"]
    assert result_of(folder / "compared/gcn")["warnings"] == []


def test_measure_says_it(unrouted, quick_measures, tmp_path):
    outcome = call("measure", unrouted[0], "--out", tmp_path / "m.json")
    assert (outcome.code, outcome.err, outcome.out.count(SAID)) == (0, "", 1)


@pytest.mark.parametrize("more", [[], ["--edges"]], ids=["nodes", "edges"])
def test_predict_says_it(unrouted, tmp_path, more):
    outcome = call("predict", unrouted[0], "--out", tmp_path / "p.csv", *more)
    assert (outcome.code, outcome.err, outcome.out.count(SAID)) == (0, "", 1)


def test_explain_says_it(unrouted):
    outcome = call("explain", unrouted[0], "--node", "3")
    assert (outcome.code, outcome.err, outcome.out.count(SAID)) == (0, "", 1)
    found = json.loads(call("explain", unrouted[0], "--node", "3", "--json").out)
    assert f"warning: {found['warnings'][-1]}".startswith(SAID)


def test_the_page_is_told_once(unrouted, quick_measures, tmp_path):
    assert call("explore", unrouted[0], "--out", tmp_path / "page.html").code == 0
    page = page_of(tmp_path / "page.html")
    assert f"warning: {page['unrouted']}".startswith(SAID)
    kept = json.loads((unrouted[0] / "result.json").read_text())["warnings"]
    assert page["unrouted"] in kept
    assert page["warnings"] == [text for text in kept if text != page["unrouted"]]


def test_runs_of_earlier_versions_are_told_of_too(unrouted, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(unrouted[0], run)
    result = json.loads((run / "result.json").read_text())
    del result["warnings"]
    (run / "result.json").write_text(json.dumps(result))
    assert call("predict", run, "--out", tmp_path / "p.csv").out.count(SAID) == 1


def test_where_edges_are_routed_nobody_says_it(quick_measures, tmp_path):
    run = tmp_path / "run"
    said = [
        train(run, "--variant", "sharp"),
        call("measure", run),
        call("predict", run, "--out", tmp_path / "p.csv", "--edges"),
        call("explore", run),
    ]
    assert [outcome.code for outcome in said] == [0, 0, 0, 0]
    assert not any("routing entropy is" in outcome.out + outcome.err for outcome in said)
    result = result_of(run)
    assert result["factors"]["routing_entropy"] < 0.9
    assert not any("routing entropy" in text for text in result["warnings"])
    assert page_of(run / "explore.html")["unrouted"] is None


@pytest.mark.parametrize("case", ["one factor", "no edges"])
def test_where_there_is_nothing_to_route_nobody_says_it(quick_measures, tmp_path, case):
    graph = write_graph(tmp_path / "graph")
    settings = ["--set", "factors=1"] if case == "one factor" else ["--set", "tau=1000"]
    if case == "no edges":
        (graph / "edges.csv").write_text("source,target\n")
    run = tmp_path / "run"
    said = [
        train(run, *settings, graph=graph, epochs=2),
        call("measure", run),
        call("predict", run, "--out", tmp_path / "p.csv"),
        call("explore", run),
    ]
    assert [outcome.code for outcome in said] == [0, 0, 0, 0], said
    assert not any("routing entropy is" in outcome.out + outcome.err for outcome in said)
    assert page_of(run / "explore.html")["unrouted"] is None
