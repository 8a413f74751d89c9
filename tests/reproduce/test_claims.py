"""Every claim finds its numbers, and speaks of what it says."""

from pathlib import Path

import pytest

from lgdgcn.reproduce.cells import FULL
from lgdgcn.reproduce.checks import Outcome
from lgdgcn.reproduce.claims import CLAIMS, OURS, check_claims, summary
from lgdgcn.reproduce.exhibits import Entry, PictureFigure, exhibits
from lgdgcn.reproduce.report import headline_grid
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.statistics import Score
from reproduce.made_up import fill, units


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "cells")


def test_our_variant_does_not_speak_for_the_papers_model(results: Results) -> None:
    """The claims about LGD-GCN in a table with a row of ours are about the others."""
    (table,) = exhibits(["table3"], FULL)
    for group in table.groups:
        for row in group.rows:
            for entry in row.entries:
                names = ["micro_f1", "macro_f1", "micro_f1_at_0.5", "macro_f1_at_0.5"]
                mean = 99.0 if row.id == "ours" else 20.0
                fill(results, entry.cell, dict.fromkeys(names, mean))
    for verdict in check_claims([table], results):
        own = verdict.claim.text.startswith("Ours")
        for finding in verdict.findings:
            assert ("Ours" in finding.evidence) == (own and bool(finding.evidence))
    grid = headline_grid([table], results)
    assert grid is not None
    for row in grid.rows:
        means = [one.ours.mean for one in row if isinstance(one, Score) and one.ours]
        assert means == pytest.approx([20, 99, 20, 20])


def test_every_claim_finds_its_numbers(results: Results) -> None:
    """The ids in the claims are those of the tables and figures."""
    described = exhibits(["all"], FULL)
    for one in described:
        if isinstance(one, PictureFigure):
            for view in one.views:
                results.keep_arrays(view.cell, units(40))
        else:
            for entry in one.entries():
                if not results.runs(entry.cell):
                    _finish(results, entry)
    verdicts = check_claims(described, results)
    assert len(verdicts) == len(CLAIMS)
    for verdict in verdicts:
        missing = [one for one in verdict.findings if one.outcome is Outcome.MISSING]
        assert verdict.findings
        assert not missing, verdict.claim.text
    ours = sum(claim.where == OURS for claim in CLAIMS)
    assert summary(verdicts).startswith(f"Of {len(CLAIMS) - ours} claims about the paper ")
    assert f". Of {ours} claims about our variant " in summary(verdicts)


def _finish(results: Results, entry: Entry) -> None:
    names = ["accuracy", "micro_f1", "macro_f1", "micro_f1_at_0.5", "macro_f1_at_0.5"]
    scores = dict.fromkeys(names, 80.0)
    factors = {"routing_entropy": 0.9, "edge_attribution": 0.5}
    fill(results, entry.cell, scores, local=scores, factors=factors)


def test_exhibits_not_asked_for_give_no_claims(results: Results) -> None:
    assert check_claims([], results) == []
    some = check_claims(exhibits(["fig-k"], FULL), results)
    assert {verdict.claim.exhibit for verdict in some} == {"fig-k"}
    assert {verdict.outcome for verdict in some} == {Outcome.MISSING}
