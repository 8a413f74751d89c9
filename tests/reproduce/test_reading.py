"""Claims are read off numbers as a careful reader would."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import ttest_ind_from_stats, ttest_rel

from lgdgcn.reproduce.catalogue import exhibits
from lgdgcn.reproduce.claims import CLAIMS
from lgdgcn.reproduce.contrast import Difference, compare, difference
from lgdgcn.reproduce.exhibits import Curves, Entry, Panel, Picture, Row, Series, Table, View
from lgdgcn.reproduce.figure_checks import (
    best_around,
    more_in_blocks,
    rises_then_falls,
    stable_then_falls,
)
from lgdgcn.reproduce.finding import Finding, Outcome, combine, judge, together
from lgdgcn.reproduce.plan import FULL
from lgdgcn.reproduce.protocol import headline
from lgdgcn.reproduce.reading import read_claims, summary
from lgdgcn.reproduce.results import Mean, Results
from lgdgcn.reproduce.score import Score, score, seed_scores
from lgdgcn.reproduce.table_checks import (
    attains,
    beats,
    finds_factors,
    lead_shrinks,
    reaches,
    routes,
)
from reproduce.made_up import accuracy_row, cell, fill, units

HOLDS, FAILS, UNDECIDED = Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "cells")


def _table(results: Results, rows: dict[str, Sequence[float | None]], std: float = 0.5) -> Table:
    columns = ("Cora", "Citeseer")
    made = []
    for number, (label, means) in enumerate(rows.items()):
        cells = [cell(column.lower(), lr=0.001 * (number + 1)) for column in columns]
        printed = [(84.0, 0.4)] * 2
        made.append(accuracy_row(results, "Standard split", label, cells, means, printed, std=std))
    return Table("table2", "Accuracy", columns, tuple(made))


def _curve(results: Results, means: Sequence[float | None], std: float = 0.5) -> Curves:
    values = tuple(float(number) for number in range(len(means)))
    entries = []
    for value, mean in zip(values, means, strict=True):
        one = cell(lambda_space=value)
        if mean is not None:
            fill(results, one, {"accuracy": mean}, std=std)
        entries.append(Entry(one, "accuracy"))
    panel = Panel("k on Cora", "k", "%", (Series("LGD-GCN", values, tuple(entries)),))
    return Curves("fig-k", "k", (panel,))


def _outcomes(findings: list[Finding]) -> list[Outcome]:
    return [finding.outcome for finding in findings]


@pytest.mark.parametrize("apart", [0.3, 0.9, -2.0])
def test_differences_are_sure_where_welchs_test_is(apart: float) -> None:
    ours, other = Mean(80 + apart, 0.9, 10), Mean(80, 0.4, 5)
    p = ttest_ind_from_stats(80 + apart, 0.9, 10, 80, 0.4, 5, equal_var=False).pvalue
    assert difference(ours, other).is_sure() == (p < 0.05)
    assert difference(ours, other).is_sure(tests=4) == (p < 0.05 / 4)


def test_a_shared_random_split_is_paired(results: Results) -> None:
    pair = [cell(split="random", lr=lr) for lr in (0.1, 0.2)]
    ours, other = (Entry(fill(results, one, {"accuracy": 80}), "accuracy") for one in pair)
    runs = results.runs(other.cell)
    for seed, share in seed_scores(ours, results).items():  # half a point below, split by split
        runs[seed].scores["test"]["accuracy"] = share - 0.005 - 0.0001 * seed
    results.add(other.cell, runs.values())
    apart = compare(ours, other, results)
    shares = [list(seed_scores(entry, results).values()) for entry in (ours, other)]
    paired = ttest_rel(*shares)
    assert apart is not None
    assert apart.error is not None
    assert apart.freedom == 9
    assert apart.value / apart.error == pytest.approx(paired.statistic)
    fewer = Entry(replace(other.cell, seeds=tuple(range(5))), "accuracy")  # not the same seeds
    assert compare(ours, fewer, results) == difference(*_means(results, ours, fewer))


def _means(results: Results, *entries: Entry) -> list[Mean]:
    return [Mean.of(seed_scores(entry, results).values()) for entry in entries]


def test_the_same_models_are_paired_but_not_the_same_seeds(results: Results) -> None:
    one = fill(results, cell(), {"accuracy": 80.2}, std=2.0, local={"accuracy": 80.0})
    runs = results.runs(one)
    for seed, run in runs.items():
        run.local_scores["test"]["accuracy"] -= 0.0001 * seed
    results.add(one, runs.values())
    ours, local = Entry(one, "accuracy"), Entry(one, "accuracy", local=True)
    apart = compare(ours, local, results)
    assert apart is not None
    assert apart.is_sure()
    another = Entry(fill(results, cell(lr=0.5), {"accuracy": 80}, std=2.0), "accuracy")
    assert compare(ours, another, results) == difference(*_means(results, ours, another))


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
    table = _table(results, rows)
    for rivals, expected in ((("GCN",), FAILS), (("GCN", *"abcdef"), UNDECIDED)):
        found = beats("Standard split", "LGD-GCN", *rivals)(table, results)
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


def test_one_seed_decides_nothing() -> None:
    apart = difference(Mean(90, 0, 1), Mean(10, 0.5, 10))
    assert not apart.is_sure()
    assert str(apart) == "+80.0"


def test_a_rival_is_beaten_only_beyond_noise(results: Results) -> None:
    table = _table(results, {"LGD-GCN": (84.0, 80.0), "DisenGCN": (82.0, 79.9), "GCN": (80, 82)})
    rivalry = beats("Standard split", "LGD-GCN", "DisenGCN")(table, results)
    assert _outcomes(rivalry) == [HOLDS, UNDECIDED]
    assert rivalry[0].evidence == "LGD-GCN 84.0, DisenGCN 82.0: +2.0 ± 0.2"
    best = beats("Standard split", "LGD-GCN", "DisenGCN", "GCN")(table, results)
    assert _outcomes(best) == [HOLDS, FAILS]
    assert "GCN 82.0" in best[1].evidence


def test_variants_are_chosen_on_validation(results: Results) -> None:
    table = _table(
        results, {"LGD-GCN (paper)": (90, 70), "LGD-GCN (released)": (80, 80), "B": (85, 75)}
    )
    lucky = table.rows[0].entries[0].cell  # best on test, worst on validation
    runs = results.runs(lucky)
    for run in runs.values():
        run.scores["val"]["accuracy"] = 0.5
    results.add(lucky, runs.values())
    found = beats("Standard split", "LGD-GCN", "B")(table, results)
    assert found[0].evidence.startswith("LGD-GCN (released) 80.0")
    assert _outcomes(found) == [FAILS, HOLDS]


def test_what_is_missing_is_not_measured(results: Results) -> None:
    table = _table(results, {"LGD-GCN": (84.0, None), "DisenGCN": (82.0, 79.9)})
    check = beats("Standard split", "LGD-GCN", "DisenGCN")
    assert _outcomes(check(table, results)) == [HOLDS, Outcome.MISSING]
    assert _outcomes(reaches("Other", "LGD-GCN")(table, results)) == [Outcome.MISSING] * 2
    assert combine([HOLDS, Outcome.MISSING]) is HOLDS


def test_printed_numbers_are_reached_or_not(results: Results) -> None:
    table = _table(results, {"a": (84.1, 83.0), "b": (83.8, 60.0)})
    assert _outcomes(reaches("Standard split", "a")(table, results)) == [HOLDS, FAILS]
    assert _outcomes(reaches("Standard split", "b")(table, results)) == [UNDECIDED, FAILS]


def test_a_spread_that_is_not_printed_is_taken_from_ours() -> None:
    assert Score(Mean(83.0, 0.5, 10), (84.0, None), 10).differs
    assert not Score(Mean(83.8, 0.5, 10), (84.0, None), 10).differs
    assert Score(Mean(83.0, 0.0, 1), (84.0, 0.2), 10).differs
    assert Score(Mean(83.0, 0.0, 1), (84.0, None), 10).differs is None


def test_a_lead_shrinks(results: Results) -> None:
    table = _table(results, {"DisenGCN": (84.0, 39.0), "GCN": (80.0, 38.0)})
    check = lead_shrinks("Standard split", "DisenGCN", "GCN", "Cora", "Citeseer")
    (finding,) = check(table, results)
    assert finding.outcome is HOLDS
    assert "smaller by +3.0 ± 0.3" in finding.evidence


def test_factors_are_measured(results: Results) -> None:
    made = []
    for entropy, share in ((0.9995, 0.26), (0.5, 0.9)):
        one = cell(lr=share)
        factors = {"routing_entropy": entropy, "edge_attribution": share}
        made.append(Entry(fill(results, one, {"accuracy": 80}, factors=factors), "accuracy"))
    table = Table("table3", "F1", ("4", "6"), (Row("g", "LGD-GCN", tuple(made)),))
    assert _outcomes(routes("g", "LGD-GCN")(table, results)) == [FAILS, HOLDS]
    assert _outcomes(finds_factors("g", "LGD-GCN")(table, results)) == [FAILS, HOLDS]


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
    row = Row("g", "LGD-GCN", (Entry(one, "accuracy"),))
    (found,) = finds_factors("g", "LGD-GCN")(Table("t", "", (str(factors),), (row,)), results)
    assert found.outcome is outcome
    assert found.evidence.endswith(words)


def test_measures_are_numbers_of_a_table_like_scores(results: Results) -> None:
    one = fill(results, cell(), {"micro_f1": 80}, factors={"edge_attribution": 0.5})
    runs = results.runs(one)
    for seed in range(4):  # of an earlier version
        runs[seed].factors.clear()
    results.add(one, runs.values())
    found = score(Entry(one, "edge_attribution"), results)
    assert found.ours == Mean(50, 0, 6)
    assert (found.gap, found.better) == ("", "higher")
    lacking = score(Entry(one, "routing_entropy"), results)
    assert (lacking.ours, lacking.gap, lacking.better) == (None, "", "lower")
    untrained = score(Entry(cell(k=9), "edge_attribution"), results)
    assert untrained.gap == "0 of 10 seeds"


def test_an_aim_is_attained_or_not_beyond_noise(results: Results) -> None:
    table = _table(results, {"a": (60.2, 60.5), "b": (59.0, None)})
    cases = [("a", "Cora"), ("a", "Citeseer"), ("b", "Cora"), ("b", "Citeseer")]
    aims = [attains("Standard split", *case, 60, case[1]) for case in cases]
    found = together(*aims)(table, results)
    assert _outcomes(found) == [UNDECIDED, HOLDS, FAILS, Outcome.MISSING]
    assert found[1] == Finding("Citeseer", HOLDS, "a 60.5 ± 0.5, to reach 60: +0.5 ± 0.2")


def test_our_variant_does_not_speak_for_the_papers_model(results: Results) -> None:
    """The claims about LGD-GCN in a table with a sharp row are about the others."""
    (table,) = exhibits(["table3"], FULL)
    for row in table.rows:
        for entry in row.entries:
            names = ["micro_f1", "macro_f1", "micro_f1_at_0.5", "macro_f1_at_0.5"]
            mean = 99.0 if row.label.startswith("Sharp") else 20.0
            fill(results, entry.cell, dict.fromkeys(names, mean))
    for verdict in read_claims([table], results):
        own = verdict.claim.text.startswith("Sharp")
        for finding in verdict.findings:
            assert ("Sharp" in finding.evidence) == (own and bool(finding.evidence))
    grid = headline([table], results)
    assert grid is not None
    for row in grid.rows:
        means = [one.ours.mean for one in row if isinstance(one, Score) and one.ours]
        assert means == pytest.approx([20, 99, 20, 20])


def test_runs_of_other_seeds_do_not_count(results: Results) -> None:
    own = cell(seeds=2)
    fill(results, own, {"accuracy": 80}, factors={"routing_entropy": 0.5})
    fill(results, own, {"accuracy": 80}, factors={"routing_entropy": 1.0}, only=range(2, 10))
    table = Table("t", "", ("Cora",), (Row("g", "all", (Entry(own, "accuracy"),)),))
    (found,) = routes("g", "all")(table, results)
    assert found == Finding("Cora", HOLDS, "entropy 0.5000 of its maximum")


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((80, 82, 83, 81), [HOLDS, HOLDS]),
        ((80, 82, 83, 84), [HOLDS, FAILS]),
        ((80, 80.1, 80.1, 80), [UNDECIDED, UNDECIDED]),
        ((80, None, None, 80), [Outcome.MISSING]),
    ],
)
def test_rising_and_falling(
    results: Results, means: Sequence[float | None], expected: list[Outcome]
) -> None:
    assert _outcomes(rises_then_falls("k on Cora")(_curve(results, means), results)) == expected


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((83, 83.4, 83.2, 79), [HOLDS, HOLDS]),
        ((80, 83.4, 83.2, 83.5), [FAILS, FAILS]),
        ((83, 83.4, 83.2, 83.1), [HOLDS, UNDECIDED]),
    ],
)
def test_plateaus(results: Results, means: Sequence[float], expected: list[Outcome]) -> None:
    found = stable_then_falls("k on Cora", 2)(_curve(results, means), results)
    assert _outcomes(found) == expected


@pytest.mark.parametrize(
    ("means", "expected"), [((80, 83, 81), HOLDS), ((84, 83, 81), FAILS), ((83, 83, 83), UNDECIDED)]
)
def test_the_best_value(results: Results, means: Sequence[float], expected: Outcome) -> None:
    (found,) = best_around("k on Cora", 1, 1)(_curve(results, means), results)
    assert found.outcome is expected


def test_blocks_are_compared(results: Results) -> None:
    strong, weak = cell(keeps_units=True), cell(keeps_units=True, latent_graph=False)
    results.keep_units(strong, units(strength=2.0))
    results.keep_units(weak, units(strength=0.5))
    views = (View("strong", strong), View("weak", weak), View("gone", cell(k=9)))
    picture = Picture("fig-correlation", "", "correlation", views)
    for first, second, outcome in (
        ("strong", "weak", HOLDS),
        ("weak", "strong", FAILS),
        ("weak", "weak", UNDECIDED),
        ("weak", "gone", Outcome.MISSING),
    ):
        assert _outcomes(more_in_blocks(first, second)(picture, results)) == [outcome]


def test_every_claim_finds_its_numbers(results: Results) -> None:
    """The labels in the claims are those of the described tables and figures."""
    described = exhibits(["all"], FULL)
    for one in described:
        if isinstance(one, Picture):
            for view in one.views:
                results.keep_units(view.cell, units(40))
        else:
            for entry in one.entries():
                if not results.runs(entry.cell):
                    _finish(results, entry)
    verdicts = read_claims(described, results)
    assert len(verdicts) == len(CLAIMS)
    for verdict in verdicts:
        missing = [one for one in verdict.findings if one.outcome is Outcome.MISSING]
        assert verdict.findings
        assert not missing, verdict.claim.text
    ours = sum(claim.is_ours for claim in CLAIMS)
    assert summary(verdicts).startswith(f"Of {len(CLAIMS) - ours} claims about the paper ")
    assert f". Of {ours} claims about the sharp variant, ours, " in summary(verdicts)


def _finish(results: Results, entry: Entry) -> None:
    names = ["accuracy", "micro_f1", "macro_f1", "micro_f1_at_0.5", "macro_f1_at_0.5"]
    scores = dict.fromkeys(names, 80.0)
    factors = {"routing_entropy": 0.9, "edge_attribution": 0.5}
    fill(results, entry.cell, scores, local=scores, factors=factors)


def test_exhibits_not_asked_for_give_no_claims(results: Results) -> None:
    assert read_claims([], results) == []
    some = read_claims(exhibits(["fig-k"], FULL), results)
    assert {verdict.claim.exhibit for verdict in some} == {"fig-k"}
    assert {verdict.outcome for verdict in some} == {Outcome.MISSING}
