"""All measures on units whose answer is known."""

import numpy as np
import pytest
import torch

from lgdgcn.errors import InputError
from lgdgcn.metrics import MEASURES, dependence, disentanglement, factor_usage, headline
from lgdgcn.metrics.catalogue import HEADLINE
from lgdgcn.metrics.controls import permuted
from lgdgcn.metrics.inputs import checked
from lgdgcn.metrics.suite import all_draws
from lgdgcn.nn import Disentangled
from metrics.planted import CLASSES, graph, makers, perfect, random_chances, rotated

EDGES, Y_FACTOR = graph()
UNITS = perfect(Y_FACTOR)
CHANCES = makers(EDGES, Y_FACTOR)
NEED_FACTORS = ["edge_attribution", "dci_disentanglement",
                "dci_completeness", "dci_informativeness", "leakage", "mig"]  # fmt: skip


@pytest.fixture(scope="module")
def best():
    return disentanglement(UNITS, EDGES, CHANCES, Y_FACTOR)


@pytest.fixture(scope="module")
def mixed():
    return disentanglement(rotated(UNITS), EDGES, random_chances(EDGES, 3), Y_FACTOR)


def test_planted_factors_are_found(best):
    assert list(best) == list(MEASURES)
    for name in NEED_FACTORS:
        assert best[name] == pytest.approx(float(name != "leakage"), abs=0.02), name
    assert best["edge_attribution"] == 1
    assert best["dci_disentanglement"] == best["dci_completeness"] == 1
    assert best["factor_usage"] == pytest.approx(factor_usage(CHANCES))
    assert 2.9 < best["factor_usage"] <= 3
    assert best["determinant_diversity"] <= 1
    assert best["correlation_ratio"] > 5
    assert best["cka"] < 0.01
    assert best["distance_correlation"] < 0.1


def test_rotated_mixtures_and_random_edges_fall_to_chance(mixed):
    assert mixed["edge_attribution"] == pytest.approx(1 / 3, abs=0.04)
    assert mixed["dci_disentanglement"] < 0.1
    assert mixed["dci_completeness"] < 0.1
    assert mixed["mig"] < 0.25  # a few channels favour one factor or another
    assert mixed["leakage"] > 0.9
    assert mixed["dci_informativeness"] == pytest.approx(1, abs=0.02)  # it is all still there
    assert mixed["correlation_ratio"] == pytest.approx(1, abs=0.25)


def test_units_that_know_nothing_are_not_disentangled():
    noise = torch.randn(480, 3, 4, generator=torch.Generator().manual_seed(0))
    found = disentanglement(noise, EDGES, CHANCES, Y_FACTOR)
    assert found["dci_disentanglement"] == found["dci_completeness"] == 0
    assert found["dci_informativeness"] == pytest.approx(1 / CLASSES, abs=0.06)
    assert found["leakage"] < 0.06
    assert found["mig"] < 0.03


def same(one, other, tolerance=1e-4):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name] == pytest.approx(other[name], abs=tolerance), name


@pytest.mark.parametrize("units", [UNITS, rotated(UNITS)], ids=["pure", "mixed"])
def test_the_order_of_units_and_of_channels_within_them_says_nothing(units):
    chances = random_chances(EDGES, 3)
    found = disentanglement(units, EDGES, chances, Y_FACTOR)
    same(found, disentanglement(units[:, :, [2, 0, 3, 1]], EDGES, chances, Y_FACTOR))
    order = [1, 2, 0]
    same(found, disentanglement(units[:, order], EDGES, chances[:, order], Y_FACTOR), 2e-3)
    same(found, disentanglement(units, EDGES, chances, Y_FACTOR[:, order]))


def first_channels(count):
    some = CHANCES[:, :count] + 1e-9
    return some / some.sum(1, keepdim=True)


def test_more_units_than_factors_and_fewer():
    more = disentanglement(UNITS, EDGES, CHANCES, Y_FACTOR[:, :2])
    assert more["dci_disentanglement"] == 1
    assert more["mig"] == pytest.approx(1, abs=0.02)
    few = disentanglement(UNITS[:, :2], EDGES, first_channels(2), Y_FACTOR)
    assert few["dci_disentanglement"] == few["dci_completeness"] == 1
    assert few["dci_informativeness"] == pytest.approx((2 + 1 / CLASSES) / 3, abs=0.03)
    assert few["edge_attribution"] < 0.75


def test_a_subset_without_factors():
    found = disentanglement(UNITS, EDGES, CHANCES)
    assert [name for name in found if found[name] is None] == NEED_FACTORS
    y = Y_FACTOR[:, 0]
    by_class = disentanglement(UNITS, EDGES, CHANCES, y=y)
    assert by_class.pop("dci_informativeness") == 1
    assert by_class == {k: v for k, v in found.items() if k != "dci_informativeness"}
    sets = torch.nn.functional.one_hot(y).float()
    assert disentanglement(UNITS, EDGES, CHANCES, y=sets) == found


def test_unknown_classes_are_passed_over():
    y_factor = Y_FACTOR.clone()
    y_factor[::7] = -1
    found = disentanglement(UNITS, EDGES, CHANCES, y_factor)
    assert found["edge_attribution"] == found["dci_disentanglement"] == 1
    assert disentanglement(UNITS, EDGES, CHANCES, torch.full_like(Y_FACTOR, -1)) == disentanglement(
        UNITS, EDGES, CHANCES
    )


def test_class_numbers_are_names():
    names = Y_FACTOR * 1_000_003 + 5
    same(disentanglement(UNITS, EDGES, CHANCES, names), disentanglement(
        UNITS, EDGES, CHANCES, Y_FACTOR))  # fmt: skip


