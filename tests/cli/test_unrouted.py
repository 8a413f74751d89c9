"""Where factors do not say why edges are there, training and all that shows factors say so."""

import json

import pytest

from cli.conftest import write_graph
from cli.runner import call, page_of, result_of, train
from cli.test_warnings import write_classes
from lgdgcn.runs.finished import lost_to

SHARED = "warning: routing entropy is 1.0000: every edge is shared by all factors almost alike"
IN_ONE = "warning: one factor is the likeliest of all edges, so factors do not say why an edge is"


@pytest.fixture(scope="session")
def in_one(tmp_path_factory):
    """A run on a graph whose edges are of one kind: they join nodes of one class."""
    folder = tmp_path_factory.mktemp("in_one")
    graph = write_classes(folder / "graph", "the class")
    return folder / "run", train(folder / "run", "--compare", "gcn", graph=graph)


@pytest.fixture(params=["shared", "in one"])
def failed(request):
    """Two runs that failed in their ways: the folder, what train printed, what is to be said."""
    is_shared = request.param == "shared"
    run = request.getfixturevalue("unrouted" if is_shared else "in_one")
    return *run, SHARED if is_shared else IN_ONE


def test_train_says_it_once_for_all_seeds_and_keeps_it(failed):
    folder, outcome, said = failed
    variant = "paper" if said == SHARED else "ours"
    assert outcome.code == 0
    assert outcome.out.count(said.replace("warning: ", f"warning: LGD-GCN ({variant}): ")) == 1
    assert outcome.out.count(said.removeprefix("warning: ")) == 1  # not of a model without factors
    assert sum(f"warning: {text}".startswith(said) for text in result_of(folder)["warnings"]) == 1
    assert result_of(folder / "compared/gcn")["warnings"] == []


@pytest.mark.parametrize("verb", ["explain", "measure"])
def test_verbs_that_show_factors_say_it_again(failed, quick_measures, verb):
    run, _, said = failed
    outcome = call(verb, run)
    assert (outcome.out + outcome.err).count(said) == 1


def test_a_factor_without_edges_is_not_described(in_one):
    run, _ = in_one
    whole = call("explain", run).out
    assert whole.count("no edges: it is the likeliest of none") == 1
    assert whole.count("more than usual") == whole.count("most active") == 1
    node = call("explain", run, "--node", "n3").out
    assert [line for line in node.splitlines() if "no edges" in line] in (
        ["no edges: factor 1"],
        ["no edges: factor 2"],
    )
    one, other = json.loads(call("explain", run, "--json").out)["reasons"]
    assert sorted([len(one["most_active_nodes"]), len(other["most_active_nodes"])]) == [0, 5]


def test_the_page_is_told_once(failed, quick_measures, tmp_path):
    run, _, said = failed
    assert call("explore", run, "--out", tmp_path / "page.html").code == 0
    page = page_of(tmp_path / "page.html")
    assert f"warning: {page['unrouted']}".startswith(said)
    kept = result_of(run)["warnings"]
    assert page["unrouted"] in kept
    lost = lost_to(result_of(run), run)
    told = [text for text in kept if text != page["unrouted"]]
    assert page["warnings"] == told + [lost] * (lost is not None)


def test_where_edges_are_routed_nobody_says_it(quick_measures, tmp_path):
    run = tmp_path / "run"
    said = [
        train(run, "--model", "lgdgcn"),
        call("measure", run),
        call("predict", run, "--out", tmp_path / "p.csv"),
        call("explore", run),
    ]
    assert [outcome.code for outcome in said] == [0, 0, 0, 0]
    assert not any("warning:" in outcome.out + outcome.err for outcome in said)
    result = result_of(run)
    assert result["factors"]["routing_entropy"] < 0.9
    assert result["warnings"] == []
    assert page_of(run / "explore.html")["unrouted"] is None


@pytest.mark.parametrize("case", ["one factor", "no edges"])
def test_where_there_is_nothing_to_route_nobody_says_it(quick_measures, tmp_path, case):
    graph = write_graph(tmp_path / "graph")
    settings = (
        ["--set", "factors=1"]
        if case == "one factor"
        else ["--set", "iterations=1", "--set", "tau=1000"]
    )
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
    printed = "".join(outcome.out + outcome.err for outcome in said)
    assert "routing entropy is" not in printed
    assert "say why an edge is there" not in printed
    assert page_of(run / "explore.html")["unrouted"] is None


# Factors that are not needed

SAID = "factors take under 1 % of the edges; factors="
MANY = ["--model", "lgdgcn", "--set", "factors=14", "--set", "hidden_channels=42"]


def test_factors_without_edges_are_named(quick_measures, tmp_path):
    run = tmp_path / "run"
    trained = train(run, *MANY, "--seeds", 2)
    measured = call("measure", run)
    assert (trained.code, measured.code) == (0, 0)
    (kept,) = [text for text in result_of(run)["warnings"] if SAID in text]
    assert " of 14 factors take" in kept
    assert trained.out.count(f"warning: {kept}") == 1
    assert "warning: " not in measured.out
    assert 1 <= result_of(run)["factors"]["factor_usage"] < 14
