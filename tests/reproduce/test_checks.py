"""Claims about tables are read off the numbers as a careful reader would."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lgdgcn.reproduce.checks import (
    Finding,
    Outcome,
    attains,
    beats,
    combine,
    finds_factors,
    judge,
    lead_shrinks,
    reaches,
    routes,
    together,
)
from lgdgcn.reproduce.exhibits import Entry, ResultRow, ResultTable
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.statistics import Difference
from reproduce.made_up import accuracy_row, cell, fill, table

HOLDS, FAILS, UNDECIDED = Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "cells")


def _table(results: Results, rows: dict[str, Sequence[float | None]]) -> ResultTable:
    columns = ("Cora", "Citeseer")
    made = []
    for number, (name, means) in enumerate(rows.items()):
        cells = [cell(column.lower(), lr=0.001 * (number + 1)) for column in columns]
        made.append(accuracy_row(results, name, cells, means, [(84.0, 0.4)] * 2))
    return table(columns, *made)


def _outcomes(findings: list[Finding]) -> list[Outcome]:
    return [finding.outcome for finding in findings]


def test_picking_the_best_needs_better_evidence_on_its_side() -> None:
    apart = Difference(1.0, 0.4, 18)  # p = 0.022
    assert judge(apart, rivals=7) is HOLDS
    assert judge(apart, picked=7) is UNDECIDED
    behind = replace(apart, value=-1.0)
    assert judge(behind) is FAILS
    assert judge(behind, rivals=7) is UNDECIDED
    assert judge(behind, picked=7) is FAILS


def test_many_rivals_make_a_loss_less_sure(results: Results) -> None:
    rows = {"LGD-GCN": (80.0, 80.0), "GCN": (80.5, 81.0)} | dict.fromkeys("abcdef", (79, 79))
    own = _table(results, rows)
    for rivals, expected in ((("GCN",), FAILS), (("GCN", *"abcdef"), UNDECIDED)):
        found = beats("standard", "LGD-GCN", *rivals)(own, results)
        assert _outcomes(found) == [expected, FAILS]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, UNDECIDED, UNDECIDED], Outcome.PARTLY),
        ([HOLDS, FAILS], Outcome.PARTLY),
        ([HOLDS, FAILS, FAILS], FAILS),
        ([UNDECIDED, FAILS], FAILS),
        ([UNDECIDED, Outcome.MISSING], UNDECIDED),
        ([Outcome.MISSING], Outcome.MISSING),
    ],
)
def test_cases_make_a_claim(outcomes: list[Outcome], expected: Outcome) -> None:
    assert combine(outcomes) is expected


def test_a_rival_is_beaten_only_beyond_noise(results: Results) -> None:
    own = _table(results, {"LGD-GCN": (84.0, 80.0), "DisenGCN": (82.0, 79.9), "GCN": (80, 82)})
    rivalry = beats("standard", "LGD-GCN", "DisenGCN")(own, results)
    assert _outcomes(rivalry) == [HOLDS, UNDECIDED]
    assert rivalry[0].evidence == "LGD-GCN 84.0, DisenGCN 82.0: +2.0 ± 0.2"
    best = beats("standard", "LGD-GCN", "DisenGCN", "GCN")(own, results)
    assert _outcomes(best) == [HOLDS, FAILS]
    assert "GCN 82.0" in best[1].evidence


def test_a_loss_of_some_points_can_be_allowed(results: Results) -> None:
    own = _table(results, {"double": (99.6, 98.0), "Ours": (100.0, 100.0)})
    strict = beats("standard", "double", "Ours")(own, results)
    assert _outcomes(strict) == [UNDECIDED, FAILS]
    found = beats("standard", "double", "Ours", allowed=1.0)(own, results)
    assert _outcomes(found) == [HOLDS, FAILS]
    assert found[0].evidence == "double 99.6, Ours 100.0: −0.4 ± 0.2, −1 allowed"


def test_variants_are_chosen_on_validation(results: Results) -> None:
    own = _table(
        results, {"LGD-GCN (paper)": (90, 70), "LGD-GCN (released)": (80, 80), "B": (85, 75)}
    )
    lucky = own.rows("standard")[0].entries[0].cell  # best on test, worst on validation
    runs = results.runs(lucky)
    for run in runs.values():
        run.scores["val"]["accuracy"] = 0.5
    results.add(lucky, runs.values())
    found = beats("standard", "LGD-GCN", "B")(own, results)
    assert found[0].evidence.startswith("LGD-GCN (released) 80.0")
    assert _outcomes(found) == [FAILS, HOLDS]


def test_what_is_missing_is_not_measured(results: Results) -> None:
    own = _table(results, {"LGD-GCN": (84.0, None), "DisenGCN": (82.0, 79.9)})
    check = beats("standard", "LGD-GCN", "DisenGCN")
    assert _outcomes(check(own, results)) == [HOLDS, Outcome.MISSING]
    assert _outcomes(reaches("Other", "LGD-GCN")(own, results)) == [Outcome.MISSING] * 2
    assert combine([HOLDS, Outcome.MISSING]) is HOLDS


def test_printed_numbers_are_reached_or_not(results: Results) -> None:
    own = _table(results, {"a": (84.1, 83.0), "b": (83.8, 60.0)})
    assert _outcomes(reaches("standard", "a")(own, results)) == [HOLDS, FAILS]
    assert _outcomes(reaches("standard", "b")(own, results)) == [UNDECIDED, FAILS]


def test_a_lead_shrinks(results: Results) -> None:
    own = _table(results, {"DisenGCN": (84.0, 39.0), "GCN": (80.0, 38.0)})
    check = lead_shrinks("standard", "DisenGCN", "GCN", "Cora", "Citeseer")
    (finding,) = check(own, results)
    assert finding.outcome is HOLDS
    assert "smaller by +3.0 ± 0.3" in finding.evidence


def test_factors_are_measured(results: Results) -> None:
    made = []
    for entropy, share in ((0.9995, 0.26), (0.5, 0.9)):
        one = cell(lr=share)
        factors = {"routing_entropy": entropy, "edge_attribution": share}
        made.append(Entry(fill(results, one, {"accuracy": 80}, factors=factors), "accuracy"))
    own = table(("4", "6"), ResultRow("lgdgcn", "LGD-GCN", tuple(made)))
    assert _outcomes(routes("standard", "lgdgcn")(own, results)) == [FAILS, HOLDS]
    assert _outcomes(finds_factors("standard", "lgdgcn")(own, results)) == [FAILS, HOLDS]


@pytest.mark.parametrize(
    ("channels", "factors", "share", "outcome", "words"),
    [
        (8, 4, 0.26, FAILS, "25.0% with all of them in one channel"),
        (8, 4, 0.60, HOLDS, "25.0% with all of them in one channel"),
        (
            4,
            12,
            0.18,
            HOLDS,
            "8.3% with all of them in one channel, at most about 33.3% with 4 channels",
        ),
        (
            4,
            12,
            0.10,
            FAILS,
            "8.3% with all of them in one channel, at most about 33.3% with 4 channels",
        ),
        (4, 4, 0.30, FAILS, "25.0% with all of them in one channel"),
    ],
)
def test_attribution_is_compared_with_no_routing(
    results: Results, channels: int, factors: int, share: float, outcome: Outcome, words: str
) -> None:
    one = cell(factors=channels, hidden_channels=64)
    fill(results, one, {"accuracy": 80}, factors={"edge_attribution": share})
    own = table([str(factors)], ResultRow("lgdgcn", "LGD-GCN", (Entry(one, "accuracy"),)))
    (found,) = finds_factors("standard", "lgdgcn")(own, results)
    assert found.outcome is outcome
    assert found.evidence.endswith(words)


def test_an_aim_is_attained_or_not_beyond_noise(results: Results) -> None:
    own = _table(results, {"a": (60.2, 60.5), "b": (59.0, None)})
    cases = [("a", "Cora"), ("a", "Citeseer"), ("b", "Cora"), ("b", "Citeseer")]
    aims = [attains("standard", *case, 60, case[1]) for case in cases]
    found = together(*aims)(own, results)
    assert _outcomes(found) == [UNDECIDED, HOLDS, FAILS, Outcome.MISSING]
    assert found[1] == Finding("Citeseer", HOLDS, "a 60.5 ± 0.5, to reach 60: +0.5 ± 0.2")


def test_runs_of_other_seeds_do_not_count(results: Results) -> None:
    own = cell(seeds=2)
    fill(results, own, {"accuracy": 80}, factors={"routing_entropy": 0.5})
    fill(results, own, {"accuracy": 80}, factors={"routing_entropy": 1.0}, only=range(2, 10))
    one = table(["Cora"], ResultRow("all", "all", (Entry(own, "accuracy"),)))
    (found,) = routes("standard", "all")(one, results)
    assert found == Finding("Cora", HOLDS, "entropy 0.5000 of its maximum")
