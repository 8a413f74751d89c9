"""Reasons of edges by `lgdgcn train`, and what the other commands make of them."""

import csv
import json
import re
import tomllib

import numpy as np
import pytest
from matplotlib.image import imread

from browser.fake import decoded
from cli.edge_graph import HOSTILE, write
from cli.runner import call, content, page_of, rows

COLUMNS = ["source", "target", "reason", "probability", "second", "second_probability"]
COLUMNS += ["unknown", "known"]


def read(file):
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def unguarded(cell):
    return cell.removeprefix("'")


def test_types_are_named_and_measured_on_held_back_ones(typed):
    _, run, outcome = typed
    assert (outcome.code, outcome.err) == (0, "")
    assert {*HOSTILE} <= rows(outcome.out).keys()
    assert "2 activities of nodes (log-likelihood of held-out edges:" in outcome.out
    assert "edges of known type were held back; on the " in outcome.out
    result = json.loads((run / "result.json").read_text())["reasons"]
    assert [row["name"] for row in result["reasons"]] == HOSTILE
    assert sum(row["share"] for row in result["reasons"]) == pytest.approx(1, abs=1e-5)
    [held] = result["held_back"]
    assert held["edges"] == round(0.2 * sum(row["known"] != "" for row in predicted(run)))
    assert held["accuracy"] > 0.8
    assert held["calibration_error"] < 0.25
    config = tomllib.loads((run / "config.toml").read_text())
    assert (config["run"]["model"], config["settings"]["factors"]) == ("none", "auto")


def predicted(run, *args):
    outcome = call("predict", run, *args)
    assert (outcome.code, outcome.err) == (0, ""), outcome
    return read(run / "predictions-edges.csv")


def test_predicted_types_beside_the_known_ones(typed):
    graph, run, _ = typed
    table, given = predicted(run), read(graph / "edges.csv")
    known = {frozenset((row["source"], row["target"])): row["type"] for row in given}
    assert list(table[0]) == COLUMNS
    found = {
        frozenset((unguarded(row["source"]), unguarded(row["target"]))): unguarded(row["known"])
        for row in table
    }
    assert found == known
    assert {unguarded(row["reason"]) for row in table} == set(HOSTILE)
    for row in table:
        first, second = float(row["probability"]), float(row["second_probability"])
        assert first >= second
        assert first + second == pytest.approx(1, abs=2e-6)
        assert {unguarded(row["reason"]), unguarded(row["second"])} == set(HOSTILE)
        assert row["known"] == "" or row["unknown"] == "0"
    single = [row for row in table if row["known"] in ("'=1+1", HOSTILE[0])]
    assert single
    assert all(
        row["reason"] == row["known"] for row in single
    )  # what was given is not contradicted


def test_all_probabilities_and_another_file(typed, tmp_path):
    _, run, _ = typed
    outcome = call("predict", run, "--proba", "--out", tmp_path / "e.csv")
    assert outcome.code == 0, outcome
    row = read(tmp_path / "e.csv")[0]
    assert float(row["p:=1+1"]) + float(row["p:</script>[b]"]) == pytest.approx(1, abs=2e-6)


def test_cells_that_a_spreadsheet_would_run_are_guarded(typed):
    _, run, _ = typed
    cells = {cell for row in predicted(run) for cell in row.values()}
    assert {"'=1+1", "'=cmd|' /C calc'!A0"} <= cells
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_reasons_without_types_and_the_picture_of_their_number(untyped):
    _, run, outcome = untyped
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads((run / "result.json").read_text())["reasons"]
    choice = result["choice"]
    assert choice["num_factors"] == len(result["reasons"]) == 2
    assert "the fewest within one standard error of the best number, " in outcome.out
    assert "held back" not in outcome.out
    assert imread(run / "reasons.png").std() > 0.05
    table = predicted(run)
    assert list(table[0]) == COLUMNS
    assert {row["reason"] for row in table} == {"group 1", "group 2"}  # hubs, and no column
    assert "in a column type of edges.csv" in outcome.out
    assert {row["known"] for row in table} == {""}