def test_a_factor_of_one_class_has_nothing_to_tell():
    flat = torch.cat([Y_FACTOR[:, :1], torch.zeros_like(Y_FACTOR[:, :1])], 1)
    found = disentanglement(UNITS, EDGES, CHANCES, flat)
    assert found["dci_disentanglement"] is None  # one factor is left
    assert found["dci_completeness"] == pytest.approx(1)
    assert found["dci_informativeness"] == 1


def finite(found):
    assert all(value is None or np.isfinite(value) for value in found.values()), found


@pytest.mark.parametrize("constant", [slice(0, 1), slice(None)], ids=["one", "all"])
def test_constant_units(constant):
    units = UNITS.clone()
    units[:, constant] = 0.25
    found = disentanglement(units, EDGES, CHANCES, Y_FACTOR)
    finite(found)
    if constant == slice(None):
        assert found["dci_disentanglement"] == found["cka"] == found["mig"] == 0


@pytest.mark.parametrize("shape", [(1, 3, 4), (3, 3, 4), (480, 1, 4), (480, 3, 1)])
def test_tiny_shapes(shape):
    units = UNITS[: shape[0], : shape[1], : shape[2]]
    inside = (shape[0] > EDGES).all(0)
    chances = first_channels(shape[1])[inside]
    finite(disentanglement(units, EDGES[:, inside], chances, Y_FACTOR[: shape[0]]))


def test_no_edges():
    found = disentanglement(UNITS, torch.empty(2, 0, dtype=torch.int64), CHANCES[:0], Y_FACTOR)
    none = ["edge_attribution", "routing_entropy", "factor_usage"]
    assert [name for name in found if found[name] is None] == none


def test_many_nodes_are_sampled(monkeypatch):
    chance = np.random.default_rng(0)
    units = chance.normal(size=(600, 2, 2))
    units[:, 1] += units[:, 0]  # of all nodes and of some the numbers are close, not equal
    edges = np.empty((2, 0), int), np.empty((0, 2))
    whole = disentanglement(units, *edges)
    monkeypatch.setattr(dependence, "MOST_NODES", 500)
    found = disentanglement(units, *edges)
    assert found == disentanglement(units, *edges)
    for name in ("cka", "distance_correlation"):
        assert found[name] != whole[name]
        assert found[name] == pytest.approx(whole[name], rel=0.25)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"units": UNITS * torch.nan}, "units has values that are NaN"),
        ({"units": UNITS[0]}, "units has shape"),
        ({"units": UNITS[:0]}, "at least one"),
        ({"edge_factors": CHANCES[:, :2]}, r"give \[2, E\] and \[E, 3\]"),
        ({"edge_factors": CHANCES / 0}, "edge_factors has values"),
        ({"edge_factors": -CHANCES}, "negative"),
        ({"edge_factors": 2 * CHANCES}, "off a sum of 1"),
        ({"edge_index": EDGES + 0.5}, "edge_index has type torch.float32"),
        ({"edge_index": EDGES + 1}, r"outside 0\.\.479"),
        ({"y_factor": Y_FACTOR[:5]}, "one row for 480 nodes"),
        ({"y_factor": Y_FACTOR + 0.5}, "whole numbers"),
        ({"y": Y_FACTOR[:5, 0]}, "one row for 480 nodes"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, words):
    given = {"units": UNITS, "edge_index": EDGES, "edge_factors": CHANCES, "y_factor": Y_FACTOR}
    with pytest.raises(InputError, match=words):
        disentanglement(**given | change)


def test_the_headline_is_part_of_the_whole(best):
    layer = Disentangled(UNITS, UNITS, CHANCES)
    assert headline(layer, EDGES, Y_FACTOR) == {name: best[name] for name in HEADLINE}
    some = ["routing_entropy", "factor_usage", "correlation_ratio"]
    assert list(headline(layer, EDGES)) == some
    assert headline(Disentangled(UNITS * torch.nan, UNITS, CHANCES), EDGES) == {}


# Controls and intervals


def test_permuted_channels_destroy_the_partition_and_keep_the_rest(best):
    inputs = checked(UNITS, EDGES, CHANCES, Y_FACTOR)
    shuffled = permuted(inputs, seed=3)
    flat, other = (each.units.reshape(480, -1) for each in (inputs, shuffled))
    assert sorted(map(tuple, flat.T)) == sorted(map(tuple, other.T))
    for row, dealt in zip(inputs.pair_factors[:50], shuffled.pair_factors, strict=False):
        assert sorted(row) == sorted(dealt)
    found = {name: draws[0] for name, draws in all_draws(shuffled).items()}
    assert found["edge_attribution"] == pytest.approx(1 / 3, abs=0.04)
    assert found["dci_disentanglement"] < 0.5
    assert found["leakage"] > 0.3
    assert found["correlation_ratio"] < best["correlation_ratio"] / 2
    for name in ("routing_entropy", "dci_informativeness"):  # nothing is lost
        assert found[name] == pytest.approx(best[name])


def test_draws_spread_around_the_value_and_repeat():
    inputs = checked(rotated(UNITS), EDGES, random_chances(EDGES, 3), Y_FACTOR)
    draws = all_draws(inputs, resamples=20, seed=1)
    again = all_draws(inputs, resamples=20, seed=1)
    for name, values in draws.items():
        assert values.shape == (21,), name
        assert np.array_equal(values, again[name]), name
        assert values[1:].std() < 0.2, name
        assert abs(values[1:].mean() - values[0]) < 6 * values[1:].std() + 0.05, name
