"""``lgdgcn explore``: a page from a run folder, or one line that says why not."""

import json
import re

import pytest

from cli.runner import call, page_of


@pytest.fixture
def measured(monkeypatch):
    """Stands in for the measures, which take seconds."""
    rows = [{"name": "mig", "title": "Block MIG", "value": 0.5}]
    monkeypatch.setattr("lgdgcn.metrics.controls.measure", lambda trained, data: rows)
    return rows


def test_a_page_of_a_run(finished, measured, tmp_path):
    folder, _ = finished
    outcome = call("explore", folder, "--out", tmp_path / "page.html")
    assert (outcome.code, outcome.err) == (0, "")
    assert re.fullmatch(r".*page\.html \(\d+\.\d MB\)\n", outcome.out)
    page = page_of(tmp_path / "page.html")
    result = json.loads((folder / "result.json").read_text())
    best = max(result["runs"], key=lambda run: run["val"])
    assert page["title"] == "LGD-GCN on synthetic"
    assert page["measures"] == measured
    assert page["scores"]["test micro_f1"] == best["test"]
    assert page["scores"]["test micro_f1, mean of 2 seeds"] == result["mean"]
    assert [curve["seed"] for curve in page["curves"]] == [0, 1]
    assert {"total", "classification", "edge"} <= set(page["curves"][0]["terms"])


def test_warnings_of_a_run_are_on_its_page(finished, measured, tmp_path):
    folder, _ = finished
    result = json.loads((folder / "result.json").read_text())
    before = (folder / "result.json").read_bytes()
    result["warnings"] = ["the kept epoch is the first of 8"]
    try:
        (folder / "result.json").write_text(json.dumps(result))
        outcome = call("explore", folder, "--out", tmp_path / "page.html")
    finally:
        (folder / "result.json").write_bytes(before)
    assert outcome.code == 0
    lost = f"{result['verdict']['sentence']}; the better run is in {folder / 'compared/gcn'}"
    assert page_of(tmp_path / "page.html")["warnings"] == [*result["warnings"], lost]


def test_names_of_a_users_graph_and_the_default_place(mine, measured, monkeypatch):
    _, run, _ = mine
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert call("explore", run, "--open").code == 0
    page = page_of(run / "explore.html")
    assert page["ids"][0] == "=cmd|' /C calc'!A0"
    assert sorted(page["classes"]) == ["=1+1", "größe", "plain"]
    assert opened == [(run / "explore.html").resolve().as_uri()]
    (run / "explore.html").unlink()


def test_measures_that_are_there_are_shown(mine, tmp_path):
    _, run, _ = mine
    rows = [{"name": "cka", "title": "CKA", "value": None}]
    (run / "measure.json").write_text(json.dumps(rows))
    try:
        assert call("explore", run, "--out", tmp_path / "page.html").code == 0
        assert page_of(tmp_path / "page.html")["measures"] == rows
        (run / "measure.json").write_text("[3")
        call("explore", run, "--out", tmp_path / "other.html").refused("measure.json", "damaged")
    finally:
        (run / "measure.json").unlink()
    assert not (tmp_path / "other.html").exists()
