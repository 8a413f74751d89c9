"""Deletion curves: the factor that owns the label matters more than random edges."""

import numpy as np
import pytest
import torch
from faithfulness import deletion_curve, faithfulness

from lgdgcn import LGDClassifier
from lgdgcn.data.source import GraphSource
from lgdgcn.reasons import Edges, Explanation


def star():
    """Node 0 with 4 edges of the first factor and 6 of the second; only the first one counts."""
    pairs = Edges.of(np.array([[0] * 10, range(1, 11)]), 11)
    probability = np.repeat([[0.9, 0.1], [0.2, 0.8]], [4, 6], axis=0)

    def predict(removed):
        left = 1 - removed[:4].sum() / 4
        return np.tile([0.2 + 0.8 * left, 0.1], (11, 1))

    return predict, pairs, probability


def test_the_factor_that_owns_the_label_falls_by_hand():
    named = np.zeros(11, dtype=int)
    curve = deletion_curve(*star(), named, np.array([0]), most=6, draws=400)
    assert curve.removed.tolist() == [1, 2, 3, 4, 5, 6]
    assert curve.nodes.tolist() == [1, 1, 1, 1, 0, 0]
    assert curve.named[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert curve.random[:4] == pytest.approx([0.08, 0.16, 0.24, 0.32], abs=0.03)  # 0.8 k / 10
    assert np.isnan(curve.named[4:]).all()
    assert np.isnan(curve.error).all()  # of one node nothing is known of the spread


def test_the_error_is_that_of_the_mean_difference():
    predict, pairs, _ = star()

    def uneven(removed):  # node 1 has the edges of node 0 again, and they count for less
        found = predict(removed[:10])
        found[1] = predict(removed[9:])[1] / 3
        return found

    both = Edges.of(np.concatenate([pairs.ends, [[1] * 9, range(2, 11)]], 1), 11)
    shares = np.tile([0.2, 0.8], (len(both), 1))
    shares[[0, 1, 2, 3, 10, 11, 12]] = 0.9, 0.1
    named, often = np.zeros(11, dtype=int), {"most": 2, "draws": 2000}
    curve = deletion_curve(uneven, both, shares, named, np.array([0, 1]), **often)
    one, other = (
        deletion_curve(uneven, both, shares, named, np.array([node]), **often) for node in (0, 1)
    )
    gaps = [single.named - single.random for single in (one, other)]
    assert curve.error == pytest.approx(np.abs(gaps[0] - gaps[1]) / 2, abs=0.01)
    assert (curve.error > 0.02).all()


def test_a_factor_that_does_not_count_falls_less_than_random():
    curve = deletion_curve(*star(), np.ones(11, dtype=int), np.array([0]), most=4, draws=20)
    assert (curve.named == 0).all()
    assert (curve.random > 0).all()


def test_a_leaf_has_no_other_edge_to_compare_with():
    curve = deletion_curve(*star(), np.zeros(11, dtype=int), np.array([1, 2]), most=2)
    assert curve.nodes.tolist() == [0, 0]


def test_a_trained_model_is_faithful_on_planted_factors():
    data = GraphSource("synthetic:nodes=120,classes=3,factors=2,average_degree=12").load(0)
    model = LGDClassifier(hidden_channels=8, factors=2, epochs=60, budget="none").fit(data)
    explanation = Explanation.of_factors(model.trained_, data)
    before = torch.clone(data.edge_index)
    curve = faithfulness(explanation, count=40, most=5, draws=2)
    assert (curve.nodes > 30).all()
    # a node has about six edges of each factor: one or two less hardly move a sure prediction
    assert (curve.named > 2 * curve.random)[3:].all(), curve
    assert torch.equal(before, data.edge_index)