def test_a_given_number_of_reasons(untyped, tmp_path):
    graph, _, _ = untyped
    args = ["train", graph, "--factors", 1, "--out", tmp_path / "run"]
    args += ["--seeds", 1]
    outcome = call(*args)
    assert "one seed: whether others find the same is not known" in outcome.out
    assert outcome.code == 0, outcome
    assert "the number was given" in outcome.out
    assert {(row["second"], row["second_probability"]) for row in predicted(tmp_path / "run")} == {
        ("", "")
    }
    before = content(tmp_path / "run")
    call(*args).refused("already holds a finished run", "add --overwrite")
    assert content(tmp_path / "run") == before
    assert call(*args, "--overwrite").code == 0
    assert not (tmp_path / "run" / "predictions-edges.csv").exists()  # of the run before


def test_few_known_types_are_not_measured(tmp_path):
    graph = write(tmp_path / "graph", share=0.3, pairs=60, types=["a", "b\x1b[31m"])
    said = json.loads(call("train", graph, "--json", "--out", tmp_path / "json").out)
    assert (said["folder"], said["reasons"]["noun"]) == (str(tmp_path / "json"), "type")
    outcome = call("train", graph, "--out", tmp_path / "run")
    assert outcome.code == 0, outcome
    assert "fewer than 50 edges have a known type" in outcome.out
    assert "\x1b" not in outcome.out


def test_a_single_known_type_is_refused(tmp_path):
    train = ["--out", tmp_path / "run"]
    one = write(tmp_path / "one", share=0.5, types=["@a", "@a"])
    call("train", one, *train).refused("'@a' is the only known type")
    assert not (tmp_path / "run").exists()


def test_reasons_are_described_and_compared_over_seeds(untyped):
    graph, run, outcome = untyped
    assert "agreement with 2 other fits: 100 % where" in outcome.out
    result = json.loads((run / "result.json").read_text())
    for row in result["reasons"]["reasons"]:
        assert len(row["about"]) >= 3
        assert row["stability"]["fits"] == 3
        assert row["stability"]["stable"]  # they were planted
    listed = call("explain", run)
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.count("agreement of 3 fits") == 2
    source, target = (read(graph / "edges.csv")[0][end] for end in ("source", "target"))
    outcome = call("explain", run, "--edge", source, target, "--json")
    found = json.loads(outcome.out)
    assert found["edge"] == [source, target]
    for one in found["reasons"]:
        low, high = one["over_fits"]
        assert low - 1e-6 <= one["probability"] <= high + 1e-6
    node = json.loads(call("explain", run, "--node", source, "--json").out)
    around = {other["id"] for one in node["reasons"] for other in one["neighbours"]}
    rows = [{row["source"], row["target"]} for row in read(graph / "edges.csv")]
    assert around == {name for ends in rows if source in ends for name in ends - {source}}
    assert "predicted" not in node  # such a run is about edges only


def test_an_edge_of_known_types_is_explained_and_shown(typed):
    graph, run, outcome = typed
    assert "agreement with 1 other fit, each without the types" in outcome.out
    known = next(row for row in read(graph / "edges.csv") if row["type"] == HOSTILE[1])
    found = json.loads(
        call("explain", run, "--edge", known["source"], known["target"], "--json").out
    )
    assert found["known"] == [HOSTILE[1]]
    assert {one["name"] for one in found["reasons"]} == set(HOSTILE)
    table = call("explain", run, "--edge", known["source"], known["target"])
    assert (table.code, table.err) == (0, "")
    assert "known type: =1+1; other edges of the ends known as" in table.out
    page = call("explore", run)
    assert (page.code, page.err) == (0, "")
    text = (run / "explore.html").read_text(encoding="utf-8")
    assert "</script>[b]" not in text
    assert '"noun":"type"' in text
    assert call("explore", run, "--out", run / "result.json").refused("is a file of a run")


