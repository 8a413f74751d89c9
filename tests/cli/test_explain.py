"""``lgdgcn explain``: reasons of edges and nodes, recomputed; hostile names; clear refusals."""

import csv
import json
import shutil

import pytest

from cli.conftest import CLASSES, write_graph
from cli.runner import GRAPH, call, page_of, train, widest_table
from lgdgcn.runs.finished import open_run

FORMULA, QUOTED = "=cmd|' /C calc'!A0", "naïve, “quoted”"
HOSTILE = {"n2": "--json", "n3": "-5", "n4": "[bold]x", "n5": "it's", "n6": "</script>", "n7": "𝔘 "}
HOSTILE |= {"n8": "a\u2028b", "n9": "x" * 3000, "n10": "\x9b2J\x1b[31mred"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A run on a graph whose ids look like options, markup and scripts."""
    folder = tmp_path_factory.mktemp("hostile")
    graph = write_graph(folder / "graph")
    for name in ("nodes.csv", "edges.csv"):
        text = (graph / name).read_text()
        for old, new in HOSTILE.items():
            text = text.replace(f'"{old}"', f'"{new}"')
        (graph / name).write_text(text)
    assert train(folder / "run", graph=graph).code == 0
    return folder / "run"


def json_of(*args):
    outcome = call("explain", *args, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


def predictions_of(run, graph, out):
    assert call("predict", run, "--graph", graph, "--proba", "--out", out).code == 0
    with out.open(newline="", encoding="utf-8") as file:
        return {row["node"].removeprefix("'"): row for row in csv.DictReader(file)}


def winners(run, out):
    """The likeliest factor of every edge, as ``predict --edges`` writes it."""
    assert call("predict", run, "--out", out).code == 0
    with out.with_name(f"{out.stem}-edges.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ends = [frozenset(row[end].removeprefix("'") for end in ("source", "target")) for row in rows]
    return dict(zip(ends, (int(row["reason"].split()[1]) for row in rows), strict=True))


def test_counterfactual_is_deleting_the_edges_by_hand(mine, tmp_path):
    graph, run, _ = mine
    factor_of = winners(run, tmp_path / "p.csv")
    own = predictions_of(run, graph, tmp_path / "own.csv")
    assert set(factor_of.values()) == {1, 2}
    with (graph / "edges.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    for factor in (1, 2):
        copy = tmp_path / f"without-{factor}"
        shutil.copytree(graph, copy)
        with (copy / "edges.csv").open("w", newline="") as file:
            kept = [row for row in rows if factor_of[frozenset(row)] != factor]
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([header, *kept])
        by_hand = predictions_of(run, copy, tmp_path / f"{factor}.csv")
        for node in (FORMULA, "n4", "n20"):
            found = json_of(run, "--node", node)
            before = own[node]["label"].removeprefix("'")
            assert found["predicted"] == [before]
            told = found["reasons"][factor - 1]
            assert told["edges"] == list(factor_of.values()).count(factor)
            without = told["without"]
            assert without["predicted"] == [by_hand[node]["label"].removeprefix("'")]
            expected = float(by_hand[node][f"p:{before}"])
            assert without["probability_of_prediction"] == [pytest.approx(expected, abs=2e-6)]
            assert without["probability"] == [
                pytest.approx(float(by_hand[node]["probability"]), abs=2e-6)
            ]


def test_neighbours_of_a_node_by_reason(mine, tmp_path):
    _, run, _ = mine
    factor_of = winners(run, tmp_path / "p.csv")
    found = json_of(run, "--node", QUOTED)
    assert (found["node"], found["labels"]) == (QUOTED, [CLASSES[1]])
    told = {
        frozenset([QUOTED, other["id"]]): one["reason"]
        for one in found["reasons"]
        for other in one["neighbours"]
    }
    assert told == {ends: factor for ends, factor in factor_of.items() if QUOTED in ends}


def test_an_edge_has_reasons_and_evidence(mine):
    _, run, _ = mine
    found = json_of(run, "--edge", "n4", QUOTED)  # as 1 and 4 of the ring with steps of 3
    assert found["edge"] == ["n4", QUOTED]
    shares = [one["probability"] for one in found["reasons"]]
    assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert shares == sorted(shares, reverse=True)
    total = [sum(one["activity"][end] for one in found["reasons"]) for end in (0, 1)]
    assert total == pytest.approx([3, 3], abs=1e-5)  # a node's edges are shared out to factors
    assert all(len(one["about"]) >= 3 for one in found["reasons"])
    assert [end["labels"] for end in found["ends"]] == [[CLASSES[1]], [CLASSES[1]]]
    assert (found["common_neighbours"], found["most_specific_neighbours"]) == (0, [])
    assert {"kind": "label", "name": CLASSES[1], "nodes": 8} in found["shared"]
    assert [one["nodes"] for one in found["shared"]] == sorted(o["nodes"] for o in found["shared"])
    assert json_of(run, "--edge", QUOTED, "n4")["reasons"][0]["probability"] == shares[0]


def test_common_neighbours_are_those_of_both_ends(finished):
    run, _ = finished
    data = open_run(run, "cpu").data
    linked = {node: set() for node in range(120)}
    for source, target in data.edge_index.t().tolist():
        linked[source].add(target)
    first, second = max(
        data.edge_index.t().tolist(), key=lambda e: len(linked[e[0]] & linked[e[1]])
    )
    common = linked[first] & linked[second]
    found = json_of(run, "--edge", first, second)
    assert found["common_neighbours"] == len(common) > 1
    degrees = [len(linked[int(node)]) for node in found["most_specific_neighbours"]]
    assert degrees == sorted(len(linked[node]) for node in common)[:10]


def test_several_labels_and_tables_of_80_columns(finished):
    run, _ = finished
    found = json_of(run, "--node", "7")
    assert len(found["predicted"]) == len(found["probability"]) == 2
    node = call("explain", run, "--node", "7")
    other = next(n["id"] for one in found["reasons"] for n in one["neighbours"])
    edge = call("explain", run, "--edge", "7", other)
    for outcome in (node, edge):
        assert (outcome.code, outcome.err) == (0, "")
        assert widest_table(outcome.out) <= 80
        assert "predicted" in outcome.out
    assert "common neighbours: " in edge.out


@pytest.mark.parametrize("name", [FORMULA, QUOTED, *HOSTILE.values()])
def test_hostile_ids_are_ids(hostile, name):
    found = json_of(hostile, "--node", name)
    assert found["node"] == name
    other = next(n["id"] for one in found["reasons"] for n in one["neighbours"])
    assert json_of(hostile, "--edge", name, other)["edge"] == [name, other]
    shown = [call("explain", hostile, "--node", name, *more).out for more in ([], ["--json"])]
    begins = (name[:20], "a b", "\\x9b2J\\x1b[31mred")
    assert name.strip() in shown[0] or shown[0].startswith(begins)
    assert all(c.isprintable() or c == "\n" for text in shown for c in text)


def test_every_factor_has_a_name_three_lines_and_its_size(hostile, mine):
    _, run, _ = mine
    found = json_of(run)
    assert [one["reason"] for one in found["reasons"]] == [1, 2]
    assert sum(one["share"] for one in found["reasons"]) == pytest.approx(1)
    assert sum(one["edges"] for one in found["reasons"]) == 27
    for one in found["reasons"]:
        assert len(one["about"]) >= 3
        assert {"traits", "typical_edges", "most_active_nodes", "agreements"} <= one.keys()
        assert one["stability"] is None
    text = call("explain", run).out
    assert text.startswith("factor 1")
    assert text.count("common neighbours (random pairs ") == text.count("most active: ") == 2
    assert "one seed: whether others find the same is not known" in text
    hostile_text = call("explain", hostile)
    assert (hostile_text.code, hostile_text.err) == (0, "")
    assert "\u2028" not in hostile_text.out


def test_numbers_have_their_range_over_the_seeds(finished):
    run, _ = finished
    opened = open_run(run, "cpu")
    [other] = opened.other_seeds
    found = json_of(run, "--node", "7")
    assert found["fits"] == 2
    task = opened.trained.task
    logits = [model(opened.data).logits[7:8] for model in (opened.trained, other)]
    labels = task.predict(logits[0])[0].nonzero().flatten()
    both = [task.probabilities(one)[0, labels].tolist() for one in logits]
    expected = [sorted(pair) for pair in zip(*both, strict=True)]
    assert found["over_fits"] == [pytest.approx(pair, abs=1e-6) for pair in expected]
    assert found["over_fits"] != [[p, p] for p in found["probability"]]  # seeds do differ
    for one in found["reasons"]:
        assert {"agreement", "low", "high", "stable", "fits"} == one["stability"].keys()
        told = one["without"]
        for value, (low, high) in zip(
            told["probability_of_prediction"], told["over_fits"], strict=True
        ):
            assert low <= value <= high
    neighbour = next(n for one in found["reasons"] for n in one["neighbours"])
    edge = json_of(run, "--edge", "7", neighbour["id"])
    assert edge["reasons"][0]["over_fits"] == neighbour["over_fits"]
    text = call("explain", run, "--node", "7").out
    assert "seeds" in text
    assert widest_table(text) <= 80
    assert "agreement" in text
    assert "one seed" not in text
    unstable = [one["reason"] for one in found["reasons"] if not one["stability"]["stable"]]
    assert call("explain", run).out.count("is not stable") == len(unstable)


def test_factors_of_a_model_without_them_are_those_of_the_one_beside_it(tmp_path, quick_measures):
    run, beside = tmp_path / "run", tmp_path / "run/compared/lgdgcn"
    assert train(run, "--model", "gcn", epochs=2).code == 0
    assert train(beside, epochs=2).code == 0
    whose = f"factors are those of LGD-GCN (ours), in {beside}; GCN predicts labels"
    assert json_of(run)["factors_of"] == whose
    said = call("explain", run, "--node", "7")
    assert whose in said.out
    known = predictions_of(run, GRAPH, tmp_path / "p.csv")["7"]["label"]
    assert json_of(run, "--node", "7")["predicted"] == known.split("|")  # what predict writes
    for verb in ("explain", "measure", "explore"):
        outcome = call(verb, run)
        assert outcome.code == 0, outcome.err
        assert outcome.out.count(whose) == 1
    assert whose in page_of(run / "explore.html")["warnings"]
    assert (run / "measure.json").is_file()
    assert not {"measure.json", "explore.html"} & {file.name for file in beside.iterdir()}
    assert call("predict", run).code == 0
    with (run / "predictions.csv").open() as file:
        assert "factor" not in next(csv.reader(file))  # GCN knows none
    outcome = call("predict", run)
    assert outcome.code == 0, outcome.err
    assert outcome.out.count(whose) == 1
    assert json.loads(call("predict", run, "--json").out)["factors_of"] == whose
    assert call("predict", beside).code == 0
    edges = [(one / "predictions-edges.csv").read_bytes() for one in (run, beside)]
    assert edges[0] == edges[1]
    assert call("show", run).out.count(whose) == 1
    shutil.rmtree(run / "compared")
    assert "edges are not written: there are no reasons" in call("predict", run).out


def test_the_model_of_a_seed_that_is_missing_is_named(finished, tmp_path):
    run = shutil.copytree(finished[0], tmp_path / "run")
    lost = sorted(run.glob("model-seed-*.safetensors"))
    assert lost
    for file in lost:
        file.unlink()
    assert "is missing: of 2 seeds 1 is looked at" in call("explain", run).err
