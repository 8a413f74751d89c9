"""Agreement of fits: 1 for the same edges under any name, about 0 for chance."""

import numpy as np
import pytest

from lgdgcn.errors import InputError
from lgdgcn.reasons.fit import fit_edges
from lgdgcn.reasons.stability import stability
from reasons.planted import activity_graph


def one_hot(winner, count):
    return np.eye(count)[winner]


def test_same_edges_under_other_names_agree():
    winner = np.random.default_rng(0).integers(0, 3, 200)
    found = stability([one_hot(winner, 3), one_hot((winner + 1) % 3, 3), one_hot(winner, 4)])
    assert np.allclose(found.mean, 1)
    assert found.agreement.shape == (2, 3)
    assert all("not stable" not in note for note in found.notes)


def test_chance_is_near_zero_even_for_a_large_reason():
    draws = np.random.default_rng(0)
    fits = [one_hot((draws.random(4000) < 0.1).astype(int), 2) for _ in range(5)]
    found = stability(fits)
    assert (found.mean < 0.1).all()  # a plain Jaccard index of the first would be 0.8
    assert all(note.endswith("is not stable") for note in found.notes)


def test_agreement_by_hand():
    first = one_hot(np.array([0, 0, 0, 0, 1, 1, 1, 1]), 2)
    other = one_hot(np.array([0, 0, 0, 1, 1, 1, 1, 1]), 2)
    # J = 3/4 and 4/5; by chance 4·3/8 = 1.5 of 5.5 and 4·5/8 = 2.5 of 6.5
    chance = np.array([1.5 / 5.5, 2.5 / 6.5])
    assert np.allclose(stability([first, other]).mean, ([0.75, 0.8] - chance) / (1 - chance))


def test_one_reason_splits_the_other_stays():
    winner = np.repeat([0, 1], 100)
    split = np.where(winner == 1, 1 + np.arange(200) % 2, 0)
    found = stability([one_hot(winner, 2), one_hot(split, 3)])
    assert found.mean[0] == 1
    assert found.mean[1] < 0.5
    assert found.is_stable.tolist() == [True, False]


def test_one_reason_for_all_edges_and_an_unused_one():
    everything = one_hot(np.zeros(10, int), 2)
    assert stability([everything, everything]).mean.tolist() == [1, 0]


def test_planted_carriers_are_stable():
    ends, _ = activity_graph()
    fits = [fit_edges(ends, 150, num_factors=3, seed=seed).probability for seed in range(3)]
    assert stability(fits).is_stable.all()


@pytest.mark.parametrize(
    ("fits", "words"),
    [([np.eye(2)], "at least 2 fits: 1"), ([np.eye(2), np.eye(3)], "the same edges")],
)
def test_what_cannot_be_compared_is_refused(fits, words):
    with pytest.raises(InputError, match=words):
        stability(fits)