def test_unknown_edges_are_counted_as_unknown_everywhere(tmp_path):
    draws = np.random.default_rng(0)
    graph, run = tmp_path / "graph", tmp_path / "run"
    graph.mkdir()
    pairs = sorted({tuple(sorted(pair)) for pair in draws.integers(0, 40, (150, 2)).tolist()})
    lines = [f"{a},{b},{'uvwxyz'[draws.integers(6)] if i < 40 else ''}" for i, (a, b) in
             enumerate(pairs) if a != b]  # fmt: skip
    (graph / "edges.csv").write_text("source,target,type\n" + "\n".join(lines) + "\n")
    assert call("train", graph, "--out", run).code == 0
    assert call("predict", run, "--out", tmp_path / "p.csv").code == 0
    table = read(tmp_path / "p.csv")
    unknown = [row for row in table if row["unknown"] == "1"]
    assert unknown  # types of noise say nothing
    node = unknown[0]["source"]
    found = json.loads(call("explain", run, "--node", node, "--json").out)
    own = [sum(node in (row["source"], row["target"]) for row in rows) for rows in (unknown, table)]
    assert sum(one["unknown"] for one in found["reasons"]) == own[0]
    assert sum(len(one["neighbours"]) for one in found["reasons"]) == own[1]
    assert "unknown" in call("explain", run, "--node", node).out
    told = [one["about"][1] for one in json.loads(call("explain", run, "--json").out)["reasons"]]
    counts = [int(count) for line in told for count in re.findall(r"(\d+) of them unknown", line)]
    assert sum(counts) == len(unknown)


def cities(folder, nodes=90):
    """Customers with a label; edges within the same city, and some of nowhere."""
    draws = np.random.default_rng(1)
    city, other = draws.integers(0, 6, nodes), draws.integers(0, nodes, (2, 60))
    first, second = np.triu_indices(nodes, 1)
    kept = (city[first] == city[second]) & (draws.random(len(first)) < 0.4)
    inside = np.stack([first[kept], second[kept]])
    ends = np.unique(np.sort(np.concatenate([other, inside], 1), axis=0), axis=1)
    folder.mkdir()
    rows = [
        f"n{i},town {city[i]},{draws.integers(20, 60)},{'ab'[city[i] % 2]}" for i in range(nodes)
    ]
    (folder / "nodes.csv").write_text("id,city,age,label\n" + "\n".join(rows) + "\n")
    edges = [f"n{a},n{b}" for a, b in ends.T if a != b]
    (folder / "edges.csv").write_text("source,target\n" + "\n".join(edges) + "\n")
    return folder, edges


def test_one_run_has_labels_and_reasons_and_all_verbs_say_the_same(tmp_path):
    (graph, edges), run = cities(tmp_path / "graph"), tmp_path / "run"
    outcome = call("train", graph, "--model", "gcn", "--epochs", 9, "--out", run)
    assert outcome.code == 0, outcome
    assert re.search(r"same city \d+ % \(random pairs \d+ %\)", outcome.out)
    result = json.loads((run / "result.json").read_text())
    assert (result["model"], result["reasons"]["noun"]) == ("gcn", "reason")
    for row in predicted(run)[::40]:
        found = json.loads(
            call("explain", run, "--edge", row["source"], row["target"], "--json").out
        )
        first, second, *_ = found["reasons"]
        assert (first["name"], second["name"]) == (row["reason"], row["second"])
        assert first["probability"] == pytest.approx(float(row["probability"]), abs=2e-6)
        assert found["unknown"] == (row["unknown"] == "1")
    assert call("explore", run).code == 0
    page = page_of(run / "explore.html")
    assert page["factorNames"] == [one["name"] for one in result["reasons"]["reasons"]]
    shares = decoded(page["edgeFactors"]).max(1) / 65535
    probability = [float(row["probability"]) for row in predicted(run)]
    assert shares == pytest.approx(np.array(probability), abs=1e-4)
    # what is predicted without a reason is what is predicted when its edges are deleted by hand
    reasons = {(row["source"], row["target"]): row["reason"] for row in predicted(run)}
    name = result["reasons"]["reasons"][1]["name"]
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "nodes.csv").write_bytes((graph / "nodes.csv").read_bytes())
    kept = [edge for edge in edges if reasons.get(tuple(edge.split(","))) != name]
    assert 0 < len(kept) < len(edges)
    (copy / "edges.csv").write_text("source,target\n" + "\n".join(kept) + "\n")
    out = tmp_path / "p.csv"
    assert call("predict", run, "--graph", copy, "--out", out, "--proba").code == 0
    by_hand = {row["node"]: row for row in read(out)}
    for node in ("n0", "n40"):
        found = json.loads(call("explain", run, "--node", node, "--json").out)
        [without] = [one["without"] for one in found["reasons"] if one["name"] == name]
        assert without["predicted"] == [by_hand[node]["label"]]
        expected = float(by_hand[node]["probability"])
        assert without["probability"] == [pytest.approx(expected, abs=2e-6)]
    assert call("measure", run).code == 0
