"""Means, and the t-tests behind what is told apart: those of scipy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind_from_stats, ttest_rel

from lgdgcn.reproduce.exhibits import Entry
from lgdgcn.reproduce.results import Results
from lgdgcn.reproduce.statistics import (
    Difference,
    Mean,
    Score,
    compare,
    contrast,
    difference,
    score,
    seed_scores,
)
from reproduce.made_up import cell, fill


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "cells")


def test_a_mean_is_in_per_cent_with_its_spread():
    mean = Mean.of([0.7, 0.6])
    assert (mean.mean, mean.count) == (pytest.approx(65), 2)
    assert mean.std == pytest.approx(np.std([70, 60], ddof=1))
    assert mean.error == pytest.approx(mean.std / 2**0.5)
    assert Mean.of([0.5]) == Mean(50.0, 0.0, 1)


@pytest.mark.parametrize("apart", [0.3, 0.9, -2.0])
def test_differences_are_sure_where_welchs_test_is(apart: float) -> None:
    ours, other = Mean(80 + apart, 0.9, 10), Mean(80, 0.4, 5)
    p = ttest_ind_from_stats(80 + apart, 0.9, 10, 80, 0.4, 5, equal_var=False).pvalue
    assert difference(ours, other).is_significant() == (p < 0.05)
    assert difference(ours, other).is_significant(tests=4) == (p < 0.05 / 4)


def test_one_mean_is_tested_as_by_scipy() -> None:
    shares = [0.52, 0.5, 0.51, 0.53, 0.49, 0.54]
    mean = Mean.of(shares)
    p = ttest_1samp(shares, 0.5).pvalue
    apart = replace(Difference.of(mean), value=mean.mean - 50)
    for tests in (1, 2, 4, 8):
        assert apart.is_significant(tests) == (p < 0.05 / tests)


def test_a_contrast_of_several_means_adds_their_variances() -> None:
    terms = [(0.5, Mean(80, 1.0, 10)), (0.5, Mean(82, 2.0, 5)), (-1, Mean(79, 1.5, 8))]
    found = contrast([(weight, Difference.of(mean)) for weight, mean in terms])
    variances = [(weight * mean.std) ** 2 / mean.count for weight, mean in terms]
    assert found.value == pytest.approx(2)
    assert found.error == pytest.approx(sum(variances) ** 0.5)
    parts = [v**2 / (mean.count - 1) for v, (_, mean) in zip(variances, terms, strict=True)]
    assert found.freedom == pytest.approx(sum(variances) ** 2 / sum(parts))


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
    assert apart.is_significant()
    another = Entry(fill(results, cell(lr=0.5), {"accuracy": 80}, std=2.0), "accuracy")
    assert compare(ours, another, results) == difference(*_means(results, ours, another))


def test_one_seed_decides_nothing() -> None:
    apart = difference(Mean(90, 0, 1), Mean(10, 0.5, 10))
    assert not apart.is_significant()
    assert str(apart) == "+80.0"


def test_a_deviation_that_is_not_printed_is_taken_from_ours() -> None:
    assert Score(Mean(83.0, 0.5, 10), (84.0, None), 10).differs
    assert not Score(Mean(83.8, 0.5, 10), (84.0, None), 10).differs
    assert Score(Mean(83.0, 0.0, 1), (84.0, 0.2), 10).differs
    assert Score(Mean(83.0, 0.0, 1), (84.0, None), 10).differs is None


def test_measures_are_numbers_of_a_table_like_scores(results: Results) -> None:
    one = fill(results, cell(), {"micro_f1": 80}, factors={"edge_attribution": 0.5})
    runs = results.runs(one)
    for seed in range(4):  # of an earlier version
        runs[seed].factors.clear()
    results.add(one, runs.values())
    found = score(Entry(one, "edge_attribution"), results)
    assert found.ours == Mean(50, 0, 6)
    assert (found.gap, found.better) == ("", "higher")
    factors = {"routing_entropy": 0.5, "factor_usage": 2.5}
    counted = fill(results, cell("pubmed"), {"accuracy": 80}, factors=factors)
    entropy, usage = (score(Entry(counted, name), results).ours for name in factors)
    assert (entropy.mean, usage.mean) == (50, 2.5)  # a share in per cent, a number as it is
    lacking = score(Entry(one, "routing_entropy"), results)
    assert (lacking.ours, lacking.gap, lacking.better) == (None, "", "lower")
    untrained = score(Entry(cell(k=9), "edge_attribution"), results)
    assert untrained.gap == "0 of 10 seeds"
