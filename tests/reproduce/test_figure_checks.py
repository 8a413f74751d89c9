"""Claims about figures are read off curves and units as a careful reader would."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lgdgcn.reproduce.checks import Finding, Outcome
from lgdgcn.reproduce.exhibits import CurveFigure, Entry, Panel, PictureFigure, Series, View
from lgdgcn.reproduce.figure_checks import (
    best_around,
    more_in_blocks,
    rises_then_falls,
    stable_then_falls,
)
from lgdgcn.reproduce.results import Results
from reproduce.made_up import cell, fill, units

HOLDS, FAILS, UNDECIDED = Outcome.HOLDS, Outcome.FAILS, Outcome.UNDECIDED


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "cells")


def _curve(results: Results, means: Sequence[float | None], std: float = 0.5) -> CurveFigure:
    values = tuple(float(number) for number in range(len(means)))
    entries = []
    for value, mean in zip(values, means, strict=True):
        one = cell(lambda_space=value)
        if mean is not None:
            fill(results, one, {"accuracy": mean}, std=std)
        entries.append(Entry(one, "accuracy"))
    panel = Panel("cora", "k on Cora", "k", "%", (Series("LGD-GCN", values, tuple(entries)),))
    return CurveFigure("fig-k", "k", (panel,))


def _outcomes(findings: list[Finding]) -> list[Outcome]:
    return [finding.outcome for finding in findings]


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
    assert _outcomes(rises_then_falls("cora")(_curve(results, means), results)) == expected


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((83, 83.4, 83.2, 79), [HOLDS, HOLDS]),
        ((80, 83.4, 83.2, 83.5), [FAILS, FAILS]),
        ((83, 83.4, 83.2, 83.1), [HOLDS, UNDECIDED]),
    ],
)
def test_plateaus(results: Results, means: Sequence[float], expected: list[Outcome]) -> None:
    found = stable_then_falls("cora", 2)(_curve(results, means), results)
    assert _outcomes(found) == expected


@pytest.mark.parametrize(
    ("means", "expected"), [((80, 83, 81), HOLDS), ((84, 83, 81), FAILS), ((83, 83, 83), UNDECIDED)]
)
def test_the_best_value(results: Results, means: Sequence[float], expected: Outcome) -> None:
    (found,) = best_around("cora", 1, 1)(_curve(results, means), results)
    assert found.outcome is expected


def test_blocks_are_compared(results: Results) -> None:
    strong, weak = cell(keeps_units=True), cell(keeps_units=True, latent_graph=False)
    results.keep_arrays(strong, units(strength=2.0))
    results.keep_arrays(weak, units(strength=0.5))
    views = (
        View("strong", "Strong", strong),
        View("weak", "Weak", weak),
        View("gone", "Gone", cell(k=9)),
    )
    picture = PictureFigure("fig-correlation", "", "correlation", views)
    for first, second, outcome in (
        ("strong", "weak", HOLDS),
        ("weak", "strong", FAILS),
        ("weak", "weak", UNDECIDED),
        ("weak", "gone", Outcome.MISSING),
    ):
        assert _outcomes(more_in_blocks(first, second)(picture, results)) == [outcome]
    (found,) = more_in_blocks("strong", "weak")(picture, results)
    assert found.case == "Strong"
    assert "Weak: " in found.evidence
